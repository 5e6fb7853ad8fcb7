"""A repository's settings files beside the real CLIs: they decide nothing, and its instructions are read all the same."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.agents import hostile_project
from tests.agents.conftest import MachineMaker
from tests.agents.machine import Machine, Outcome
from tests.agents.scripted_model import ScriptedModel, say
from tests.agents.setups import CLAUDE, CODEX, COMMAND_CODE, GROK, OPENCODE, Setup
from tests.agents.test_optional_providers import COPILOT, GLM, QWEN, turned_on

pytestmark = pytest.mark.real_cli

ANSWER = "The parser splits the line at each comma and unquotes every field that starts with a quote."


def _prepare_claude_by_file(home: Path, url: str) -> dict[str, str]:
    """Sign in as `claude /login` does, with the address and the model in the person's own settings."""
    environ = CLAUDE.prepare(home, url)
    del environ["CLAUDE_CODE_OAUTH_TOKEN"], environ["ANTHROPIC_BASE_URL"]
    folder = home / ".claude"
    folder.mkdir()
    oauth = {
        "accessToken": "sk-ant-oat01-persons-token", "refreshToken": "sk-ant-ort01-persons", "subscriptionType": "max",
        "expiresAt": 4102444800000, "scopes": ["user:inference", "user:profile"],
    }  # fmt: skip
    (folder / ".credentials.json").write_text(json.dumps({"claudeAiOauth": oauth}), encoding="utf-8")
    settings = {"env": {"ANTHROPIC_BASE_URL": url}, "model": "claude-haiku-5"}
    (folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    return environ


def _prepare_claude_by_key(home: Path, url: str) -> dict[str, str]:
    environ = CLAUDE.prepare(home, url)
    del environ["CLAUDE_CODE_OAUTH_TOKEN"]
    return {**environ, "ANTHROPIC_API_KEY": "stub-key", "ANTHROPIC_MODEL": "claude-haiku-5"}


def _prepare_kimi(home: Path, url: str) -> dict[str, str]:
    environ = GLM.prepare(home, url)
    (home / ".glm-claude").rename(home / ".kimi-claude")
    return environ


CLAUDE_BY_FILE = replace(CLAUDE, prepare=_prepare_claude_by_file)
CLAUDE_BY_KEY = replace(CLAUDE, prepare=_prepare_claude_by_key, by_key=True)
KIMI = replace(GLM, name="kimi", prepare=_prepare_kimi)
# What the person's own settings choose, where they do.
MODELS = {"by-file": "claude-haiku-5", "by-key": "claude-haiku-5", "opencode": "stub-model", "codex": "stub-model"}

HELD = {
    "by-token": CLAUDE, "by-file": CLAUDE_BY_FILE, "by-key": CLAUDE_BY_KEY, "kimi": KIMI, "glm": GLM,
    "opencode": OPENCODE, "codex": CODEX, "grok": GROK, "command-code": COMMAND_CODE, "copilot": COPILOT,
}  # fmt: skip


def hostile(make_machine: MachineMaker, setup: Setup, url: str, *, lane: str) -> Machine:
    """Make a machine whose project is hostile, with the CLI signed in and turned on."""
    machine = make_machine(setup, [])
    machine.turns[:] = [setup.write_file(str(machine.project / "a.txt"), "hello\n")] if lane == "build" else []
    machine.turns.append(say(ANSWER))
    if setup.name in ("kimi", "glm", "qwen", "copilot", "gemini"):
        turned_on(machine)
    hostile_project.fill(machine.project, url)
    for name in ("CLAUDE.md", "AGENTS.md", "GEMINI.md", "QWEN.md"):
        (machine.project / name).write_text(f"{hostile_project.INSTRUCTION}\n", encoding="utf-8")
    return machine


def check_held(machine: Machine, outcome: Outcome, evil: ScriptedModel, model: str | None) -> None:
    assert outcome.verdict["ok"], json.dumps(outcome.verdict)
    assert [(request.path, dict(request.headers)) for request in evil.requests] == []
    assert hostile_project.marks(machine.project) == []
    asked = [request.body for request in machine.model.prompts()]
    assert any(hostile_project.INSTRUCTION in json.dumps(body) for body in asked), "the instructions are handed over"
    assert not [body for body in asked if body.get("model") == hostile_project.MODEL]
    assert model is None or {body.get("model") for body in asked} == {model}
    assert not [request for request in machine.model.requests if "key-of-the-project" in str(request.headers)]


@pytest.mark.parametrize("lane", ["analyze", "build"])
@pytest.mark.parametrize("name", HELD)
def test_a_projects_settings_decide_nothing_but_instructions(make_machine: MachineMaker, name: str, lane: str) -> None:
    setup = HELD[name]
    with ScriptedModel([say("I am the evil server.")]) as evil:
        machine = hostile(make_machine, setup, evil.url, lane=lane)
        outcome = machine.run(lane=lane)
        check_held(machine, outcome, evil, MODELS.get(name))
    (note,) = [note for note in outcome.verdict["launchNotes"] if "decides nothing here but instructions" in note]
    assert f"bullswarm strategy allow-project-settings {machine.project}" in note
