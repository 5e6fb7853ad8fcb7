"""Only the provider itself is heard on the error channel (docs/design/judging.md, "The error channel")."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.stream_tables import load_table

from bullswarm_core.judging.error_channel import error_channel, with_channel
from bullswarm_core.streams.facts import ProviderError, StreamFacts
from bullswarm_core.streams.reader import StreamReader

ROOT = Path(__file__).parents[3]
LIMIT = "You've hit your usage limit · resets 6:32am (UTC)"


def recorded(cli: str, case: str) -> str:
    table = load_table(cli)
    recording = ROOT / "tests" / "recordings" / cli / f"{case}.jsonl"
    reader = StreamReader(table)
    reader.feed(recording.read_bytes())
    return error_channel(reader.finish(), stderr_tail=recording.with_suffix(".stderr").read_text())


@pytest.mark.parametrize(
    ("cli", "words"),
    [
        ("claude-code", "hit your 5-hour limit"),
        ("codex", "hit your usage limit"),
        ("opencode", "Monthly usage limit reached"),
        ("grok", "The usage limit has been reached"),
        ("command-code", "insufficient credits"),
    ],
)
def test_a_real_limit_is_heard(cli: str, words: str) -> None:
    assert words in recorded(cli, "usage-limit")


@pytest.mark.parametrize("cli", ["claude-code", "codex", "opencode", "grok", "command-code"])
@pytest.mark.parametrize("case", ["text", "untouched", "tool", "warned"])
def test_a_good_run_says_nothing_there(cli: str, case: str) -> None:
    assert recorded(cli, case) == ""


def test_what_the_agent_said_is_never_heard() -> None:
    stream = StreamFacts(answer=LIMIT, openings=(LIMIT[:60],), terminal=True, plain_text=LIMIT, lines=4, bad_lines=1)
    assert error_channel(stream) == ""


def test_a_last_word_that_repeats_the_agent_is_dropped() -> None:
    error = ProviderError(LIMIT, mirrors_reply=True)
    assert error_channel(StreamFacts(errors=(error,))) == LIMIT
    assert error_channel(StreamFacts(errors=(error,), openings=(LIMIT[:60],))) == ""
    spaced = replace(error, text=LIMIT.replace(" ", "\n  ", 2))
    assert error_channel(StreamFacts(errors=(spaced,), openings=(LIMIT[:60],))) == ""
    assert error_channel(StreamFacts(errors=(error,), openings=(LIMIT[:20],))) == LIMIT, (
        "a shared start is no repetition"
    )
    elsewhere = replace(error, mirrors_reply=False)
    assert error_channel(StreamFacts(errors=(elsewhere,), openings=(LIMIT[:60],))) == LIMIT


def test_news_is_no_failure() -> None:
    assert (
        error_channel(StreamFacts(errors=(ProviderError("90 % of your limit used", warning=True, fatal=False),))) == ""
    )


def test_a_status_that_the_text_hides_is_shown() -> None:
    errors = (ProviderError("Insufficient funds", status=402), ProviderError("API Error: 529 Overloaded", status=529))
    assert error_channel(StreamFacts(errors=errors)) == "HTTP 402: Insufficient funds\nAPI Error: 529 Overloaded"


@pytest.mark.parametrize(
    ("answer", "worked", "heard"),
    [
        (LIMIT, False, LIMIT),
        (f"\n{LIMIT}\n", False, LIMIT),
        (LIMIT, True, ""),
        (f"{LIMIT}\nand more", False, ""),
        ("", False, ""),
    ],
)
def test_one_line_from_a_turn_that_produced_nothing_is_the_provider(answer: str, worked: bool, heard: str) -> None:
    stream = StreamFacts(answer=answer, worked=worked, openings=(LIMIT[:60],))
    assert error_channel(stream) == heard


def test_without_an_event_stream_the_tails_are_the_channel() -> None:
    plain = StreamFacts(answer="x", plain_text="out\n", event_stream=False, lines=1)
    assert error_channel(plain, stderr_tail="err\n") == "err\nout"
    never_began = StreamFacts(plain_text="Not signed in.\n", lines=1, bad_lines=1)
    assert error_channel(never_began) == "Not signed in."


@given(st.lists(st.text(max_size=3_000), max_size=6), st.text(max_size=20_000))
def test_the_channel_is_bounded_and_ends_in_the_latest_error(texts: list[str], stderr: str) -> None:
    stream = StreamFacts(errors=tuple(ProviderError(text) for text in texts))
    heard = error_channel(stream, stderr_tail=stderr)
    assert len(heard) <= 8_000
    assert not texts or texts[-1] in heard or texts.count(texts[-1]) > 1
    assert with_channel(stream, stderr_tail=stderr).channel == heard
