"""Gemini CLI: its settings name the way it signs in, and with a key the work is billed apart from any plan."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bullswarm_core.pools.connector import Account, Connector, SignInState
from bullswarm_providers.sign_in import file_sign_in, first_set, read_object
from bullswarm_providers.vendor_asking import member

if TYPE_CHECKING:
    from bullswarm_core.quota.observation import MeterContext, Observation

_BY_KEY = "gemini-api-key"
_PERSONAL = ("oauth-personal", "login-with-google")


def sign_in(connector: Connector, account: Account, environ: Mapping[str, str]) -> SignInState:
    """Follow the way that the settings choose; without a choice Gemini CLI refuses to run on a key alone (measured)."""
    chosen = member(read_object(Path(account.config_dir or "") / "settings.json"), "security", "auth", "selectedType")
    if chosen == _BY_KEY:
        name = first_set(connector.sign_in.api_keys, environ)
        # A key may also stand in ~/.gemini/.env or in a keyring, which are not ours to read.
        return SignInState(True if name else None, f"{name} is set" if name else "signs in with a key", "api-key")
    if isinstance(chosen, str) and chosen not in _PERSONAL:
        return SignInState(None, f"settings.json chooses {chosen[:40]}: signed in elsewhere")
    return file_sign_in(connector, account, environ)


def has_meter(connector: Connector, account: Account, environ: Mapping[str, str]) -> bool:
    """Tell whether there is a plan to meter: work on a key has none."""
    return sign_in(connector, account, environ).billing == "subscription"


def live_reading(context: MeterContext) -> Observation:
    """Ask the vendor for the day's quota of each model."""
    from bullswarm_providers.gemini import meter

    return meter.live_reading(context)
