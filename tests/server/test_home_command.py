"""`bullswarm runs delete` and `bullswarm home`: only ended runs go, only when asked, and never unmerged work."""

from __future__ import annotations

import subprocess
from datetime import timedelta

import pytest
from tests.core.runs.journals import document
from tests.processes import until
from tests.server.site import SAY, WAIT_FOR_GO, Site, tree
from tests.server.workflow_site import GATED, actors, goal

from bullswarm_core.dispatch.services import utc_now
from bullswarm_core.kernel.removal import remove_run
from bullswarm_core.runs.journal import Journal
from bullswarm_core.runs.run_files import RunFolder
from bullswarm_core.wire import stamp


def age(site: Site, run_id: str, days: float) -> None:
    """Let a run have ended so many days ago."""
    with site.database() as connection:
        connection.execute(
            "UPDATE runs SET finished_at = ? WHERE id = ?", (stamp(utc_now() - timedelta(days=days)), run_id)
        )
        connection.commit()


def quiet(site: Site) -> None:
    """Wait until the kernels have written their last line."""
    until(lambda: not site.processes(), "every process has ended")


def left(site: Site) -> set[str]:
    return {row["runId"] for row in site.say("runs", "list", "--json").document["runs"]}


def test_an_ended_run_goes_when_it_is_approved_and_what_was_learned_stays(site: Site) -> None:
    site.worker("one", SAY)
    gone, kept = site.run().document["runId"], site.run().document["runId"]
    quiet(site)
    before = tree(site.home.workflows_dir)
    asked = site.say("runs", "delete", gone)
    assert asked.code == 2 and "pass --yes to approve" in asked.err and tree(site.home.workflows_dir) == before
    deleted = site.say("runs", "delete", gone, "--yes", "--json")
    assert deleted.code == 0 and deleted.document["files"] > 3 and deleted.document["bytes"] > 0
    assert left(site) == {kept} and not (site.home.workflows_dir / gone).exists()
    assert len(site.decisions()) == 2
    with site.database() as connection:
        assert connection.execute("SELECT 1 FROM events WHERE run = ?", (gone,)).fetchall() == []
    assert site.say("runs", "delete", gone, "--yes").code == 2


def test_a_run_that_is_not_over_is_never_deleted(site: Site) -> None:
    site.worker("one", WAIT_FOR_GO)
    site.start_run()
    site.happened("attempt.launched")
    for words in (("runs", "delete", "last", "--yes"), ("workflow", "delete", "last", "--yes")):
        said = site.say(*words)
        assert said.code == 2 and "is not over" in said.err
    assert site.say("home", "prune", "--days", "0", "--json").document["removed"] == []
    site.go()
    site.say("runs", "wait", "last")


def test_a_workflow_at_a_gate_stays(site: Site) -> None:
    actors(site)
    goal(site, GATED, "--foreground")
    assert site.say("runs", "delete", "last", "--yes").code == 2
    site.say("workflow", "cancel", "last")
    assert site.say("runs", "delete", "last", "--yes").code == 0 and left(site) == set()


