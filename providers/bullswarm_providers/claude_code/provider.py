"""Claude Code: one pool per account folder, several forms of sign-in, and plug-ins that are turned off one by one."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bullswarm_core._dataclasses import replace
from bullswarm_core.pools.connector import Account, Connector, SignInState
from bullswarm_providers.sign_in import first_set, has_content, read_object

if TYPE_CHECKING:
    from datetime import datetime

    from bullswarm_core.pools.connector import PoolProfile
    from bullswarm_core.pools.model_catalog import Asking, ModelEntry
    from bullswarm_core.provider import LaunchAddition, LaunchContext
    from bullswarm_core.quota.observation import MeterContext, Observation
    from bullswarm_core.streams.facts import ExitFacts, StreamFacts

CONFIG_VARIABLE = "CLAUDE_CONFIG_DIR"
_ONE_ACCOUNT_ONLY = "BULLSWARM_DISABLE_CLAUDE_PROFILES"
# A folder with none of these was never used by Claude Code.
_SIGNS = (".credentials.json", ".claude.json", "settings.json", "projects")


def accounts(connector: Connector, environ: Mapping[str, str]) -> tuple[Account, ...]:
    """Find the account folders ~/.claude, ~/.claude-<slug> and $CLAUDE_CONFIG_DIR; one account id is one pool."""
    home = Path(environ["HOME"]) if environ.get("HOME") else Path.home()
    default = home / ".claude"
    named = Path(environ[CONFIG_VARIABLE]) if environ.get(CONFIG_VARIABLE) else None
    found = [_default_account(home, default, named)]
    if not environ.get(_ONE_ACCOUNT_ONLY):
        found += _other_accounts(home, default, named)
    unique: list[Account] = []
    for account in found:
        place = next((place for place, kept in enumerate(unique) if _same(account, kept)), None)
        if place is None:
            unique.append(account)
        elif account.config_dir is not None:
            kept = unique[place]
            unique[place] = replace(kept, other_folders=(*kept.other_folders, account.config_dir))
    return tuple(unique)


def sign_in(connector: Connector, account: Account, environ: Mapping[str, str]) -> SignInState:
    """Follow the order in which Claude Code itself looks for a sign-in; no only on Linux, where it can be proved."""
    names = connector.sign_in
    settings = read_object(Path(account.config_dir or "") / "settings.json")
    block = settings.get("env")
    own = {k: v for k, v in block.items() if isinstance(v, str)} if isinstance(block, dict) else {}
    if name := first_set(names.elsewhere, own) or first_set(names.elsewhere, environ):
        return SignInState(None, f"{name} is set: signed in elsewhere")
    if settings.get("apiKeyHelper"):
        return SignInState(True, "apiKeyHelper is set in settings.json", "api-key")
    if name := first_set(names.api_keys, own):
        return SignInState(True, f"{name} is set in settings.json", "api-key")
    if path := _credentials(account, environ):
        return SignInState(True, f"{path} is there", "subscription", (*names.api_keys, *names.tokens))
    if name := first_set(names.tokens, own) or first_set(names.tokens, environ):
        return SignInState(True, f"{name} is set", "subscription", names.api_keys)
    return _without_file(connector, account, environ)


def _without_file(connector: Connector, account: Account, environ: Mapping[str, str]) -> SignInState:
    names, on_macos = connector.sign_in, sys.platform == "darwin"
    if account.account and on_macos:
        return SignInState(True, "signed in by the keychain", "subscription", names.api_keys)
    if name := first_set(names.api_keys, environ):
        return SignInState(True, f"{name} is set", "api-key")
    if on_macos:
        return SignInState(None, "the keychain may hold a sign-in")
    return SignInState(False, f"not signed in · {names.hint}")


def launch_addition(context: LaunchContext) -> LaunchAddition:
    """Turn off hooks and each plug-in that is turned on; the other settings (sign-in!) stay."""
    from bullswarm_core.provider import LaunchAddition

    if not context.isolated:
        return LaunchAddition()
    project = Path(context.cwd) / ".claude"
    files = [
        Path(context.profile.config_dir or "") / "settings.json",
        project / "settings.json",
        project / "settings.local.json",
    ]
    plugins = {name: False for file in files for name in _plugins(read_object(file))}
    settings: dict[str, Any] = {"disableAllHooks": True}
    if plugins:
        settings["enabledPlugins"] = plugins
    return LaunchAddition(arguments=("--settings", json.dumps(settings, separators=(",", ":"))))


def passive_readings(context: MeterContext) -> tuple[Observation, ...]:
    """Return what Claude Code's own cache tells of the account's usage."""
    from bullswarm_providers.claude_code import meter

    return meter.passive_readings(context)


def live_reading(context: MeterContext) -> Observation:
    """Ask the vendor's usage endpoint once. Raises MeterError."""
    from bullswarm_providers.claude_code import meter

    return meter.live_reading(context)


