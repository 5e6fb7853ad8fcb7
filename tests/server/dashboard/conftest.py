"""A furnished home, and the dashboard on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from tests.server.dashboard.screens import Screens
from tests.server.dashboard.world import Runs, World, furnished

from bullswarm_server.cli.main import dispatch
from bullswarm_server.dashboard.app import Dashboard
from bullswarm_server.dashboard.source import Source

Open = Callable[..., AbstractAsyncContextManager[Screens]]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """An empty home."""
    found = World(tmp_path)
    yield found
    found.close()


@pytest.fixture
def runs(world: World) -> Runs:
    """The home furnished, for this test alone."""
    return furnished(world)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[World, Runs]]:
    """A furnished home for all tests of a file that only look."""
    found = World(tmp_path_factory.mktemp("shared"))
    yield found, furnished(found)
    found.close()


@pytest.fixture
def opened(world: World) -> Open:
    """Open the dashboard of the test's own home on a screen of that width; it reads when it is told to."""
    return opener(world)


def opener(world: World) -> Open:
    """Return what opens the dashboard of a home."""

    @asynccontextmanager
    async def opening(width: int = 100, height: int = 36, **environ: str) -> AsyncIterator[Screens]:
        app = Dashboard(Source(world.home, {**world.environ, **environ}), call=dispatch, read_sec=None)
        async with app.run_test(size=(width, height)) as pilot:
            screens = Screens(app, pilot)
            await screens.read()
            yield screens

    return opening
