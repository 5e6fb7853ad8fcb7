"""Edits of the person's JSON: every other byte stays, and taking out undoes putting in, exactly."""

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_server.integrate.errors import TextError
from bullswarm_server.integrate.json_edit import insert, remove, replace
from bullswarm_server.integrate.json_text import parse

ENTRY = {"type": "stdio", "command": "/opt/bin/bullswarm", "args": ["mcp"]}
PATH = ("mcpServers", "bullswarm")

names = st.sampled_from(["a", "b c", "hooks", 'quo"te', "ü", "mcpServers", "//", "/*"])
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "x", "// no", "/* no */", "}", ",", '"']),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=12,
)


def laid_out(value: Any, rng: random.Random, *, comments: bool) -> str:
    """The value as a text of any layout, with white space (and comments) in every place where they may stand."""

    def gap() -> str:
        choices = ["", " ", "\n", "\n  ", "\r\n\t", "  \n\n "]
        if comments:
            choices += ["/* c, } */", " // c ]\n", '\n// { "a": 1 }\n  ']
        return rng.choice(choices)

    def trailing() -> str:
        return rng.choice(["", ","]) if comments else ""

    def write(value: Any) -> str:
        if isinstance(value, dict) and value:
            members = ",".join(f"{gap()}{json.dumps(k)}{gap()}:{gap()}{write(v)}{gap()}" for k, v in value.items())
            return f"{{{members}{trailing()}{gap()}}}"
        if isinstance(value, list) and value:
            return f"[{','.join(gap() + write(v) + gap() for v in value)}{trailing()}{gap()}]"
        if isinstance(value, (dict, list)):
            opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
            return opening + gap() + closing
        return json.dumps(value, ensure_ascii=rng.choice([True, False]))

    return gap() + write(value) + gap()


@given(values, st.randoms(use_true_random=False), st.booleans())
def test_a_text_is_read_as_the_standard_library_reads_it(value: Any, rng: random.Random, comments: bool) -> None:
    text = laid_out(value, rng, comments=comments)
    assert parse(text, comments=comments).value == value
    if not comments:
        assert parse(text, comments=True).value == json.loads(text)


@given(st.dictionaries(names, values, max_size=4), st.randoms(use_true_random=False), st.booleans())
def test_taking_out_what_was_put_in_gives_the_original_bytes(
    value: dict[str, Any], rng: random.Random, comments: bool
) -> None:
    text = laid_out(value, rng, comments=comments)
    if not isinstance(value.get("mcpServers", {}), dict):
        with pytest.raises(TextError, match="mcpServers is not an object"):
            insert(text, PATH, ENTRY, comments=comments)
        return
    done = insert(text, PATH, ENTRY, comments=comments)
    expected = {**value, "mcpServers": {**value.get("mcpServers", {}), "bullswarm": ENTRY}}
    assert parse(done.text, comments=comments).value == expected
    assert remove(done.text, PATH, made=done.made, blank=done.blank, comments=comments) == text


@given(st.lists(values, max_size=4), st.randoms(use_true_random=False), st.booleans())
def test_the_same_for_the_elements_of_an_array(value: list[Any], rng: random.Random, comments: bool) -> None:
    text = laid_out({"hooks": {"Stop": value}}, rng, comments=comments)
    done = insert(text, ("hooks", "Stop", -1), ENTRY, comments=comments)
    assert parse(done.text, comments=comments).value == {"hooks": {"Stop": [*value, ENTRY]}}
    path = ("hooks", "Stop", len(value))
    assert remove(done.text, path, made=done.made, blank=done.blank, comments=comments) == text


@given(st.dictionaries(names, values, max_size=4), st.randoms(use_true_random=False), st.booleans())
def test_any_member_can_be_taken_out_alone(value: dict[str, Any], rng: random.Random, comments: bool) -> None:
    text = laid_out(value, rng, comments=comments)
    for key in value:
        left = remove(text, (key,), comments=comments)
        assert parse(left, comments=comments).value == {k: v for k, v in value.items() if k != key}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{}", '{\n  "m": {\n    "b": 1\n  }\n}'),
        ("{}\n", '{\n  "m": {\n    "b": 1\n  }\n}\n'),
        ('{"a":1}', '{"a":1, "m": {"b": 1}}'),
        ('{\r\n\t"a": 1\r\n}\r\n', '{\r\n\t"a": 1,\r\n\t"m": {\r\n\t\t"b": 1\r\n\t}\r\n}\r\n'),
        ('{\n    "m": {}\n}', '{\n    "m": {\n        "b": 1\n    }\n}'),
        ('{\n  "m": {\n    "x": 2\n  },\n  "z": 3\n}', '{\n  "m": {\n    "x": 2,\n    "b": 1\n  },\n  "z": 3\n}'),
    ],
)
def test_what_is_put_in_follows_the_layout_of_the_file(before: str, after: str) -> None:
    assert insert(before, ("m", "b"), 1).text == after


def test_comments_stay_where_they_are() -> None:
    before = '{\n  // servers\n  "m": {\n    "x": 1, // mine\n  }, // end\n}\n'
    after = '{\n  // servers\n  "m": {\n    "x": 1, // mine\n    "b": 2,\n  }, // end\n}\n'
    assert insert(before, ("m", "b"), 2, comments=True).text == after


def test_what_the_person_added_around_it_stays() -> None:
    done = insert("{}\n", PATH, ENTRY)
    theirs = insert(insert(done.text, ("mcpServers", "other"), 1).text, ("theme",), "dark").text
    left = remove(theirs, PATH, made=done.made, blank=done.blank)
    assert left == '{\n  "mcpServers": {\n    "other": 1\n  },\n  "theme": "dark"\n}\n'


def test_an_existing_entry_is_replaced_in_its_place() -> None:
    text = '{\n  "m": {\n    "b": {"x": 1},\n    "c": 2\n  }\n}\n'
    assert replace(text, ("m", "b"), {"x": 2}) == text.replace("1", "2")
    with pytest.raises(TextError, match=r"m\.d is not there"):
        replace(text, ("m", "d"), 1)
    with pytest.raises(TextError, match=r"m\.b is there already"):
        insert(text, ("m", "b"), 1)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "Expecting value"),
        ('{\n  "a": 1,\n}', 2, 'a comma before "}"'),
        ('{\n  "a": 1\n  "b": 2\n}', 3, 'expected ","'),
        ("{\n  // c\n}", 2, "expected a name"),
        ('{"a": NaN}', 1, "NaN is not a JSON number"),
        ("{} x", 1, "more text"),
        ("[" * 5000, 1, "nested too deeply"),
        ('{"a" 1}', 1, 'expected ":"'),
        ('{"a": /* c */ 1}', 1, "a comment, which this file can't hold"),
    ],
)
def test_a_broken_text_is_refused_with_its_line(text: str, line: int, message: str) -> None:
    with pytest.raises(TextError) as caught:
        parse(text)
    assert caught.value.line == line
    assert message in caught.value.message


def test_the_last_of_two_members_of_one_name_counts_as_for_every_reader() -> None:
    text = '{"m": {"x": 1}, "m": {"y": 2}}'
    done = insert(text, ("m", "b"), 3)
    assert json.loads(done.text) == {"m": {"y": 2, "b": 3}}
    assert remove(done.text, ("m", "b"), blank=done.blank) == text
