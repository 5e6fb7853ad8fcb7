"""A worker that may write is never started where it could write bullswarm's own state, its program or the CLI."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from tests.server.mcp.calling import calling
from tests.server.site import CONNECTOR, SAY, Site

import bullswarm_core
from bullswarm_core.dispatch.services import utc_now
from bullswarm_core.errors import UsageError
from bullswarm_core.launch.trusted_programs import command_places, place_in_reach
from bullswarm_core.runs.task import Task
from bullswarm_core.store.home import Home
from bullswarm_server.ops.launch import Origin, create_run, refuse_bullswarm_in_reach


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
    refuse_bullswarm_in_reach(Home(tmp_path / "work-state"), Task(prompt="x", lane="build", cwd=str(tmp_path / "work")))


def environment_in(folder: Path) -> Path:
    """An environment with bullswarm in it, as `python3 -m venv .venv` and pip make one in a project."""
    venv.create(folder, with_pip=False, symlinks=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    (packages / "bullswarm.pth").write_text("\n".join(path for path in sys.path if path))
    return folder / "bin" / "python"


def started_by(
    site: Site, python: Path | str, *options: str, lane: str, cwd: Path | None = None, **environ: str
) -> tuple[int, str, str]:
    words = ["run", "--lane", lane, "--add-dir", str(site.project), *options, "Explain the parser."]
    done = subprocess.run(
        [str(python), "-P", "-m", "bullswarm_server.cli.main", *words],
        cwd=cwd,
        env={**site.environ, **environ},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("lane", ["build", "chore", "analyze"])
def test_a_worker_that_could_write_the_python_of_bullswarm_is_refused(site: Site, lane: str) -> None:
    site.worker("ada", SAY)
    python = environment_in(site.project / ".venv")
    code, _out, err = started_by(site, python, lane=lane)
    if lane == "analyze":
        assert code == 0, err
    else:
        assert code == 2 and "own program" in err and str(site.project / ".venv") in err, err
        assert "uv tool install" in err and "--isolation worktree" in err


def test_a_worker_that_could_write_the_packages_of_bullswarm_is_refused(site: Site) -> None:
    """An editable install runs the files of the checkout."""
    site.worker("ada", SAY)
    source = site.project / "core" / "bullswarm_core"
    shutil.copytree(Path(bullswarm_core.__file__).parent, source, ignore=shutil.ignore_patterns("__pycache__"))
    paths = f"{source.parent}:{site.environ['PYTHONPATH']}"
    code, _out, err = started_by(site, sys.executable, lane="build", PYTHONPATH=paths)
    assert code == 2 and f"own program in {source}" in err, err


@pytest.mark.parametrize("entry", ["src", "", "."])
def test_a_worker_that_could_write_where_the_python_of_bullswarm_looks_first_is_refused(site: Site, entry: str) -> None:
    site.worker("ada", SAY)
    source = site.project / "src"
    source.mkdir()
    named = str(source) if entry == "src" else entry
    for lane, refused in (("build", True), ("analyze", False)):
        code, _out, err = started_by(
            site, sys.executable, lane=lane, PYTHONPATH=f"{site.environ['PYTHONPATH']}:{named}", cwd=site.project
        )
        assert (code, "own program" in err and "PYTHONPATH" in err) == ((2, True) if refused else (0, False)), err


@pytest.mark.parametrize("lane", ["build", "analyze"])
def test_a_pool_whose_workers_may_write_where_bullswarm_is_installed_takes_no_task(site: Site, lane: str) -> None:
    """A virtual environment in the folder of an account, which each worker of the CLI writes."""
    state = site.root / ".ada"
    site.worker("ada", SAY, launch={**CONNECTOR["launch"], "stateFolders": [f"{state}/"]})
    site.worker("bob", SAY)
    python = environment_in(state / "venv")
    _code, out, _err = started_by(site, python, "--json", "--pool", "ada", lane=lane)
    why = json.loads(out)["why"]
    assert "own program" in why and str(state / "venv") in why and "ada" in why, why
    _code, out, err = started_by(site, python, "--json", lane=lane)
    assert json.loads(out)["pick"]["pool"] == "bob", err
    assert site.run("--pool", "ada").code == 0


def test_a_pool_whose_cli_the_worker_could_write_takes_no_such_task(site: Site) -> None:
    site.worker("ada", SAY)
    inside = site.project / "node_modules" / "ada"
    inside.mkdir(parents=True)
    binary = site.root / "bin" / "ada-cli"
    binary.rename(inside / "cli.js")
    binary.symlink_to(inside / "cli.js")
    said = site.run("--pool", "ada", lane="build")
    assert said.code != 0 and said.document["failureKind"] == "unavailable", said
    assert str(inside / "cli.js") in said.document["why"], said.document["why"]
    assert site.run("--pool", "ada").code == 0


def test_the_interpreter_and_the_packages_of_a_cli_belong_to_it(tmp_path: Path) -> None:
    modules = tmp_path / "lib" / "node_modules"
    script = modules / "cli" / "cli.js"
    script.parent.mkdir(parents=True)
    script.write_text("#!/usr/bin/env -S node --no-warnings\n")
    node = tmp_path / "versions" / "node"
    node.parent.mkdir()
    node.write_text("")
    node.chmod(0o755)
    link = tmp_path / "cli"
    link.symlink_to("lib/node_modules/cli/cli.js")
    places = command_places(str(link), search_path=str(node.parent))
    assert places == tuple(map(str, (link, script, modules, node)))
    for folder in (tmp_path, node.parent, script.parent, modules / "other"):
        assert place_in_reach(places, str(folder)) is not None, folder
    assert place_in_reach(places, str(tmp_path / "lib2")) is None
