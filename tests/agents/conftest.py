"""Fixtures of the tests on real agent CLIs: one machine per test, driven by a scripted model on 127.0.0.1."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.agents.install import binaries
from tests.agents.machine import Machine, machine
from tests.agents.setups import SETUPS, Setup

MachineMaker = Callable[[Setup, Sequence[Any]], Machine]


def needs(setup: Setup, config: pytest.Config) -> None:
    """Skip where this CLI's binary can't be had; fail instead where it was promised."""
    if setup.binary in binaries():
        return
    message = f"{setup.binary} is not installed: python3 tests/agents/install.py"
    if config.getoption("--require-real-clis"):
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture
def make_machine(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[MachineMaker]:
    """Make machines: ``make_machine(setup, script)``, where the script is the turns of the model."""
    with ExitStack() as stack:

        def make(setup: Setup, script: Sequence[Any]) -> Machine:
            needs(setup, request.config)
            root = tmp_path / f"m{len(list(tmp_path.iterdir()))}"
            root.mkdir()
            return stack.enter_context(machine(root, setup, script))

        yield make


@pytest.fixture(params=sorted(SETUPS))
def setup(request: pytest.FixtureRequest) -> Setup:
    """Each agent CLI in turn."""
    return SETUPS[request.param]
