"""GitHub Copilot CLI: its sign-in may be in the keyring, and its MCP servers are turned off one by one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bullswarm_core.connector import Account, Connector, SignInState
from bullswarm_providers.sign_in import file_sign_in, read_object

if TYPE_CHECKING:
    from bullswarm_core.connector_launch import LaunchAddition, LaunchContext
    from bullswarm_core.quota.observing import MeterContext, Observation

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
    """Leave each of the person's MCP servers out; Copilot has no switch for all of them."""
    from bullswarm_core.connector_launch import LaunchAddition

    if not context.isolated:
        return LaunchAddition()
    servers = read_object(Path(context.profile.config_dir or "") / "mcp-config.json").get("mcpServers")
    names = sorted(servers) if isinstance(servers, dict) else []
    return LaunchAddition(arguments=tuple(word for name in names for word in ("--disable-mcp-server", name)))


def live_reading(context: MeterContext) -> Observation:
    """Ask GitHub for what is left of the month."""
    from bullswarm_providers.copilot import meter

    return meter.live_reading(context)
