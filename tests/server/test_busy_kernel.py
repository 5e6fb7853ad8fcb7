"""A kernel that looks at a large tree, or asks a git that hangs, still does everything else."""

from __future__ import annotations

import pytest
from tests.core.runs.journals import document
from tests.processes import until
from tests.server.site import Site
from tests.server.test_workflow_evidence import OBEDIENT, judgement, step
from tests.server.workflows import begin, ended, statuses, wish

from bullswarm_core.dispatch.services import utc_now
from bullswarm_core.runs.events import StopRequested
from bullswarm_core.runs.intents import continue_node
from bullswarm_core.runs.journal import Journal
from bullswarm_core.runs.run_files import RunFolder

STOPPABLE = "n=0; while [ $n -lt 2400 ]; do sleep 0.05; n=$((n+1)); done"


def waiting_for(name: str) -> str:
    return f"n=0; while [ ! -e {name} ] && [ $n -lt 2400 ]; do sleep 0.05; n=$((n+1)); done"


class SlowGit:
    """A git on PATH that hangs at one question once `hold` was called, says so, and goes on when it is let go."""

    def __init__(self, site: Site, question: str) -> None:
        self.place = site.root / "slow-git"
        self.place.mkdir()
        script = f"""#!/bin/sh
case "$*" in
  *"{question}"*)
    if rmdir {self.place}/hold 2>/dev/null; then
      touch {self.place}/asked
      {waiting_for(f"{self.place}/go")}
    fi;;
esac
PATH=/usr/local/bin:/usr/bin:/bin exec git "$@"
"""
        (site.root / "bin/git").write_text(script)
        (site.root / "bin/git").chmod(0o755)

    def hold(self) -> None:
        (self.place / "hold").mkdir()

    def wait(self) -> None:
        until((self.place / "asked").exists, "git is asked")

    def let_go(self) -> None:
        (self.place / "go").touch()


@pytest.fixture
def workers(site: Site) -> Site:
    site.worker("one", OBEDIENT)
    return site


def at_work(site: Site, run_id: str, name: str) -> None:
    files = RunFolder.of(site.home, run_id).attempt(name, 1)
    until(lambda: files.keeper.exists() and '"worker": {' in files.keeper.read_text(), f"{name} is at work")


def stop(site: Site, run_id: str) -> None:
    with site.database() as connection:
        Journal(connection).append(run_id, [StopRequested(by="me")], at=utc_now())


@pytest.mark.parametrize("moment", ["start", "end"])
def test_a_cancel_reaches_a_worker_while_the_tree_is_looked_at_for_another(workers: Site, moment: str) -> None:
    git = SlowGit(workers, "status")
    program = document(
        step(STOPPABLE, name="a", lane="analyze"),
        step(waiting_for("b-go"), name="b", lane="analyze", dependsOn=["g"]),
        gates=[{"id": "g", "dependsOn": []}],
    )
    run_id = begin(workers, program)
    at_work(workers, run_id, "a")
    if moment == "start":
        git.hold()
    wish(workers, run_id, continue_node("g", by="me"))
    if moment == "end":
        at_work(workers, run_id, "b")
        git.hold()
        (workers.project / "b-go").touch()
    git.wait()
    stop(workers, run_id)
    ended_worker = RunFolder.of(workers.home, run_id).attempt("a", 1).exit
    until(ended_worker.exists, "the worker of a is stopped")
    assert not (git.place / "go").exists(), "git was still at its answer"
    git.let_go()
    state = ended(workers, run_id)
    assert state.finished is not None and state.finished.outcome == "cancelled"
    assert statuses(state)["a"] == "cancelled"


def test_a_step_that_is_cancelled_while_it_is_prepared_starts_no_worker(workers: Site) -> None:
    git = SlowGit(workers, "status")
    git.hold()
    run_id = begin(workers, document(step("touch started", lane="build")))
    git.wait()
    stop(workers, run_id)
    git.let_go()
    state = ended(workers, run_id)
    assert statuses(state) == {"a": "cancelled"} and not (workers.project / "started").exists()


def test_what_another_step_did_before_the_worker_started_is_not_the_workers(workers: Site) -> None:
    # The last question of a look: the files were all seen by then.
    git = SlowGit(workers, "HEAD^{commit}")
    program = document(
        step(f"{waiting_for('a-go')}; echo >x", name="a", files=["x"]),
        step("true", name="b", files=["y"], dependsOn=["g"], retry=0),
        gates=[{"id": "g", "dependsOn": []}],
    )
    run_id = begin(workers, program)
    at_work(workers, run_id, "a")
    git.hold()
    wish(workers, run_id, continue_node("g", by="me"))
    git.wait()
    (workers.project / "a-go").touch()
    until(lambda: "attempt.finished" in workers.events(run_id), "a is over")
    git.let_go()
    state = ended(workers, run_id)
    assert statuses(state) == {"a": "succeeded", "b": "failed"}
    assert (judgement(state, name="b")["changedFiles"], judgement(state, name="b")["attribution"]) == ([], "shared")
