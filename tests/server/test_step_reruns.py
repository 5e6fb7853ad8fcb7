"""A step that is begun anew although its work is there: what an attempt of it made counts, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.core.runs.journals import document
from tests.core.trees.snapshots import git
from tests.processes import until
from tests.server.site import Site
from tests.server.test_workflow_evidence import OBEDIENT, command, data, judgement, step, tries
from tests.server.workflows import begin, ended, go_on, statuses, wish

from bullswarm_core.runs.intents import accept, pause, rerun, resume

# Makes its file the first time only; a file that stands already is left alone.
ONCE = "[ -e made.txt ] || echo first >made.txt"
CHECK = command("[ -e go ]")


@pytest.fixture
def workers(site: Site) -> Site:
    site.worker("one", OBEDIENT)
    return site


def again(site: Site, work: dict[str, Any], between: Callable[[Path], object] = lambda _: None) -> dict[str, Any]:
    """Run a step whose check fails, do something in the folder, rerun it with the check mended, and return its judgement."""
    run_id = begin(site, document({**work, "retry": 0}))
    assert [kind for kind, _, _ in tries(ended(site, run_id))] == ["failed-evidence"]
    between(site.project)
    site.go()
    state = go_on(site, run_id, rerun("a", by="me"))
    return {"status": statuses(state)["a"], "why": tries(state)[-1][2], **judgement(state, len(tries(state)))}


def test_a_rerun_that_finds_the_work_of_an_earlier_attempt_unchanged_passes(workers: Site) -> None:
    said = again(workers, step(ONCE, files=["made.txt"], evidence=[CHECK]))
    assert (said["status"], said["carried"], said["changedFiles"]) == ("succeeded", True, [])
    assert said["why"] == "1 file changed, done by an earlier attempt of the step"


def test_without_named_files_a_rerun_is_judged_by_what_the_attempts_made(workers: Site) -> None:
    said = again(workers, step(ONCE, evidence=[CHECK]))
    assert (said["status"], said["carried"]) == ("succeeded", True)


def test_what_somebody_else_changed_since_is_not_the_steps_work(workers: Site) -> None:
    said = again(
        workers,
        step(ONCE, files=["made.txt"], evidence=[CHECK]),
        lambda folder: (folder / "made.txt").write_text("the person's\n"),
    )
    assert (said["failureKind"], said["carried"]) == ("not-produced", False)


def test_what_was_there_before_the_step_ever_ran_is_not_its_work(workers: Site) -> None:
    (workers.project / "made.txt").write_text("old\n")
    run_id = begin(workers, document(step(ONCE, files=["made.txt"], retry=0)))
    assert tries(ended(workers, run_id))[0][0] == "not-produced"
    state = go_on(workers, run_id, rerun("a", by="me"))
    assert [kind for kind, _, _ in tries(state)] == ["not-produced", "not-produced"]


def test_an_attempt_that_undid_the_work_leaves_nothing_to_carry(workers: Site) -> None:
    (workers.project / "made.txt").write_text("old\n")
    # First another content, then the old one again, then nothing.
    do = "touch n; echo x >>n; case $(wc -l <n) in 1) echo new >made.txt;; 2) echo old >made.txt;; esac"
    run_id = begin(workers, document(step(do, files=["made.txt"], evidence=[CHECK], retry=0)))
    ended(workers, run_id)
    go_on(workers, run_id, rerun("a", by="me"))
    workers.go()
    state = go_on(workers, run_id, rerun("a", by="me"))
    assert [kind for kind, _, _ in tries(state)] == ["failed-evidence", "failed-evidence", "not-produced"]


def test_data_that_was_written_again_as_it_was_counts_for_a_rerun(workers: Site) -> None:
    (workers.project / "old.json").write_text("1")
    do = "[ -e .git/did ] || touch .git/did old.json"
    said = again(workers, step(do, **data("old.json"), evidence=[CHECK]))
    assert (said["status"], said["carried"]) == ("succeeded", True)
    assert said["why"] == "1 file written, done by an earlier attempt of the step"


def test_a_commit_that_still_stands_counts_and_one_that_was_taken_back_does_not(workers: Site) -> None:
    git(workers.project, "commit", "-q", "--allow-empty", "-m", "start")
    identity = "-c user.name=Ada -c user.email=ada@example.org"
    do = f"[ -e .git/did ] || {{ touch .git/did; git {identity} commit -q --allow-empty -m work; }}"
    run_id = begin(workers, document(step(do, evidence=[CHECK], retry=0)))
    assert tries(ended(workers, run_id))[0][0] == "failed-evidence"
    state = go_on(workers, run_id, rerun("a", by="me"))
    assert (tries(state)[-1][0], judgement(state, 2)["carried"]) == ("failed-evidence", True)
    git(workers.project, "reset", "-q", "--hard", "HEAD~1")
    state = go_on(workers, run_id, rerun("a", by="me"))
    assert (tries(state)[-1][0], judgement(state, 3)["carried"]) == ("not-produced", False)


def test_a_retry_within_the_rerun_is_judged_by_the_attempts_before_it_too(workers: Site) -> None:
    do = "touch n; echo x >>.git/n; case $(wc -l <.git/n) in 1) echo >made.txt;; 2) false;; esac"
    program = document(step(do, files=["made.txt"], evidence=[CHECK], retry=1))
    run_id = begin(workers, program)
    ended(workers, run_id)
    workers.go()
    state = go_on(workers, run_id, rerun("a", by="me"))
    assert statuses(state) == {"a": "succeeded"} and judgement(state, len(tries(state)))["carried"] is True


def test_a_rerun_in_a_worktree_finds_what_was_merged_of_the_step(workers: Site) -> None:
    git(workers.project, "commit", "-q", "--allow-empty", "-m", "start")
    program = document(step(ONCE, files=["made.txt"], retry=0))
    run_id = begin(workers, program, isolation="worktree")
    assert statuses(ended(workers, run_id)) == {"a": "succeeded"}
    state = go_on(workers, run_id, rerun("a", by="me"))
    assert statuses(state) == {"a": "succeeded"} and judgement(state, 2)["carried"] is True


def test_a_step_that_was_accepted_and_is_begun_anew_keeps_its_work(workers: Site) -> None:
    run_id = begin(workers, document(step(ONCE, files=["made.txt"], evidence=[CHECK], retry=0)))
    ended(workers, run_id)
    go_on(workers, run_id, accept("a", reason="good enough", by="me"))
    workers.go()
    state = go_on(workers, run_id, rerun("a", by="me"))
    assert statuses(state) == {"a": "succeeded"} and judgement(state, 2)["carried"] is True


COMMIT = "git -c user.name=Ada -c user.email=ada@example.org commit -q"
ONCE_COMMITTED = f"[ -e .git/did ] || {{ touch .git/did; echo first >made.txt; git add made.txt; {COMMIT} -m work; }}"


@pytest.mark.parametrize("named", [{}, {"files": ["made.txt"]}])
@pytest.mark.parametrize(
    ("between", "stands"),
    [
        (lambda folder: git(folder, "commit", "-q", "--amend", "-m", "other"), True),
        (lambda folder: git(folder, "revert", "--no-edit", "HEAD"), False),
        (lambda folder: (folder / "made.txt").unlink(), False),
    ],
)
def test_committed_work_stands_as_long_as_what_was_committed_does(
    workers: Site, named: dict[str, Any], between: Callable[[Path], object], stands: bool
) -> None:
    git(workers.project, "commit", "-q", "--allow-empty", "-m", "start")
    said = again(workers, step(ONCE_COMMITTED, evidence=[CHECK], **named), between)
    assert (said["carried"], said["status"]) == (stands, "succeeded" if stands else "failed")


@pytest.mark.parametrize("commit", ["commit", "revert"])
def test_a_commit_of_what_was_there_before_stands_until_it_is_reverted(workers: Site, commit: str) -> None:
    git(workers.project, "commit", "-q", "--allow-empty", "-m", "start")
    (workers.project / "made.txt").write_text("the person's\n")
    do = f"[ -e .git/did ] || {{ touch .git/did; git add made.txt; {COMMIT} -m work; }}"
    said = again(
        workers,
        step(do, evidence=[CHECK]),
        lambda folder: git(folder, "revert", "--no-edit", "HEAD") if commit == "revert" else None,
    )
    assert (said["carried"], said["status"]) == ((True, "succeeded") if commit == "commit" else (False, "failed"))


@pytest.mark.parametrize(
    "spoiled",
    ["{", "[]", '{"changed": [1]}', '{"changed": {"made.txt": 1, "a": {}}}', '{"commits": 5, "changed": "x"}',
     '{"commits": [["x"], "--all", "HEAD"]}', '{"changed": {"../x": {"kind": "missing"}}}'],
)  # fmt: skip
def test_a_record_that_somebody_spoiled_proves_nothing(workers: Site, spoiled: str) -> None:
    def spoil(_: Path) -> None:
        (file,) = workers.run_folder().glob("made-*")
        file.write_text(spoiled)

    said = again(workers, step(ONCE, evidence=[CHECK]), spoil)
    assert (said["failureKind"], said["carried"]) == ("not-produced", False)


def test_what_a_person_made_while_the_run_was_paused_is_not_the_steps_work(workers: Site) -> None:
    wait = "n=0; while [ ! -e .git/go ] && [ $n -lt 1200 ]; do sleep 0.05; n=$((n+1)); done"
    run_id = begin(workers, document(step(f"touch .git/at-work; {wait}", files=["made.txt"], retry=1)))
    until((workers.project / ".git/at-work").exists, "the worker is at work")
    wish(workers, run_id, pause(at_once=False, by="me"))
    (workers.project / ".git/go").touch()
    assert ended(workers, run_id).parked is not None
    (workers.project / "made.txt").write_text("the person's\n")
    # The retry that the pause held up is of the same beginning of the step.
    state = go_on(workers, run_id, resume(by="me"))
    assert [kind for kind, _, _ in tries(state)] == ["not-produced", "not-produced"]
    assert judgement(state, 2)["carried"] is False
