"""Every table is proved on what the real agents print (tests/recordings)."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.stream_tables import load_table

from bullswarm_core.streams.facts import StreamFacts, Tokens
from bullswarm_core.streams.reader import StreamReader, with_stderr

ROOT = Path(__file__).parents[3]
RECORDINGS = ROOT / "tests" / "recordings"
CLIS = ("claude-code", "codex", "opencode", "grok", "command-code")
# 100 tokens read, of which 30 from the cache, and 40 written, of which 5 of reasoning; two CLIs don't tell the 5 apart.
APART = Tokens(input=70, cache_read=30, cache_write=0, output=35, reasoning=5)
TOKENS = {
    "claude-code": Tokens(70, 30, 0, 40, 0),
    "codex": APART,
    "opencode": APART,
    "grok": APART,
    "command-code": Tokens(70, 30, 0, 40, None),
}


def read(cli: str, case: str) -> StreamFacts:
    recording = RECORDINGS / cli / f"{case}.jsonl"
    table = load_table(cli)
    reader = StreamReader(table)
    reader.feed(recording.read_bytes())
    return with_stderr(reader.finish(), recording.with_suffix(".stderr").read_text(), table=table)


def times(tokens: Tokens, factor: int) -> Tokens:
    counters = (tokens.input, tokens.cache_read, tokens.cache_write, tokens.output, tokens.reasoning)
    return Tokens(*(None if number is None else number * factor for number in counters))


def recorded() -> list[tuple[str, str]]:
    return sorted((path.parent.name, path.stem) for path in RECORDINGS.glob("*/*.jsonl"))


def test_every_cli_has_been_recorded() -> None:
    assert {cli for cli, _ in recorded()} == set(CLIS)


@pytest.mark.parametrize(("cli", "case"), recorded())
def test_every_line_is_an_event_told_once(cli: str, case: str) -> None:
    content = (RECORDINGS / cli / f"{case}.jsonl").read_bytes()
    facts = read(cli, case)
    assert facts.lines == len(content.splitlines())
    assert (facts.bad_lines, facts.long_lines, facts.gap_bytes) == (0, 0, 0)
    assert facts.duplicate_lines == 0
    assert facts.event_stream
    assert facts.plain_text == ""


@pytest.mark.parametrize("cli", CLIS)
@pytest.mark.parametrize("case", ["text", "warned"])
def test_a_text_answer(cli: str, case: str) -> None:
    facts = read(cli, case)
    assert facts.answer == "The answer is 42."
    assert facts.answer_source in ("terminal", "messages")
    assert (facts.terminal, facts.terminal_error, facts.answered_after_tools) == (True, False, True)
    assert facts.tokens == TOKENS[cli]
    assert (facts.tool_calls, facts.turns, facts.edits, facts.denials, facts.limits) == (0, 1, (), (), ())
    assert facts.session_id
    assert not [error for error in facts.errors if error.fatal]
    assert facts.worked


@pytest.mark.parametrize("cli", CLIS)
def test_a_file_written_and_a_command_that_fails(cli: str) -> None:
    facts = read(cli, "tool")
    assert facts.answer == "I wrote hello.txt."
    assert [Path(path).name for path in facts.edits] == ["hello.txt"]
    assert facts.tool_calls == 2
    assert facts.answered_after_tools
    assert facts.tokens == times(TOKENS[cli], 3)
    assert facts.turns == (1 if cli == "codex" else 3)
    assert facts.denials == (), "a command that exits with 3 was not refused"


@pytest.mark.parametrize("cli", CLIS)
def test_done_without_a_touch(cli: str) -> None:
    facts = read(cli, "untouched")
    assert facts.answer == "Done. I wrote hello.txt with hello."
    assert (facts.edits, facts.tool_calls) == ((), 0)


@pytest.mark.parametrize("cli", CLIS)
def test_an_empty_answer_is_never_filled(cli: str) -> None:
    facts = read(cli, "empty")
    assert (facts.answer, facts.answer_source) == ("", "none")
    assert facts.terminal
    assert facts.terminal_error is (cli == "grok")


@pytest.mark.parametrize(
    ("cli", "tool"),
    [
        ("claude-code", "Write"),
        ("codex", "apply_patch"),
        ("opencode", "write"),
        ("grok", "write"),
        ("command-code", "write_file"),
    ],
)
def test_a_denied_tool(cli: str, tool: str) -> None:
    facts = read(cli, "denied")
    [denial] = facts.denials
    assert (denial.tool, denial.by) == (tool, "cli")
    assert denial.reason
    assert facts.denial_count == 1
    assert (facts.answer, facts.edits) == ("", ())
    if cli != "codex":  # Codex tells it on stderr alone, without the file.
        assert denial.target is not None
        assert denial.target.endswith("hello.txt")
        assert not facts.answered_after_tools


@pytest.mark.parametrize("cli", CLIS)
@pytest.mark.parametrize("case", ["hang", "killed"])
def test_no_last_word_without_one(cli: str, case: str) -> None:
    facts = read(cli, case)
    assert not facts.terminal
    assert facts.answer == ""
    assert not [error for error in facts.errors if error.fatal]


@pytest.mark.parametrize("cli", ["claude-code", "codex", "grok", "command-code"])
def test_killed_in_a_tool_call(cli: str) -> None:
    facts = read(cli, "killed")
    assert facts.tool_calls == 1
    assert not facts.answered_after_tools


@dataclass(frozen=True)
class Failure:
    text: str
    status: int | None
    retry_after_sec: float | None = None


FAILURES = {
    ("claude-code", "usage-limit"): Failure("You've hit your 5-hour limit · resets", 429),
    ("claude-code", "usage-limit-no-reset"): Failure("You've hit your 5-hour limit", 429),
    ("claude-code", "rate-limit"): Failure("temporarily limiting requests", 429),
    ("claude-code", "unauthorized"): Failure("Failed to authenticate", 401),
    ("claude-code", "overloaded"): Failure("Overloaded", 529),
    ("claude-code", "server-error"): Failure("boom", 500),
    ("codex", "usage-limit"): Failure("You’ve hit your usage limit", None),
    ("codex", "usage-limit-no-reset"): Failure("try again later", None),
    ("codex", "rate-limit"): Failure("429 Too Many Requests", 429),
    ("codex", "unauthorized"): Failure("Incorrect API key provided", 401),
    ("codex", "overloaded"): Failure("at capacity", None),
    ("codex", "server-error"): Failure("high demand", None),
    ("opencode", "usage-limit"): Failure("Monthly usage limit reached", 429, 7200.0),
    ("opencode", "usage-limit-no-reset"): Failure("Monthly usage limit reached", 429, 0.05),
    ("opencode", "rate-limit"): Failure("Rate limit reached", 429, 0.05),
    ("opencode", "unauthorized"): Failure("Incorrect API key provided", 401),
    ("opencode", "overloaded"): Failure("at capacity", 503, 0.05),
    ("opencode", "server-error"): Failure("boom", 500, 0.05),
    ("grok", "usage-limit"): Failure("usage_limit_reached", None),
    ("grok", "usage-limit-no-reset"): Failure("usage_limit_reached", None),
    ("grok", "rate-limit"): Failure("rate_limit_exceeded", None),
    ("grok", "unauthorized"): Failure("Unauthorized (401)", 401),
    ("grok", "overloaded"): Failure("API error (status 503 Service Unavailable)", 503),
    ("grok", "server-error"): Failure("API error (status 500 Internal Server Error)", 500),
    ("command-code", "usage-limit"): Failure("insufficient credits", None),
    ("command-code", "usage-limit-no-reset"): Failure("insufficient credits", None),
    ("command-code", "rate-limit"): Failure("Rate limit reached", None),
    ("command-code", "unauthorized"): Failure("Authentication failed", None),
    ("command-code", "overloaded"): Failure("at capacity", None),
    ("command-code", "server-error"): Failure("boom", None),
}


@pytest.mark.parametrize(("cli", "case"), sorted(FAILURES))
def test_a_provider_failure(cli: str, case: str) -> None:
    expected = FAILURES[cli, case]
    facts = read(cli, case)
    assert (facts.terminal, facts.terminal_error, facts.answer) == (True, True, "")
    fatal = [error for error in facts.errors if error.fatal]
    found = [error for error in fatal if expected.text in error.text]
    assert found, fatal
    assert found[0].status == expected.status
    # The script counts down to a fixed time of reset, so a second may have passed before it answered.
    assert found[0].retry_after_sec == pytest.approx(expected.retry_after_sec, abs=60)
    assert len({error.text for error in facts.errors}) == len(facts.errors), "one error is told once"


def test_claude_limits_are_read_from_the_machine_readable_event() -> None:
    [known] = read("claude-code", "usage-limit").limits
    event = next(
        json.loads(line)["rate_limit_info"]
        for line in (RECORDINGS / "claude-code" / "usage-limit.jsonl").read_text().splitlines()
        if "rate_limit_event" in line
    )
    assert known.window == "5h"
    assert known.resets_at is not None
    assert known.resets_at.timestamp() == event["resetsAt"]
    [unknown] = read("claude-code", "usage-limit-no-reset").limits
    assert (unknown.window, unknown.resets_at) == ("5h", None)


def test_a_passing_rate_limit_is_no_spent_window() -> None:
    assert read("claude-code", "rate-limit").limits == ()
    assert read("opencode", "rate-limit").limits == ()


def test_opencode_names_the_window_of_its_own_limit() -> None:
    [limit] = read("opencode", "usage-limit").limits
    assert limit.window == "monthly"


def test_a_retry_is_not_the_end() -> None:
    errors = read("codex", "unauthorized").errors
    assert [(error.fatal, error.warning) for error in errors] == [(False, True), (False, False), (True, False)]
    assert errors[1].text.startswith("Reconnecting... 1/1")


def test_a_turn_that_produced_nothing() -> None:
    assert not read("claude-code", "usage-limit").worked
    assert read("claude-code", "empty").worked, "the model answered, with nothing in it"


def test_grok_keeps_what_was_said_before_it_was_killed() -> None:
    facts = read("grok", "hang-mid-stream")
    assert (facts.answer, facts.answer_source, facts.terminal) == ("Let me look at", "messages", False)


@pytest.mark.parametrize(
    ("state", "tool"),
    [
        ({"status": "error", "error": "PermissionDenied: FileSystem.writeFile (/h/out.txt)"}, "write"),
        (
            {"status": "completed", "input": {"tool": "edit", "error": "Model tried to call unavailable tool 'edit'."}},
            "edit",
        ),
    ],
)
def test_opencode_tells_a_refused_write_in_its_own_words(state: dict[str, object], tool: str) -> None:
    part = {"tool": "invalid" if "input" in state else tool, "callID": "call_1", "state": state}
    reader = StreamReader(load_table("opencode"))
    reader.feed(json.dumps({"type": "tool_use", "part": part}).encode() + b"\n")
    (denial,) = reader.finish().denials
    assert (denial.tool, bool(denial.reason)) == (tool, True)


def test_a_tool_that_opencode_never_had_is_no_refusal() -> None:
    told = {"tool": "frobnicate", "error": "Model tried to call unavailable tool 'frobnicate'."}
    part = {"tool": "invalid", "callID": "call_1", "state": {"status": "completed", "input": told}}
    reader = StreamReader(load_table("opencode"))
    reader.feed(json.dumps({"type": "tool_use", "part": part}).encode() + b"\n")
    assert reader.finish().denials == ()
