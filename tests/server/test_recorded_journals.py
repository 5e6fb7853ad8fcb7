"""Journals that real kernels wrote, and the documents that were made of them: neither may change its form unnoticed."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from bullswarm_core.judging.model import FailureKind
from bullswarm_core.pools.labels import Labels
from bullswarm_core.reports.handback import handback
from bullswarm_core.reports.needs_you import needs_you
from bullswarm_core.reports.notices import tell
from bullswarm_core.reports.summary import summary_of
from bullswarm_core.reports.verdict import verdict_of
from bullswarm_core.reports.watch import Teller
from bullswarm_core.reports.workflow_result import result_of, running_result
from bullswarm_core.runs.events import AttemptFinished, Event, decode, encode
from bullswarm_core.runs.fold import fold
from bullswarm_core.runs.run_files import RunFolder
from bullswarm_core.runs.status import statuses
from bullswarm_core.store.home import Home
from bullswarm_core.wire import parse_iso
from bullswarm_server.report import report_page

HERE = Path(__file__).parent / "recorded_journals.json"
Rows = list[list[Any]]

ANSWER = {
    "answer": {"done": True},
    "answerCheck": {
        "ok": False, "source": "answer-file", "file": "/w/answer.json", "bytes": 12, "checked": True,
        "problems": [{"path": "#/done", "problem": "must be text"}],
    },
}  # fmt: skip


def recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(HERE.read_text(encoding="utf-8"))
    return found


def journals(kept: list[Rows]) -> Iterator[tuple[str, Rows]]:
    """Give each recorded journal, and one of them with each other failure that an attempt may end with."""
    for place, rows in enumerate(kept):
        yield f"recorded {place}", rows
    short = min((rows for rows in kept if any(row[2] == "attempt.finished" for row in rows)), key=len)
    for kind in get_args(FailureKind):
        yield (
            kind,
            [[*row[:4], with_failure(row[4], kind) if row[2] == "attempt.finished" else row[4]] for row in short],
        )


def with_failure(payload: dict[str, Any], kind: str) -> dict[str, Any]:
    more = {"backAt": "2026-12-01T05:00:00.250Z", "backAtSource": "named"} if kind in ("quota", "throttle") else {}
    judgement = payload["judgement"] | {"ok": False, "failureKind": kind, "why": kind, "aNewKey": [kind]} | more
    judgement |= ANSWER if kind == "schema" else {}
    meta = payload["meta"] | {"usage": {"input": 5, "cacheRead": None, "cacheWrite": 0, "output": 7, "reasoning": None}}
    return payload | {"ok": False, "failureKind": kind, "why": kind, "judgement": judgement, "meta": meta}


def documents_of(rows: Rows) -> dict[str, Any]:
    """Return every document that is made of a journal, by name."""
    events = [
        Event("wf", seq, parse_iso(at), kind, decode(kind, version, said)) for seq, at, kind, version, said in rows
    ]
    states = [state for end in range(1, len(events) + 1) if (state := fold(events[:end])) is not None]
    state, folder = states[-1], RunFolder.of(Home("/w/home"), "wf")
    result = result_of(state, "failed", folder=folder, label=str.upper)
    found: dict[str, Any] = {
        "result": result,
        "summary": summary_of(result, folder=folder),
        "running": [running_result(each, kernel_alive=True, folder=folder, label=str.upper) for each in states],
        "handback": handback(state, statuses(state), over=True),
        "report": report_page(folder, state, result, labels=Labels({})),
        "notices": [notice.document() for notice in Teller(folder=folder, telling=tell).take(events)],
    }
    for name, step in state.steps.items():
        found[f"needs {name}"] = needs_you(state, step, folder=folder)
        if step.current is None or step.current.finished is not None:
            found[f"verdict {name}"] = verdict_of(state, step, folder=folder)
    return found


def digests(kept: list[Rows]) -> dict[str, dict[str, str]]:
    return {
        name: {
            key: hashlib.sha256(json.dumps(document, ensure_ascii=False).encode()).hexdigest()[:16]
            for key, document in documents_of(rows).items()
        }
        for name, rows in journals(kept)
    }


def test_the_documents_are_those_that_were_recorded() -> None:
    kept = recorded()
    assert digests(kept["journals"]) == kept["documents"]


def test_a_finished_attempt_is_stored_as_it_was_read() -> None:
    seen = 0
    for _, rows in journals(recorded()["journals"]):
        for _, _, kind, version, document in rows:
            payload = decode(kind, version, json.loads(json.dumps(document)))
            assert payload is not None
            assert json.dumps(encode(payload)[2]) == json.dumps(document)
            seen += isinstance(payload, AttemptFinished)
    assert seen > len(get_args(FailureKind))


if __name__ == "__main__":
    # python tests/server/test_recorded_journals.py ROWS: record the documents of these journals, as this version makes them.
    rows = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    HERE.write_text(
        json.dumps({"journals": rows, "documents": digests(rows)}, ensure_ascii=False, separators=(",", ":")) + "\n",
        encoding="utf-8",
    )
