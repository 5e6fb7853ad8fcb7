"""The ``foresight`` policy: place each task where the least is expected to be lost, at a wall or by expiry.

Eligibility, pins, the last resort, reserves, free models and assignments are those of ``pace``. Where ``pace``
then goes by lines (near the limit, forecast over it, expiring within a day), this weighs in minutes of work:

    score = W x task x need / (1 + need)  -  loss

``task`` is how long such tasks usually take, on whichever pool. ``need`` is the pace at which the pacing window must be
spent from now on to be used up at its reset, 1 for an even one: 1 + effective surplus / share of the window left, the
urgency at any time and not in the last day alone. ``loss`` is what the task puts at risk at the likeliest wall.

The length of a task is taken as lognormal, its median the expected minutes and its ``spread`` the standard deviation of the
logarithm, as learned from what earlier attempts took. What several attempts take together is taken as lognormal too, with
the mean and the variance of their sum (Fenton and Wilkinson). All times are minutes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import erf, exp, inf, log, sqrt

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.fast.text import number
from bullswarm_core.pools.model import WindowKind
from bullswarm_core.routing.decision import Candidate
from bullswarm_core.routing.eligibility import LIMIT_NAMES
from bullswarm_core.routing.measure import left_fraction
from bullswarm_core.routing.policies.base import Arrangement, Policy
from bullswarm_core.routing.reasons import five_hour_note, load_note, surplus
from bullswarm_core.routing.request import Request, RoutingContext
from bullswarm_core.routing.sentences import Segment, pool, text, told

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


_ROOT_OF_TWO = sqrt(2)
_NO_TIME = 1e-9
"""A length of fewer minutes meets no wall; its square would be no number that can be divided by."""
_LEAST_SPREAD = 0.05
"""Below this a length is as good as known; the formulas divide by it."""
_LARGEST_SPREAD = 3.0
"""Above this nothing is known of a length, and its mean square passes all numbers."""


@dataclass(frozen=True, slots=True)
class Length:
    """What is known of how long a task takes: the ``mean`` and the ``square`` (mean of the square) of its minutes."""

    mean: float
    square: float

    @property
    def age(self) -> float:
        """How long a task that is at work at some moment has been so, on average (the renewal formula)."""
        return self.square / (2 * self.mean) if self.mean > 0 else 0.0


def length_within(median: float, spread: float, limit: float | None) -> Length:
    """Return the moments of a task's length, cut off at ``limit`` minutes (a reset) if there is one; 0 for no time at all."""
    if median <= 0 or (limit is not None and limit <= 0):
        return Length(0.0, 0.0)
    spread = min(max(spread, _LEAST_SPREAD), _LARGEST_SPREAD)
    mean, square = median * exp(spread**2 / 2), median**2 * exp(2 * spread**2)
    if limit is None:
        return Length(mean, square)
    over = log(limit / median) / spread
    longer = 1 - normal(over)
    return Length(
        mean * normal(over - spread) + limit * longer,
        square * normal(over - 2 * spread) + limit**2 * longer,
    )


def wall_chance(length: Length, count: int, room: float) -> float:
    """Return how likely ``count`` attempts of this length need more than ``room`` worker-minutes together, 0 to 1."""
    if count <= 0 or length.mean <= _NO_TIME:
        return 0.0
    mean = count * length.mean
    share = room / mean
    if share <= 0:  # no room, or so little that the quotient is none
        return 1.0
    variance = max(0.0, count * (length.square - length.mean**2))
    spread = max(_LEAST_SPREAD, sqrt(log(1 + variance / mean**2)))
    return 1 - normal(log(share) / spread + spread / 2)


def expected_loss(length: Length, count: int, room: float, *, together: float | None = None) -> float:
    """Return the minutes of work that one more attempt beside ``count`` puts at risk: its own, and that of the others.

    A wall ends everything on a pool: the attempt loses what it has worked until then, and the others lose theirs as far
    as it makes the wall likelier. ``together`` is the chance that all of them meet it, where the caller knows it.
    """
    alone = wall_chance(length, count, room) if count else 0.0
    together = wall_chance(length, count + 1, room) if together is None else together
    own = min(length.age, max(room, 0.0))
    return together * own + max(0.0, together - alone) * count * length.age


def normal(value: float) -> float:
    """The distribution function of the standard normal."""
    return 0.5 * (1 + erf(value / _ROOT_OF_TWO))


LIKELY = 0.5
"""From here on a wall is likelier than none."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """``row``'s prospects: the pace that its pacing window ``need``s (1: an even one), the ``chance`` (0 to 1) of the
    wall of ``window`` before the task ends, the minutes of work expected to be lost at it, and the ``score``, more is better.
    """

    row: Candidate
    need: float
    chance: float
    loss: float
    window: WindowKind | None
    score: float


def opening(pick: Outlook, request: Request, *, by_assignment: bool) -> Segment:
    """Which rule made the pick, and the pick's numbers."""
    me = pool(pick.row.pool)
    facts = ", ".join([_need(pick), _wall(pick), *five_hour_note(pick.row), *load_note(pick.row)])
    if pick.row.free:
        named = f"free model {pick.row.model}" if pick.row.model else "free default model"
        return text("free pool first: ", me, f" ({named}, {facts})")
    if by_assignment:
        return text(f"configured {request.tier} assignment (", me, f", {facts})")
    return text("least expected loss: ", me, f" ({facts})")


def notes(pick: Outlook, ordered: Sequence[Outlook], passed: Outlook | None, request: Request) -> tuple[Segment, ...]:
    """What was passed over: the assignment, what free models and reserves put behind, and pools for their walls."""
    found: list[Segment] = []
    others = [item for item in ordered if item is not pick]
    if passed is not None:
        why = _behind(passed, pick)
        found.append(text(f"{request.tier} assignment passed over: ", pool(passed.row.pool), f" ({why})"))
    metered = [item for item in others if not item.row.free]
    if pick.row.free:
        found += told("metered pools ranked below free: ", metered, _surplus_of)
    found += told("reserve: ", [item for item in ordered if item.row.reserved], _kept)
    riskier = [item for item in others if item.need > pick.need and item.loss > pick.loss and item is not passed]
    if riskier and request.pin is None:
        found += told("further behind but riskier: ", riskier, _risk)
    if pick.chance >= LIKELY:
        found.append(text(f"{_wall(pick)}: a limit mid-attempt goes back to the caller"))
    return tuple(found)


def _surplus_of(item: Outlook) -> Segment:
    return text(pool(item.row.pool), f" {surplus(item.row)}")


def _kept(item: Outlook) -> Segment:
    return text(pool(item.row.pool), f" {number(item.row.reserve_pct or 0.0)}% kept for you")


def _risk(item: Outlook) -> Segment:
    return text(pool(item.row.pool), f" (needs {number(item.need)}x, {_wall(item)})")


def _need(item: Outlook) -> str:
    if item.row.pace is None:
        return f"surplus {surplus(item.row)}"
    return f"needs {number(item.need)}x its even pace to be used up, surplus {surplus(item.row)}"


def _wall(item: Outlook) -> str:
    if item.window is None or item.chance < 0.005:
        return "no limit in sight"
    return f"{round(item.chance * 100)}% chance of its {LIMIT_NAMES[item.window]} limit"


def _behind(passed: Outlook, pick: Outlook) -> str:
    if passed.row.reserved and not pick.row.reserved:
        return "reserved for you"
    return "not free" if pick.row.free and not passed.row.free else _wall(passed)
