"""The retries that a CLI tells on stderr alone: how long it waits, and what it waits for."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.stream_tables import load_table

from bullswarm_core.errors import ConnectorError
from bullswarm_core.streams.facts import ProviderError
from bullswarm_core.streams.stderr import StderrWatch, stderr_retries
from bullswarm_core.streams.table import StreamTable, compile_table

CODEX = load_table("codex")
STAMP = "2026-11-30T06:41:07.152235Z  WARN codex_core::responses_retry: "
ERROR = "exceeded retry limit, last status: 429 Too Many Requests"


def waiting(wait: str) -> str:
    return (
        f"{STAMP}stream disconnected - retrying sampling request (1/2 in {wait})... turn_id=01a2 retries=1 "
        f"max_retries=2 sampling_error={ERROR}\n"
    )


def test_codex_says_how_long_the_provider_makes_it_wait() -> None:
    (error,) = stderr_retries("something else\n" + waiting("3599.998652463s"), CODEX)
    assert error == ProviderError(ERROR, status=429, retry_after_sec=3599.998652463, fatal=False)


@pytest.mark.parametrize("wait", ["212.5ms", "6.4s", "nonsense", ""])
def test_the_own_pause_of_codex_is_not_the_word_of_the_provider(wait: str) -> None:
    (error,) = stderr_retries(waiting(wait), CODEX)
    assert (error.status, error.retry_after_sec) == (429, None)


def test_the_lines_of_others_are_no_retries() -> None:
    assert stderr_retries(waiting("60s").replace("responses_retry", "tools::router"), CODEX) == ()
    assert stderr_retries(waiting("60s"), StreamTable(kind=CODEX.kind, programs={})) == ()
    assert CODEX.stderr, "the denials stay beside them"


@given(st.text(max_size=300), st.text(max_size=60))
def test_no_stderr_raises_or_names_a_negative_wait(text: str, wait: str) -> None:
    for error in stderr_retries(f"{text}\n{STAMP}{text}\n{waiting(wait)}", CODEX):
        assert not error.fatal
        assert error.retry_after_sec is None or error.retry_after_sec >= 30


def test_a_watch_sees_what_comes_while_the_worker_lives(tmp_path: Path) -> None:
    file = tmp_path / "stderr.log"
    watch = StderrWatch(file, CODEX)
    assert (watch.moved(), watch.errors()) == (False, ())
    file.write_text("x" * 9_000 + "\n" + waiting("7200s"))
    assert watch.moved()
    assert [error.retry_after_sec for error in watch.errors()] == [7200]
    assert not watch.moved()
    assert (StderrWatch(file, None).moved(), StderrWatch(file, None).errors()) == (False, ())


@pytest.mark.parametrize("wrong", [-1, "60", True, None, float("inf")])
def test_a_wrong_number_of_seconds_is_named(wrong: object) -> None:
    rule = {"marker": "m", "words": ["w"], "waitAfter": "in ", "textAfter": "=", "leastWaitSec": wrong}
    table = {"schemaVersion": "bullswarm.stream.v1", "kind": "type", "rules": [], "stderr": [rule]}
    with pytest.raises(ConnectorError, match=r"stderr\[0\]\.leastWaitSec is .*a number of seconds"):
        compile_table(table)
