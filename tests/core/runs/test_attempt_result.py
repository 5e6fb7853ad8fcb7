"""The records of an attempt: read from any JSON and given back unchanged, or refused as damaged."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bullswarm_core
from bullswarm_core.errors import DamagedRunError
from bullswarm_core.runs.attempt_result import JudgementRecord, LaunchRecord, MetaRecord, Record
from bullswarm_core.wire import to_wire

TEXT = st.text(max_size=8)
TEXTS = st.lists(TEXT, max_size=3)
COUNT = st.integers(0, 10**6)
SECONDS = st.floats(0, 1e6) | COUNT
TIME = st.datetimes().map(lambda moment: f"{moment.isoformat()}Z")
JSON = st.recursive(
    st.none() | st.booleans() | COUNT | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


def known(**keys: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Give JSON objects with any of these keys, each with its own values or null, and with a key of a newer version."""
    optional = {key: values | st.none() for key, values in keys.items()}
    return st.fixed_dictionaries({}, optional={**optional, "keyOfANewerVersion": JSON})


PROBLEM = TEXT | known(path=TEXT, problem=TEXT, message=TEXT)
CHECK = known(
    cmd=TEXT, file=TEXT, status=TEXT, why=TEXT, exit=COUNT, tail=TEXT | TEXTS, log=TEXT, errors=st.lists(PROBLEM, max_size=2),
    fault=TEXT,
)  # fmt: skip
KINDS: dict[type[Record], st.SearchStrategy[dict[str, Any]]] = {
    JudgementRecord: known(
        backAt=TIME, backAtSource=TEXT, excerpt=TEXT, changedFiles=TEXTS, changedFileCount=COUNT, commits=TEXTS, answer=JSON,
        answerCheck=known(ok=st.booleans(), file=TEXT, why=TEXT, problems=st.lists(PROBLEM, max_size=2)), diffStat=TEXTS,
        diffFile=TEXT, evidenceResults=st.lists(CHECK, max_size=2), returnedEarly=known(count=COUNT, items=TEXTS),
        outsideBlockers=TEXTS,
    ),
    MetaRecord: known(
        endReason=TEXT, worked=st.booleans(), stalled=st.booleans(), wallSec=SECONDS, startedAt=TIME, endedAt=TIME,
        outBytes=COUNT, usage=st.dictionaries(TEXT, COUNT | st.none(), max_size=3), confinement=TEXT,
    ),
    LaunchRecord: known(
        command=TEXT | TEXTS, confinement=TEXT, billing=TEXT, reasoning=JSON, notes=TEXTS, guarded=st.dictionaries(TEXT, JSON),
        clocks=known(startupSec=SECONDS, silenceSec=SECONDS, noProgressSec=SECONDS, wallSec=SECONDS),
        structuredOutput=st.booleans(), workspace=st.dictionaries(TEXT, JSON),
    ),
}  # fmt: skip
READERS: list[Callable[[object], Record]] = [JudgementRecord.from_wire, MetaRecord.from_wire, LaunchRecord.from_wire]


@given(st.data())
def test_a_record_is_stored_as_it_was_read(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(list(KINDS)))
    document = data.draw(KINDS[kind])
    record = kind.from_wire(document)  # type: ignore[attr-defined]
    assert json.dumps(to_wire(record)) == json.dumps(document)
    assert kind.from_wire(to_wire(record)) == record  # type: ignore[attr-defined]


@given(st.sampled_from(READERS), st.data())
def test_any_other_json_is_read_or_is_damage_and_nothing_else(
    read: Callable[[object], Record], data: st.DataObject
) -> None:
    keys = ["backAt", "changedFiles", "answerCheck", "evidenceResults", "returnedEarly", "wallSec", "usage", "worked", "clocks",
            "guarded", "notes", "startedAt", "outBytes", "changedFileCount", "command"]  # fmt: skip
    document = data.draw(JSON | st.dictionaries(st.sampled_from(keys), JSON))
    try:
        record = read(document)
    except DamagedRunError:
        return
    assert to_wire(record) == document


@pytest.mark.parametrize(
    ("read", "document", "words"),
    [
        (JudgementRecord.from_wire, None, "judgement must be a JSON object, not NoneType"),
        (JudgementRecord.from_wire, {"changedFiles": 5}, "judgement.changedFiles must be a list, not 5"),
        (JudgementRecord.from_wire, {"backAt": "soon"}, "judgement.backAt must be an ISO-8601 time, not 'soon'"),
        (
            JudgementRecord.from_wire,
            {"backAt": "0001-01-01T00:00:00+10:00"},
            "judgement.backAt must be an ISO-8601 time, not '0001-01-01T00:00:00+10:00'",
        ),
        (
            JudgementRecord.from_wire,
            {"evidenceResults": [{"status": "passed"}, {"exit": "0"}]},
            "judgement.evidenceResults[1].exit must be a whole number, not '0'",
        ),
        (MetaRecord.from_wire, {"wallSec": "60"}, "meta.wallSec must be a number, not '60'"),
        (MetaRecord.from_wire, {"usage": {"input": 1.5}}, "meta.usage.input must be a whole number, not 1.5"),
        (LaunchRecord.from_wire, {"clocks": {"wallSec": True}}, "launch.clocks.wallSec must be a number, not True"),
    ],
)
def test_damage_names_the_key_and_the_value(read: Callable[[object], Record], document: Any, words: str) -> None:
    with pytest.raises(DamagedRunError) as raised:
        read(document)
    assert raised.value.message == words


def test_a_missing_key_and_a_null_read_as_the_default() -> None:
    assert JudgementRecord.from_wire({}) == JudgementRecord()
    found = JudgementRecord.from_wire({"changedFiles": None, "evidenceResults": None, "backAt": None})
    assert (found.changed_files, found.evidence_results, found.back_at) == ((), None, None)


ROOTS = [Path(bullswarm_core.__file__).parent, Path(bullswarm_core.__file__).parents[2] / "server" / "bullswarm_server"]
RECORDS = {"judgement", "meta", "launch"}


def reads_by_key(tree: ast.AST) -> Iterator[int]:
    """Give the lines that read a record of an attempt by a string: ``x.judgement["…"]``, ``x.meta.get("…")``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript):
            read, key = node.value, node.slice
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("get", "pop")
            and node.args
        ):
            read, key = node.func.value, node.args[0]
        else:
            continue
        document = isinstance(read, ast.Attribute) and read.attr == "document"
        record = read.value if document and isinstance(read, ast.Attribute) else read
        if isinstance(key, ast.Constant) and isinstance(record, ast.Attribute) and record.attr in RECORDS:
            yield node.lineno


def test_no_other_module_reads_a_record_by_its_keys() -> None:
    found = [
        f"{file}:{line}"
        for root in ROOTS
        for file in root.rglob("*.py")
        if file.name != "attempt_result.py"
        for line in reads_by_key(ast.parse(file.read_text(encoding="utf-8")))
    ]
    assert not found


@pytest.mark.parametrize(
    ("source", "bad"),
    [
        ('finished.judgement["backAt"]', True), ('finished.meta.get("wallSec")', True), ('a.launch.document["notes"]', True),
        ("finished.judgement.back_at", False), ('state["launch"]', False),
    ],
)  # fmt: skip
def test_the_search_finds_such_a_read(source: str, bad: bool) -> None:
    assert bool(list(reads_by_key(ast.parse(source)))) is bad
