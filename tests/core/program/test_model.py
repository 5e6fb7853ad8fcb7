"""A valid program as values, its remarks, and its lines for people."""

from __future__ import annotations

from typing import Any

from tests.core.program.test_validate import GOOD

from bullswarm_core.program.describe import advisories, lines, summary
from bullswarm_core.program.model import Condition, Deliverable, Evidence, program_from
from bullswarm_core.program.plan import graph_of


def program(*steps: dict[str, Any], **more: Any) -> Any:
    return program_from({"schemaVersion": GOOD["schemaVersion"], "steps": [*steps], **more})


def test_defaults_are_filled_in() -> None:
    found = program_from(GOOD)
    plan, write, check, last = found.steps
    assert (plan.lane, plan.effort, plan.retry, plan.time_box) == ("analyze", "medium", 1, 30)
    assert (plan.label, last.label, last.phase) == ("plan", "The end", "end")
    assert plan.deliverable == Deliverable("none") and check.deliverable == Deliverable("report")
    assert write.deliverable == Deliverable("files") and write.evidence == (Evidence("command", cmd="true"),)
    assert check.route.independent_of == ("write",) and check.route.avoid_pools == ("x",)
    assert (plan.loop, write.loop, check.loop) == (None, "polish", "polish")
    assert found.gates[0].when == Condition("plan", "done")
    assert found.loop("polish").until_by_evidence("write") and not found.loop("polish").until_by_evidence("check")
    assert found.ids() == ("plan", "write", "check", "last", "ok", "polish")


def test_an_own_word_goes_before_the_programs_and_zero_is_a_word() -> None:
    found = program(
        {"id": "a", "prompt": "x", "retry": 0, "timeBox": 0},
        {"id": "b", "prompt": "x", "lane": "build"},
        defaults={"retry": 1, "timeBox": 20, "lane": "chore"},
    )
    assert [(step.lane, step.effort, step.retry, step.time_box) for step in found.steps] == [
        ("chore", "low", 0, 0),
        ("build", "medium", 1, 20),
    ]


def test_what_runs_before_a_step_goes_through_loops_and_gates() -> None:
    graph = graph_of(GOOD)
    assert graph.ancestors("last") == {"polish", "ok", "write", "check", "plan"}
    assert graph.ancestors("check") == {"write", "plan"}
    assert graph.ancestors("plan") == frozenset()


def test_every_step_of_a_loop_runs_after_what_the_loop_waits_for() -> None:
    inside = {
        "steps": [{"id": "a"}, {"id": "b", "dependsOn": ["a"]}, {"id": "c"}],
        "loops": [{"id": "l", "steps": ["b", "c"]}],
    }
    assert graph_of(inside).ancestors("c") == {"a"}


def writer(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "prompt": "x", "lane": "build", "effort": "high", **more}


def test_remarks() -> None:
    found = advisories(
        program(
            writer("a", files=["README.md"]),
            writer("b", files=["src/a.py"], evidence=[{"type": "command", "cmd": "python -m pytest -q"}]),
            writer("c", files=["src/b.py"], evidence=[{"type": "command", "cmd": "pytest tests/b.py src/b.py"}]),
        )
    )
    assert [remark.line.partition(" — ")[0] for remark in found] == [
        "advisory: all-writers-high",
        "advisory: docs-at-high [a]",
        "advisory: suite-wider-than-files [b]",
    ]
    assert advisories(program_from(GOOD)) == []


def test_lines_for_people() -> None:
    assert summary(program_from(GOOD)) == "4 steps, 1 gate, 1 loop"
    assert lines(program_from(GOOD)) == [
        "  plan  analyze/medium [answer]",
        "  write build/medium [evidence=command|deliverable=files] after plan",
        "  check analyze/medium after write",
        "  last  analyze/medium after polish, ok blind to plan",
        "  gate ok after plan · waits when plan.done = true · Look.",
        "  loop polish steps write, check · until evidence of write passed · at most 3 rounds",
    ]
