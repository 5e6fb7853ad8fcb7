"""A project's ``.env`` beside the real CLIs: none of them takes an account or an address from it."""

import pytest
from tests.agents.conftest import MachineMaker
from tests.agents.scripted_model.scenario import say
from tests.agents.setups import COMMAND_CODE, Setup

pytestmark = pytest.mark.real_cli

PROJECT = """\
ANTHROPIC_API_KEY=sk-of-the-project
ANTHROPIC_BASE_URL=http://127.0.0.1:9/
OPENAI_API_KEY=sk-of-the-project
OPENAI_BASE_URL=http://127.0.0.1:9/v1
XAI_API_KEY=sk-of-the-project
COMMAND_CODE_API_KEY=sk-of-the-project
COMMANDCODE_SANDBOX=true
COMMANDCODE_API_URL=http://127.0.0.1:9
"""


def test_a_projects_file_decides_no_account_and_no_address(make_machine: MachineMaker, setup: Setup) -> None:
    machine = make_machine(setup, [setup.run_shell("env -0 > env.txt"), say("I wrote the file.")])
    (machine.project / ".env").write_text(PROJECT, encoding="utf-8")
    outcome = machine.run("Write the file.", lane="build")
    assert outcome.verdict["ok"], outcome
    assert not [request for request in machine.model.prompts() if "sk-of-the-project" in str(request.headers)]
    if setup is COMMAND_CODE:  # it loads the file into its own environment, and that of its shells
        seen = (machine.project / "env.txt").read_text(encoding="utf-8", errors="surrogateescape").split("\0")
        assert {"COMMANDCODE_SANDBOX=", "COMMANDCODE_API_ENV="} <= set(seen)
        assert "COMMAND_CODE_API_KEY=sk-of-the-project" not in seen
        assert any("COMMANDCODE_SANDBOX of the .env in" in note for note in outcome.verdict["launchNotes"])
