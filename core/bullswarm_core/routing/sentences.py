"""Sentences in pieces: plain text and pool ids, so that people read labels and machines ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from bullswarm_core.routing.decision import Exclusion, ReasonPart

SEGMENT_BREAK = " · "
MAX_NAMED = 12
"""Pools named in one list of a reason; with more the rest is counted, so that a reason stays a line."""

Segment = tuple[ReasonPart, ...]
Thing = TypeVar("Thing")


def text(*pieces: str | ReasonPart) -> Segment:
    """A segment of plain strings and pools (see ``pool``)."""
    return tuple(ReasonPart(text=piece) if isinstance(piece, str) else piece for piece in pieces)


def pool(pool_id: str) -> ReasonPart:
    """The place of a pool in a segment."""
    return ReasonPart(pool=pool_id)


def listed(items: Sequence[Segment], *, separator: str = ", ") -> Segment:
    """The items in one segment, no more than MAX_NAMED of them, with the rest counted."""
    shown = [*items[:MAX_NAMED]]
    if len(items) > MAX_NAMED:
        shown.append(text(f"{len(items) - MAX_NAMED} more"))
    return joined(shown, separator=separator)


def told(heading: str, things: Sequence[Thing], words: Callable[[Thing], Segment]) -> list[Segment]:
    """The heading and the ``words`` for each thing, as ``listed`` shows them; no segment where there is nothing to tell.

    Only what is shown is put into words: among a thousand pools hundreds may be near a limit.
    """
    if not things:
        return []
    shown = [words(thing) for thing in things[:MAX_NAMED]]
    if len(things) > MAX_NAMED:
        shown.append(text(f"{len(things) - MAX_NAMED} more"))
    return [text(heading) + joined(shown, separator=", ")]


def joined(segments: Iterable[Segment], *, separator: str = SEGMENT_BREAK) -> Segment:
    """Segments in a row, with the separator between them."""
    result: list[ReasonPart] = []
    for segment in segments:
        if result:
            result.append(ReasonPart(text=separator))
        result.extend(segment)
    return tuple(result)


def left_out(entry: Exclusion) -> Segment:
    """``<pool> <reason>`` of a left-out pool; what makes it unavailable is a sentence of its own."""
    opening = " unavailable: " if entry.kind == "unavailable" else " "
    return text(pool(entry.pool), opening, entry.reason)


def render(parts: Iterable[ReasonPart], labels: Mapping[str, str] | None = None) -> str:
    """The sentence, with each pool by its label if ``labels`` has one, else by its id."""
    shown = labels or {}
    return "".join(part.text if part.pool is None else shown.get(part.pool, part.pool) for part in parts)
