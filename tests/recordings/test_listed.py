"""Recordings and answers of vendors are listed by name: one that vanishes fails here, instead of being tested no more."""

from pathlib import Path

from tests.agents.setups import SETUPS
from tests.recordings.record import CASES

FOLDER = Path(__file__).resolve().parent
METERS = {
    "claude-code-usage", "claude-code-usage-limits", "codex-app-server", "codex-rollout", "codex-usage",
    "command-code-credits", "command-code-subscriptions", "copilot-user", "copilot-user-free", "gemini-project",
    "gemini-quota", "glm-quota", "grok-billing", "grok-settings", "kimi-usages", "opencode-go-usage",
    "opencode-go-usage-older",
}  # fmt: skip
AGENTS = {"claude-code", "codex", "command-code", "grok", "opencode"}
NAMES = {
    "denied", "empty", "hang", "hang-mid-stream", "killed", "overloaded", "rate-limit", "server-error", "text", "tool",
    "unauthorized", "untouched", "usage-limit", "usage-limit-no-reset", "warned",
}  # fmt: skip


def test_every_agent_has_every_recording() -> None:
    assert set(SETUPS) >= AGENTS and {case.name for case in CASES} >= NAMES
    for agent in AGENTS:
        found = {path.name for path in (FOLDER / agent).iterdir()}
        assert found >= {f"{name}{end}" for name in NAMES for end in (".json", ".jsonl", ".stderr")}, agent


def test_every_answer_of_a_vendor_is_there() -> None:
    assert {path.stem for path in (FOLDER / "meters").glob("*.json")} >= METERS
