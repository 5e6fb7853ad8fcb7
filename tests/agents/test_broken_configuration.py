"""A CLI whose own file is cut off, as parallel sessions left it: no success, the file is named and left alone."""

from pathlib import Path

import pytest
from tests.agents.conftest import MachineMaker
from tests.agents.scripted_model.scenario import say
from tests.agents.setups import CLAUDE

pytestmark = pytest.mark.real_cli

CUT_OFF = '{"numStartups": 3, "proj'


def test_a_cut_off_file_of_claude_code_is_named(make_machine: MachineMaker) -> None:
    machine = make_machine(CLAUDE, [say("The parser is sound.")])
    file = Path(machine.environ["HOME"]) / ".claude.json"
    file.write_text(CUT_OFF, encoding="utf-8")
    outcome = machine.run()
    assert (outcome.code, outcome.verdict["ok"]) == (1, False)
    assert outcome.verdict["failureKind"] == "provider" and f"Configuration error in {file}" in outcome.verdict["why"]
    assert file.read_text(encoding="utf-8") == CUT_OFF
    assert machine.model.prompts() == []
