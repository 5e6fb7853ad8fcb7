"""Each real CLI tells its models, without a turn: nothing is asked of the scripted model but, at most, its own list."""

import json

from tests.agents.conftest import MachineMaker
from tests.agents.setups import SETUPS, Setup

# A model that the pinned version of each CLI offers, and whether it says which one it runs by itself.
OFFERED = {
    "claude-code": ("opus", True),
    "codex": ("gpt-6.2-sol", True),
    "command-code": ("deepseek/deepseek-v4-flash", True),
    "grok": ("grok-4.6", True),
    "opencode": ("stub/stub-model", False),
}


def test_every_cli_is_covered() -> None:
    assert set(OFFERED) == set(SETUPS)


def test_a_cli_tells_its_models_and_they_are_remembered(make_machine: MachineMaker, setup: Setup) -> None:
    machine = make_machine(setup, [])
    done = machine.bullswarm("strategy", "inventory", "--refresh", "--json")
    assert done.returncode == 0, done.stderr
    row = next(row for row in json.loads(done.stdout)["pools"] if row["pool"] == setup.name)
    assert (row["problem"], row["source"]) == (None, "live"), row
    name, tells_default = OFFERED[setup.name]
    assert name in [model["id"] for model in row["models"]]
    assert any(model["default"] for model in row["models"]) is tells_default
    assert all("/chat/completions" not in each.path and "/messages" not in each.path for each in machine.model.requests)
    again = json.loads(machine.bullswarm("strategy", "inventory", "--json").stdout)
    remembered = next(row for row in again["pools"] if row["pool"] == setup.name)
    assert (remembered["source"], remembered["models"]) == ("cache", row["models"])
    assert machine.processes() == {}
