"""A model that thinks for long before its first word is no start that hangs."""

import pytest
from tests.agents.conftest import MachineMaker
from tests.agents.scripted_model.scenario import hang_mid_stream
from tests.agents.setups import Setup
from tests.processes import until

pytestmark = pytest.mark.real_cli


def test_every_cli_has_given_a_sign_of_life_before_its_first_answer_is_complete(
    make_machine: MachineMaker, setup: Setup
) -> None:
    machine = make_machine(setup, [hang_mid_stream("The parser begins")])
    process = machine.start_run()
    until(machine.model.prompts, "the model was asked")
    # The clock of the start is quiet from the first byte on, on either stream.
    until(
        lambda: (
            [path for path in machine.run_folder().glob("std*") if path.stat().st_size]
            or [path for path in machine.run_folder().glob("stream*") if path.stat().st_size]
        ),
        "a byte of the worker",
    )
    assert machine.bullswarm("runs", "stop", "last", "--json").returncode in (0, 1)
    process.communicate(timeout=60)
