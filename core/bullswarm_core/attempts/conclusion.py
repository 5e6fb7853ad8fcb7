"""What the end of an attempt comes to, before it is recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.judging.verdict import Judgement
from bullswarm_core.quota.notice import Notice
from bullswarm_core.wire import to_wire


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What the journal keeps of an attempt's end. ``edited`` are the files that are the worker's work, for its checks.

    ``notice`` is the limit or refusal that it ended by, if any.
    """

    judgement: Judgement
    meta: dict[str, Any]
    output_file: str | None
    parts: Mapping[str, Any]
    edited: tuple[str, ...] = ()
    notice: Notice | None = None

    def document(self) -> dict[str, Any]:
        """Return the judgement with the parts of the verdict that stand beside it."""
        return {**to_wire(self.judgement), **self.parts}
