"""Workflows under ``--isolation worktree`` on scripted workers: parallel writers, conflicts, and kernels that die."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.core.runs.journals import document
from tests.core.trees.worktrees import contents, git, untouched, write
from tests.processes import until
from tests.server.site import ANSWER, CONNECTOR, Site
from tests.server.workflows import begin, ended, go_on, result, statuses

from bullswarm_core.dispatch.services import utc_now
from bullswarm_core.process.confinement import can_confine
from bullswarm_core.runs.events import AttemptFinished
from bullswarm_core.runs.intents import rerun
from bullswarm_core.runs.state import RunState
from bullswarm_core.trees.worktree import unmerged
from bullswarm_server.ops.launch import Origin, create_workflow

# The prompt holds one line of shell, which is run in the folder of work; the rest of the task is no command.
SHELL = f"""cat > "$TMPDIR/task"
eval "$(sed -n 's/^SHELL //p' "$TMPDIR/task" | head -n 1)" || exit
echo '{ANSWER}'"""
CONFINED = {
    **CONNECTOR["launch"],
    "lanes": {lane: {"workspace": {"confinement": "bullswarm"}} for lane in ("analyze", "build")},
}
LINES = b"".join(b"line %d\n" % number for number in range(9))


@pytest.fixture
def shells(site: Site) -> Site:
    """Two pools that do what a line of the prompt says, in a project with a commit, an edit and untracked files."""
    site.worker("one", SHELL)
    site.worker("two", SHELL)
    write(site.project, "a.txt", b"before\n")
    git(site.project, "add", "--all")
    git(site.project, "commit", "--quiet", "-m", "more")
    write(site.project, "a.txt", LINES)
    write(site.project, "untracked.txt", b"untracked\n")
    write(site.project, "sub/b.txt", b"b\n")
    return site


def step(name: str, files: list[str], line: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "lane": "build", "files": files, "prompt": f"Do as the line says.\nSHELL {line}", **more}


def recorded(site: Site, program: Mapping[str, Any], *, cwd: Path) -> str:
    """Record a run that no kernel drives yet."""
    options = {"isolation": "worktree"}
    with site.database() as connection:
        created = create_workflow(
            site.home, connection, program, goal="the goal", cwd=str(cwd), options=options, environ=site.environ,
            origin=Origin(), now=utc_now(),
        )  # fmt: skip
    return created.run_id


def meeting(site: Site, name: str) -> str:
    """Shell that says that the worker is there, and waits until it may go on; it ends by itself at last."""
    go = site.root / "go-on"
    return (
        f"touch {site.root}/{name}.there; n=0; while [ ! -e {go} ] && [ $n -lt 2400 ]; do sleep 0.05; n=$((n+1)); done"
    )


def met(site: Site, *names: str) -> None:
    until(lambda: all((site.root / f"{name}.there").exists() for name in names), f"{names} are at work")


def go(site: Site) -> None:
    (site.root / "go-on").touch()


def spaces(site: Site) -> list[str]:
    folder = site.run_folder() / "workspaces"
    return sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []


def last(state: RunState, name: str) -> AttemptFinished:
    finished = state.steps[name].attempts[-1].finished
    assert finished is not None
    return finished


def test_writers_at_work_at_once_are_both_merged(shells: Site) -> None:
    program = document(
        step("one", ["made.txt"], f"{meeting(shells, 'one')}; cat untracked.txt > made.txt"),
        step("two", ["sub/b.txt"], f"{meeting(shells, 'two')}; echo two >> sub/b.txt"),
        {"id": "after", "dependsOn": ["one", "two"], "prompt": "SHELL cmp made.txt untracked.txt"},
    )
    before, files = untouched(shells.project), contents(shells.project)
    run_id = begin(shells, program, isolation="worktree")
    met(shells, "one", "two")
    assert spaces(shells) == ["one-1", "one-1.state", "two-1", "two-1.state"]
    booked = sorted(str(booking.tree) for booking in shells.in_flight())
    assert booked == sorted(str(shells.run_folder() / "workspaces" / name) for name in ("one-1", "two-1"))
    go(shells)
    state = ended(shells, run_id)
    assert statuses(state) == {"one": "succeeded", "two": "succeeded", "after": "succeeded"}, result(state)
    changed = {"made.txt": ("file", b"untracked\n"), "sub/b.txt": ("file", b"b\ntwo\n")}
    assert contents(shells.project) == files | changed and untouched(shells.project) == before
    assert spaces(shells) == [] and not (shells.project / ".git/worktrees").exists()
    found = last(state, "one")
    assert found.judgement.document["worktree"]["merged"] == found.judgement.document["changedFiles"] == ["made.txt"]
    assert shells.in_flight() == [] and found.judgement.document["attribution"] == "own"


def test_nothing_is_merged_into_another_folder_in_place_of_the_projects(shells: Site) -> None:
    program = document(step("one", ["made.txt"], f"{meeting(shells, 'one')}; echo made > made.txt"))
    run_id = begin(shells, program, isolation="worktree")
    met(shells, "one")
    # A copy, so that git finds everything where it was.
    copy = shells.project.with_name("copy")
    shutil.copytree(shells.project, copy, symlinks=True)
    shells.project.rename(shells.project.with_name("moved"))
    copy.rename(shells.project)
    go(shells)
    state = ended(shells, run_id)
    kept = shells.run_folder() / "workspaces/one-1"
    found = last(state, "one")
    assert (found.ok, found.failure_kind, len(state.steps["one"].attempts)) == (False, "ownership-conflict", 1)
    assert found.why == (
        f"nothing was merged: {shells.project} is not what it was when the work began: another folder is in its place"
    )
    assert not (shells.project / "made.txt").exists() and (kept / "made.txt").read_bytes() == b"made\n"
    assert any(note["kind"] == "worktree-kept" for note in found.judgement.document["notes"])


def test_a_conflict_comes_back_with_the_worktree_and_a_rerun_begins_from_the_tree_as_it_is(shells: Site) -> None:
    line = f"{meeting(shells, 'one')}; sed -i s/line.3/theirs/ a.txt; echo made > made.txt"
    run_id = begin(shells, document(step("one", ["a.txt", "made.txt"], line)), isolation="worktree")
    met(shells, "one")
    mine = LINES.replace(b"line 3", b"mine")
    write(shells.project, "a.txt", mine)
    go(shells)
    state = ended(shells, run_id)
    kept = shells.run_folder() / "workspaces/one-1"
    found = last(state, "one")
    assert (found.ok, found.failure_kind, len(state.steps["one"].attempts)) == (False, "ownership-conflict", 1)
    assert found.why == (
        f"nothing was merged: a.txt: you and the worker both changed it, in the same place · the work stays in {kept}"
    )
    assert (shells.project / "a.txt").read_bytes() == mine and not (shells.project / "made.txt").exists()
    assert (kept / "made.txt").read_bytes() == b"made\n" and unmerged(shells.run_folder()) == [kept]
    write(shells.project, "a.txt", LINES)
    again = go_on(shells, run_id, rerun("one", by="me"))
    assert last(again, "one").ok, last(again, "one")
    assert statuses(again) == {"one": "succeeded"} and b"theirs" in (shells.project / "a.txt").read_bytes()
    assert spaces(shells) == ["one-1", "one-1.state"], "what was not merged stays"


def test_what_is_not_declared_stays_and_a_failed_attempt_keeps_its_work(shells: Site) -> None:
    program = document(
        step("more", ["made.txt"], "echo made > made.txt; echo more > more.txt"),
        step("fails", ["half.txt"], "echo half > half.txt; exit 3", retry=1),
        step("nothing", ["none.txt"], "exit 3", retry=0),
    )
    state = ended(shells, begin(shells, program, isolation="worktree"))
    folder = shells.run_folder() / "workspaces"
    assert last(state, "more").ok, last(state, "more")
    assert statuses(state) == {"more": "succeeded", "fails": "failed", "nothing": "failed"}
    notes = last(state, "more").judgement.document["notes"]
    assert {"kind": "worktree-kept", "text": f"not merged, and kept in {folder}/more-1: more.txt"} in notes
    assert not (shells.project / "more.txt").exists() and not (shells.project / "half.txt").exists()
    assert last(state, "fails").judgement.document["worktree"]["left"] == ["half.txt"]
    assert unmerged(shells.run_folder()) == [folder / name for name in ("fails-1", "fails-2", "more-1")]
    assert spaces(shells)[-2:] == ["more-1", "more-1.state"], "the one that left nothing is gone"
    told = (shells.run_folder() / "task-fails-attempt-2.md").read_text()
    assert (
        f"They are not in your folder: they stand in {folder}/fails-1." in told and f"{folder}/fails-1/half.txt" in told
    )


def test_checks_see_the_worktree_and_nothing_is_merged_before_they_pass(shells: Site) -> None:
    check = {"type": "command", "cmd": f"cat made.txt >> {shells.root}/seen; ! ls {shells.project}/made.txt"}
    program = document(
        step("good", ["made.txt"], "echo made > made.txt", evidence=[check]),
        step("bad", ["bad.txt"], "echo bad > bad.txt", evidence=[{"type": "command", "cmd": "false"}], retry=0),
    )
    state = ended(shells, begin(shells, program, isolation="worktree"))
    assert last(state, "good").ok, last(state, "good")
    assert statuses(state) == {"good": "succeeded", "bad": "failed"}, result(state)
    assert (shells.root / "seen").read_text() == "made\n" and (shells.project / "made.txt").exists()
    assert not (shells.project / "bad.txt").exists() and last(state, "bad").failure_kind == "failed-evidence"


def test_the_folder_of_work_is_the_same_one_inside_the_worktree(shells: Site) -> None:
    program = document(step("one", ["b.txt"], "cat b.txt ../untracked.txt > c.txt; mv c.txt b.txt"))
    state = ended(shells, recorded(shells, program, cwd=shells.project / "sub"))
    assert statuses(state) == {"one": "succeeded"}, result(state)
    assert (shells.project / "sub/b.txt").read_bytes() == b"b\nuntracked\n"


@pytest.mark.skipif(not can_confine(), reason="nothing here can confine a worker")
def test_a_confined_worker_writes_in_its_worktree_alone_and_reads_its_history(site: Site) -> None:
    site.worker("one", SHELL, launch=CONFINED)
    write(site.project, "a.txt", b"a\n")
    git(site.project, "add", "--all")
    git(site.project, "commit", "--quiet", "-m", "more")
    before = untouched(site.project)
    tries = f"echo x > {site.project}/a.txt; echo x > {site.project}/.git/x; git commit -qam x; git branch other"
    line = f"({tries}) 2> errors; git log --format=%s -n 1 > log; git status --porcelain > status; echo b > a.txt"
    state = ended(site, begin(site, document(step("one", ["a.txt"], line)), isolation="worktree"))
    assert statuses(state) == {"one": "succeeded"}, result(state)
    kept = site.run_folder() / "workspaces/one-1"
    assert (site.project / "a.txt").read_bytes() == b"b\n" and untouched(site.project) == before
    assert (kept / "log").read_text().startswith("The working tree as it was")
    assert (kept / "status").read_text().splitlines() == ["?? errors", "?? log", "?? status"]
    assert last(state, "one").meta.confinement == "bullswarm"


def test_what_stands_in_the_way_ends_the_attempt_before_its_worker_starts(shells: Site) -> None:
    (shells.project / "link").symlink_to("sub")
    program = document(
        step("one", ["link/b.txt"], f"touch {shells.root}/started", retry=0), step("none", [], "true", retry=0)
    )
    state = ended(shells, begin(shells, program, isolation="worktree"))
    assert "link/b.txt lies behind the symbolic link link" in last(state, "one").why
    assert "declares no files" in last(state, "none").why
    assert not (shells.root / "started").exists() and spaces(shells) == []


MOMENTS = (
    "bullswarm_core.trees.worktree:Worktree.make",
    "bullswarm_core.trees.worktree:commit_tree",
    "bullswarm_core.trees.worktree:_identity",
    "bullswarm_core.attempts.attempt:prepare",
    "bullswarm_core.attempts.attempt:conclude",
    "bullswarm_core.trees.worktree:Worktree.merge_back",
    "bullswarm_core.trees.worktree:carry_out",
    "bullswarm_core.attempts.isolation:_after",
    "bullswarm_core.attempts.attempt:record_decision",
    "bullswarm_core.attempts.isolation:Apart.clear",
    "bullswarm_core.trees.worktree:_delete",
)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_kernel_that_dies_loses_nothing_and_merges_once(shells: Site, moment: str) -> None:
    program = document(
        step("one", ["a.txt", "made.txt"], f"echo ran >> {shells.root}/ran; echo more >> a.txt; cp a.txt made.txt")
    )
    run_id = recorded(shells, program, cwd=shells.project)
    files = contents(shells.project)
    shells.kernel_that_dies_at(moment, run_id)
    state = ended(shells, run_id)
    assert statuses(state) == {"one": "succeeded"}, result(state)
    made = LINES + b"more\n"
    assert contents(shells.project) == files | {"a.txt": ("file", made), "made.txt": ("file", made)}
    assert Path(shells.root / "ran").read_text() == "ran\n" and len(state.steps["one"].attempts) == 1
    assert unmerged(shells.run_folder()) == []
