"""A worker that may write is never started where it could write bullswarm's own state."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.server.mcp.calling import calling
from tests.server.site import SAY, Site

from bullswarm_core.errors import UsageError
from bullswarm_core.home import Home
from bullswarm_core.runs.services import utc_now
from bullswarm_core.runs.task import Task
from bullswarm_server.launch import Origin, create_run, refuse_home_in_reach


@pytest.fixture(params=["around", "linked", "same", "within"])
def folder(request: pytest.FixtureRequest, site: Site) -> str:
    """A folder in which a worker that may write could write the home."""
    site.worker("ada", SAY)
    (site.root / "link").symlink_to(site.root)
    root = site.home.root
    places = {"around": site.root, "linked": site.root / "link", "same": root, "within": root / "providers"}
    return str(places[request.param])


@pytest.mark.parametrize("options", [(), ("--dry-run",)])
@pytest.mark.parametrize("lane", ["build", "chore"])
def test_a_worker_that_could_write_the_home_is_refused(
    site: Site, folder: str, lane: str, options: tuple[str, ...]
) -> None:
    said = site.run("--add-dir", folder, *options, lane=lane)
    assert said.code == 2
    assert "could change bullswarm's own state" in said.err and "BULLSWARM_HOME" in said.err
    # What was learnt about providers may be kept; of the run there is nothing.
    assert {path.name for path in site.home.root.iterdir()} <= {"providers", "cache"}


def test_an_agent_is_refused_just_so(site: Site, folder: str) -> None:
    async def ask() -> None:
        async with calling(site) as call:
            answer = await call("run", lane="build", cwd=folder, prompt="Explain the parser.")
            assert answer.error and "could change bullswarm's own state" in answer.text

    asyncio.run(ask())


def test_no_way_to_record_a_run_leads_around_it(site: Site, folder: str) -> None:
    task = Task(prompt="x", lane="build", cwd=folder)
    with site.database() as connection, pytest.raises(UsageError, match="own state"):
        create_run(site.home, connection, task, environ=site.environ, origin=Origin(), now=utc_now())


def test_who_only_reads_may_have_the_home_below(site: Site) -> None:
    site.worker("ada", SAY)
    assert site.run("--add-dir", str(site.root)).code == 0


def test_a_folder_beside_the_home_is_none_of_it(tmp_path: Path) -> None:
    refuse_home_in_reach(Home(tmp_path / "work-state"), Task(prompt="x", lane="build", cwd=str(tmp_path / "work")))
