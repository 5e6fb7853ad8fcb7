"""Where the kept answer of an attempt comes from, and what a disk that refuses it means."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bullswarm_core.answers.answer import AnswerProblem
from bullswarm_core.attempts import collect_answer as module
from bullswarm_core.attempts.collect_answer import Harvest, harvest, remove_draft
from bullswarm_core.errors import StorageError
from bullswarm_core.pools.launch_rules import StructuredOutput
from bullswarm_core.prompts.rules import answer_rules
from bullswarm_core.runs.run_files import AttemptFiles
from bullswarm_core.streams.facts import StreamFacts

EVENT = StructuredOutput(("--schema", "{answerSchema}"))
REPLY = StructuredOutput(("--schema", "{answerSchema}"), reply=True)


def valid(schema: Mapping[str, Any], value: Any) -> tuple[AnswerProblem, ...]:
    return () if value != "wrong" else (AnswerProblem("#", "it is wrong"),)


@pytest.fixture
def files(tmp_path: Path) -> AttemptFiles:
    made = AttemptFiles(tmp_path, "run", 1)
    made.private_tmp.mkdir()
    return made


def reap(
    files: AttemptFiles,
    reply: str = "",
    *,
    lane: str = "build",
    structured: StructuredOutput | None = None,
    output: str | None = None,
) -> Harvest:
    stream = StreamFacts(answer=reply, structured=output)
    return harvest({}, lane=lane, files=files, stream=stream, structured=structured, validate=valid)


@pytest.mark.parametrize(
    ("draft", "structured", "output", "reply", "source"),
    [
        ("1", EVENT, "2", "3", "answer-file"),
        (None, EVENT, "2", "3", "structured-output"),
        (None, EVENT, None, "3", "final-reply"),
        (None, None, "2", "3", "final-reply"),
        (None, REPLY, None, "3", "structured-output"),
        (None, REPLY, None, "```\n3\n```", "final-reply"),
        (None, EVENT, None, "", None),
    ],
)
def test_the_order_of_the_sources(
    files: AttemptFiles,
    draft: str | None,
    structured: StructuredOutput | None,
    output: str | None,
    reply: str,
    source: str | None,
) -> None:
    if draft is not None:
        files.answer_draft.write_text(draft)
    found = reap(files, reply, structured=structured, output=output)
    assert found.check.source == source and found.check.ok == (source is not None)
    if found.check.ok:
        assert found.check.file == str(files.answer) and json.loads(files.answer.read_text()) == found.value


def test_a_file_of_a_reader_is_not_looked_at(files: AttemptFiles) -> None:
    files.answer_draft.write_text("1")
    assert reap(files, "2", lane="analyze").value == 2


def test_what_was_given_in_a_file_is_kept_also_when_it_is_wrong(files: AttemptFiles) -> None:
    files.answer_draft.write_text('"wrong"')
    found = reap(files)
    assert (found.value, found.check.ok, found.check.file) == (None, False, str(files.answer))
    assert files.answer.read_text() == '"wrong"'
    files.answer_draft.write_bytes(b"\xff")
    assert reap(files).check.file == str(files.answer) and files.answer.read_bytes() == b"\xff"
    assert not files.answer_draft.exists()


def test_a_link_and_a_fifo_are_not_kept(files: AttemptFiles) -> None:
    files.answer_draft.symlink_to("/etc/passwd")
    assert reap(files).check.file is None
    files.answer_draft.unlink()
    os.mkfifo(files.answer_draft)
    assert reap(files).check.file is None and not files.answer.exists()


def test_a_wrong_reply_stands_in_the_output_file_alone(files: AttemptFiles) -> None:
    assert reap(files, '"wrong"').check.file is None and not files.answer.exists()


@pytest.mark.parametrize("text", ["1", '"wrong"'])
def test_a_disk_that_refuses_the_answer_is_told(
    files: AttemptFiles, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, data: bytes) -> None:
        raise StorageError("cannot write", hint="free some space")

    files.answer_draft.write_text(text)
    monkeypatch.setattr(module, "write_bytes_atomic", refuse)
    found = reap(files)
    assert (found.value, found.check.ok, found.check.checked) == (None, False, text != "1")
    assert "cannot write" in found.check.problems[-1].problem


def test_a_draft_of_an_earlier_start_goes_away(files: AttemptFiles) -> None:
    remove_draft(files.answer_draft)
    files.answer_draft.write_text("1")
    remove_draft(files.answer_draft)
    assert not files.answer_draft.exists()


def test_the_rules_name_the_file_only_to_who_may_write() -> None:
    schema = {"type": "object", "description": "{cwd} é"}
    assert "/t/answer.json" in answer_rules(schema, draft="/t/answer.json")
    alone = answer_rules(schema, draft=None)
    assert "file" not in alone and '{"type":"object","description":"{cwd} é"}' in alone
