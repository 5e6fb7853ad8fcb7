"""A program: what is right passes, and each thing that is wrong is named with its place."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core.program.json_schema import json_schema
from bullswarm_core.program.model import program_from
from bullswarm_core.program.validate import issues_of

TYPED = {"type": "object", "properties": {"done": {"type": "boolean"}}, "required": ["done"]}
GOOD: dict[str, Any] = {
    "schemaVersion": "bullswarm.workflow.program.v3",
    "defaults": {"lane": "analyze", "effort": "medium", "retry": 1, "timeBox": 30},
    "steps": [
        {"id": "plan", "prompt": "Plan.", "answer": TYPED},
        {
            "id": "write",
            "prompt": "Write.",
            "lane": "build",
            "dependsOn": ["plan"],
            "files": ["src/a.py"],
            "evidence": [{"type": "command", "cmd": "true"}],
        },
        {
            "id": "check",
            "prompt": "Check.",
            "dependsOn": ["write"],
            "route": {"independentOf": ["write"], "pools": {"avoid": ["x"]}},
        },
        {
            "id": "last",
            "prompt": "Sum up.",
            "dependsOn": ["polish", "ok"],
            "blindTo": ["plan"],
            "phase": "end",
            "label": "The end",
        },
    ],
    "gates": [{"id": "ok", "dependsOn": ["plan"], "when": {"step": "plan", "field": "done"}, "note": "Look."}],
    "loops": [
        {"id": "polish", "steps": ["write", "check"], "until": {"step": "write", "evidence": "passed"}, "maxRounds": 3}
    ],
}


def test_a_good_program_has_no_issues() -> None:
    assert issues_of(GOOD) == []


CASES: list[tuple[list[Any], Any, str]] = [
    (["colour"], 1, "program.colour is not allowed; a v3 program has schemaVersion, defaults, steps, gates and loops"),
    (["schemaVersion"], "v2", 'schemaVersion must be "bullswarm.workflow.program.v3"'),
    (
        ["defaults"],
        {"model": "x"},
        "program.defaults.model is not allowed; defaults take lane, effort, reasoning, retry and timeBox",
    ),
    (["defaults"], 3, "program.defaults must be an object"),
    (["steps"], [], "steps must be a non-empty array of objects"),
    (["gates"], {}, "gates must be an array of objects"),
    (["steps", 0, "id"], "Plan!", "steps[0].id must be a kebab-case id"),
    (["steps", 0, "id"], "write", 'id "write" is used twice; steps, gates and loops share one id space'),
    (["steps", 0, "prompt"], " ", "steps[0].prompt must say the whole task"),
    (["steps", 0, "role"], "x", "steps[0].role is derived from lane and deliverable in v3; remove it"),
    (["steps", 0, "colour"], "x", "steps[0].colour is not a v3 field"),
    (["steps", 0, "lane"], "think", "steps[0].lane must be one of analyze, build, chore"),
    (["steps", 0, "retry"], 2, "steps[0].retry must be 0 or 1"),
    (["steps", 0, "retry"], True, "steps[0].retry must be 0 or 1"),
    (["steps", 0, "timeBox"], 241, "steps[0].timeBox must be whole minutes from 0 to 240"),
    (["steps", 0, "phase"], "a\nb", "steps[0].phase must be one line of 1 to 80 characters"),
    (["steps", 0, "answer"], [], "steps[0].answer must be a JSON schema object"),
    (["steps", 0, "files"], ["a.py"], "steps[0]: an analyze step writes no files"),
    (["steps", 1, "files"], ["src/"], 'steps[1].files[0] must name one exact file, not a directory or glob ("src/")'),
    (["steps", 1, "files"], ["*.py"], 'steps[1].files[0] must name one exact file, not a directory or glob ("*.py")'),
    (["steps", 1, "lane"], "chore", "steps[1]: a chore step must be low effort"),
    (["steps", 1, "evidence"], [1] * 6, "steps[1].evidence must be an array of at most 5 items"),
    (["steps", 0, "dependsOn"], ["plan"], "plan cannot depend on itself (a cycle)"),
    (["steps", 0, "dependsOn"], ["nothing"], 'plan.dependsOn references unknown step, gate or loop "nothing"'),
    (["steps", 0, "dependsOn"], "write", "steps[0].dependsOn must be an array of ids"),
    (["steps", 3, "dependsOn"], ["polish", "polish"], 'steps[3].dependsOn names "polish" twice'),
    (
        ["steps", 3, "dependsOn"],
        ["check"],
        "last depends on check inside loop polish; depend on the loop polish instead",
    ),
    (["steps", 0, "dependsOn"], ["last"], "the dependency graph contains a cycle (through steps, gates and loops)"),
    (["steps", 1, "dependsOn"], ["check"], "the dependency graph contains a cycle (through steps, gates and loops)"),
    (
        ["steps", 2, "route"],
        {"lane": "x"},
        "steps[2].route.lane is not allowed; a route has pools, providers and independentOf",
    ),
    (
        ["steps", 2, "route"],
        {"pools": {"use": ["a"], "avoid": ["a"]}},
        'steps[2].route.pools names "a" in use and in avoid',
    ),
    (
        ["steps", 2, "route"],
        {"pools": {"like": []}},
        "steps[2].route.pools.like is not allowed; it takes use and avoid",
    ),
    (["gates", 0, "dependsOn"], [], "gates[0].dependsOn must be a non-empty array of ids"),
    (["gates", 0, "when"], "done", 'gates[0].when must be {step, field, equals?} or {step, evidence: "passed"}'),
    (
        ["gates", 0, "when", "field"],
        "other",
        'gates[0].when.field "other" must be a boolean in the answer schema of step plan',
    ),
    (["steps", 0, "answer", "required"], [], "must be listed in the required fields of step plan's answer schema"),
    (["loops", 0, "maxRounds"], 6, "loops[0].maxRounds must be a whole number from 1 to 5"),
    (["loops", 0, "steps"], ["write", "other"], 'loops[0].steps names "other", which is not a step'),
    (["loops", 0, "until", "step"], "plan", "loops[0].until.step must be one of the loop's steps (write, check)"),
    (["steps", 1, "evidence"], [], "loops[0].until: step write declares no evidence"),
    (
        ["loops"],
        [
            *GOOD["loops"],
            {"id": "again", "steps": ["write"], "until": {"step": "write", "evidence": "passed"}, "maxRounds": 1},
        ],
        "step write is in two loops (polish and again); a step belongs to at most one loop",
    ),
    (
        ["schemaVersion"],
        "bullswarm.workflow.program.v2",
        "bullswarm.workflow.program.v2 is no longer accepted for a new run;",
    ),
    (["defaults"], {"verifyRounds": 1}, "program.defaults.verifyRounds is not allowed;"),
    (["steps", 3, "blindTo"], ["last"], "steps[3].blindTo cannot name the step itself"),
    (
        ["steps", 0, "blindTo"],
        ["last"],
        'steps[0].blindTo names "last", which does not run before this step; add it to dependsOn (directly or through another'
        " step)",
    ),
    (
        ["steps", 0, "route"],
        {"independentOf": ["write"]},
        'steps[0].route.independentOf names "write", which does not run before this step;',
    ),
    (["steps", 2, "route"], {"pools": {"use": ["a", ""]}}, "steps[2].route.pools.use must be an array of names"),
    (["steps", 0, "model"], "", "steps[0].model must be one line of 1 to 200 characters"),
    (["steps", 0, "model"], "--share", "steps[0].model must be a model, not an option of a CLI"),
    (["steps", 0, "label"], "a\x1b[31m", "steps[0].label must be one line of 1 to 200 characters"),
    (
        ["steps", 0, "answer"],
        {"patternProperties": {}},
        'steps[0].answer: unsupported keyword "patternProperties" at #',
    ),
    (["steps", 1, "evidence"], [{"command": "true"}], 'steps[1].evidence[0] must be {type: "command", cmd} or'),
    (["steps", 1, "evidence"], [{"type": ["command"]}], 'steps[1].evidence[0] must be {type: "command", cmd} or'),
    (["steps", 1, "evidence", 0, "cmd"], "a\nb", "steps[1].evidence[0].cmd must be one line, a command that exits 0"),
    (
        ["steps", 1, "evidence", 0, "timeoutSec"],
        601,
        "steps[1].evidence[0].timeoutSec must be whole seconds from 1 to 600",
    ),
    (
        ["steps", 1, "evidence", 0, "file"],
        "x",
        "steps[1].evidence[0].file is not allowed; it has type, cmd, timeoutSec",
    ),
    (
        ["steps", 1, "evidence"],
        [{"type": "schema", "file": "../x", "schema": {}}],
        'steps[1].evidence[0].file must be a relative file, or "$output" for the final reply',
    ),
    (
        ["steps", 1, "evidence"],
        [{"type": "schema", "file": "$output", "format": "yaml", "schema": []}],
        "steps[1].evidence[0].format must be json or jsonl",
    ),
    (
        ["steps", 1, "evidence"],
        [{"type": "schema", "file": "a.json", "schema": {"if": {}}}],
        'steps[1].evidence[0].schema: unsupported keyword "if" at #',
    ),
    (["steps", 1, "files"], ["../a"], 'steps[1].files[0] must name one exact file, not a directory or glob ("../a")'),
    (["steps", 1, "files"], ["a", "a"], 'steps[1].files names "a" twice'),
    (["steps", 1, "deliverable"], "poem", "steps[1].deliverable must be one of files, report, data, media, outward"),
    (["steps", 1, "deliverable"], ["files"], "steps[1].deliverable must be one of files, report, data, media, outward"),
    (["steps", 1, "deliverable"], {"type": "data"}, "steps[1].deliverable.paths is required for data"),
    (
        ["steps", 1, "deliverable"],
        {"type": "data", "paths": ["b.md"]},
        "steps[1].deliverable.paths must be listed in files (missing: b.md)",
    ),
    (["steps", 1, "deliverable"], "report", 'steps[1].deliverable "report" needs the analyze lane;'),
    (["steps", 0, "deliverable"], "files", 'steps[0].deliverable "files" needs the build or chore lane;'),
    (
        ["gates", 0, "when", "step"],
        "write",
        "gates[0].when.step must run before gate ok; write is not one of its dependencies",
    ),
    (["gates", 0, "when", "step"], "other", 'gates[0].when.step "other" is not a step'),
    (
        ["gates", 0, "when", "equals"],
        "yes",
        'gates[0].when must be {step, field, equals?} or {step, evidence: "passed"}',
    ),
    (["gates", 0, "note"], "", "gates[0].note must be one line of 1 to 1000 characters"),
    (
        ["steps", 0, "answer", "type"],
        "array",
        'gates[0].when.field "done" must be a boolean in the answer schema of step plan',
    ),
]


@pytest.mark.parametrize(("place", "value", "issue"), CASES)
def test_each_fault_is_named(place: list[Any], value: Any, issue: str) -> None:
    program = copy.deepcopy(GOOD)
    *way, last = place
    node: Any = program
    for part in way:
        node = node[part]
    node[last] = value
    assert any(issue in found for found in issues_of(program))


def test_every_issue_is_said_at_once_and_once() -> None:
    issues = issues_of({"steps": [{"id": "A"}, {"id": "B"}], "x": 1})
    assert len(issues) == len(set(issues)) == 6


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["plan", "write", "analyze"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*GOOD, *GOOD["steps"][1], "when", "until", "step", "field", "maxRounds"]),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(VALUES)
def test_nothing_that_is_json_breaks_the_check(program: Any) -> None:
    assert issues_of(program)
    assert isinstance(issues_of({**GOOD, "steps": program, "loops": program}), list)
    assert isinstance(issues_of({**GOOD, "gates": [program], "defaults": program}), list)


@given(VALUES)
def test_what_has_no_issues_is_read_and_fits_the_schema_for_editors(part: Any) -> None:
    import jsonschema

    for field in ("deliverable", "evidence", "route", "files", "answer", "effort", "blindTo"):
        program = copy.deepcopy(GOOD)
        program["steps"][1][field] = part
        if not issues_of(program):
            program_from(program)
            jsonschema.validate(program, json_schema())


def test_the_good_program_fits_the_schema_for_editors() -> None:
    import jsonschema

    jsonschema.Draft202012Validator.check_schema(json_schema())
    jsonschema.validate(GOOD, json_schema())


def test_a_large_program_is_checked_in_a_moment() -> None:
    steps = [{"id": f"s{n}", "prompt": "x", "dependsOn": [f"s{n - 1}"] if n else []} for n in range(2000)]
    assert issues_of({"schemaVersion": GOOD["schemaVersion"], "steps": steps}) == []
