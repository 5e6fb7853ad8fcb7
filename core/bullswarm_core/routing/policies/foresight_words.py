"""How ``foresight`` explains a pick in one line: the pace that the pool needs, and how likely the task meets a wall."""

from __future__ import annotations

from collections.abc import Sequence

from bullswarm_core.routing.checks import LIMIT_NAMES
from bullswarm_core.routing.parts import Segment, pool, text, told
from bullswarm_core.routing.policies.foresight_outlook import LIKELY, Outlook
from bullswarm_core.routing.reasons import five_hour_note, load_note, surplus
from bullswarm_core.routing.request import Request
from bullswarm_core.routing.text import number


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
        found += told("metered pools ranked below free: ", metered, _surplus)
    found += told("reserve: ", [item for item in ordered if item.row.reserved], _kept)
    riskier = [item for item in others if item.need > pick.need and item.loss > pick.loss and item is not passed]
    if riskier and request.pin is None:
        found += told("further behind but riskier: ", riskier, _risk)
    if pick.chance >= LIKELY:
        found.append(text(f"{_wall(pick)}: a limit mid-attempt goes back to the caller"))
    return tuple(found)


def _surplus(item: Outlook) -> Segment:
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