def attempt_reading(
    profile: PoolProfile, *, stream_file: Path, stream: StreamFacts, ended: ExitFacts, now: datetime
) -> Observation | None:
    """Return what the events of an attempt told of the account's windows."""
    from bullswarm_providers.claude_code import meter

    if profile.billing == "api-key":
        return None
    lines = meter.stream_lines(stream_file)
    return meter.reading_in_stream(lines, started_at=ended.started_at or now, now=now)


def models(profile: PoolProfile, asking: Asking) -> tuple[ModelEntry, ...]:
    """Ask Claude Code which models it offers; no turn is started. Raises BullswarmError."""
    from bullswarm_providers.claude_code.models import list_models

    return list_models(profile, asking)


def _plugins(settings: dict[str, Any]) -> list[str]:
    enabled = settings.get("enabledPlugins")
    return sorted(name for name, on in enabled.items() if on) if isinstance(enabled, dict) else []


def _default_account(home: Path, default: Path, named: Path | None) -> Account:
    # With the variable set, even to ~/.claude, Claude Code keeps .claude.json in the folder instead of beside it.
    if named is not None and named.resolve() == default.resolve():
        identity = _account_id(default / ".claude.json")
        return Account(None, str(default), {CONFIG_VARIABLE: str(named)}, account=identity)
    return Account(None, str(default), withheld=(CONFIG_VARIABLE,), account=_account_id(home / ".claude.json"))


def _other_accounts(home: Path, default: Path, named: Path | None) -> Iterator[Account]:
    try:
        folders = sorted(entry for entry in home.iterdir() if entry.name.startswith(".claude-"))
    except OSError:
        folders = []
    if named is not None and named.is_absolute():
        folders.append(named)
    taken: set[str] = set()
    for folder in folders:
        slug = _slug(folder)
        if slug in taken or not _is_used(folder) or folder.resolve() == default.resolve():
            continue
        taken.add(slug)
        environment = {CONFIG_VARIABLE: str(folder)}
        yield Account(slug, str(folder), environment, account=_account_id(folder / ".claude.json"))


def _slug(folder: Path) -> str:
    name = folder.name.removeprefix(".claude-").lstrip(".")
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._") or "account"


def _is_used(folder: Path) -> bool:
    try:
        return any((folder / sign).exists() for sign in _SIGNS)
    except OSError:
        return False


def _account_id(file: Path) -> str | None:
    account = read_object(file).get("oauthAccount")
    identity = account.get("accountUuid") if isinstance(account, dict) else None
    return identity if isinstance(identity, str) and identity else None


def _same(one: Account, other: Account) -> bool:
    same_folder = Path(one.config_dir or "").resolve() == Path(other.config_dir or "").resolve()
    return same_folder or (one.account is not None and one.account == other.account)


def _credentials(account: Account, environ: Mapping[str, str]) -> str | None:
    folder = environ.get("CLAUDE_SECURESTORAGE_CONFIG_DIR") or account.config_dir or ""
    paths = [Path(folder) / ".credentials.json"]
    if account.suffix is None:
        paths.append(Path(environ.get("HOME", "")) / ".config" / "claude" / "credentials.json")
    return next((str(path) for path in paths if has_content(path)), None)
