"""A task becomes a one-step program and comes back from it unchanged; its text keeps the caller's words."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core.attempts.prepare import NO_PROGRESS_SEC, SILENCE_SEC, worker_clocks
from bullswarm_core.errors import UsageError
from bullswarm_core.pools import Rung
from bullswarm_core.program.model import MAX_PROMPT_BYTES
from bullswarm_core.prompts.rules import task_text
from bullswarm_core.runs.task import PROGRAM_VERSION, Task, from_step, to_options, to_program

names = st.lists(st.sampled_from(["codex", "grok", "claude-code:acme"]), unique=True, max_size=2).map(tuple)


@given(
    st.builds(
        Task,
        prompt=st.text(min_size=1, max_size=50).filter(lambda text: bool(text.strip())),
        lane=st.sampled_from(["analyze", "build", "chore"]),
        cwd=st.just("/tmp"),
        effort=st.sampled_from([None, "high", "medium", "low"]),
        reasoning=st.sampled_from([None, "max", "default"]),
        model=st.sampled_from([None, "sonnet"]),
        pool=st.sampled_from([None, "codex"]),
        use_pools=names,
        use_providers=names,
        independent_of=names,
        capabilities=names,
        timeout_sec=st.sampled_from([None, 30.0]),
        shared_tree=st.booleans(),
    )
)
def test_a_task_survives_the_way_through_its_program(task: Task) -> None:
    program = to_program(task)
    assert program["schemaVersion"] == PROGRAM_VERSION
    (step,) = program["steps"]
    back = from_step(step, to_options(task), cwd=task.cwd)
    assert back.tier == task.tier
    assert back == replace(task, effort=task.tier)


def test_only_a_level_that_the_caller_asked_for_is_of_the_request() -> None:
    task, rung = Task(prompt="p", lane="analyze", cwd="/", model="m"), Rung("m", "medium", source="request")
    assert task.asked_of(replace(rung, level_source="settings")).level_source == "settings"
    asked = replace(task, reasoning="max").asked_of(replace(rung, level_source="connector"))
    assert (asked.reasoning, asked.level_source) == ("max", "request")


@pytest.mark.parametrize("prompt", ["", "  \n\t"])
def test_an_empty_task_is_refused(prompt: str) -> None:
    with pytest.raises(UsageError, match="the task is empty"):
        Task(prompt=prompt, lane="analyze", cwd="/")


@pytest.mark.parametrize("wrong", [{"prompt": "bad \udcff"}, {"cwd": "/tmp/\udcff"}])
def test_bytes_that_are_no_utf_8_are_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="holds bytes that are not UTF-8"):
        Task(**{"prompt": "p", "lane": "analyze", "cwd": "/tmp", **wrong})  # type: ignore[arg-type]


def test_a_task_beyond_all_measure_is_refused() -> None:
    with pytest.raises(UsageError, match="the task has"):
        Task(prompt="x" * (MAX_PROMPT_BYTES + 1), lane="analyze", cwd="/")


def test_the_customary_tiers_are_the_seeds() -> None:
    assert [Task(prompt="p", lane=lane, cwd="/").tier for lane in ("analyze", "build", "chore")] == [
        "medium",
        "medium",
        "low",
    ]


def test_the_filters_are_named_in_the_summary() -> None:
    task = Task(prompt="p", lane="build", cwd="/", avoid_pools=("codex",), use_providers=("grok", "opencode"))
    assert task.route_summary == "avoid pool codex; use provider grok, opencode"
    assert Task(prompt="p", lane="build", cwd="/").route_summary is None


@given(st.text(min_size=1))
def test_the_prompt_stands_first_and_unchanged(prompt: str) -> None:
    text = task_text(prompt, lane="build", cwd="/w", may_commit=False)
    assert text.startswith(prompt.rstrip())
    assert "Don't commit" in text
    assert "Don't commit" not in task_text("do it", lane="build", cwd="/w", may_commit=True)


def test_the_clocks_are_the_seeds_unless_somebody_says_otherwise() -> None:
    clocks = worker_clocks(lane="build", environ={})
    assert (clocks.startup_sec, clocks.silence_sec, clocks.no_progress_sec, clocks.wall_sec) == (0, 3600, 3600, None)
    assert SILENCE_SEC == NO_PROGRESS_SEC == 3600
    assert worker_clocks(lane="analyze", environ={}).no_progress_sec == 0.0
    assert worker_clocks(lane="build", environ={}, free_silence_sec=420.0).silence_sec == 420.0
    environ = {"BULLSWARM_WORKER_SILENCE_SEC": "7.5", "BULLSWARM_WORKER_NO_PROGRESS_SEC": "0"}
    clocks = worker_clocks(lane="build", environ=environ, free_silence_sec=420.0, wall_sec=9.0)
    assert (clocks.silence_sec, clocks.no_progress_sec, clocks.wall_sec) == (7.5, 0.0, 9.0)


@pytest.mark.parametrize("text", ["soon", "-1", "nan", "inf"])
def test_a_clock_that_is_no_number_is_named(text: str) -> None:
    with pytest.raises(UsageError, match=f'BULLSWARM_WORKER_SILENCE_SEC is "{text}"'):
        worker_clocks(lane="build", environ={"BULLSWARM_WORKER_SILENCE_SEC": text})


@pytest.mark.parametrize("name", ["--share", "-x", "", " ", "a\nb", "a\x1b[2J", "a\0b", "\ud800"])
def test_what_a_cli_could_read_as_an_option_is_no_model(name: str) -> None:
    with pytest.raises(UsageError, match="is no name of a model"):
        Task("work", "build", "/tmp", model=name)
