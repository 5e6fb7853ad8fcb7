"""The reader as such: any chunks, any garbage, flat memory."""

import json
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core.process.line_splitter import LineSplitter
from bullswarm_core.streams.bounded import CappedText, FirstLast, RecentKeys
from bullswarm_core.streams.facts import Denial, StreamFacts
from bullswarm_core.streams.reader import StreamReader, stderr_denials, stderr_errors, with_stderr
from bullswarm_core.streams.table import compile_table

TABLE = compile_table(
    {
        "schemaVersion": "bullswarm.stream.v1",
        "kind": "type",
        "eventId": "id",
        "skip": ['{"type":"noise"'],
        "rules": [
            {"on": "say", "emit": "text", "fields": {"text": "text"}},
            {"on": "call", "emit": "tool_call", "fields": {"id": "call", "name": "name", "input": "input"}},
            {"on": "edit", "emit": "edit", "fields": {"path": "path"}},
            {"on": "fail", "emit": "error", "fields": {"text": "text", "status": "status"}},
            {"on": "use", "emit": "usage", "mode": "sum", "fields": {"input": "in", "output": "out"}},
            {
                "on": "end",
                "emit": "terminal",
                "failedWhen": [{"bad": True}],
                "fields": {"answer": "answer", "stopReason": "why"},
            },
        ],
        "stderr": [
            {"marker": "router: error=", "words": ["patch rejected"], "tool": "patch"},
            {"marker": "router: error=", "words": ["rejected"], "tool": "shell"},
        ],
    }
)


def line(**event: Any) -> bytes:
    return json.dumps(event, separators=(",", ":")).encode() + b"\n"


def read(content: bytes, *, cuts: list[int] | None = None, line_cap: int = 16 << 20) -> StreamFacts:
    reader = StreamReader(TABLE, line_cap=line_cap)
    places = sorted({0, len(content), *(cut % (len(content) + 1) for cut in cuts or [])})
    for start, end in pairwise(places):
        reader.feed(content[start:end])
    return reader.finish()


GARBAGE = (
    st.binary(max_size=60)
    | st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=8,
    ).map(lambda value: json.dumps(value).encode())
    | st.fixed_dictionaries(
        {"type": st.sampled_from(["say", "call", "edit", "fail", "use", "end"])},
        optional={
            name: st.none()
            | st.floats()
            | st.integers()
            | st.text(max_size=5)
            | st.lists(st.none(), max_size=2)
            | st.just({"a": 1})
            for name in ("text", "call", "name", "input", "path", "status", "in", "out", "answer", "why", "bad", "id")
        },
    ).map(lambda value: json.dumps(value).encode())
)


@given(st.lists(GARBAGE, max_size=12).map(b"\n".join), st.lists(st.integers(0, 10_000), max_size=12))
def test_any_chunks_give_the_same_facts_and_nothing_raises(content: bytes, cuts: list[int]) -> None:
    facts = read(content, cuts=cuts)
    assert facts == read(content)
    assert facts == read(content, cuts=list(range(len(content))))
    facts.answer.encode()
    "".join(facts.edits).encode()
    for error in facts.errors:
        error.text.encode()


@given(st.lists(st.binary(max_size=40).map(lambda piece: piece.replace(b"\n", b" ").replace(b"{", b"(")), max_size=6))
def test_good_lines_survive_the_bad_ones_around_them(garbage: list[bytes]) -> None:
    good = [line(type="edit", path=f"{number}.txt") for number in range(len(garbage) + 1)]
    mixed = good[0] + b"".join(piece + b"\n" + one for piece, one in zip(garbage, good[1:], strict=True))
    facts = read(mixed)
    assert facts.edits == tuple(f"{number}.txt" for number in range(len(good)))
    assert facts.bad_lines == sum(1 for piece in garbage if piece.strip())
    assert facts.lines == len(good) + facts.bad_lines


def test_a_line_without_its_line_feed_is_read_and_half_a_line_is_counted() -> None:
    assert read(line(type="say", text="whole").rstrip()).answer == "whole"
    facts = read(line(type="say", text="whole") + b'{"type":"say","te')
    assert (facts.answer, facts.lines, facts.bad_lines) == ("whole", 2, 1)
    assert facts.plain_text == '{"type":"say","te\n'


def test_a_huge_line_is_counted_and_the_next_one_is_read() -> None:
    huge = line(type="say", text="x" * 5_000)
    content = line(type="edit", path="a") + huge + line(type="edit", path="b") + huge[:-1]
    for cuts in ([], [10, 900, 3_000, 5_500], list(range(0, len(content), 7))):
        facts = read(content, cuts=cuts, line_cap=1_000)
        assert facts.edits == ("a", "b")
        assert (facts.long_lines, facts.lines, facts.bad_lines) == (2, 4, 0)


def test_duplicates_are_counted_and_change_nothing() -> None:
    call = line(type="call", name="x")
    facts = read(call + call + line(type="use", out=1, id="7") + call + line(out=1, id="7", type="use"))
    assert (facts.duplicate_lines, facts.tool_calls) == (2, 2)
    assert facts.tokens is not None
    assert facts.tokens.output == 1


