"""The form of what a run's journal holds: checked once when it is read, so that all that shows a run can rely on it.

A journal decodes each event by its fields' names. That a field holds what its name promises is checked here, down to the
parts of a judgement and of a verdict that are read by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bullswarm_core._dataclasses import fields, replace
from bullswarm_core.errors import DamagedRunError
from bullswarm_core.runs.events import Payload
from bullswarm_core.runs.journal import Journal, RunRow
from bullswarm_core.runs.state import RunState

_TYPES: Mapping[str, tuple[type, ...]] = {
    "str": (str,),
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
    "Document": (Mapping,),
    "tuple[str, ...]": (tuple,),
}
_TEXT, _OBJECT, _NUMBER = "text", "an object", "a number"
_LIST, _TEXTS, _OBJECTS = "a list", "a list of texts", "a list of objects"
# Of a verdict: what is read by name. A key that is missing or null is no damage.
_VERDICT: Mapping[str, str] = {
    "answerCheck": _OBJECT,
    "changedFileCount": _NUMBER,
    "changedFiles": _TEXTS,
    "commits": _TEXTS,
    "diffFile": _TEXT,
    "diffStat": _LIST,
    "evidenceResults": _OBJECTS,
    "excerpt": _TEXT,
    "notes": _LIST,
    "outsideBlockers": _LIST,
    "launchNotes": _LIST,
    "meta": _OBJECT,
    "outFile": _TEXT,
    "pick": _OBJECT,
    "reason": _TEXT,
    "routeWhy": _TEXT,
    "status": _TEXT,
    "steps": _OBJECTS,
    "why": _TEXT,
}


def read_state(journal: Journal, run_id: str) -> RunState:
    """Return the state of a run. Raises UnknownNameError when there is none, DamagedRunError when it can't be understood."""
    return checked(journal.state(run_id))


def checked(state: RunState) -> RunState:
    """Return the state itself. Raises DamagedRunError where something in it has not its form."""
    run_id = state.created.run_id
    _check_payloads(run_id, state.created, state.kernel, state.stop_requested, state.parked, state.finished)
    if state.finished is not None:
        _check(run_id, "the verdict", state.finished.verdict, _VERDICT)
    for step in state.steps.values():
        _check_payloads(run_id, step.unplaced, step.accepted)
        for attempt in step.attempts:
            _check_payloads(run_id, attempt.picked, attempt.launched, attempt.finished)
    return state


def readable_rows(rows: Iterable[RunRow]) -> tuple[tuple[RunRow, ...], frozenset[str]]:
    """Return the rows, each with text where text belongs, and the ids of those that were damaged."""
    found, damaged = [], set()
    for row in rows:
        wrong: dict[str, Any] = {
            name: "" for name in ("short_id", "cwd", "goal", "kind") if not isinstance(getattr(row, name), str)
        }
        if wrong:
            damaged.add(row.run_id)
            row = replace(row, **wrong)
        found.append(row)
    return tuple(found), frozenset(damaged)


def _check_payloads(run_id: str, *payloads: Payload | None) -> None:
    for payload in payloads:
        if payload is not None:
            _check_payload(run_id, payload)


def _check_payload(run_id: str, payload: Payload) -> None:
    for item in fields(payload):
        kind, _, optional = str(item.type).partition(" | ")
        value, types = getattr(payload, item.name), _TYPES.get(kind)
        if types is None or isinstance(value, types) or (optional and value is None):
            continue
        raise _damage(run_id, f"{item.name} of a step or of the run is {_shown(value)}")


def _check(run_id: str, what: str, document: Mapping[str, Any], forms: Mapping[str, str]) -> None:
    for key, form in forms.items():
        value = document.get(key)
        if value is not None and not _has_form(value, form):
            raise _damage(run_id, f"{key} in {what} is {_shown(value)}, not {form}")


def _has_form(value: Any, form: str) -> bool:
    if form == _TEXT:
        return isinstance(value, str)
    if form == _NUMBER:
        return isinstance(value, int)
    if form == _OBJECT:
        return isinstance(value, Mapping)
    member = {_TEXTS: str, _OBJECTS: Mapping, _LIST: object}[form]
    return isinstance(value, (list, tuple)) and all(isinstance(each, member) for each in value)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:39]}…"


def _damage(run_id: str, what: str) -> DamagedRunError:
    return DamagedRunError(
        f"the journal of run {run_id} is damaged: {what}", hint="`bullswarm runs list` shows the others"
    )
