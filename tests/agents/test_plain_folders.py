"""Work in a folder that is no repository and that no CLI was ever told to trust."""

import shutil

import pytest
from tests.agents.conftest import MachineMaker
from tests.agents.scripted_model.scenario import say
from tests.agents.setups import Setup

pytestmark = pytest.mark.real_cli


def test_a_fresh_folder_outside_of_git_is_worked_in(make_machine: MachineMaker, setup: Setup) -> None:
    machine = make_machine(setup, [setup.run_shell("echo made > made.txt"), say("I wrote the file.")])
    shutil.rmtree(machine.project / ".git")
    outcome = machine.run("Write the file.", lane="build")
    assert outcome.verdict["ok"] and "made.txt" in outcome.verdict["changedFiles"], outcome
