"""What ``foresight`` reckons with: how likely a full window meets a task, and what that would cost. All times are minutes.

The length of a task is taken as lognormal, its median the expected minutes and its ``spread`` the standard deviation of the
logarithm, as learned from what earlier attempts took. What several attempts take together is taken as lognormal too, with
the mean and the variance of their sum (Fenton and Wilkinson).
"""

from __future__ import annotations

from math import erf, exp, log, sqrt

from bullswarm_core.values import dataclass

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
