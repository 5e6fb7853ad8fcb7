"""A worker that makes a folder of 1,500 levels loses no work by it, blocks no later run, and can be cleaned up after."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from tests.core.runs.journals import document
from tests.core.trees.worktrees import git
from tests.processes import until
from tests.server.site import ANSWER, SAY, Site
from tests.server.workflows import begin, ended, statuses

from bullswarm_core.dispatch.services import utc_now
from bullswarm_core.wire import stamp

DEEP = 'python3 -c \'import os\nfor _ in range(1500): os.mkdir("a"); os.chdir("a")\''
SHELL = f"""cat > /dev/null
(cd "$PLACE" && {DEEP}) || exit
echo made > made.txt
echo '{ANSWER}'"""


def quiet(site: Site) -> None:
    until(lambda: not site.processes(), "every process has ended")


def long_ago(site: Site) -> None:
    with site.database() as connection:
        connection.execute("UPDATE runs SET finished_at = ?", (stamp(utc_now() - timedelta(days=1)),))
        connection.commit()


def test_a_deep_folder_among_the_scratch_files_changes_no_verdict_and_the_run_can_be_deleted(site: Site) -> None:
    site.worker("alpha", SHELL.replace("$PLACE", "$TMPDIR"))
    ran = site.run(lane="build")
    assert (ran.code, ran.document["ok"], ran.document["changedFiles"]) == (0, True, ["made.txt"]), ran
    assert not list(site.run_folder().rglob("a"))
    quiet(site)
    # As a kernel that was killed before it could clean up leaves it.
    write_deep(site.run_folder() / "left")
    gone = site.say("runs", "delete", str(ran.document["runId"]), "--yes")
    assert gone.code == 0, gone
    assert not (site.home.workflows_dir / str(ran.document["runId"])).exists()


def write_deep(folder: Path) -> None:
    folder.mkdir()
    at = os.open(folder, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("a", dir_fd=at)
        below = os.open("a", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)


@pytest.mark.parametrize("words", [("home", "prune", "--days", "0"), ("runs", "delete", "last", "--yes")])
def test_a_deep_folder_in_a_worktree_is_no_trouble(site: Site, words: tuple[str, ...]) -> None:
    git(site.project, "commit", "--quiet", "--allow-empty", "-m", "first")
    site.worker("one", SHELL.replace("$PLACE", "."))
    program = document({"id": "one", "lane": "build", "files": ["made.txt"], "prompt": "Make it."})
    run_id = begin(site, program, isolation="worktree")
    state = ended(site, run_id)
    assert statuses(state) == {"one": "succeeded"}, [item.finished for item in state.steps["one"].attempts]
    assert (site.project / "made.txt").read_bytes() == b"made\n"
    quiet(site)
    write_deep(site.run_folder() / "left")
    long_ago(site)
    said = site.say(*words)
    assert said.code == 0, said
    assert not (site.home.workflows_dir / run_id).exists()


KERNEL_THAT_CANNOT_CLEAN_UP = """
import sys
from bullswarm_core.attempts import attempt
from bullswarm_server.kernel import main

def broken(path):
    raise RecursionError("too deep")

attempt.remove_tree = broken
sys.exit(main([sys.argv[1]]))
"""


def test_a_clean_up_that_fails_changes_no_verdict_and_is_logged(site: Site) -> None:
    site.worker("alpha", SAY)
    run_id = site.create().run_id
    words = [sys.executable, "-c", KERNEL_THAT_CANNOT_CLEAN_UP, run_id]
    done = subprocess.run(words, env=site.environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done
    (step,) = site.state_of(run_id).steps.values()
    finished = step.attempts[-1].finished
    assert finished is not None
    assert (finished.ok, finished.failure_kind) == (True, None)
    assert "not all scratch files could be removed: RecursionError: too deep" in done.stderr
