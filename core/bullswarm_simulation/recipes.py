"""Draws months: from a recipe, which says what a month is like, and a seed, which says what happens in it.

A recipe tells the size of things in worker-minutes: what a week of an account holds, how long tasks are, how much of the
supply they ask for. Nothing here knows of a policy.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping

from bullswarm_core._dataclasses import dataclass, field
from bullswarm_core.pools.model import Lane, WindowKind
from bullswarm_simulation.world import FULL_PCT, Limit, Month, OwnUse, Subscription, Task

HOUR = 60.0
DAY = 24 * HOUR
WEEK = 7 * DAY
FIVE_HOURS = 5 * HOUR
MONTH = 30 * DAY
LENGTHS: Mapping[WindowKind, float] = {"5h": FIVE_HOURS, "daily": DAY, "weekly": WEEK, "monthly": MONTH}
DAY_BEGINS, DAY_ENDS = 8 * HOUR, 24 * HOUR
_EVERY_LANE: Mapping[Lane, float] = {"analyze": 1.0, "build": 1.0, "chore": 1.0}


@dataclass(frozen=True, slots=True)
class Account:
    """What one account is like.

    Its ``pacing`` window holds ``minutes`` of work; ``five_hours`` of its 5-hour windows hold as much as a week does (0: it
    has none). ``lanes`` multiply the burn of a lane it can do. The person's own use takes ``own_share`` of it. ``phase``
    places its first reset in the window, 0 to 1; None draws it.
    """

    minutes: float = 1500.0
    pacing: WindowKind = "weekly"
    five_hours: float = 4.0
    lanes: Mapping[Lane, float] = field(default_factory=lambda: _EVERY_LANE)
    own_share: float = 0.05
    phase: float | None = None
    poll_minutes: float = 10.0
    rounding_pct: float = 1.0


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a month is like.

    Tasks ask for ``load`` of what the accounts hold beside the own use. They come in bursts of ``burst`` on average; their
    lengths are lognormal with ``median`` minutes and the ``spread`` of the logarithm; ``mix`` weighs the lanes. One in two
    is wanted within ``short_patience`` minutes, the others within ``long_patience``.
    """

    name: str
    accounts: tuple[Account, ...]
    load: float = 0.85
    burst: float = 4.0
    median: float = 10.0
    spread: float = 0.9
    mix: Mapping[Lane, float] = field(default_factory=lambda: {"build": 0.7, "analyze": 0.2, "chore": 0.1})
    short_patience: float = 30.0
    long_patience: float = 360.0
    minutes: float = 4 * WEEK


LONGEST_TASK = 6 * HOUR
"""The dispatcher's own limit on an attempt is of this order; the lognormal has no end."""
OWN_SPELL = 90.0
"""Minutes that the person works by hand at a time, on average."""


def draw(recipe: Recipe, seed: int) -> Month:
    """Return the month of that seed; the same recipe and seed give the same month."""
    chance = random.Random(f"{recipe.name}/{seed}")
    subscriptions = tuple(
        _subscription(f"pool-{chr(ord('a') + place)}", account, recipe, chance)
        for place, account in enumerate(recipe.accounts)
    )
    supply = sum(_held(account, recipe) * (1 - account.own_share) for account in recipe.accounts)
    tasks = tuple(_tasks(recipe, recipe.load * supply, chance))
    return Month(f"{recipe.name}/{seed}", recipe.minutes, subscriptions, tasks)


def _held(account: Account, recipe: Recipe) -> float:
    """The worker-minutes that the account's pacing windows hold in the month."""
    return account.minutes * recipe.minutes / LENGTHS[account.pacing]


def _subscription(name: str, account: Account, recipe: Recipe, chance: random.Random) -> Subscription:
    phase = chance.random() if account.phase is None else account.phase
    length = LENGTHS[account.pacing]
    first = max(1.0, phase * length)
    # Of what was over of the window nine tenths were used, as where quota is nearly enough.
    limits = [Limit(account.pacing, length, first, FULL_PCT * 0.9 * (1 - first / length))]
    if account.five_hours:
        limits.append(Limit("5h", FIVE_HOURS, max(1.0, chance.random() * FIVE_HOURS)))
    burn = {lane: _burn(account, factor) for lane, factor in account.lanes.items()}
    lane: Lane = "build" if "build" in burn else next(iter(burn))
    return Subscription(
        name,
        tuple(limits),
        burn,
        own_use=tuple(_own_use(account.own_share * _held(account, recipe), lane, recipe.minutes, chance)),
        poll_minutes=account.poll_minutes,
        poll_phase=chance.random() * account.poll_minutes,
        rounding_pct=account.rounding_pct,
    )


def _burn(account: Account, factor: float) -> dict[WindowKind, float]:
    burn: dict[WindowKind, float] = {account.pacing: factor * FULL_PCT / account.minutes}
    if account.five_hours:
        of_week = account.minutes * WEEK / LENGTHS[account.pacing]
        burn["5h"] = factor * FULL_PCT * account.five_hours / of_week
    return burn


def _own_use(minutes: float, lane: Lane, until: float, chance: random.Random) -> Iterator[OwnUse]:
    """Spells at daytime, about ``minutes`` of them in all, that do not overlap."""
    count = round(minutes / OWN_SPELL)
    begins = sorted(_daytime(until, chance) for _ in range(count))
    ended = 0.0
    for begin in begins:
        start = max(begin, ended)
        ended = start + OWN_SPELL * chance.uniform(0.4, 1.6)
        if ended < until:
            yield OwnUse(start, ended, lane)


def _daytime(until: float, chance: random.Random) -> float:
    day = chance.randrange(int(until / DAY))
    return day * DAY + chance.uniform(DAY_BEGINS, DAY_ENDS)


def _tasks(recipe: Recipe, minutes: float, chance: random.Random) -> Iterator[Task]:
    """Bursts, nine in ten at daytime, until so many ``minutes`` are asked for."""
    lanes, weights = list(recipe.mix), list(recipe.mix.values())
    asked, number = 0.0, 0
    while asked < minutes:
        begins = chance.random() * recipe.minutes if chance.random() < 0.1 else _daytime(recipe.minutes, chance)
        for _ in range(1 + int(chance.expovariate(1 / max(recipe.burst - 0.5, 0.01)))):
            length = min(LONGEST_TASK, max(1.0, chance.lognormvariate(math.log(recipe.median), recipe.spread)))
            patience = recipe.short_patience if chance.random() < 0.5 else recipe.long_patience
            arrives = min(begins + chance.random() * 2.0, recipe.minutes)
            yield Task(f"task-{number:04}", arrives, length, chance.choices(lanes, weights)[0], patience=patience)
            asked, number = asked + length, number + 1
