"""The environment that a run was asked for in, kept so that a later kernel can go on in the same one.

Names and plain values are stored; the values of secrets never are. A kernel that starts from another shell takes
the secrets from there and refuses to start a worker when one of them is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.process.secrets import is_secret


@dataclass(frozen=True, slots=True)
class SavedEnvironment:
    """``values`` are stored as they are, of ``secret_names`` only the names."""

    values: Mapping[str, str]
    secret_names: tuple[str, ...]


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
