"""A subagent's task on another pool: which ones, what comes back, and when the agent's own subagent does it after all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hooks.state import hook
from tests.processes import until
from tests.server.site import ANSWER, SAY, WAIT_FOR_GO, Site, make_site

from bullswarm_hooks.delegation import MOST_WAIT_SEC, result, still_running, task_of, wait_seconds

SUBAGENT = {"description": "look", "prompt": "Explain the parser.", "subagent_type": "Explore"}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A machine in small, at whose end nothing may still be running."""
    root = tmp_path / "site"
    root.mkdir()
    built = make_site(root)
    yield built
    built.close()


def subagent(site: Site, *, environ: dict[str, str] | None = None, **changes: Any) -> dict[str, Any]:
    """Let Claude Code start a subagent; return what its hook says."""
    payload = {
        "session_id": "s", "cwd": str(site.project), "hook_event_name": "PreToolUse", "permission_mode": "default",
        "tool_name": "Agent", "tool_input": {**SUBAGENT, **changes}, "tool_use_id": "t",
    }  # fmt: skip
    done = hook("claude", "PreToolUse", given=json.dumps(payload).encode(), environ={**site.environ, **(environ or {})})
    assert (done.returncode, done.stderr) == (0, b"")
    inner: dict[str, Any] = json.loads(done.stdout)["hookSpecificOutput"] if done.stdout else {}
    return inner


def test_off_until_it_is_turned_on_and_off_again(site: Site) -> None:
    site.worker("talker", SAY)
    site.say("pools")
    assert subagent(site) == {}
    assert site.say("delegation").out == "delegation is off: every agent runs its own subagents\n"
    assert site.say("delegation", "on", "--json").document == {
        "schemaVersion": "bullswarm.delegation.v1",
        "delegation": True,
    }
    said = subagent(site)
    assert said["permissionDecision"] == "deny"
    assert json.loads(site.home.state_file.read_text())["config"] == {"delegation": True}
    site.say("delegation", "off")
    assert subagent(site) == {}


def test_the_output_comes_back_as_the_reason_and_says_so(site: Site) -> None:
    site.worker("talker", SAY)
    site.say("delegation", "on")
    reason = subagent(site)["permissionDecisionReason"]
    first, line, *rest = reason.splitlines()
    assert first.startswith("This is no error: bullswarm gave the subagent's task to another account")
    assert line.startswith("bullswarm: run ") and " on talker is ok" in line
    mark = rest[1].strip("<>")
    assert rest[2:4] == [ANSWER, f"</{mark}>"] and mark.startswith("worker-output-")
    (row,) = site.decisions()
    assert (row["picked"], row["lane"]) == ("talker", "analyze")


def test_the_pool_with_most_surplus_gets_it_and_never_the_callers_own(site: Site) -> None:
    site.worker("claude-code", "echo 'the caller itself'")
    site.worker("talker", SAY)
    site.say("delegation", "on")
    environ = {"CLAUDECODE": "1"}
    assert " on talker is ok" in subagent(site, environ=environ)["permissionDecisionReason"]


def test_the_callers_own_pool_gets_nothing_even_where_no_trace_of_it_is_left(site: Site) -> None:
    """Codex's hooks have no variable that tells Codex, and the cache may have been written by who didn't see it."""
    site.worker("claude-code", "echo 'the caller itself'")
    site.say("delegation", "on")
    file = site.home.cache_dir / "hook-state.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "pools": []}))
    said = subagent(site, environ={"BULLSWARM_CALLER": "codex"})
    assert "permissionDecision" not in said and "was not delegated" in said["additionalContext"]


def test_with_no_pool_the_agents_own_subagent_does_it_with_one_line(site: Site) -> None:
    site.say("delegation", "on")
    said = subagent(site)
    assert "permissionDecision" not in said
    assert said["additionalContext"].startswith("bullswarm: this subagent was not delegated (no ")
    assert said["additionalContext"].endswith("your own does the task") and "\n" not in said["additionalContext"]
    assert site.decisions() == [] if site.home.database_file.exists() else True


def test_a_worker_that_could_not_start_leaves_it_to_the_agent(site: Site) -> None:
    site.worker("talker", SAY)
    site.say("delegation", "on")
    binary = site.root / "bin" / "talker-cli"
    binary.write_bytes(b"\x7fELF no program")
    said = subagent(site)
    assert "permissionDecision" not in said, said
    assert "was not delegated" in said["additionalContext"]


def test_a_failure_after_the_start_is_told_and_not_done_again(site: Site) -> None:
    site.worker("talker", "cat > /dev/null\necho half\nexit 3")
    site.say("delegation", "on")
    said = subagent(site)
    assert said["permissionDecision"] == "deny"
    assert "a worker did start, but its work was not judged good" in said["permissionDecisionReason"]
    assert " on talker FAILED" in said["permissionDecisionReason"]


