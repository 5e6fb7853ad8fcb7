"""Which schemas are taken, and how the others are refused."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from bullswarm_core.answers.schema import (
    KEYWORDS,
    MOST_SCHEMA_BYTES,
    TYPES,
    asserted,
    checked_schema,
    read_schema,
    schema_issues,
    subschemas,
    too_deep,
)
from bullswarm_core.answers.validate_child import problems
from bullswarm_core.errors import UsageError

# As the reference lists them (runs-and-workflows 6.4).
REFERENCE = [
    "type", "enum", "const", "properties", "required", "additionalProperties", "minProperties", "maxProperties",
    "items", "minItems", "maxItems", "uniqueItems", "minLength", "maxLength", "pattern", "minimum", "maximum",
    "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "allOf", "anyOf", "oneOf", "not", "$ref", "$schema",
    "$id", "$comment", "$defs", "definitions", "title", "description", "default", "examples", "deprecated",
    "readOnly", "writeOnly", "format",
]  # fmt: skip


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"properties": {"a": schema}}
    return schema


def test_the_keywords_are_those_of_the_reference() -> None:
    assert sorted(KEYWORDS) == sorted(REFERENCE)


@pytest.mark.parametrize(
    ("schema", "issue"),
    [
        ([], "must be a JSON schema object, not []"),
        (True, "must be a JSON schema object, not true"),
        ({"patternProperties": {}}, 'unsupported keyword "patternProperties" at #'),
        ({"properties": {"a/b": {"if": {}}}}, 'unsupported keyword "if" at #/properties/a~1b'),
        ({"allOf": [{}, {"prefixItems": []}]}, 'unsupported keyword "prefixItems" at #/allOf/1'),
        ({"type": "strng"}, f'"type" at # is "strng": it must be one or some of {", ".join(TYPES)}'),
        ({"type": []}, f'"type" at # is []: it must be one or some of {", ".join(TYPES)}'),
        (
            {"type": ["string", "string"]},
            f'"type" at # is ["string","string"]: it must be one or some of {", ".join(TYPES)}',
        ),
        ({"enum": []}, '"enum" at # is []: it must be a list of one or more values'),
        ({"required": "a"}, '"required" at # is "a": it must be a list of different names'),
        ({"required": ["a", "a"]}, '"required" at # is ["a","a"]: it must be a list of different names'),
        ({"properties": []}, '"properties" at # is []: it must be an object of schemas'),
        ({"items": [{}]}, "#/items is [{}]: it must be a schema (an object, true or false)"),
        ({"anyOf": []}, '"anyOf" at # is []: it must be a list of one or more schemas'),
        ({"minLength": -1}, '"minLength" at # is -1: it must be a whole number of 0 or more'),
        ({"minItems": True}, '"minItems" at # is true: it must be a whole number of 0 or more'),
        ({"minimum": "1"}, '"minimum" at # is "1": it must be a number'),
        ({"exclusiveMinimum": True}, '"exclusiveMinimum" at # is true: it must be a number'),
        ({"multipleOf": 0}, '"multipleOf" at # is 0: it must be a number above 0'),
        ({"uniqueItems": 1}, '"uniqueItems" at # is 1: it must be true or false'),
        ({"title": 1}, '"title" at # is 1: it must be a text'),
        ({"$ref": 1}, '"$ref" at # is 1: it must be the place of a schema (#/…)'),
        (
            {"$ref": "https://x.test/s.json"},
            '"$ref" at # is "https://x.test/s.json": only a place in this schema (#/…) can be meant',
        ),
        (
            {"$ref": "file:///etc/passwd"},
            '"$ref" at # is "file:///etc/passwd": only a place in this schema (#/…) can be meant',
        ),
        ({"$ref": "#anchor"}, '"$ref" at # is "#anchor": only a place in this schema (#/…) can be meant'),
        ({"$ref": "#/$defs/none"}, '"$ref" at # is "#/$defs/none": there is no schema at that place'),
        ({"$ref": "#/default", "default": {}}, '"$ref" at # is "#/default": there is no schema at that place'),
        ({"$ref": "#"}, '"$ref" at # is "#": it leads into a circle of references'),
        (
            {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "null"}]}}},
            '"$ref" at #/$defs/a/anyOf/0 is "#/$defs/a": it leads into a circle of references',
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_place_and_value(schema: Any, issue: str) -> None:
    assert schema_issues(schema) == [issue]
    with pytest.raises(UsageError) as raised:
        checked_schema(schema, what="answer_schema")
    assert raised.value.message == f"answer_schema: {issue}" and raised.value.exit_code == 2


@pytest.mark.parametrize("pattern", ["(", "a{1,99999999999999999999}", "(?P<a>x)(?P<a>y)", "(" * 5000])
def test_a_pattern_that_is_none_is_refused(pattern: str) -> None:
    (issue,) = schema_issues({"pattern": pattern})
    assert '"pattern" at # is ' in issue and "it must be a regular expression" in issue


def test_a_pattern_that_python_only_warns_of_is_taken() -> None:
    assert schema_issues({"pattern": "[[a]"}) == []


def test_every_issue_is_told_at_once_and_only_some_are_shown() -> None:
    schema = {"properties": {f"p{n}": {"if": True} for n in range(9)}}
    assert len(schema_issues(schema)) == 9
    with pytest.raises(UsageError, match="and 3 more"):
        checked_schema(schema, what="answer_schema")


def test_a_schema_may_have_one_mebibyte() -> None:
    room = MOST_SCHEMA_BYTES - len(json.dumps({"description": ""}, separators=(",", ":")))
    assert schema_issues({"description": "x" * room}) == []
    assert schema_issues({"description": "x" * (room + 1)}) == [
        f"is too large (limit 1 MiB): {MOST_SCHEMA_BYTES + 1} bytes"
    ]


def test_a_schema_may_be_64_levels_deep() -> None:
    assert schema_issues({**nested(31), "enum": [1]}) == []
    assert schema_issues(nested(32)) == ["is nested deeper than 64 levels"]
    assert schema_issues(nested(20_000)) == ["is nested deeper than 64 levels"]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**5000, "\ud800"], ids=["nan", "inf", "huge", "half"])
def test_what_no_json_holds_is_refused(value: Any) -> None:
    (issue,) = schema_issues({"const": value})
    assert issue.startswith("holds what JSON cannot")


def test_a_schema_may_refer_to_itself_where_the_answer_ends_it() -> None:
    tree = {"type": "object", "properties": {"next": {"$ref": "#"}, "both": {"$ref": "#/properties/next"}}}
    assert schema_issues(tree) == []
    assert problems(asserted(tree), {"next": {"both": {"next": {}}}}) == []
    assert [path for path, _ in problems(asserted(tree), {"next": {"both": {"next": 1}}})] == [["next", "both", "next"]]


def test_a_reference_names_its_place_as_a_pointer_does() -> None:
    schema = {"$defs": {"a/b~c d": {"type": "null"}}, "properties": {"x": {"$ref": "#/$defs/a~1b~0c%20d"}}}
    assert schema_issues(schema) == []
    assert problems(asserted(schema), {"x": None}) == []
    assert problems(asserted(schema), {"x": 1})


def test_an_id_does_not_change_what_a_reference_means() -> None:
    schema = {
        "$id": "https://x.test/a", "$defs": {"n": {"type": "null"}},
        "properties": {"x": {"$id": "https://x.test/b", "$ref": "#/$defs/n"}, "$id": {"type": "integer"}},
    }  # fmt: skip
    assert schema_issues(schema) == []
    assert problems(asserted(schema), {"x": None, "$id": 1}) == []
    assert [path for path, _ in problems(asserted(schema), {"x": 1, "$id": "a"})] == [["x"], ["$id"]]


def test_names_are_no_keywords() -> None:
    schema = {"properties": {"patternProperties": {"type": "null"}, "default": {"enum": [{"if": 1}]}}}
    assert schema_issues(schema) == []
    assert asserted(schema) == schema


def test_a_file_is_read_strictly() -> None:
    assert read_schema(b'\xef\xbb\xbf{"type": "null"}', what="s") == {"type": "null"}
    for data, words in (
        (b'{"type": "null", "type": "string"}', 's: the key "type" stands twice in one object'),
        (b"", "s: it is empty"),
        (b'{"a"', "s: it is not JSON"),
        (b"\xff\xfe{\x00", "s: it is not UTF-8"),
        (b'{"minimum": NaN}', "s: NaN is no JSON number"),
        (b" " * (MOST_SCHEMA_BYTES + 1), "s: is too large"),
        (b"[" * 100_000, "s: it is nested deeper than 64 levels"),
    ):
        with pytest.raises(UsageError) as raised:
            read_schema(data, what="s")
        assert raised.value.message.startswith(words)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "$ref", "if"]), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


def _schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    named = st.dictionaries(st.sampled_from(["a", "b", "/", "~"]), inner, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(TYPES) | st.lists(st.sampled_from(TYPES), min_size=1, unique=True),
            "enum": st.lists(json_values, min_size=1, max_size=3), "const": json_values,
            "properties": named, "$defs": named, "required": st.lists(st.sampled_from("abc"), unique=True),
            "additionalProperties": inner, "items": inner, "not": inner, "anyOf": st.lists(inner, min_size=1, max_size=2),
            "allOf": st.lists(inner, min_size=1, max_size=2), "oneOf": st.lists(inner, min_size=1, max_size=2),
            "minItems": st.integers(0, 3), "maxLength": st.integers(0, 3), "minimum": st.integers(-2, 2),
            "multipleOf": st.sampled_from([1, 0.1, 0.25]), "uniqueItems": st.booleans(),
            "pattern": st.sampled_from(["^a", "b$"]),
            "$ref": st.sampled_from(["#", "#/$defs/a", "#/properties/b", "#/items"]), "title": st.text(max_size=3),
            "format": st.just("date"), "$id": st.sampled_from(["https://x.test/1", "y"]), "default": json_values,
        },
    )  # fmt: skip


schemas: st.SearchStrategy[Any] = st.recursive(st.booleans() | st.just({}), _schemas, max_leaves=6)


@settings(deadline=None)
@given(schema=schemas, value=json_values)
def test_every_schema_that_is_taken_can_be_checked_against(schema: Any, value: Any) -> None:
    if schema_issues(schema):
        return
    kept = asserted(schema)
    Draft202012Validator.check_schema(kept)
    found = problems(kept, value)
    assert found == problems(kept, value) and len(found) <= 100
    assert schema_issues(kept) == [] and asserted(kept) == kept


@given(value=json_values | schemas)
def test_any_value_is_taken_or_refused_with_words(value: Any) -> None:
    issues = schema_issues(value)
    assert all(isinstance(issue, str) and issue for issue in issues)
    if not issues:
        assert all(isinstance(item, (dict, bool)) for _, item in subschemas(value))


@given(levels=st.integers(0, 80), deepest=st.integers(1, 70))
def test_depth_is_counted_in_levels(levels: int, deepest: int) -> None:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    assert too_deep(value, deepest=deepest) == (levels > deepest)
