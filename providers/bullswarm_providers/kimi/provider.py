"""Kimi's coding plan over Claude Code; see over_claude."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bullswarm_providers.over_claude import accounts, launch_addition, sign_in

if TYPE_CHECKING:
    from bullswarm_core.quota.observation import MeterContext, Observation

__all__ = ["accounts", "launch_addition", "live_reading", "sign_in"]


def live_reading(context: MeterContext) -> Observation:
    """Ask the vendor for the windows of the plan."""
    from bullswarm_providers.kimi import meter

    return meter.live_reading(context)
