"""From a usage-limit notice to the mark that keeps a pool out until its reset.

Only a reset that is really known keeps a pool out: named by the provider, or measured by an earlier reading.
Rule: docs/design/quota.md, "Refusals".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from bullswarm_core.home import Home
from bullswarm_core.pools import Window, WindowKind
from bullswarm_core.quota.readings import Refusal, load_reading, record_refusal, refusal_after_limit
from bullswarm_core.quota.windows import DEFAULT_MODEL, gates_model
from bullswarm_core.values import replace

if TYPE_CHECKING:
    from bullswarm_core.judging.limits import Notice

# Notices name a reset to the minute, meters to the second or in round figures: this far apart they still mean one reset.
_SAME_RESET = timedelta(minutes=5)


def refusal_from(notice: Notice, windows: Sequence[Window], *, now: datetime) -> Refusal | None:
    """Return the mark to keep after ``notice``, or None where it spent no window or no reset is known.

    ``windows`` are the pool's last readings. A notice that names no window means the one that resets when it says; one
    about a single model marks that model's window only. A reset that has just passed keeps nobody out.
    """
    if notice.kind != "quota":
        return None
    named = notice.resets_at
    kind = notice.window or (_kind_that_resets(windows, named) if named else None)
    own = [replace(window, scope=None) for window in windows if window.scope == notice.scope]
    refusal = refusal_after_limit(own, kind=kind, named_reset=named, now=now)
    return replace(refusal, scope=notice.scope) if refusal else None


def note_refusal(
    home: Home, pool_id: str, notice: Notice, *, now: datetime, model: str | None = None
) -> Refusal | None:
    """Store the mark that ``notice`` leaves beside the pool's last reading, and return it; None where it leaves none.

    ``model`` is the one that was refused, None for the CLI's default. Where the notice speaks of one model's limit and
    that name doesn't tell that it is this model, the name is marked, too: the next pick would run into the same limit.
    """
    refusal = refusal_from(notice, load_reading(home, pool_id, now=now).windows, now=now)
    if refusal is not None:
        if not gates_model(refusal.window(), model):
            refusal = replace(refusal, model=model or DEFAULT_MODEL)
        record_refusal(home, pool_id, refusal, now=now)
    return refusal


def _kind_that_resets(windows: Iterable[Window], named: datetime) -> WindowKind | None:
    fitting = [
        (abs(window.resets_at - named), window.kind)
        for window in windows
        if window.source != "refusal" and window.resets_at is not None and abs(window.resets_at - named) <= _SAME_RESET
    ]
    return min(fitting)[1] if fitting else None
