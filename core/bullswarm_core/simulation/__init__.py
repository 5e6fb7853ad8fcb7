"""A month of work on several subscriptions, played through with the real routing.

A :class:`Month` says what truly happens (windows, burn, the person's own use, tasks); :func:`simulate` plays it with one
policy, which sees only what a dispatcher could know, and scores it. Everything is pure: no clock, file or process.
"""

from __future__ import annotations

from bullswarm_core.simulation.playing import simulate
from bullswarm_core.simulation.rivals import RIVALS, known_policies
from bullswarm_core.simulation.scoring import Score, WindowUse
from bullswarm_core.simulation.world import Limit, Month, OwnUse, Subscription, Task

__all__ = [
    "RIVALS",
    "Limit",
    "Month",
    "OwnUse",
    "Score",
    "Subscription",
    "Task",
    "WindowUse",
    "known_policies",
    "simulate",
]
