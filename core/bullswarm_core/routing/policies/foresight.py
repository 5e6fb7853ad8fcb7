"""The ``foresight`` policy: place each task where the least is expected to be lost, at a wall or by expiry.

Eligibility, pins, the last resort, reserves, free models and assignments count as in ``pace``. Where ``pace``
then goes by lines (near the limit, forecast over it, expiring within a day), this weighs in minutes of work:

    score = W x task x need / (1 + need)  -  loss

``task`` is how long such tasks usually take, on whichever pool. ``need`` is the pace at which the pacing window must be
spent from now on to be used up at its reset, 1 for an even one: 1 + effective surplus / share of the window left, the
urgency of ``pace`` at any time and not in the last day alone. ``loss`` is what the task puts at risk at the likeliest wall:
see :mod:`foresight_chances`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf, sqrt

from bullswarm_core.pools import WindowKind
from bullswarm_core.routing.context import RoutingContext
from bullswarm_core.routing.decision import Candidate
from bullswarm_core.routing.measure import left_fraction
from bullswarm_core.routing.policies.arrangement import Arrangement, Policy
from bullswarm_core.routing.policies.foresight_chances import expected_loss, length_within, wall_chance
from bullswarm_core.routing.policies.foresight_outlook import LIKELY, Outlook
from bullswarm_core.routing.policies.foresight_words import notes, opening
from bullswarm_core.routing.request import Request

VALUE_WEIGHT = 1 / 12
"""A minute lost at a wall counts twelve times one that is placed well: it is burnt, must be done anew, ends others with it,
and the pool stands still until its reset. In four hundred tuning months 4, 11 and 16 times gave 0.9895, 0.9907 and 0.9905 of
the optimum, 50 times 0.9901.
"""
USUAL_SPREAD = 0.8
"""The spread of lengths while too few attempts are known: of agent tasks one in six takes twice the median or more."""
USUAL_MINUTES = 10.0
"""The length of a task of which nothing is known (the longest of the table of expected minutes)."""
UNSEEN_MINUTES = 5.0
"""What each attempt in flight may have worked since the meter was read: half of ten minutes between two readings."""
_FIVE_HOURS = 300.0
_DAY = 1440.0


def arrange(rows: Sequence[Candidate], request: Request, context: RoutingContext) -> Arrangement:
    """Order the eligible ``rows``, at least one, by what is expected to be lost; the assigned pool is picked where it may.

    Selectable are the rows that neither a reserve nor a free model puts behind; an assignment is passed over where its
    pool would more likely than not meet a wall.
    """
    usual = request.candidate_minutes or USUAL_MINUTES
    ordered = sorted([outlook(row, usual, context) for row in rows], key=_preference)
    leading = [item for item in ordered if _group(item) == _group(ordered[0])]
    assigned = context.assigned(request.tier)
    wanted = next((item for item in ordered if assigned and item.row.pool == assigned[0]), None)
    chosen = wanted is not None and wanted in leading and wanted.chance <= max(LIKELY, ordered[0].chance)
    pick = wanted if wanted is not None and chosen else ordered[0]
    passed = None if chosen else wanted
    return Arrangement(
        tuple([item.row for item in ordered]),
        pick.row,
        len(leading),
        by_assignment=chosen,
        passed_assignment=passed.row if passed else None,
        reserved=tuple([item.row for item in ordered if item.row.reserved]),
        opening=opening(pick, request, by_assignment=chosen),
        notes=notes(pick, ordered, passed, request),
    )


def outlook(row: Candidate, usual: float, context: RoutingContext) -> Outlook:
    """Return what is expected of a task on this pool that takes ``usual`` minutes on any, above 0.

    The work that is placed is the same on every pool, so that one which takes long for it gains nothing by that. At a wall
    the pool's own minutes count as much as the usual ones: a median of a few attempts tells more of them than of the pool.
    """
    minutes = sqrt(usual * (row.expected_minutes or usual))
    surplus = _surplus(row, context.inflight_penalty_pct)
    need = max(0.0, 1.0 + surplus / 100 / left_fraction(row.pacing_left_pct))
    chance, loss, window = _worst_wall(row, minutes, context)
    return Outlook(row, need, chance, loss, window, VALUE_WEIGHT * usual * need / (1 + need) - loss)


def _surplus(row: Candidate, penalty: float) -> float:
    """The effective surplus, in points; a bootstrap rate takes no more of it than the load of a pool without a rate."""
    if row.estimate_source != "bootstrap":
        return row.effective_surplus
    return max(row.effective_surplus, (row.pace or 0.0) - penalty * row.inflight)


def _worst_wall(row: Candidate, minutes: float, context: RoutingContext) -> tuple[float, float, WindowKind | None]:
    """The chance of the costliest wall, the minutes expected to be lost at it, and whose it is."""
    spread = USUAL_SPREAD if context.task_spread is None else context.task_spread
    walls: list[tuple[float, float, WindowKind | None]] = [(0.0, 0.0, None)]
    weighed: list[WindowKind] = []
    for kind, used, rate, left in _windows(row, minutes, context.inflight_penalty_pct):
        weighed.append(kind)
        room = (100.0 - used) / rate - UNSEEN_MINUTES * row.inflight
        if left is not None and (row.inflight + 1) * left <= room:
            continue  # not even if everything worked on to the reset
        length = length_within(minutes, spread, left)
        chance = wall_chance(length, row.inflight + 1, room)
        walls.append((expected_loss(length, row.inflight, room, together=chance), chance, kind))
    # A forecast over 100 % is of the median length, so that the wall is as likely as not; of some windows no rate is told.
    forecast_over = row.sliver_window or row.over_window
    if forecast_over is not None and forecast_over not in weighed:
        walls.append((LIKELY * minutes, LIKELY, forecast_over))
    loss, chance, window = max(walls, key=lambda wall: (wall[0], wall[1]))
    return chance, loss, window


def _windows(row: Candidate, minutes: float, penalty: float) -> Iterator[tuple[WindowKind, float, float, float | None]]:
    """Each window with a reading: its use, its percent per worker-minute, and the minutes to its reset if known.

    One without a measured rate is charged the flat penalty for each attempt, as ``pace`` charges it, and so is one
    whose bootstrap rate is higher: that counts as work all that was used since the window opened, by the person and before
    the first reading too (in a simulated month seventy times the truth, and a pool that is never picked is never measured
    anew). No window fills faster than the 5 hours, which hold no more than it.
    """
    flat = penalty / minutes
    if row.five_hour_used_pct is not None and (rate := row.rate_per_minute or flat) > 0:
        yield "5h", row.five_hour_used_pct, rate, _left(row.five_hour_elapsed_pct, _FIVE_HOURS)
    kind, fastest = row.pacing_window, row.rate_per_minute or inf
    day = None if kind == "daily" else row.daily_used_pct
    if day is not None and (rate := min(row.daily_rate_per_minute or flat, fastest)) > 0:
        yield "daily", day, rate, _left(row.daily_elapsed_pct, _DAY)
    if kind is None or row.pacing_used_pct is None or row.pacing_source == "declared":  # that gates nothing
        return
    if row.estimate_source == "bootstrap":
        fastest = min(fastest, flat)
    if (rate := min(row.pacing_rate_per_minute or flat, fastest)) > 0:
        yield kind, row.pacing_used_pct, rate, row.pace_resets_in_minutes


def _left(elapsed_pct: float | None, length: float) -> float | None:
    return None if elapsed_pct is None else length * max(0.0, 1 - elapsed_pct / 100)


def _group(item: Outlook) -> tuple[bool, bool]:
    return (item.row.reserved, not item.row.free)


def _preference(item: Outlook) -> tuple[tuple[bool, bool], float, float, str]:
    return (_group(item), -item.score, item.chance, item.row.pool)


POLICY = Policy(
    arrange, "the pool where the least work is expected to be lost at a limit, or quota to expire, comes first"
)
