"""What real CLIs printed in each kind of run, from their bytes to the verdict."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bullswarm_core.judging.error_channel import with_channel
from bullswarm_core.judging.findings import declared_failure
from bullswarm_core.judging.limits import Reader, early_stop, notice_of
from bullswarm_core.judging.model import JudgeInput
from bullswarm_core.judging.verdict import Judgement, judge
from bullswarm_core.pools import Lane
from bullswarm_core.streams.facts import ExitFacts
from bullswarm_core.streams.reader import StreamReader, stderr_errors
from bullswarm_core.trees.snapshot import DeliverableFacts

ROOT = Path(__file__).parents[3]
RECORDINGS = ROOT / "tests/recordings"
CLIS = ("claude-code", "codex", "opencode", "grok", "command-code")
NOW = datetime(2026, 11, 30, 6, 0, tzinfo=UTC)
NOTHING = DeliverableFacts(is_git=True)
# These two lose the wait: neither its text nor its code reaches anything that the CLI prints.
NEVER_NAMES_A_RESET = ("grok", "command-code")


def table(cli: str) -> dict[str, Any]:
    found = json.loads((ROOT / f"providers/bullswarm_providers/{cli.replace('-', '_')}/stream.json").read_text())
    assert isinstance(found, dict)
    return found


def verdict(cli: str, case: str, *, lane: Lane = "analyze", made: DeliverableFacts | None = None) -> Judgement:
    base = RECORDINGS / cli
    stderr = (base / f"{case}.stderr").read_text()
    reader = StreamReader(table(cli))
    reader.feed((base / f"{case}.jsonl").read_bytes())
    stream = reader.finish()
    stream = with_channel(replace(stream, errors=(*stream.errors, *stderr_errors(stderr))), stderr_tail=stderr)
    code = json.loads((base / f"{case}.json").read_text())["exitCode"]
    ended = ExitFacts("exited", exit_code=code, stderr_tail=stderr)
    notice = notice_of(stream, Reader(NOW, failed=declared_failure(stream, ended)))
    return judge(JudgeInput(lane=lane, exit=ended, stream=stream, now=NOW, notice=notice, deliverable=made))


@pytest.mark.parametrize("cli", CLIS)
@pytest.mark.parametrize(
    ("case", "kind"),
    [
        ("text", None), ("tool", None), ("warned", None), ("usage-limit", "quota"), ("usage-limit-no-reset", "quota"),
        ("rate-limit", "throttle"), ("unauthorized", "auth"), ("server-error", "provider"), ("overloaded", "provider"),
        ("hang", "interrupted"), ("hang-mid-stream", "interrupted"), ("killed", "interrupted"),
    ],
)  # fmt: skip
def test_each_kind_of_run(cli: str, case: str, kind: str | None) -> None:
    found = verdict(cli, case)
    assert found.failure_kind == kind, found.why
    if case == "usage-limit" and cli not in NEVER_NAMES_A_RESET:
        assert found.back_at is not None and found.back_at > NOW and found.back_at_source == "named"
    elif kind != "throttle":
        assert found.back_at is None


@pytest.mark.parametrize("cli", CLIS)
def test_an_empty_answer_is_never_ok(cli: str) -> None:
    assert not verdict(cli, "empty").ok


@pytest.mark.parametrize("cli", CLIS)
def test_saying_done_without_touching_a_file(cli: str) -> None:
    assert verdict(cli, "untouched", lane="build", made=NOTHING).failure_kind == "not-produced"


@pytest.mark.parametrize("cli", CLIS)
def test_a_file_that_was_written(cli: str) -> None:
    assert verdict(cli, "tool", lane="build", made=DeliverableFacts(created=("hello.txt",))).ok


@pytest.mark.parametrize("cli", [cli for cli in CLIS if cli != "codex"])
def test_a_denied_tool_and_no_answer(cli: str) -> None:
    """Codex says nothing of it in its stream: its denials are read from the thread's rollout."""
    found = verdict(cli, "denied")
    assert found.failure_kind == "denied" and "write" in found.why.lower()


def test_a_spent_window_stops_the_attempt_as_soon_as_the_stream_says_so() -> None:
    reader = StreamReader(table("claude-code"))
    seen = []
    for line in (RECORDINGS / "claude-code/usage-limit.jsonl").read_bytes().splitlines(keepends=True):
        reader.feed(line)
        seen.append(early_stop(with_channel(reader.snapshot()), Reader(NOW)) is not None)
    assert True in seen and not seen[0]


@pytest.mark.parametrize("cli", CLIS)
@pytest.mark.parametrize("case", ["text", "tool", "warned", "rate-limit", "unauthorized", "server-error", "overloaded"])
def test_nothing_else_stops_an_attempt_on_the_way(cli: str, case: str) -> None:
    reader = StreamReader(table(cli))
    for line in (RECORDINGS / cli / f"{case}.jsonl").read_bytes().splitlines(keepends=True):
        reader.feed(line)
        assert early_stop(with_channel(reader.snapshot()), Reader(NOW)) is None
