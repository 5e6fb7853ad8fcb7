"""The months that are played: ten kinds of life with several subscriptions, set before any policy was measured on them.

Quota is nearly enough in all of them (tasks ask for 85 % of what the accounts hold), since a plan matters only
there: with plenty every policy completes everything, and with far too little each fills whatever there is.
"""

from __future__ import annotations

from bullswarm_simulation.recipes import Account, Recipe

REPORTED_SEEDS = range(100, 110)
"""Held out: the table is of these. Nothing was tuned on them."""
TUNING_SEEDS = range(1, 13)

FAMILIES: tuple[Recipe, ...] = (
    Recipe("two equal weeks", (Account(), Account())),
    Recipe(
        "week and month",
        (Account(), Account(minutes=6000, pacing="monthly", five_hours=0), Account(minutes=1000)),
    ),
    Recipe("tight five hours", (Account(five_hours=8), Account(five_hours=8), Account())),
    Recipe("heavy own use", (Account(own_share=0.4), Account(own_share=0.3), Account(own_share=0.0))),
    Recipe("big bursts", (Account(), Account(), Account()), burst=10.0),
    Recipe("long tasks", (Account(), Account(), Account()), median=20.0, spread=1.0),
    Recipe("staggered resets", tuple(Account(minutes=1200, phase=phase) for phase in (0.05, 0.3, 0.55, 0.8))),
    Recipe(
        "lanes of one pool",
        (
            Account(minutes=1200),
            Account(lanes={"analyze": 1.0, "build": 1.1}),
            Account(minutes=1200, lanes={"build": 1.0}),
        ),
        mix={"build": 0.6, "analyze": 0.25, "chore": 0.15},
    ),
    Recipe("coarse meters", tuple(Account(rounding_pct=5.0, poll_minutes=45.0) for _ in range(3))),
    Recipe("many small pools", tuple(Account(minutes=800) for _ in range(6))),
)
