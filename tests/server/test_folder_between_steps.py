"""A folder that is gone or replaced between two steps ends the second: it never works in another one instead."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.core.runs.journals import document
from tests.core.trees.snapshots import git
from tests.server.site import ANSWER, Site
from tests.server.workflows import begin, ended, go_on, statuses

from bullswarm_core.runs.intents import continue_node, rerun

# The first task takes the folder away, and whatever it left behind would be found by the second in its place.
SCRIPT = f"""case "$(cat)" in
  *"TAKE AWAY"*) mv "$PWD" "$PWD-moved";;
  *"INIT"*) git init --quiet;;
  *) pwd -P >> "$HOME/where.txt";;
esac
echo '{ANSWER}'"""


def test_the_next_step_fails_by_name_and_works_nowhere_else(site: Site) -> None:
    site.worker("one", SCRIPT)
    program = document({"id": "a", "prompt": "TAKE AWAY"}, {"id": "b", "dependsOn": ["a"], "prompt": "Look."})
    before = set(site.project.rglob("*"))
    state = ended(site, begin(site, program, retryAttempts=0))
    assert statuses(state) == {"a": "succeeded", "b": "failed"}
    last = state.steps["b"].attempts[-1].finished
    assert last is not None and last.failure_kind == "process"
    assert f"cannot work in {site.project}: No such file or directory" in last.why
    assert not (Path(site.environ["HOME"]) / "where.txt").exists()
    assert {Path(str(path).replace("-moved", "", 1)) for path in Path(f"{site.project}-moved").rglob("*")} == before


def replace_folder(place: Path) -> None:
    place.rename(place.with_name("kept"))
    place.mkdir()


@pytest.mark.parametrize(
    ("plain", "change", "why"),
    [
        (True, replace_folder, "another folder is in its place"),
        (True, lambda place: git(place, "init", "-q"), "it became a git repository"),
        (False, replace_folder, "another folder is in its place"),
        (False, lambda place: shutil.rmtree(place / ".git"), "it is no git repository any more"),
    ],
)
def test_another_folder_in_its_place_stops_the_run_with_a_reason_until_it_is_meant(
    site: Site, plain: bool, change: Callable[[Path], object], why: str
) -> None:
    site.worker("one", SCRIPT)
    site.worker("two", SCRIPT)
    if plain:
        shutil.rmtree(site.project / ".git")
    program = document(
        {"id": "a", "prompt": "Look."},
        {"id": "b", "dependsOn": ["g"], "prompt": "Look."},
        gates=[{"id": "g", "dependsOn": ["a"]}],
    )
    run_id = begin(site, program)
    ended(site, run_id)
    change(site.project)
    state = go_on(site, run_id, continue_node("g", by="me"))
    assert statuses(state) == {"a": "succeeded", "b": "failed"}
    (only,) = state.steps["b"].attempts
    assert only.finished is not None and only.launched is None
    assert only.finished.failure_kind == "ownership-conflict"
    assert only.finished.why.startswith(f"{site.project} is not what it was when the run last worked there: {why}")
    assert f"bullswarm workflow step rerun {state.created.short_id} b" in only.finished.why
    visits = Path(site.environ["HOME"]) / "where.txt"
    assert visits.read_text().splitlines() == [str(site.project)]
    # The person has read it, and says that this folder is the one.
    state = go_on(site, run_id, rerun("b", by="me"))
    assert statuses(state) == {"a": "succeeded", "b": "succeeded"}
    assert len(visits.read_text().splitlines()) == 2


def test_a_repository_that_a_step_makes_is_its_work(site: Site) -> None:
    site.worker("one", SCRIPT)
    shutil.rmtree(site.project / ".git")
    program = document(
        {"id": "a", "prompt": "INIT", "lane": "analyze"}, {"id": "b", "dependsOn": ["a"], "prompt": "Look."}
    )
    assert statuses(ended(site, begin(site, program))) == {"a": "succeeded", "b": "succeeded"}


def test_another_repository_in_the_same_folder_is_noticed(site: Site) -> None:
    site.worker("one", SCRIPT)
    program = document(
        {"id": "a", "prompt": "Look."},
        {"id": "b", "dependsOn": ["g"], "prompt": "Look."},
        gates=[{"id": "g", "dependsOn": ["a"]}],
    )
    run_id = begin(site, program)
    ended(site, run_id)
    # The old one is kept, so that the new one can't get its inode.
    (site.project / ".git").rename(site.root / "kept.git")
    git(site.project, "init", "-q")
    state = go_on(site, run_id, continue_node("g", by="me"))
    last = state.steps["b"].attempts[-1].finished
    assert last is not None and "another git repository is in it" in last.why
