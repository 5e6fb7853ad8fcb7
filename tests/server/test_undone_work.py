"""An attempt that undid another's work leaves nothing to carry, whatever is known of the tree before the first one."""

from __future__ import annotations

import shutil

import pytest
from tests.core.runs.journals import document
from tests.core.trees.snapshots import git
from tests.server.site import Site
from tests.server.test_step_reruns import CHECK
from tests.server.test_workflow_evidence import OBEDIENT, judgement, step, tries
from tests.server.workflows import begin, ended, go_on, record

from bullswarm_core.runs.intents import rerun
from bullswarm_server.ops.launch import start_kernel


@pytest.fixture
def workers(site: Site) -> Site:
    site.worker("one", OBEDIENT)
    return site


def in_turn(site: Site, first: str, second: str) -> str:
    """Do one thing the first time, another the second time, and nothing from then on."""
    count = site.root / "count"
    return f"echo x >>{count}; case $(wc -l <{count}) in 1) {first};; 2) {second};; esac"


@pytest.mark.parametrize(("old", "undo"), [("old\n", "echo old >made.txt"), (None, "rm made.txt")])
def test_in_worktrees(workers: Site, old: str | None, undo: str) -> None:
    git(workers.project, "commit", "-q", "--allow-empty", "-m", "start")
    if old is not None:
        (workers.project / "made.txt").write_text(old)
        git(workers.project, "add", "made.txt")
        git(workers.project, "commit", "-q", "-m", "old")
    do = in_turn(workers, "echo new >made.txt", undo)
    run_id = begin(workers, document(step(do, files=["made.txt"], retry=0)), isolation="worktree")
    ended(workers, run_id)
    go_on(workers, run_id, rerun("a", by="me"))
    state = go_on(workers, run_id, rerun("a", by="me"))
    assert [kind for kind, _, _ in tries(state)] == [None, None, "not-produced"]


def test_where_the_first_attempt_was_refused_before_it_looked(workers: Site) -> None:
    (workers.project / "made.txt").write_text("old\n")
    do = in_turn(workers, "echo new >made.txt", "echo old >made.txt")
    run_id = record(workers, document(step(do, files=["made.txt"], evidence=[CHECK], retry=0)))
    shutil.rmtree(workers.project / ".git")
    start_kernel(workers.home, run_id, environ=workers.environ)
    assert [kind for kind, _, _ in tries(ended(workers, run_id))] == ["ownership-conflict"]
    go_on(workers, run_id, rerun("a", by="me"))
    go_on(workers, run_id, rerun("a", by="me"))
    workers.go()
    state = go_on(workers, run_id, rerun("a", by="me"))
    assert (tries(state)[-1][0], judgement(state, 4)["carried"]) == ("not-produced", False)
