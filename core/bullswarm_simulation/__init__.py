"""A month of work on several subscriptions, played through with the real routing.

A :class:`Month` says what truly happens (windows, burn, the person's own use, tasks); :func:`simulate` plays it with one
policy, which sees only what a dispatcher could know, and scores it. Everything is pure: no clock, file or process.
"""

from __future__ import annotations

from bullswarm_simulation.playing import simulate
from bullswarm_simulation.rivals import RIVALS, known_policies
from bullswarm_simulation.scoring import Score, WindowUse
from bullswarm_simulation.world import Limit, Month, OwnUse, Subscription, Task

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
