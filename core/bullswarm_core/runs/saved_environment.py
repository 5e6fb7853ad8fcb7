"""The environment that a run was asked for in, kept so that a later kernel can go on in the same one.

Names and plain values are stored; the values of secrets never are (design D4). A kernel that starts from another shell takes
the secrets from there and refuses to start a worker when one of them is gone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from bullswarm_core.values import dataclass

# Words by which the world names its secrets; a false alarm only means that the value must be there again at a resume.
_SECRET_NAME = re.compile(
    r"KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|COOKIE|PRIVATE|(^|_)(AUTH|PAT|PWD_HASH)($|_)", re.I
)
# What these name is where a secret or its agent lives, not the secret (SSH_AUTH_SOCK, KEY_FILE).
_PLACE_NAME = re.compile(r"_(SOCK|SOCKET|FILE|PATH|DIR|HOME)$", re.I)
# An address with a user and a password in it (DATABASE_URL, HTTPS_PROXY).
_SECRET_VALUE = re.compile(r"://[^/\s:@]+:[^/\s@]+@")


@dataclass(frozen=True, slots=True)
class SavedEnvironment:
    """``values`` are stored as they are, of ``secret_names`` only the names."""

    values: Mapping[str, str]
    secret_names: tuple[str, ...]


def is_secret(name: str, value: str) -> bool:
    """Tell whether a variable's value must not be stored."""
    named = _SECRET_NAME.search(name) and not _PLACE_NAME.search(name)
    return bool(named or _SECRET_VALUE.search(value))


def save(environ: Mapping[str, str], *, leave_out: Iterable[str] = ()) -> SavedEnvironment:
    """Split an environment into what may be stored and what may not; ``leave_out`` names what no worker is given anyway."""
    dropped = frozenset(leave_out)
    kept = {name: value for name, value in environ.items() if name not in dropped and _storable(value)}
    secret = sorted(name for name, value in kept.items() if is_secret(name, value))
    return SavedEnvironment({n: v for n, v in sorted(kept.items()) if n not in secret}, tuple(secret))


def restore(saved: SavedEnvironment, current: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the saved environment with its secrets taken from ``current``, and the names of those that are missing."""
    found = {name: current[name] for name in saved.secret_names if name in current}
    missing = tuple(name for name in saved.secret_names if name not in current)
    return {**saved.values, **found}, missing


def _storable(value: str) -> bool:
    # Bytes that are no UTF-8 come in as lone surrogates, which a JSON file can't carry.
    return value.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in value)
