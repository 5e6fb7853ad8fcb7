"""The wheel of the mouse over the Claude Mod's pane, in the real Claude Code: docked beside the talk, and above the prompt."""

from __future__ import annotations

import pytest
from tests.agents.conftest import MachineMaker
from tests.agents.machine import Machine
from tests.agents.mod_sessions import by_wheel, claude, furnish, say
from tests.agents.scripted_model.scenario import say as answer
from tests.agents.setups import CLAUDE

pytestmark = pytest.mark.real_cli

TASK = "Count the lines."
# More rows than any pane here has.
LINES = [f"line {number:02d} of it" for number in range(1, 61)]
ROWS = 24
HEAD = "q: close"


@pytest.fixture
def machine(make_machine: MachineMaker) -> Machine:
    return make_machine(CLAUDE, [answer("\n".join(LINES))])


@pytest.mark.parametrize("columns", [120, 60], ids=["docked", "inline"])
def test_the_wheel_moves_through_a_pane_that_is_longer_than_its_room(machine: Machine, columns: int) -> None:
    mod = furnish(machine)
    done = machine.bullswarm("run", "--lane", "analyze", "--pool", "codex", TASK)
    assert done.returncode == 0, done.stdout + done.stderr
    (run,) = machine.runs()
    with claude(machine, "--plugin-dir", str(mod), columns=columns, rows=ROWS) as session:
        session.wait(r"(?m)^codex ")
        say(session, f"/bullswarm open {run['shortId']} run")
        # All of it is there, and its end is out of sight.
        screen = session.wait(lambda screen: HEAD in screen and "task" in screen)
        assert LINES[-1] not in screen
        bottom = by_wheel(session, HEAD, LINES[-1])
        assert HEAD not in bottom and LINES[0] not in bottom
        top = by_wheel(session, LINES[-1], HEAD, up=True)
        assert LINES[-1] not in top and TASK in top
