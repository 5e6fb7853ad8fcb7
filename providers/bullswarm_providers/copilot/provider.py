"""GitHub Copilot CLI: its sign-in may be in the keyring, and its MCP servers are turned off one by one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bullswarm_core.pools.connector import Account, Connector, SignInState
from bullswarm_providers.sign_in import file_sign_in, read_object

if TYPE_CHECKING:
    from bullswarm_core.provider import LaunchAddition, LaunchContext
    from bullswarm_core.quota.observation import MeterContext, Observation

# The spelling of the key changed between versions.
_SIGNED_IN = ("lastLoggedInUser", "last_logged_in_user", "loggedInUsers", "logged_in_users")


def sign_in(connector: Connector, account: Account, environ: Mapping[str, str]) -> SignInState:
    """Look at the variables, then at who signed in last; the token itself may be where no file shows it."""
    state = file_sign_in(connector, account, environ)
    if state.signed_in is not False:
        return state
    settings = read_object(Path(account.config_dir or "") / "config.json")
    if any(settings.get(name) for name in _SIGNED_IN):
        return SignInState(True, "config.json names who signed in", "subscription")
    return SignInState(None, "the keyring, or the GitHub CLI, may hold a sign-in")


def has_meter(connector: Connector, account: Account, environ: Mapping[str, str]) -> bool:
    """Tell whether there is a plan to meter: with a model provider of the person's own there is none."""
    return not any(environ.get(name) for name in connector.sign_in.elsewhere)


def launch_addition(context: LaunchContext) -> LaunchAddition:
    """Leave each of the person's MCP servers out; Copilot has no switch for all of them.

    Raises WorkerStartError for settings of a project in a folder that the person trusted in Copilot: trust that was given
    once holds for whatever they say by now, and no switch takes it back.
    """
    from bullswarm_core.launch.project import obeys
    from bullswarm_core.provider import LaunchAddition

    if context.project_settings and _is_trusted(context):
        raise obeys("copilot", context.project_settings, context.project_root, why="trusts this folder")
    trust = ("--trust-folder",) if context.project_allowed else ()
    if not context.isolated:
        return LaunchAddition(arguments=trust)
    servers = read_object(Path(context.profile.config_dir or "") / "mcp-config.json").get("mcpServers")
    names = sorted(servers) if isinstance(servers, dict) else []
    return LaunchAddition(arguments=trust + tuple(word for name in names for word in ("--disable-mcp-server", name)))


def _is_trusted(context: LaunchContext) -> bool:
    """Tell whether the person trusted the folder, one around it, or the repository of a linked work tree, in Copilot."""
    folder = Path(context.profile.config_dir or "")
    files = [read_object(folder / name) for name in ("config.json", "settings.json")]
    lists = [file.get(name) for file in files for name in ("trustedFolders", "trusted_folders")]
    trusted = [Path(path) for each in lists if isinstance(each, list) for path in each if isinstance(path, str)]
    here = [Path(context.cwd), Path(context.project_root or context.cwd)]
    return any(each.is_relative_to(path) or path.is_relative_to(each) for each in here for path in trusted)


def live_reading(context: MeterContext) -> Observation:
    """Ask GitHub for what is left of the month."""
    from bullswarm_providers.copilot import meter

    return meter.live_reading(context)
