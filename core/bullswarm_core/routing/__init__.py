"""Which pool gets a task: one pure function, with every number behind its answer.

The order of decisions: eligibility, forecast ordering, the 5-hour last mile, free models, expiring-soon urgency,
preference (docs/design/routing.md, "The order of checks"). Everything that picks a pool calls ``decide``.

A name is imported when it is asked for: ``bullswarm pools`` needs the numbers of a pool and none of what picks one.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from bullswarm_core.routing.decision import Candidate, Decision, Exclusion, ReasonPart
    from bullswarm_core.routing.picking import decide
    from bullswarm_core.routing.reasons import after_stall
    from bullswarm_core.routing.request import Request, RoutingContext
    from bullswarm_core.routing.sentences import render

__all__ = [
    "Candidate", "Decision", "Exclusion", "ReasonPart", "Request", "RoutingContext", "after_stall", "decide", "render",
]  # fmt: skip

_HOME_OF = {
    "Candidate": "decision",
    "Decision": "decision",
    "Exclusion": "decision",
    "ReasonPart": "decision",
    "Request": "request",
    "RoutingContext": "request",
    "after_stall": "reasons",
    "decide": "picking",
    "render": "sentences",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    return value
