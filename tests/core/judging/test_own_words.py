"""What bullswarm itself says of limits is no refusal of a provider, wherever a worker's CLI repeats it."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from tests.core.judging.test_recorded_verdicts import table

from bullswarm_core.judging.error_channel import with_channel
from bullswarm_core.judging.limits import Reader, classify_notice, early_stop, notice_of
from bullswarm_core.pools.connector import Signatures
from bullswarm_core.streams.reader import StreamReader

NOW = datetime(2026, 11, 30, 5, 0, 30, tzinfo=UTC)
FAILED = Reader(NOW, Signatures(quota=("usage limit", "hit your usage limit"), throttle=("rate limit",)), failed=True)
OWN = [
    "no pool with quota to spare: codex at its 5-hour limit until 2026-11-30T07:00:00Z",
    "no eligible pool: codex at its weekly limit until 2026-12-03T07:00:00Z; grok near its 5-hour limit",
    "bullswarm run: no pool free: claude-code at its monthly limit until 2026-12-24T00:00:00Z",
    "a throttle that names its wait goes back to the caller",
    "FAILED [codex] quota: the attempt before met a usage limit · back at 2026-11-30T07:00:00Z",
]
LIMIT = "You've hit your 5-hour limit · resets 7am (UTC)"


@pytest.mark.parametrize("line", OWN)
def test_our_own_sentences_are_no_notice(line: str) -> None:
    assert classify_notice(line, FAILED) is None


def test_an_earlier_notice_that_stands_in_the_task_is_never_heard() -> None:
    """A retry is told why the attempt before failed, and the CLI repeats its task in an event of its own."""
    task = {
        "type": "user",
        "message": {"role": "user", "content": [{"type": "text", "text": f"Before: {LIMIT}\n{LIMIT}"}]},
    }
    result = {"type": "result", "subtype": "error_during_execution", "is_error": True, "result": "boom"}
    reader = StreamReader(table("claude-code"))
    reader.feed(json.dumps(task).encode() + b"\n")
    assert early_stop(with_channel(reader.snapshot(), stderr_tail=""), Reader(NOW)) is None
    reader.feed(json.dumps(result).encode() + b"\n")
    assert notice_of(with_channel(reader.finish(), stderr_tail=""), FAILED) is None
