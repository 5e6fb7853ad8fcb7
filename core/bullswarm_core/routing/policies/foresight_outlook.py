"""What ``foresight`` expects of a task on one pool."""

from __future__ import annotations

from bullswarm_core.pools import WindowKind
from bullswarm_core.routing.decision import Candidate
from bullswarm_core.values import dataclass

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
