"""Texts that no journal takes and prompts that no worker gets are named before anything starts or is added."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core.fast.text import is_text
from bullswarm_core.program.model import MAX_PROMPT_BYTES
from bullswarm_core.program.step_checks import text_issues
from bullswarm_core.program.validate import issues_of
from bullswarm_core.runs.task import Task

HALF = "a\ud800"


def program(**step: Any) -> dict[str, Any]:
    return {"schemaVersion": "bullswarm.workflow.program.v3", "steps": [{"id": "a", "prompt": "Do it.", **step}]}


@pytest.mark.parametrize(
    ("step", "at"),
    [
        ({"prompt": HALF}, "steps[0].prompt"),
        ({"lane": "build", "files": ["b", HALF]}, "steps[0].files[1]"),
        ({"evidence": [{"type": "command", "cmd": HALF}]}, "steps[0].evidence[0].cmd"),
        ({"route": {"pools": {"use": [HALF]}}}, "steps[0].route.pools.use[0]"),
        ({"answer": {"type": "object", "properties": {HALF: {}}}}, "steps[0].answer.properties has a key that"),
    ],
)
def test_half_a_surrogate_pair_is_named_with_its_place(step: dict[str, Any], at: str) -> None:
    assert any(issue.startswith(at) and "surrogate" in issue for issue in issues_of(program(**step)))


def test_a_prompt_that_no_task_may_have_is_no_prompt_of_a_program() -> None:
    most = "é" * (MAX_PROMPT_BYTES // 2)
    assert issues_of(program(prompt=most)) == []
    (issue,) = issues_of(program(prompt=most + "x"))
    assert issue.startswith(f"steps[0].prompt has {MAX_PROMPT_BYTES + 1} bytes and may have {MAX_PROMPT_BYTES}")


@given(st.text(st.characters(codec=None), min_size=1))
def test_a_program_without_issues_makes_a_task(prompt: str) -> None:
    if not issues_of(program(prompt=prompt)):
        Task(prompt=prompt, lane="analyze", cwd="/")


@given(st.text(st.characters(codec=None)))
def test_a_text_is_what_can_be_written_as_utf_8(value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        assert not is_text(value)
        assert list(text_issues({"x": [value]})) == ["x[0] holds half a surrogate pair, which is no text"]
    else:
        assert is_text(value) and not list(text_issues({"x": [{value: value}]}))
