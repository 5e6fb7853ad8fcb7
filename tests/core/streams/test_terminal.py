"""The terminal event is found in any cut of the stream, and nothing else is taken for it."""

from __future__ import annotations

import json
import tracemalloc
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core.streams.terminal import (
    LONGEST_HELD_LINE,
    LineScanner,
    Match,
    TerminalWatch,
    holds,
    matches_from_json,
)

RESULT = (Match(path=("type",), equals=("result",)),)
NESTED = (Match(path=("part", "reason"), equals=("stop", 3, True, None)),)
words = st.sampled_from(["type", "part", "reason", "result", "stop", "x"])
json_values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(0, 4), st.text(max_size=4), words),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.one_of(words, st.text(max_size=3)), inner)),
    max_leaves=12,
)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:stop] for start, stop in pairwise(edges)]


@given(json_values, st.lists(st.integers(0, 999), max_size=8), st.sampled_from([None, 1]), st.booleans())
def test_the_scanner_agrees_with_json(value: Any, places: list[int], indent: int | None, ascii_only: bool) -> None:
    line = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode("utf-8", "surrogatepass")
    for matches in (RESULT, NESTED, RESULT + NESTED):
        scanner = LineScanner(matches)
        for piece in cut(line, places):
            scanner.feed(piece)
        assert scanner.finish() == holds(matches, line)


@given(st.lists(json_values, max_size=6), st.integers(0, 6), st.lists(st.integers(0, 9999), max_size=12))
def test_found_in_any_cut_of_the_stream(values: list[Any], at: int, places: list[int]) -> None:
    quiet = [value for value in values if not holds(RESULT, json.dumps(value).encode())]
    lines = [json.dumps(value).encode() for value in quiet]
    for expected in (False, True):
        if expected:
            lines.insert(min(at, len(lines)), b'{"a":[1,{"type":"x"}],"type" : "result","result":"ok"}')
        watch = TerminalWatch(RESULT)
        seen = [watch.feed(piece) for piece in cut(b"\n".join(lines) + b"\n", places)]
        assert any(seen) is expected


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"text","text":"{\\"type\\":\\"result\\"}"}',
        b'{"part":{"type":"result"}}',
        b'[{"type":"result"}]',
        b'{"type":["result"]}',
        b'{"type":"result"',
        b'{"type":"results"}',
        b'type: "result"',
        b'"result"',
        b'{"result":"type"}',
        b'\xff\xfe"result"',
        b'{"a":' * 100_000 + b'"result"',
    ],
)
def test_what_is_no_terminal_event(line: bytes) -> None:
    assert not TerminalWatch(RESULT).feed(line + b"\n")
    scanner = LineScanner(RESULT)
    scanner.feed(line)
    assert not scanner.finish()


def test_the_kinds_of_json_values_are_told_apart() -> None:
    assert holds(NESTED, b'{"part":{"reason":true}}')
    assert not holds(NESTED, b'{"part":{"reason":1}}')
    assert not holds(NESTED, b'{"part":{"reason":3.0}}')
    assert not holds(NESTED, b'{"part":{}}')
    assert holds(NESTED, b'{"part":{"reason":null}}')


def test_a_line_without_its_end_is_no_event_yet() -> None:
    watch = TerminalWatch(RESULT)
    assert not watch.feed(b'{"type":"result"}')
    assert watch.feed(b"\n")
    assert not watch.feed(b"\n")
    assert watch.feed(b'{"type":"result"}\n'), "a second terminal event is seen too"


@pytest.mark.parametrize("escapes", [False, True])
def test_a_terminal_event_of_30_mb_is_seen_in_little_memory(escapes: bool) -> None:
    piece = (b'\\"\\\\ type result ' if escapes else b"plain words only ") * 4096
    watch = TerminalWatch(RESULT)
    tracemalloc.start()
    try:
        assert not watch.feed(b'{"result":"')
        for _ in range(30 * 1024 * 1024 // len(piece)):
            assert not watch.feed(piece)
        assert watch.feed(b'","type":"result"}\n{"type"')
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * LONGEST_HELD_LINE
    assert watch.feed(b':"result"}\n'), "the line after it is read as ever"


@pytest.mark.parametrize(
    "value",
    [3, {}, [3], [{}], [{"path": "", "equals": ["x"]}], [{"path": "a", "equals": []}], [{"path": "a", "equals": "x"}]],
)
def test_a_wrong_table_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="terminal"):
        matches_from_json(value)


def test_no_table_finds_nothing() -> None:
    assert matches_from_json(None) == ()
    assert not TerminalWatch(()).feed(b'{"type":"result"}\n')
