"""Which schemas a CLI's own structured output is given, and how."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core.answers.schema import schema_issues
from bullswarm_core.errors import ConnectorError
from bullswarm_core.launch.plan import LaunchPlan, plan_launch, shown_command
from bullswarm_core.launch.structured_output import AnswerSchema, why_not_passed
from bullswarm_core.pools import Rung
from bullswarm_core.pools.connector import PoolProfile, connector_from_json
from bullswarm_core.pools.connector_schema import validate_connector
from bullswarm_core.pools.launch_rules import StructuredOutput

PROVIDERS = Path(__file__).parents[3] / "providers/bullswarm_providers"
CLOSED: dict[str, Any] = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}, "rows": {"type": "array", "items": {"$ref": "#/$defs/row"}}},
    "required": ["ok", "rows"],
    "additionalProperties": False,
    "$defs": {"row": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
}
OPEN: dict[str, Any] = {"type": "object", "properties": {"ok": {"type": "boolean"}}}


def with_ok(schema: Any) -> dict[str, Any]:
    return {**CLOSED, "properties": {**CLOSED["properties"], "ok": schema}}


def rows(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "null"}
    for _ in range(levels):
        schema = {"type": "array", "items": schema}
    return schema


def connector(folder: str, **launch: Any) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((PROVIDERS / folder / "connector.json").read_text(encoding="utf-8"))
    return {**data, "launch": {**data["launch"], **launch}}


def rule(folder: str) -> StructuredOutput:
    found = connector_from_json(connector(folder)).launch.structured_output
    assert found is not None
    return found


def plan(folder: str, answer: AnswerSchema | None) -> LaunchPlan:
    made = connector_from_json(connector(folder))
    profile = PoolProfile(made.name, made, f"/bin/{made.binary}", config_dir="/h/.cli")
    return plan_launch(
        profile, rung=Rung(), lane="analyze", cwd="/w", prompt_file="/r/task.md", private_tmp="/r/tmp",
        environ={"HOME": "/h"}, answer=answer,
    )  # fmt: skip


@pytest.mark.parametrize("folder", ["claude_code", "codex"])
def test_a_closed_object_is_taken_by_both(folder: str) -> None:
    assert schema_issues(CLOSED) == [] and why_not_passed(CLOSED, rule(folder)) is None


@pytest.mark.parametrize(
    ("schema", "claude", "codex"),
    [
        (OPEN, None, "it wants additionalProperties false in each object, and not at #"),
        ({**OPEN, "additionalProperties": False}, None, "it wants each property of an object required, and not at #"),
        ({"type": "array"}, 'it takes only a schema whose type is "object"', 'it takes only a schema whose type is "object"'),
        ({}, 'it takes only a schema whose type is "object"', 'it takes only a schema whose type is "object"'),
        ({**CLOSED, "anyOf": [{"type": "object"}]}, "it takes no anyOf at #", "it takes no anyOf at #"),
        (
            {"type": "object", "properties": {"a": {"type": "string", "pattern": "x"}}},
            "it takes no pattern, as at #/properties/a",
            "it wants additionalProperties false in each object, and not at #",
        ),
        (
            with_ok({"type": "string", "minLength": 1}),
            None,
            "it takes no minLength, as at #/properties/ok",
        ),
        (with_ok(True), None, "it takes no true or false for a schema, as at #/properties/ok"),
        (with_ok({}), None, "it wants a type everywhere, and not at #/properties/ok"),
        (with_ok({"type": ["array", "null"]}), None, "it wants the items of each array, and not at #/properties/ok"),
        (
            with_ok({"$ref": "#/$defs/row", "description": "a row"}),
            None,
            "it wants a $ref to stand alone, and not at #/properties/ok",
        ),
        (
            with_ok(rows(5)), None,
            "it takes at most 5 levels, and not #/properties/ok/items/items/items/items/items",
        ),
        (with_ok(rows(4)), None, None),
        (
            {**CLOSED, "description": "x" * 70_000},
            "it takes at most 16384 bytes, and this schema has 70244",
            "it takes at most 65536 bytes, and this schema has 70244",
        ),
    ],
)  # fmt: skip
def test_what_a_vendor_refuses_is_kept_from_its_cli(
    schema: dict[str, Any], claude: str | None, codex: str | None
) -> None:
    assert schema_issues(schema) == []
    assert why_not_passed(schema, rule("claude_code")) == claude
    assert why_not_passed(schema, rule("codex")) == codex


def test_remarks_are_no_reason_and_are_not_passed() -> None:
    remarked = {**CLOSED, "$schema": "https://json-schema.org/draft/2020-12/schema", "format": "x", "default": {}}
    assert why_not_passed(remarked, rule("codex")) is None
    assert json.loads(AnswerSchema(remarked, "/f").text) == CLOSED


def test_claude_code_is_given_the_schema_and_codex_its_file() -> None:
    answer = AnswerSchema(CLOSED, "/r/schema.json")
    claude, codex = plan("claude_code", answer), plan("codex", answer)
    assert json.loads(claude.argv[claude.argv.index("--json-schema") + 1]) == CLOSED
    assert codex.argv[codex.argv.index("--output-schema") + 1] == "/r/schema.json" and codex.argv[-1] == "-"
    assert claude.structured and codex.structured and "--json-schema" in shown_command(claude)


def test_without_a_schema_nothing_is_added() -> None:
    for folder, flag in (("claude_code", "--json-schema"), ("codex", "--output-schema")):
        bare = plan(folder, None)
        assert flag not in bare.argv and not bare.structured and bare.notes == ()


def test_a_schema_that_is_not_passed_is_told_in_a_note() -> None:
    made = plan("codex", AnswerSchema(OPEN, "/r/s.json"))
    assert "--output-schema" not in made.argv and not made.structured
    (note,) = [note for note in made.notes if "schema" in note]
    assert note.startswith("the schema is not given to codex: it wants additionalProperties false")
    assert not [note for note in plan("opencode", AnswerSchema(OPEN, "/r/s.json")).notes if "schema" in note]


def test_words_of_a_schema_are_no_placeholders() -> None:
    schema = {**CLOSED, "description": "{cwd} {answerSchemaFile}"}
    made = plan("claude_code", AnswerSchema(schema, "/r/s.json"))
    assert json.loads(made.argv[made.argv.index("--json-schema") + 1])["description"] == "{cwd} {answerSchemaFile}"


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({}, "launch.structuredOutput.arguments: is missing"),
        ({"arguments": []}, "launch.structuredOutput.arguments: [] is not allowed"),
        ({"arguments": ["--schema"]}, "must name {answerSchema} or {answerSchemaFile}"),
        ({"arguments": ["{answer}"]}, '"{answer}" is not allowed: use text whose placeholders are'),
        ({"arguments": ["{answerSchema}"], "answer": "file"}, '"file" is not allowed'),
        ({"arguments": ["{answerSchema}"], "keywords": ["if"]}, '"if" is not allowed: use a keyword of JSON Schema'),
        ({"arguments": ["{answerSchema}"], "largestBytes": 0}, "largestBytes: 0 is not allowed"),
        ({"arguments": ["{answerSchema}"], "strict": True}, "there is no field of this name"),
    ],
)
def test_a_connector_that_says_it_wrong_is_refused(part: dict[str, Any], words: str) -> None:
    with pytest.raises(ConnectorError) as raised:
        validate_connector(connector("codex", structuredOutput=part), file="c.json")
    assert words in str(raised.value)


def test_the_placeholder_of_a_schema_stands_nowhere_else() -> None:
    with pytest.raises(ConnectorError, match="placeholders"):
        validate_connector(connector("codex", arguments=["{answerSchema}"]), file="c.json")


leaves = st.sampled_from([{"type": "string"}, {"type": "null"}, {"enum": [1]}, {}, True, {"type": "array"}])


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(
        lambda properties, required, closed: {
            "type": "object", "properties": properties,
            "required": sorted(set(required) & properties.keys()), **({"additionalProperties": False} if closed else {}),
        },
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3), st.lists(st.sampled_from("abc")), st.booleans(),
    )  # fmt: skip


@given(schema=objects(st.recursive(leaves, objects, max_leaves=6)))
def test_what_codex_is_given_is_closed_everywhere(schema: dict[str, Any]) -> None:
    def closed(node: Any) -> bool:
        if not isinstance(node, dict) or "type" not in node:
            return False
        if "properties" not in node:
            return node.get("type") != "array"
        whole = node.get("additionalProperties") is False and set(node["required"]) == set(node["properties"])
        return whole and all(map(closed, node["properties"].values()))

    assert (why_not_passed(schema, rule("codex")) is None) == closed(schema)
