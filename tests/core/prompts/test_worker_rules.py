"""What every worker is told and may not do: no plan, no question, nothing left in the background."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bullswarm_core.pools import LANES, Lane
from bullswarm_core.prompts.rules import task_text

PROVIDERS = Path(__file__).parents[3] / "providers/bullswarm_providers"


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("may_commit", [False, True])
def test_a_worker_is_told_what_it_is_and_to_do_the_task(lane: Lane, may_commit: bool) -> None:
    text = task_text("Fix the parser.", lane=lane, cwd="/w", may_commit=may_commit)
    for rule in (
        "You are a worker", "Nobody can answer a question", "Don't stop at a plan", "don't hand the task to another agent",
        "Start nothing in the background that you would have to wait for", "Work in /w and write nowhere else",
    ):  # fmt: skip
        assert rule in text
    assert ("Don't commit" in text) is (lane != "analyze" and not may_commit)


@pytest.mark.parametrize("provider", ["claude_code", "glm", "kimi"])
def test_plan_and_question_tools_are_taken_away_where_the_cli_allows_it(provider: str) -> None:
    words = json.loads((PROVIDERS / provider / "connector.json").read_text())["launch"]["arguments"]
    taken = set(words[words.index("--disallowedTools") + 1].split(","))
    assert {"EnterPlanMode", "ExitPlanMode", "AskUserQuestion", "ScheduleWakeup"} <= taken


def test_grok_and_copilot_are_started_without_a_plan_or_a_question() -> None:
    arguments = {
        name: json.loads((PROVIDERS / name / "connector.json").read_text())["launch"]["arguments"]
        for name in ("grok", "copilot")
    }
    assert "--no-plan" in arguments["grok"] and "--no-ask-user" in arguments["copilot"]
