"""Grok: a model of the person's own in config.toml brings its own key, so that a missing sign-in proves nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bullswarm_core.pools.connector import Account, Connector, SignInState
from bullswarm_providers.sign_in import file_sign_in, read_toml

if TYPE_CHECKING:
    from bullswarm_core.pools.connector import PoolProfile
    from bullswarm_core.pools.model_catalog import Asking, ModelEntry
    from bullswarm_core.provider import LaunchAddition, LaunchContext
    from bullswarm_core.quota.observation import MeterContext, Observation


def sign_in(connector: Connector, account: Account, environ: Mapping[str, str]) -> SignInState:
    """Look at auth.json and the key variable, then at the models in config.toml."""
    state = file_sign_in(connector, account, environ)
    if state.signed_in is not False:
        return state
    config = read_toml(Path(account.config_dir or "") / "config.toml")
    if config is None or config.get("model"):
        return SignInState(None, "config.toml has models of its own", "unknown")
    return state


def launch_addition(context: LaunchContext) -> LaunchAddition:
    """Hand a project's instructions over, which Grok leaves out of a folder without trust, and refuse a trusted one's rest.

    Trust that was given once holds for whatever the project's settings say by now, and no switch takes it back.
    """
    from bullswarm_core.launch.project import obeys
    from bullswarm_core.provider import LaunchAddition

    trusted = _is_trusted(context)
    if trusted and context.project_settings:
        raise obeys("grok", context.project_settings, context.project_root, why="trusts this folder")
    if context.project_allowed:
        return LaunchAddition(environment={"GROK_FOLDER_TRUST": "0"})
    return LaunchAddition(instructions_in_task=not trusted)


def _is_trusted(context: LaunchContext) -> bool:
    """Tell whether the person trusted the folder, one around it, or the repository of a linked work tree, in Grok."""
    store = read_toml(Path(context.profile.config_dir or "") / "trusted_folders.toml")
    if store is None:
        return True
    folders = store.get("folders")
    entries = folders.items() if isinstance(folders, dict) else ()
    trusted = [
        Path(path) for path, entry in entries if not isinstance(entry, dict) or entry.get("trusted") is not False
    ]
    here = [Path(context.cwd), Path(context.project_root or context.cwd)]
    return any(folder.is_relative_to(path) or path.is_relative_to(folder) for folder in here for path in trusted)


def live_reading(context: MeterContext) -> Observation:
    """Ask Grok, else its vendor, for the weekly credits."""
    from bullswarm_providers.grok import meter

    return meter.live_reading(context)


def models(profile: PoolProfile, asking: Asking) -> tuple[ModelEntry, ...]:
    """Ask Grok which models it offers; it tells without a sign-in, too. Raises BullswarmError."""
    from bullswarm_providers.printed_models import from_bullets

    return from_bullets(asking.run(profile, "models"))