def test_a_wait_that_ends_before_the_work_gives_the_run_and_how_to_wait(site: Site) -> None:
    site.worker("talker", WAIT_FOR_GO)
    site.say("delegation", "on")
    said = subagent(site, environ={"BULLSWARM_DELEGATION_WAIT_SEC": "2"})
    run = site.say("runs", "list", "--json").document["runs"][0]["shortId"]
    assert said["permissionDecision"] == "deny"
    assert f"(run {run} on talker)" in said["permissionDecisionReason"]
    assert f"bullswarm runs wait {run}" in said["permissionDecisionReason"]
    state = json.loads((site.home.cache_dir / "hook-state.json").read_text())
    assert [(entry["shortId"], entry["pool"]) for entry in state["runs"]] == [(run, "talker")]
    site.go()
    assert site.say("runs", "wait", run).code == 0
    until(
        lambda: json.loads((site.home.cache_dir / "hook-state.json").read_text())["runs"] == [],
        "the state says that nothing is in flight",
    )


def test_a_second_writer_is_not_sent_into_the_same_tree(site: Site) -> None:
    site.worker("talker", WAIT_FOR_GO)
    site.say("delegation", "on")
    process = site.start_run(lane="build")
    site.happened("attempt.launched")
    said = subagent(site, subagent_type="general-purpose")
    assert "already writes in" in said["additionalContext"]
    site.go()
    process.communicate(timeout=60)


def test_a_session_with_the_mod_and_one_of_a_worker_are_left_alone(site: Site) -> None:
    site.worker("talker", SAY)
    site.say("delegation", "on")
    assert subagent(site, environ={"BULLSWARM_MOD": "1"}) == {}
    assert subagent(site, environ={"BULLSWARM_DEPTH": "1"}) == {}


@pytest.mark.parametrize(
    ("agent", "tool", "given", "lane"),
    [
        ("claude", "Agent", SUBAGENT, "analyze"),
        ("claude", "Task", {"prompt": "x", "subagent_type": "general-purpose"}, "build"),
        ("claude", "Agent", {"prompt": "x"}, "build"),
        ("claude", "Agent", {"prompt": "x", "run_in_background": False}, "build"),
        ("codex", "spawn_agent", {"message": "x"}, "build"),
        ("codex", "spawn_agent", {"message": "x", "agent_type": "explorer"}, "analyze"),
        ("codex", "collaborationspawn_agent", {"message": "x", "fork_turns": "none"}, "build"),
        ("opencode", "task", {"prompt": "x", "subagent_type": "explore"}, "analyze"),
        ("opencode", "task", {"prompt": "x", "subagent_type": "general"}, "build"),
    ],
)
def test_general_and_exploring_subagents_may_be_delegated(
    agent: str, tool: str, given: dict[str, Any], lane: str
) -> None:
    task = task_of(agent, tool, given)
    assert task is not None and task.lane == lane


@pytest.mark.parametrize(
    ("agent", "tool", "given"),
    [
        ("claude", "Agent", {**SUBAGENT, "run_in_background": True}),
        ("claude", "Agent", {**SUBAGENT, "isolation": "worktree"}),
        ("claude", "Agent", {**SUBAGENT, "resume": "agent-1"}),
        ("claude", "Agent", {**SUBAGENT, "subagent_type": "code-reviewer"}),
        ("claude", "Agent", {**SUBAGENT, "prompt": " "}),
        ("claude", "Agent", {**SUBAGENT, "prompt": ["x"]}),
        ("claude", "Agent", {**SUBAGENT, "subagent_type": 3}),
        ("claude", "Bash", {"prompt": "x"}),
        ("codex", "Agent", SUBAGENT),
        ("codex", "spawn_agent", {"message": "x", "fork_context": True}),
        ("codex", "spawn_agent", {"message": "x", "items": [{"type": "image"}]}),
        ("codex", "collaborationspawn_agent", {"message": "x"}),
        ("codex", "collaborationspawn_agent", {"message": "x", "fork_turns": "all"}),
        ("opencode", "task", {"prompt": "x", "subagent_type": "general", "task_id": "ses_1"}),
        ("opencode", "Agent", SUBAGENT),
    ],
)
def test_every_other_subagent_is_left_alone(agent: str, tool: str, given: dict[str, Any]) -> None:
    assert task_of(agent, tool, given) is None


def test_an_agent_that_plans_gets_nobody_who_writes() -> None:
    task = task_of("claude", "Agent", {"prompt": "x"}, permission_mode="plan")
    assert task is not None and task.lane == "analyze"


@given(st.text(max_size=20_000))
def test_a_workers_words_are_fenced_by_a_mark_that_they_cannot_hold(words: str) -> None:
    text = result({"verdict": {"ok": True, "runId": "r"}, "answer": words, "answerIsWhole": True})
    assert text.endswith("It can't be continued by a message.")
    assert "\x1b" not in text and len(text) < 14_000
    opened = [line for line in text.split("\n") if line.startswith("<worker-output-")]
    assert len(opened) == (0 if "It left no text." in text else 1)
    for mark in opened:
        assert text.count(f"</{mark[1:]}") == 1


def test_odd_events_of_the_waiting_process_do_no_harm() -> None:
    assert "It left no text." in result({"verdict": 3, "answer": None})
    assert "run r" in still_running({"runId": "r"}, {"poolLabel": 3})


@pytest.mark.parametrize(
    ("text", "seconds"),
    [(None, 540), ("", 540), ("5", 5), ("0", 540), ("-1", 540), ("9999", 540), ("nan", 540), ("x", 540)],
)
def test_the_wait_is_at_most_nine_minutes(text: str | None, seconds: float) -> None:
    assert wait_seconds(text) == seconds <= MOST_WAIT_SEC