def test_what_may_be_skipped_is_counted_and_never_parsed() -> None:
    facts = read(b'{"type":"noise", broken\n' + line(type="say", text="x"))
    assert (facts.lines, facts.bad_lines, facts.answer) == (2, 0, "x")


def test_bytes_that_are_no_text_do_not_lose_the_line() -> None:
    assert read(b'{"type":"say","text":"caf\xe9"}\n').answer == "caf\ufffd"


def test_half_a_surrogate_pair_never_reaches_a_file() -> None:
    facts = read(b'{"type":"say","text":"\\ud83d"}\n{"type":"edit","path":"\\udc00"}\n')
    assert (facts.answer, facts.edits) == ("\ufffd", ("\ufffd",))


def test_numbers_that_are_none_are_unknown() -> None:
    for number in ("NaN", "1e999", "-1", "true", '"7"', "9" * 400, "9" * 5_000):
        facts = read(b'{"type":"use","out":%s}\n' % number.encode())
        assert facts.tokens is None, number


def test_deep_nesting_is_a_bad_line() -> None:
    facts = read(b"[" * 200_000 + b"\n" + line(type="say", text="x"))
    assert (facts.bad_lines, facts.answer) == (1, "x")


def test_a_gap_loses_only_the_lines_it_touches() -> None:
    reader = StreamReader(TABLE)
    reader.feed(line(type="edit", path="a") + b'{"type":"say","text":"cut')
    reader.gap(500)
    reader.feed(b'he rest"}\n' + line(type="edit", path="b"))
    facts = reader.finish()
    assert facts.edits == ("a", "b")
    assert (facts.gap_bytes, facts.bad_lines, facts.lines) == (500, 0, 2)


def test_a_gap_between_two_lines_loses_neither() -> None:
    reader = StreamReader(TABLE)
    reader.feed(line(type="edit", path="a"))
    reader.gap(9)
    reader.feed(line(type="edit", path="b"))
    reader.gap(9)
    facts = reader.finish()
    assert (facts.edits, facts.gap_bytes) == (("a", "b"), 18)


def test_a_snapshot_tells_the_progress_so_far() -> None:
    reader = StreamReader(TABLE)
    reader.feed(line(type="call", name="x") + b'{"type":"edit","path":')
    assert (reader.snapshot().tool_calls, reader.snapshot().edits) == (1, ())
    reader.feed(b'"a"}\n')
    assert reader.snapshot().edits == ("a",)
    assert reader.finish() == reader.snapshot()


def test_many_of_everything_stay_few() -> None:
    reader = StreamReader(TABLE)
    for number in range(5_000):
        reader.feed(
            line(type="fail", text=f"e{number}")
            + line(type="edit", path=f"{number}")
            + line(type="call", call=f"{number}", name="x")
            + line(type="say", text=f"t{number}")
        )
    facts = reader.finish()
    assert facts.tool_calls == 5_000
    assert (len(facts.edits), len(facts.errors), len(facts.openings)) == (2_000, 64, 128)
    assert [facts.errors[0].text, facts.errors[-1].text] == ["e0", "e4999"]
    assert facts.answer == "t4999"


def test_a_long_answer_keeps_its_head_and_its_tail() -> None:
    facts = read(line(type="end", answer="a" * 900_000 + "b" * 900_000))
    assert facts.answer.startswith("a" * 524_288 + "\n[… 751424 characters left out …]\n")
    assert facts.answer.endswith("b" * 524_288)


# --- last words


def test_a_failed_last_word_is_no_answer() -> None:
    facts = read(line(type="say", text="so far") + line(type="end", bad=True, answer="Rate limited"))
    assert (facts.terminal, facts.terminal_error) == (True, True)
    assert (facts.answer, facts.answer_source) == ("so far", "messages")


def test_an_empty_last_word_is_an_empty_answer() -> None:
    facts = read(line(type="say", text="I will do it.") + line(type="end", answer=""))
    assert (facts.answer, facts.answer_source) == ("", "none")


def test_work_after_a_last_word_makes_it_not_the_last() -> None:
    content = line(type="fail", text="boom") + line(type="end", bad=True) + line(type="say", text="on we go")
    facts = read(content)
    assert (facts.terminal, facts.terminal_error, facts.answer) == (False, False, "on we go")
    assert [error.fatal for error in facts.errors] == [False]


def test_a_stream_that_ends_in_a_tool_call_was_not_answered() -> None:
    assert not read(line(type="say", text="I'll look") + line(type="call", name="x")).answered_after_tools
    assert read(line(type="call", name="x") + line(type="say", text="found")).answered_after_tools
    assert read(line(type="call", name="x") + line(type="end", answer="found")).answered_after_tools
    assert not read(line(type="call", name="x") + line(type="say", text=" \n")).answered_after_tools


# --- plain text


