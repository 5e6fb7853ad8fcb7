"""What became of a month: the work that was completed, what walls cost, and the quota that nobody used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bullswarm_core._dataclasses import dataclass, field
from bullswarm_core.pools.model import WindowKind
from bullswarm_simulation.world import FULL_PCT


@dataclass(frozen=True, slots=True)
class WindowUse:
    """Where the 100 % of one window went, in percent; what is left of it expired if it ``ended`` in the month.

    ``before`` is what was used when the month began. The parts never exceed 100 together.
    """

    pool: str
    kind: WindowKind
    index: int
    ends: float
    completed: float
    lost: float
    own: float
    before: float = 0.0
    ended: bool = True

    @property
    def unspent(self) -> float:
        """What nobody used, 0 to 100."""
        return max(0.0, FULL_PCT - self.before - self.completed - self.lost - self.own)


@dataclass(frozen=True, slots=True)
class Score:
    """How a policy did, in worker-minutes: of the work ``offered``, what was ``completed`` and what was ``dropped``.

    ``lost_at_walls`` is the time worked by attempts that met a full window; ``walls`` counts them. ``own_use_refused``
    is the person's own time that found the pool full, which the work had filled. ``expired_pct`` is the mean share of
    the pacing windows (week or month) that reset unspent. ``picks`` counts the attempts by pool.
    """

    policy: str
    offered: float
    completed: float
    dropped: float
    lost_at_walls: float
    walls: int
    own_use_refused: float
    expired_pct: float
    picks: Mapping[str, int] = field(default_factory=dict)
    windows: tuple[WindowUse, ...] = ()
    completed_tasks: frozenset[str] = frozenset()

    @property
    def value(self) -> float:
        """What is compared with the optimum: the work completed, less the person's own time that it kept out."""
        return self.completed - self.own_use_refused


def expired_share(windows: Iterable[WindowUse], pacing: Mapping[str, WindowKind]) -> float:
    """The mean unspent percent of the pacing windows that ended in the month; 0 where none did."""
    ended = [use.unspent for use in windows if use.ended and pacing.get(use.pool) == use.kind]
    return sum(ended) / len(ended) if ended else 0.0
