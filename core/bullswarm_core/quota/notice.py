"""A notice of a provider about its limits, as read from what a worker said."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.pools.model import WindowKind


@dataclass(frozen=True, slots=True)
class Notice:
    """One refusal. ``line`` is the provider's own sentence, ready to be shown, at most 300 characters.

    ``window`` and ``scope`` (a model or its family) say what is spent, where that was said. ``resets_at`` is set only
    where the provider named it, and ``reset_source`` is then ``named``; it may have just passed. ``said_by`` ``reply``:
    the notice stood in the place of an answer, in a turn that produced nothing.
    """

    kind: NoticeKind
    line: str
    window: WindowKind | None = None
    resets_at: datetime | None = None
    reset_source: Literal["named"] | None = None
    scope: str | None = None
    said_by: Literal["signal", "error", "words", "reply"] = "words"


NoticeKind = Literal["quota", "throttle", "auth", "model-not-in-plan"]