@given(st.text(max_size=60), st.lists(st.integers(0, 300), max_size=8))
def test_plain_output_is_the_answer_in_any_chunks(text: str, cuts: list[int]) -> None:
    content = text.encode()
    reader = StreamReader(None)
    places = sorted({0, len(content), *(cut % (len(content) + 1) for cut in cuts)})
    for start, end in pairwise(places):
        reader.feed(content[start:end])
    facts = reader.finish()
    assert (facts.answer, facts.plain_text, facts.event_stream) == (text, text, False)
    assert facts.answer_source == ("stdout" if text else "none")
    assert facts.lines == content.count(b"\n") + bool(content and not content.endswith(b"\n"))


def test_stdout_may_be_the_answer_although_there_is_a_table() -> None:
    reader = StreamReader(TABLE, stdout_is_answer=True)
    reader.feed(b"plain\n")
    reader.gap(3)
    reader.feed(b"more")
    facts = reader.finish()
    assert facts.answer == "plain\n\n[… 3 bytes missing …]\nmore"
    assert facts.gap_bytes == 3


# --- stderr


def test_our_plug_ins_report_on_stderr() -> None:
    stderr = (
        'noise\nbullswarm-opencode {"status":429,"retryAfterSec":7200,"message":"Too many"}\n'
        'bullswarm-opencode {"status":429,"retryAfterSec":7100,"message":"Too many"}\n'
        'bullswarm-x {"message":"passing","fatal":false,"status":"no"}\n'
        'bullswarm-x {broken\nbullswarm {"message":"no"}\n'
    )
    errors = stderr_errors(stderr)
    assert [(e.text, e.status, e.retry_after_sec, e.fatal) for e in errors] == [
        ("Too many", 429, 7100.0, True),
        ("passing", None, None, False),
    ]


@given(st.text(max_size=80), st.text(max_size=30))
def test_no_stderr_raises(text: str, rest: str) -> None:
    stderr_errors(text + "\nbullswarm-x {" + rest)


def test_a_good_last_word_outlives_what_a_plug_in_reported() -> None:
    stderr = 'bullswarm-x {"status":500,"message":"boom"}'
    assert with_stderr(read(line(type="say", text="x")), stderr).errors[0].fatal
    assert not with_stderr(read(line(type="end", answer="x")), stderr).errors[0].fatal


def test_denials_that_only_stderr_tells() -> None:
    stderr = (
        "2026 ERROR router: error=patch rejected: read-only\n"
        "2026 ERROR router: error=`rm -f x` rejected: not permitted\n"
        "2026 ERROR router: error=unsupported call: foo\n"
        "2026 ERROR router: error=patch rejected: read-only\n"
    )
    assert stderr_denials(stderr, TABLE) == (
        Denial("patch", "patch rejected: read-only"),
        Denial("shell", "`rm -f x` rejected: not permitted"),
    )
    assert with_stderr(StreamFacts(), stderr, table=TABLE).denial_count == 2


# --- the memories


@given(st.lists(st.text(max_size=9), max_size=30), st.integers(2, 20).map(lambda half: 2 * half))
def test_capped_text_is_head_and_tail_of_the_whole(pieces: list[str], cap: int) -> None:
    capped = CappedText(cap=cap)
    for piece in pieces:
        capped.add(piece)
    whole = "".join(pieces)
    if len(whole) <= cap:
        assert capped.text() == whole
    else:
        mark = f"\n[… {len(whole) - cap} characters left out …]\n"
        assert capped.text() == whole[: cap // 2] + mark + whole[-(cap // 2) :]
    assert capped.text() == capped.text()


@given(st.lists(st.integers(), max_size=30), st.integers(1, 5))
def test_first_and_last(values: list[int], size: int) -> None:
    kept: FirstLast[int] = FirstLast(size)
    for value in values:
        kept.add(value)
    expected = values if len(values) <= 2 * size else values[:size] + values[-size:]
    assert (list(kept), kept.total) == (expected, len(values))


@given(st.lists(st.integers(0, 50).map(str), max_size=80), st.integers(1, 8))
def test_the_most_recent_keys_are_known(keys: list[str], size: int) -> None:
    recent: RecentKeys[bool] = RecentKeys(size)
    for number, key in enumerate(keys):
        recent.put(key, True)
        assert all(one in recent for one in dict.fromkeys(keys[max(0, number - size + 1) : number + 1]))


@given(st.lists(st.text("ab\n", max_size=12).map(str.encode), max_size=12), st.integers(1, 10))
def test_the_splitter_gives_every_short_line(chunks: list[bytes], cap: int) -> None:
    splitter = LineSplitter(cap=cap)
    lines = [line for chunk in chunks for line in splitter.split(chunk)]
    lines.append(splitter.rest())
    expected = b"".join(chunks).split(b"\n")
    assert lines[:-1] == [one for one in expected[:-1] if len(one) <= cap]
    assert lines[-1] == (expected[-1] if len(expected[-1]) <= cap else b"")
    assert splitter.long_lines == sum(1 for one in expected if len(one) > cap)
