"""A table that is wrong says where and why; a table's words mean what they say."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core.errors import ConnectorError
from bullswarm_core.streams.facts import StreamFacts
from bullswarm_core.streams.reader import StreamReader
from bullswarm_core.streams.table import compile_table

RULE: dict[str, Any] = {"on": "x", "emit": "text", "fields": {"text": "a.b"}}


def table(*rules: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"schemaVersion": "bullswarm.stream.v1", "kind": "type", "rules": list(rules), **more}


def read(rules: dict[str, Any], *events: Any) -> StreamFacts:
    reader = StreamReader(rules)
    reader.feed(b"".join(json.dumps(event).encode() + b"\n" for event in events))
    return reader.finish()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({}, 'schemaVersion is null; it has to be "bullswarm.stream.v1"'),
        (table(RULE, colour=1), "colour is 1; it has to be left out"),
        (table(), "rules is []; it has to be a list of at least one rule"),
        (table(RULE, rules=7), "rules is 7; it has to be a list"),
        (table(RULE, kind=""), 'kind is [""]; it has to be a string or a list of strings'),
        (table(RULE, join="words"), 'join is "words"; it has to be one of group, consecutive'),
        (table(RULE, skip=[1]), "skip[0] is 1; it has to be a string"),
        (table(RULE, stderr=[{"marker": "m", "words": "w"}]), "stderr[0].words is"),
        (table(RULE, "no"), 'rules[1] is "no"; it has to be an object'),  # type: ignore[arg-type]
        (table({**RULE, "on": None}), "rules[0].on is [null]; it has to be"),
        (table({**RULE, "emit": "sing"}), 'rules[0].emit is "sing"; it has to be one of session,'),
        (table({**RULE, "emit": []}), "rules[0].emit is []; it has to be one of session,"),
        (table({**RULE, "mode": "sum"}), 'rules[0].mode is "sum"; it has to be left out'),
        (table({**RULE, "fields": {}}), 'rules[0].fields is {}; it has to be an object with the field "text"'),
        (table({**RULE, "fields": {"text": 5}}), "rules[0].fields.text is 5; it has to be a string"),
        (table({**RULE, "fields": {"text": "a", "size": "b"}}), 'rules[0].fields.size is "b"; it has to be left out'),
        (table({**RULE, "fields": {"text": "$.a"}}), "since the rule has no forEach"),
        (table({**RULE, "match": {"$.a": 1}}), "since the rule has no forEach"),
        (
            table({**RULE, "fields": {"text": {"path": "a", "unit": "miles"}}}),
            'text.unit is "miles"; it has to be one of',
        ),
        (table({**RULE, "match": {"a": {"near": 1}}}), "rules[0].match.a is"),
        (table({**RULE, "match": {"a": {"startsWith": 1}}}), "rules[0].match.a.startsWith is [1]"),
        (table({**RULE, "match": {"a": {"present": "yes"}}}), 'a.present is "yes"; it has to be true or false'),
        (table({**RULE, "match": {"a": [[]]}}), "rules[0].match.a is [[]]"),
        (table({"on": "x", "emit": "usage", "inclusive": {"input": ["all"]}}), 'inclusive.input is ["all"]'),
        (table({"on": "x", "emit": "terminal", "failedWhen": {}}), "failedWhen is {}; it has to be a list"),
    ],
)
def test_a_wrong_table_names_the_place_the_value_and_what_is_wanted(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ConnectorError) as caught:
        compile_table(wrong, source="stream.json")
    assert str(caught.value).startswith("stream.json: ")
    assert message in str(caught.value)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=4),
        lambda inner: (
            st.lists(inner, max_size=2)
            | st.dictionaries(
                st.sampled_from(
                    ["on", "match", "forEach", "emit", "fields", "side", "path", "unit", "map", "value", "a"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_no_table_raises_anything_else(content: Any) -> None:
    for wrong in (
        content,
        table(content),
        table({**RULE, "fields": {"text": content}}),
        table({**RULE, "match": content}),
    ):
        try:
            compile_table(wrong)
        except ConnectorError as error:
            assert error.exit_code == 2


@pytest.mark.parametrize(
    ("condition", "good", "bad"),
    [
        ("a", ["a"], ["b", None, 1, ["a"], {"a": 1}]),
        (None, [None], [0, "", False]),
        (True, [True], [1, "true", None]),
        ([1, 2], [1, 2], [True, 1.5, "1"]),
        (["a", "b"], ["a", "b"], ["c", [], {}]),
        ({"startsWith": ["err", "x"]}, ["error", "x"], ["an error", 5, None]),
        ({"contains": "Denied"}, ["was denied", ["denied"], {"a": "DENIED"}], ["allowed", None]),
        ({"not": [0, None]}, [3, "0", [], {}], [0, None]),
        ({"present": True}, [0, ""], [None]),
        ({"present": False}, [None], [0]),
    ],
)
def test_conditions(condition: Any, good: list[Any], bad: list[Any]) -> None:
    rules = table({"on": "x", "match": {"v": condition}, "emit": "tool_call"})
    for value in good:
        assert read(rules, {"type": "x", "v": value}).tool_calls == 1, value
    for value in bad:
        assert read(rules, {"type": "x", "v": value}).tool_calls == 0, value


def test_several_paths_of_a_kind_and_of_a_field() -> None:
    rules = table(
        {"on": ["deep", "flat"], "emit": "edit", "fields": {"path": ["a.b", {"path": "c"}, {"value": "none"}]}},
        kind=["inner.type", "type"],
    )
    facts = read(
        rules,
        {"type": "other", "inner": {"type": "deep"}, "a": {"b": "one"}},
        {"type": "flat", "inner": {"type": None}, "a": 3, "c": "two"},
        {"type": "flat"},
        {"type": ["flat"]},
    )
    assert facts.edits == ("one", "two", "none")


def test_items_come_in_their_order() -> None:
    rules = table(
        {"on": "m", "match": {"$.kind": "say"}, "forEach": "list", "emit": "text", "fields": {"text": "$.text"}},
        {"on": "m", "match": {"$.kind": "call"}, "forEach": "list", "emit": "tool_call"},
        {"on": "e", "forEach": "list", "emit": "edit", "fields": {"path": "$"}},
    )
    say, call = {"kind": "say", "text": "hi"}, {"kind": "call"}
    assert not read(rules, {"type": "m", "list": [say, call]}).answered_after_tools
    assert read(rules, {"type": "m", "list": [call, 5, None, say]}).answered_after_tools
    assert read(rules, {"type": "e", "list": ["a", 5, "b"]}, {"type": "e", "list": "c"}).edits == ("a", "b")


def test_units_and_maps() -> None:
    rules = table(
        {
            "on": "l",
            "emit": "limit",
            "fields": {
                "window": {"path": "w", "map": {"five_hour": "5h"}},
                "scope": {"path": "w", "map": {"opus": "opus"}, "otherwise": None},
                "resetsAt": [
                    {"path": "s", "unit": "epochSeconds"}, {"path": "ms", "unit": "epochMs"}, {"path": "iso", "unit": "isoTime"}
                ],
                "usedPct": [{"path": "share", "unit": "fraction"}, {"path": "pct", "unit": "percent"}],
            },
        },
        {
            "on": "e",
            "emit": "error",
            "fields": {
                "text": {"path": "t", "unit": "message"},
                "status": {"path": "t", "unit": "statusInText"},
                "retryAfterSec": [{"path": "wait", "unit": "seconds"}, {"path": "waitMs", "unit": "ms"}],
            },
        },
        {"on": "w", "emit": "limit", "fields": {"window": {"path": "t", "unit": "windowInText"}}},
    )  # fmt: skip
    at = datetime(2026, 11, 30, 7, 58, 42, tzinfo=UTC)
    seconds = int(at.timestamp())
    facts = read(
        rules,
        {"type": "l", "w": "five_hour", "s": seconds, "share": 0.5},
        {"type": "l", "w": "opus", "ms": seconds * 1000, "pct": 62},
        {"type": "l", "w": "odd", "iso": "2026-11-30T08:58:42+01:00", "s": "soon"},
        {"type": "l", "w": "far", "s": 1e300, "iso": "2026-11-30T08:58:42"},
    )
    assert [(one.window, one.scope, one.resets_at, one.used_pct) for one in facts.limits] == [
        ("5h", None, at, 50.0),
        ("opus", "opus", at, 62.0),
        ("odd", None, at, None),
        ("far", None, None, None),
    ]
    texts = {
        'Internal error: {"message": "API error (status 402 Payment Required)", "http_status": 402}': 402,
        'Internal error: "Unauthorized (401) from there"': 401,
        '{"error": {"message": "HTTP 503"}}': 503,
        "exceeded retry limit, last status: 429 Too Many Requests": 429,
        "a file of 404 lines": None,
        '{"broken': None,
    }
    errors = read(rules, *({"type": "e", "t": text} for text in texts)).errors
    assert [error.status for error in errors] == list(texts.values())
    assert [error.text for error in errors[:3]] == [
        "API error (status 402 Payment Required)",
        "Unauthorized (401) from there",
        "HTTP 503",
    ]
    waits = read(
        rules, {"type": "e", "t": "a", "wait": "20"}, {"type": "e", "t": "b", "wait": "Mon, 30", "waitMs": 50}
    ).errors
    assert [error.retry_after_sec for error in waits] == [20.0, 0.05]
    names = ["Weekly limit", "5-hour limit", "the 5 hours", "monthly", "daily", "no window"]
    limits = read(rules, *({"type": "w", "t": name} for name in names)).limits
    assert [one.window for one in limits] == ["weekly", "5h", "monthly", "daily", None]


def test_inclusive_counters_are_made_disjoint_and_never_negative() -> None:
    fields = {"input": "i", "cacheRead": "c", "output": "o", "reasoning": "r", "costUsd": "usd"}
    inclusive = {"input": ["cacheRead"], "output": ["reasoning"]}
    last = table({"on": "u", "emit": "usage", "inclusive": inclusive, "fields": fields})
    events = [
        {"type": "u", "i": 100, "c": 30, "o": 40, "r": 50, "usd": 0.5},
        {"type": "u", "i": 10, "c": 4, "usd": 0.25},
    ]
    tokens = read(last, events[0]).tokens
    assert tokens is not None
    assert (tokens.input, tokens.cache_read, tokens.cache_write, tokens.output, tokens.reasoning) == (
        70,
        30,
        None,
        0,
        50,
    )
    facts = read(last, *events)
    assert facts.tokens is not None
    assert (facts.tokens.input, facts.tokens.output, facts.cost_usd) == (6, None, 0.25)
    summed = read(table({"on": "u", "emit": "usage", "mode": "sum", "inclusive": inclusive, "fields": fields}), *events)
    assert summed.tokens is not None
    assert (summed.tokens.input, summed.tokens.cache_read, summed.tokens.reasoning, summed.cost_usd) == (
        76,
        34,
        50,
        0.75,
    )


def test_denials_of_one_call_are_one_and_complete() -> None:
    rules = table(
        {"on": "call", "emit": "tool_call", "fields": {"id": "id", "name": "name", "input": "input"}},
        {"on": "no", "emit": "denial", "fields": {"id": "id", "tool": "tool", "reason": "why", "input": "input"}},
        {"on": "out", "emit": "tool_result", "fields": {"id": "id", "failed": "failed", "text": "text"}},
        {"on": "wrote", "emit": "edit", "fields": {"id": "id"}},
    )
    call = {"type": "call", "id": "1", "name": "Bash", "input": {"command": "touch /x"}}
    facts = read(rules, call, {"type": "no", "id": "1", "why": "asked"}, {"type": "no", "id": "1", "tool": "Bash"})
    assert [(d.tool, d.reason, d.target, d.by) for d in facts.denials] == [("Bash", "asked", "touch /x", "cli")]
    system = read(
        rules,
        call,
        {"type": "out", "id": "1", "failed": True, "text": "touch: cannot touch '/x': Read-only file system"},
        {"type": "out", "id": "1", "failed": False, "text": "Permission denied"},
        {"type": "out", "id": "2", "failed": True, "text": "No such file"},
        {"type": "wrote", "id": "1"},
        {"type": "wrote", "id": "9"},
    )
    assert [(d.tool, d.target, d.by) for d in system.denials] == [("Bash", "touch /x", "system")]
    assert system.edits == ("touch /x",)
    many = read(rules, *({"type": "no", "tool": "T", "why": f"{number}"} for number in range(90)))
    assert (len(many.denials), many.denial_count) == (64, 90)
