"""Claude Code: one pool per account folder, a sign-in with several forms, and plug-ins that are turned off one by one."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bullswarm_core.connector import Account, Connector, LaunchAddition, LaunchContext, SignInState
from bullswarm_providers.sign_in import first_set, has_content, read_object

CONFIG_VARIABLE = "CLAUDE_CONFIG_DIR"
_ONE_ACCOUNT_ONLY = "BULLSWARM_DISABLE_CLAUDE_PROFILES"
# A folder with none of these was never used by Claude Code.
_SIGNS = (".credentials.json", ".claude.json", "settings.json", "projects")


def accounts(connector: Connector, environ: Mapping[str, str]) -> tuple[Account, ...]:
    """Find the account folders ~/.claude, ~/.claude-<slug> and $CLAUDE_CONFIG_DIR; one account id is one pool."""
    home = environ.get("HOME") or os.path.expanduser("~")
    default = os.path.join(home, ".claude")
    named = environ.get(CONFIG_VARIABLE)
    found = [_default_account(home, default, named)]
    if not environ.get(_ONE_ACCOUNT_ONLY):
        found += _other_accounts(home, default, named)
    unique: list[Account] = []
    for account in found:
        if not any(_same(account, kept) for kept in unique):
            unique.append(account)
    return tuple(unique)


def sign_in(connector: Connector, account: Account, environ: Mapping[str, str]) -> SignInState:
    """Follow the order in which Claude Code itself looks for a sign-in; no only on Linux, where it can be proved."""
    names = connector.sign_in
    settings = read_object(os.path.join(account.config_dir or "", "settings.json"))
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
    if account.account and sys.platform == "darwin":
        return SignInState(True, "signed in by the keychain", "subscription", names.api_keys)
    if name := first_set(names.api_keys, environ):
        return SignInState(True, f"{name} is set", "api-key")
    if sys.platform == "darwin":
        return SignInState(None, "the keychain may hold a sign-in")
    return SignInState(False, f"not signed in · {names.hint}")


def launch_addition(context: LaunchContext) -> LaunchAddition:
    """Turn off hooks and each plug-in that the person or the project turned on; their other settings (sign-in!) stay."""
    if not context.isolated:
        return LaunchAddition()
    files = [
        Path(context.profile.config_dir or "") / "settings.json",
        Path(context.cwd) / ".claude" / "settings.json",
        Path(context.cwd) / ".claude" / "settings.local.json",
    ]
    plugins = {name: False for file in files for name in _plugins(read_object(file))}
    settings: dict[str, Any] = {"disableAllHooks": True}
    if plugins:
        settings["enabledPlugins"] = plugins
    return LaunchAddition(arguments=("--settings", json.dumps(settings, separators=(",", ":"))))


def _plugins(settings: dict[str, Any]) -> list[str]:
    enabled = settings.get("enabledPlugins")
    return sorted(name for name, on in enabled.items() if on) if isinstance(enabled, dict) else []


def _default_account(home: str, default: str, named: str | None) -> Account:
    # With the variable set, even to ~/.claude, Claude Code keeps .claude.json inside of the folder instead of beside it.
    if named and os.path.realpath(named) == os.path.realpath(default):
        return Account(
            None, default, {CONFIG_VARIABLE: named}, account=_account_id(os.path.join(default, ".claude.json"))
        )
    identity = _account_id(os.path.join(home, ".claude.json"))
    return Account(None, default, withheld=(CONFIG_VARIABLE,), account=identity)


def _other_accounts(home: str, default: str, named: str | None) -> Iterator[Account]:
    try:
        entries = sorted(entry for entry in os.listdir(home) if entry.startswith(".claude-"))
    except OSError:
        entries = []
    folders = [os.path.join(home, entry) for entry in entries]
    if named and os.path.isabs(named):
        folders.append(os.path.normpath(named))
    taken: set[str] = set()
    for folder in folders:
        slug = _slug(folder)
        if slug in taken or not _is_used(folder) or os.path.realpath(folder) == os.path.realpath(default):
            continue
        taken.add(slug)
        yield Account(
            slug, folder, {CONFIG_VARIABLE: folder}, account=_account_id(os.path.join(folder, ".claude.json"))
        )


def _slug(folder: str) -> str:
    name = os.path.basename(folder).removeprefix(".claude-").lstrip(".")
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-.") or "account"


def _is_used(folder: str) -> bool:
    return any(os.path.exists(os.path.join(folder, sign)) for sign in _SIGNS)


def _account_id(file: str) -> str | None:
    account = read_object(file).get("oauthAccount")
    identity = account.get("accountUuid") if isinstance(account, dict) else None
    return identity if isinstance(identity, str) and identity else None


def _same(one: Account, other: Account) -> bool:
    same_folder = os.path.realpath(one.config_dir or "") == os.path.realpath(other.config_dir or "")
    return same_folder or (one.account is not None and one.account == other.account)


def _credentials(account: Account, environ: Mapping[str, str]) -> str | None:
    folder = environ.get("CLAUDE_SECURESTORAGE_CONFIG_DIR") or account.config_dir or ""
    paths = [os.path.join(folder, ".credentials.json")]
    if account.suffix is None:
        paths.append(os.path.join(environ.get("HOME", ""), ".config", "claude", "credentials.json"))
    return next((path for path in paths if has_content(path)), None)
