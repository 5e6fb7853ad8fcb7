"""What a policy makes of the eligible pools, and what else it says about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.routing.decision import Candidate
from bullswarm_core.routing.request import Request, RoutingContext
from bullswarm_core.routing.sentences import Segment


@dataclass(frozen=True, slots=True)
class Arrangement:
    """``rows`` in preference order, at least one; ``pick`` is one of the first ``selectable`` rows.

    ``by_assignment`` tells that the person's tier assignment chose; ``passed_assignment`` names an assigned pool
    that is a candidate but was not selectable. ``reserved`` and ``slivers`` are the rows that stand behind the pick
    only because they are spared, and the pick itself where it is one.

    ``opening`` is what the policy itself says of its pick in place of the common opening of a reason, though never in place
    of a pin's or the embedded worker's; ``notes`` is what it says after the opening. None leaves the common words.
    """

    rows: tuple[Candidate, ...]
    pick: Candidate
    selectable: int
    by_assignment: bool = False
    passed_assignment: Candidate | None = None
    reserved: tuple[Candidate, ...] = ()
    slivers: tuple[Candidate, ...] = ()
    opening: Segment | None = None
    notes: tuple[Segment, ...] | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """How the eligible pools are ordered, and the few rules of eligibility that policies differ in.

    ``summary`` says in one line, for people, which pool comes first.
    ``remembers`` what happened before: it leaves a quarantined pool out and may prefer an incumbent. ``steps_drain``
    gives a draining pool to workflow steps. ``caller_keeps`` says, where nothing else is eligible, that the caller keeps
    the task.
    """

    arrange: Callable[[Sequence[Candidate], Request, RoutingContext], Arrangement]
    summary: str
    remembers: bool = False
    steps_drain: bool = False
    caller_keeps: bool = False
