"""Which key of its own vendor OpenCode holds, as far as its sign-in file and the environment tell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bullswarm_core.process.environment import expand_path
from bullswarm_providers.sign_in import read_object
from bullswarm_providers.vendor_asking import member, usable_token

AUTH_FILE = "${XDG_DATA_HOME:-~/.local/share}/opencode/auth.json"
KEY_VARIABLE = "OPENCODE_API_KEY"
OWN = ("opencode-go", "opencode")
"""The vendor's plan, then its pay-as-you-go service: one key may stand under either name."""


def sign_ins(environ: Mapping[str, str]) -> dict[str, Any]:
    """Read the sign-ins by the vendor's name; {} when there are none."""
    path = expand_path(AUTH_FILE, environ)
    return read_object(path) if path is not None else {}


def own_key(environ: Mapping[str, str]) -> str | None:
    """Return the key of OpenCode's own vendor, from the sign-in or the environment; None when there is none."""
    stored = sign_ins(environ)
    key = next((key for name in OWN if (key := usable_token(member(stored.get(name), "key")))), None)
    return key or usable_token(environ.get(KEY_VARIABLE))
