"""What a refusal leaves behind: the mark that keeps a pool out until its reset, and the models that a plan doesn't include.

Only a reset that is really known keeps a pool out: named by the provider, or measured by an earlier reading. Refused models
are a file of the cache: without it the next task is refused once more, and nothing else is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bullswarm_core._dataclasses import dataclass, replace
from bullswarm_core.errors import BullswarmError, StateError
from bullswarm_core.pools.model import DEFAULT_MODEL, Window, WindowKind
from bullswarm_core.quota.reading import Refusal, load_reading, record_refusal, refusal_after_limit
from bullswarm_core.quota.windows import gates_model
from bullswarm_core.store.home import Home, file_lock, read_json, write_json
from bullswarm_core.wire import iso, parse_iso

if TYPE_CHECKING:
    from bullswarm_core.quota.notice import Notice


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


# Enough to recognise the provider's sentence; it is data, shown on one line.
_WHY_LENGTH = 200

Entries = dict[str, dict[str, dict[str, str]]]


@dataclass(frozen=True, slots=True)
class PlanRefusal:
    """One model that the plan of a pool doesn't include. ``model`` is its name, or ``default`` for the CLI's own."""

    pool: str
    model: str
    at: datetime
    why: str

    @property
    def way_back(self) -> str:
        """The command that lets the model be tried again."""
        import shlex

        return f"bullswarm strategy include-model {shlex.quote(self.model)} --pool {self.pool}"

    @property
    def reason(self) -> str:
        """Why a rung with this model is passed over, for a person, with the way back."""
        return f"the plan doesn't include it, said its provider at {iso(self.at)} · {self.way_back} tries it again"


PlanRefusals = Mapping[str, Mapping[str, PlanRefusal]]


def load_plan_refusals(home: Home) -> dict[str, dict[str, PlanRefusal]]:
    """Return what is remembered, by pool and model; a file that is missing or damaged remembers nothing."""
    found: dict[str, dict[str, PlanRefusal]] = {}
    for pool, models in _entries(home).items():
        for model, entry in models.items():
            try:
                found.setdefault(pool, {})[model] = PlanRefusal(pool, model, parse_iso(entry["at"]), entry["why"])
            except (KeyError, TypeError, ValueError):
                continue
    return found


def note_plan_refusal(home: Home, pool: str, model: str | None, why: str, *, now: datetime) -> None:
    """Remember that the plan of ``pool`` refused ``model`` (None: the CLI's default) at ``now``; a full disk is no error."""

    def add(entries: Entries) -> None:
        entry = {"at": iso(now), "why": " ".join(why.split())[:_WHY_LENGTH]}
        entries.setdefault(pool, {})[model or DEFAULT_MODEL] = entry

    try:
        _change(home, add)
    except BullswarmError:
        # The verdict tells it in any case; without the memory the next task on this pool is refused once more.
        return


def forget_plan_refusals(home: Home, *, pool: str | None = None, model: str | None = None) -> list[PlanRefusal]:
    """Forget what matches and return it; None matches every pool or model. Writes nothing where nothing matches.

    Raises StorageError or LockTimeoutError when the file can't be changed.
    """
    known = [entry for models in load_plan_refusals(home).values() for entry in models.values()]
    gone = [entry for entry in known if pool in (None, entry.pool) and model in (None, entry.model)]

    def drop(entries: Entries) -> None:
        for entry in gone:
            entries.get(entry.pool, {}).pop(entry.model, None)

    if gone:
        _change(home, drop)
    return gone


def _file(home: Home) -> Path:
    return home.cache_dir / "models-not-in-plan.json"


def _entries(home: Home) -> Entries:
    try:
        document: Any = read_json(_file(home), default={})
    except StateError:
        return {}
    pools = document.get("pools") if isinstance(document, dict) else None
    found = pools.items() if isinstance(pools, dict) else ()
    return {pool: models for pool, models in found if isinstance(models, dict)}


def _change(home: Home, change: Callable[[Entries], None]) -> None:
    home.ensure()
    with file_lock(_file(home).with_suffix(".lock")):
        entries = _entries(home)
        change(entries)
        write_json(_file(home), {"pools": {pool: models for pool, models in entries.items() if models}})
