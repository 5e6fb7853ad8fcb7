"""Sign-in as files and variable names tell it, without starting a CLI."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bullswarm_core.fast.files import open_ordinary
from bullswarm_core.pools.connector import Account, Connector, SignInState
from bullswarm_core.process.environment import expand_path

# A settings file that is larger than this is no settings file; reading it would only cost time.
_LARGEST_FILE = 4 * 1024 * 1024


def config_dir_of(connector: Connector, environ: Mapping[str, str]) -> str | None:
    """Give the folder in which the CLI keeps its settings, as its variable or its default says."""
    folder = connector.config_folder
    named = environ.get(folder.variable) if folder.variable else None
    chosen = named or folder.default
    return expand_path(chosen, environ) if chosen else None


def file_sign_in(connector: Connector, account: Account, environ: Mapping[str, str]) -> SignInState:
    """Say whether an account is signed in: a file first, then a token, then a key; no only when all are missing."""
    sign_in = connector.sign_in
    if name := first_set(sign_in.elsewhere, environ):
        return SignInState(None, f"{name} is set: signed in elsewhere")
    for text in sign_in.files:
        path = expand_path(text.replace("{configFolder}", account.config_dir or ""), environ)
        if path is not None and has_content(path):
            withheld = (*sign_in.api_keys, *sign_in.tokens) if sign_in.file_billing == "subscription" else ()
            return SignInState(True, f"{path} is there", sign_in.file_billing, withheld)
    if name := first_set(sign_in.tokens, environ):
        return SignInState(True, f"{name} is set", "subscription", sign_in.api_keys)
    if name := first_set(sign_in.api_keys, environ):
        return SignInState(True, f"{name} is set", "api-key")
    if not sign_in.required:
        return SignInState(None, "works without a sign-in for some models")
    return SignInState(False, f"not signed in · {sign_in.hint}" if sign_in.hint else "not signed in")


def first_set(names: tuple[str, ...], environ: Mapping[str, str]) -> str | None:
    """Give the first of ``names`` that holds something."""
    return next((name for name in names if environ.get(name)), None)


def has_content(path: str | Path) -> bool:
    """Tell whether there is a file with something in it; one that can't be looked at may be a sign-in and counts."""
    try:
        return Path(path).stat().st_size > 2
    except PermissionError:
        return True
    except OSError:
        return False


def read_object(path: str | Path) -> dict[str, Any]:
    """Read a JSON object of another program; anything else, or none at all, is an empty one."""
    try:
        with open_ordinary(path) as file:
            value = json.loads(file.read(_LARGEST_FILE))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def read_toml(path: str | Path) -> dict[str, Any] | None:
    """Read a TOML file of another program; {} when there is none, None when it is there and can't be understood."""
    try:
        with open_ordinary(path) as file:
            text = file.read(_LARGEST_FILE).decode()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError):
        return None
    if not text.strip():
        return {}
    import tomllib

    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return None
