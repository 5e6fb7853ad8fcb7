"""A CLI that begins, says nothing more and exits 0 has not answered."""

from __future__ import annotations

import json

import pytest
from tests.core.judging.test_recorded_verdicts import CLIS, NOTHING, NOW, RECORDINGS, table

from bullswarm_core.judging.error_channel import with_channel
from bullswarm_core.judging.model import JudgeInput
from bullswarm_core.judging.verdict import Judgement, judge
from bullswarm_core.pools import Lane
from bullswarm_core.streams.facts import ExitFacts
from bullswarm_core.streams.reader import StreamReader


def judged(cli: str, said: bytes, lane: Lane) -> Judgement:
    reader = StreamReader(table(cli))
    reader.feed(said)
    stream = with_channel(reader.finish(), stderr_tail="")
    ended = ExitFacts("exited", exit_code=0)
    return judge(JudgeInput(lane=lane, exit=ended, stream=stream, now=NOW, deliverable=NOTHING))


@pytest.mark.parametrize(
    ("lane", "kind", "words"),
    [("analyze", "semantic", "empty output"), ("build", "not-produced", "no file was changed")],
)
def test_only_a_step_that_started_is_no_answer(lane: Lane, kind: str, words: str) -> None:
    found = judged("opencode", b'{"type":"step_start","sessionID":"ses_1","part":{"type":"step-start"}}\n', lane)
    assert (found.ok, found.failure_kind) == (False, kind) and words in found.why


@pytest.mark.parametrize("lane", ["analyze", "build"])
@pytest.mark.parametrize("cli", CLIS)
def test_no_cut_of_a_stream_before_its_answer_is_a_success(cli: str, lane: Lane) -> None:
    lines = (RECORDINGS / cli / "text.jsonl").read_bytes().splitlines(keepends=True)
    answer = judged(cli, b"".join(lines), "analyze")
    assert answer.ok
    first = [line for line in lines if json.loads(line)][:1]
    for said in (b"", b"".join(first)):
        if said != b"".join(lines):
            assert not judged(cli, said, lane).ok