def test_a_worktree_with_work_is_kept_by_both(site: Site) -> None:
    actors(site)
    run_id = goal(site, document({"id": "a"}), "--foreground", "--json").document["runId"]
    folder = site.home.workflows_dir / run_id / "workspaces" / "a"
    git = ["git", "-C", str(site.project), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run([*git, "commit", "--allow-empty", "-qm", "x"], check=True, env=site.environ)
    subprocess.run([*git, "worktree", "add", "-q", str(folder)], check=True, env=site.environ)
    (folder / "unmerged.txt").write_text("work")
    age(site, run_id, 90)
    said = site.say("runs", "delete", run_id, "--yes")
    assert said.code == 2 and str(folder) in said.err and "git -C" in said.err
    pruned = site.say("home", "prune", "--json")
    assert pruned.code == 1 and pruned.document["removed"] == [] and str(folder) in pruned.document["kept"][0]["why"]
    assert str(folder) in site.say("home", "status").out and (folder / "unmerged.txt").read_text() == "work"
    subprocess.run([*git, "worktree", "remove", "--force", str(folder)], check=True, env=site.environ)
    assert site.say("home", "prune").code == 0 and left(site) == set()


def test_a_worktree_of_which_all_is_merged_goes_with_its_run(site: Site) -> None:
    actors(site)
    program = document({"id": "a", "lane": "build", "prompt": "WRITE made.txt", "files": ["made.txt"]})
    git = ["git", "-C", str(site.project), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run([*git, "commit", "--allow-empty", "-qm", "x"], check=True, env=site.environ)
    done = goal(site, program, "--foreground", "--isolation", "worktree", "--json")
    assert done.code == 0 and (site.project / "made.txt").exists(), done
    quiet(site)
    assert site.say("runs", "delete", "last", "--yes").code == 0
    listed = subprocess.run([*git, "worktree", "list"], capture_output=True, text=True, check=True, env=site.environ)
    assert len(listed.stdout.splitlines()) == 1 and left(site) == set()


def test_prune_takes_what_ended_long_ago(site: Site) -> None:
    site.worker("one", SAY)
    old, new = site.run().document["runId"], site.run().document["runId"]
    age(site, old, 31)
    quiet(site)
    before = tree(site.root)
    dry = site.say("home", "prune", "--dry-run", "--json").document
    assert dry["dryRun"] and [each["name"] for each in dry["removed"]] and tree(site.root) == before
    status = site.say("home", "status", "--json").document
    assert status["prunable"]["runs"] == 1 and status["runs"] == {"ended": 2, "notOver": 0}
    assert tree(site.root) == before
    assert site.say("home", "prune", "--days", "40").code == 0 and left(site) == {old, new}
    done = site.say("home", "prune")
    assert done.code == 0 and "deleted: 1 run" in done.out and left(site) == {new}


def test_what_a_deletion_that_was_cut_short_left_goes_with_the_next_prune(site: Site) -> None:
    site.worker("one", SAY)
    run_id = site.run().document["runId"]
    with site.database() as connection:
        connection.execute("DELETE FROM events")
        connection.execute("DELETE FROM runs")
        connection.commit()
    folder = site.home.workflows_dir / run_id
    foreign = site.home.workflows_dir / "somebody-elses"
    foreign.mkdir()
    assert site.say("home", "prune").code == 0 and folder.exists(), "it may be a launch that is under way"
    import os

    os.utime(folder / "bullswarm-run.json", (0, 0))
    assert site.say("home", "prune").code == 0
    assert not folder.exists() and foreign.exists()


def test_a_run_whose_journal_is_damaged_can_be_deleted(site: Site) -> None:
    site.worker("one", SAY)
    run_id = site.run().document["runId"]
    with site.database() as connection:
        connection.execute("UPDATE events SET payload = '[]'")
        connection.commit()
    assert site.say("runs", "delete", run_id, "--yes").code == 0 and left(site) == set()


def damage(site: Site) -> None:
    with site.database() as connection:
        connection.execute("UPDATE events SET payload = '[]' WHERE type = 'attempt.picked'")
        connection.commit()


def test_a_run_that_cannot_be_ended_since_its_journal_is_damaged_can_be_deleted(site: Site) -> None:
    actors(site)
    goal(site, GATED, "--foreground")
    folder = site.run_folder()
    damage(site)
    assert site.say("workflow", "cancel", "last").code == 2
    asked = site.say("runs", "delete", "last")
    assert asked.code == 2 and "(damaged)" in asked.err and folder.exists()
    assert site.say("runs", "delete", "last", "--yes").code == 0
    assert left(site) == set() and not folder.exists()


def test_a_damaged_run_stays_while_a_worker_of_it_is_at_work(site: Site) -> None:
    site.worker("one", WAIT_FOR_GO)
    launcher = site.start_run()
    site.happened("attempt.launched")
    keeper = site.keeper()
    site.kill(site.kernel())
    site.kill_launcher(launcher)
    damage(site)
    said = site.say("runs", "delete", "last", "--yes")
    assert said.code == 2 and f"kill {keeper}" in said.err and site.run_folder().exists()
    site.go()
    quiet(site)
    assert site.say("runs", "delete", "last", "--yes").code == 0 and left(site) == set()


def test_a_run_that_was_taken_up_again_meanwhile_stays(site: Site) -> None:
    from bullswarm_core.errors import UsageError

    site.worker("one", SAY)
    run_id = site.run().document["runId"]
    with site.database() as connection:
        (row,) = Journal(connection).rows()
        connection.execute("UPDATE runs SET finished_at = NULL")
        connection.commit()
        with pytest.raises(UsageError, match="taken up again"):
            remove_run(site.home, connection, row)
    assert RunFolder.of(site.home, run_id).marker.exists()


@pytest.mark.parametrize(
    "words", [(), ("clean",), ("prune", "--days", "-1"), ("prune", "--days", "x"), ("status", "x")]
)
def test_a_wrong_call_changes_nothing(site: Site, words: tuple[str, ...]) -> None:
    said = site.say("home", *words)
    assert (said.code, said.out) == (2, "") and said.err and not site.home.root.exists()


def test_a_home_that_is_not_there_yet_is_no_trouble_and_is_not_made(site: Site) -> None:
    assert site.say("home", "status").code == 0 and site.say("home", "prune").code == 0
    assert not site.home.root.exists()
