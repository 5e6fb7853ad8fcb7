"""Command Code: nothing beyond its connector but how its usage is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bullswarm_core.pools.connector import PoolProfile
    from bullswarm_core.pools.model_catalog import Asking, ModelEntry
    from bullswarm_core.quota.observation import MeterContext, Observation


def live_reading(context: MeterContext) -> Observation:
    """Ask the vendor for the windows and the month's credits."""
    from bullswarm_providers.command_code import meter

    return meter.live_reading(context)


def models(profile: PoolProfile, asking: Asking) -> tuple[ModelEntry, ...]:
    """Ask Command Code which models it offers; behind them it lists some that take no task. Raises BullswarmError."""
    from bullswarm_providers.printed_models import from_columns

    return from_columns(asking.run(profile, "--list-models"), until="Pass the full id")
