"""What a policy makes of the eligible pools."""

from __future__ import annotations

from bullswarm_core.routing.decision import Candidate
from bullswarm_core.values import dataclass


@dataclass(frozen=True, slots=True)
class Arrangement:
    """``rows`` in preference order, at least one; ``pick`` is one of the first ``selectable`` rows.

    ``by_assignment`` tells that the person's tier assignment chose; ``passed_assignment`` names an assigned pool
    that is a candidate but was not selectable. ``reserved`` and ``slivers`` are the rows that stand behind the pick
    only because they are spared, and the pick itself where it is one.
    """

    rows: tuple[Candidate, ...]
    pick: Candidate
    selectable: int
    by_assignment: bool = False
    passed_assignment: Candidate | None = None
    reserved: tuple[Candidate, ...] = ()
    slivers: tuple[Candidate, ...] = ()
