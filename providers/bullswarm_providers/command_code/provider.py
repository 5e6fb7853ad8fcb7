"""Command Code: nothing beyond its connector but how its usage is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bullswarm_core.quota.observing import MeterContext, Observation


def live_reading(context: MeterContext) -> Observation:
    """Ask the vendor for the windows and the month's credits."""
    from bullswarm_providers.command_code import meter

    return meter.live_reading(context)
