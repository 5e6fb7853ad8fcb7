"""The optional providers' real CLIs: one task that is done and one that the vendor refuses, each judged from facts.

Apart from the matrix of the other agents, which has every failure: these are few, and never part of it.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.agents import gemini_model
from tests.agents.conftest import MachineMaker
from tests.agents.gemini_model import GeminiModel
from tests.agents.machine import Machine
from tests.agents.scripted_model.scenario import Turn, call_tool, fail, say
from tests.agents.setups import CLAUDE, OPENCODE, Setup

pytestmark = pytest.mark.real_cli
KEY = "stub-key-4711"
REFUSED = {"error": {"message": "Incorrect API key provided", "type": "invalid_api_key", "code": "invalid_api_key"}}


def _prepare_copilot(home: Path, url: str) -> dict[str, str]:
    return {
        "COPILOT_OFFLINE": "true",
        "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
        "COPILOT_PROVIDER_API_KEY": KEY,
        "COPILOT_MODEL": "stub-model",
    }


def _prepare_qwen(home: Path, url: str) -> dict[str, str]:
    settings = {"security": {"auth": {"selectedType": "openai"}}, "telemetry": {"enabled": False}}
    _write(home / ".qwen" / "settings.json", settings)
    return {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_MODEL": "stub-model"}


def _prepare_glm(home: Path, url: str) -> dict[str, str]:
    environment = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_AUTH_TOKEN": KEY}
    _write(home / ".glm-claude" / "settings.json", {"env": environment})
    # What stands in the environment must not count: neither address leads anywhere.
    return {
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "1",
        "IS_SANDBOX": "1",
    }


COPILOT = replace(
    OPENCODE,
    name="copilot",
    binary="copilot",
    model="stub-model",
    prepare=_prepare_copilot,
    write_file=lambda path, text: call_tool("create", path=path, file_text=text),
    run_shell=lambda command: call_tool("bash", command=command, description="Run a command"),
)
QWEN = replace(
    OPENCODE,
    name="qwen",
    binary="qwen",
    by_key=True,
    model="stub-model",
    prepare=_prepare_qwen,
    write_file=lambda path, text: call_tool("write_file", file_path=path, content=text),
    run_shell=lambda command: call_tool("run_shell_command", command=command, is_background=False),
)
GLM = replace(CLAUDE, name="glm", prepare=_prepare_glm)


def _write(file: Path, content: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content), encoding="utf-8")


def turned_on(made: Machine) -> Machine:
    """Turn the machine's provider on, as a person does."""
    assert made.bullswarm("provider", "enable", made.setup.name).returncode == 0
    return made


@pytest.mark.parametrize("setup", [COPILOT, QWEN, GLM], ids=lambda setup: setup.name)
def test_a_task_is_done_and_told(make_machine: MachineMaker, setup: Setup) -> None:
    turns: list[Turn] = [say("The file is written.")]
    made = turned_on(make_machine(setup, turns))
    file = made.project / "hello.txt"
    made.turns[:] = [setup.write_file(str(file), "hello\n"), say("The file is written.")]
    outcome = made.run("Write hello.txt.", lane="build")
    assert (outcome.code, outcome.kind) == (0, None), json.dumps(outcome.verdict)
    assert outcome.answer.strip() == "The file is written."
    assert file.read_text(encoding="utf-8") == "hello\n"
    assert "Write hello.txt." in made.model.prompts()[0].prompt


@pytest.mark.parametrize("setup", [COPILOT, QWEN], ids=lambda setup: setup.name)
def test_a_refused_key_is_a_failure_of_the_sign_in(make_machine: MachineMaker, setup: Setup) -> None:
    made = turned_on(make_machine(setup, [fail(401, REFUSED)]))
    outcome = made.run()
    assert (outcome.code, outcome.kind) == (1, "auth"), json.dumps(outcome.verdict)
    assert KEY not in json.dumps(outcome.verdict) + outcome.stderr


GeminiMaker = Callable[[GeminiModel], Machine]


@pytest.fixture
def gemini(make_machine: MachineMaker) -> GeminiMaker:
    """Make a machine with Gemini CLI, which speaks Google's protocol to a model of its own."""

    def prepare(home: Path, url: str) -> dict[str, str]:
        _write(home / ".gemini" / "settings.json", {"security": {"auth": {"selectedType": "gemini-api-key"}}})
        return {"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": url}

    def make(model: GeminiModel) -> Machine:
        setup = replace(
            OPENCODE,
            name="gemini",
            binary="gemini",
            by_key=True,
            model="gemini-2.5-flash",
            prepare=lambda home, url: prepare(home, model.url),
        )
        return turned_on(make_machine(setup, []))

    return make


@contextmanager
def google(parts: list[Any], **more: Any) -> Iterator[GeminiModel]:
    with GeminiModel(parts, **more) as model:
        yield model


def test_gemini_does_a_task_and_tells(gemini: GeminiMaker) -> None:
    with google([]) as model:
        made = gemini(model)
        file = made.project / "hello.txt"
        write = gemini_model.call("write_file", file_path=str(file), content="hello\n")
        model.parts[:] = [write, gemini_model.text("The file is written.")]
        outcome = made.run("Write hello.txt.", lane="build", options=["--model", made.setup.model])
    assert (outcome.code, outcome.kind) == (0, None), json.dumps(outcome.verdict)
    assert outcome.answer.strip() == "The file is written."
    assert file.read_text(encoding="utf-8") == "hello\n"
    tokens = outcome.verdict["meta"]["usage"]
    assert (tokens["input"], tokens["cacheRead"], tokens["output"]) == (140, 60, 80)


def test_gemini_with_a_refused_key_is_a_failure_of_the_sign_in(gemini: GeminiMaker) -> None:
    refused = {"error": {"code": 401, "message": "API key not valid.", "status": "UNAUTHENTICATED"}}
    with google([], fail=(401, refused)) as model:
        made = gemini(model)
        outcome = made.run(options=["--model", made.setup.model])
    assert (outcome.code, outcome.kind) == (1, "auth"), json.dumps(outcome.verdict)
    assert KEY not in json.dumps(outcome.verdict) + outcome.stderr
