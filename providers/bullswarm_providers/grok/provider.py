"""Grok: a model of the person's own in config.toml brings its own key, so that a missing sign-in proves nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bullswarm_core.connector import Account, Connector, SignInState
from bullswarm_providers.sign_in import file_sign_in, read_toml

if TYPE_CHECKING:
    from bullswarm_core.connector import PoolProfile
    from bullswarm_core.model_lists import Asking, ModelEntry
    from bullswarm_core.quota.observing import MeterContext, Observation


def sign_in(connector: Connector, account: Account, environ: Mapping[str, str]) -> SignInState:
    """Look at auth.json and the key variable, then at the models in config.toml."""
    state = file_sign_in(connector, account, environ)
    if state.signed_in is not False:
        return state
    config = read_toml(Path(account.config_dir or "") / "config.toml")
    if config is None or config.get("model"):
        return SignInState(None, "config.toml has models of its own", "unknown")
    return state


def live_reading(context: MeterContext) -> Observation:
    """Ask Grok, else its vendor, for the weekly credits."""
    from bullswarm_providers.grok import meter

    return meter.live_reading(context)


def models(profile: PoolProfile, asking: Asking) -> tuple[ModelEntry, ...]:
    """Ask Grok which models it offers; it tells without a sign-in, too. Raises BullswarmError."""
    from bullswarm_providers.printed_models import from_bullets

    return from_bullets(asking.run(profile, "models"))
