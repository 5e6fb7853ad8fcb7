"""Deleting a run follows no link: what stands behind one is somebody else's."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.processes import until
from tests.server.site import SAY, Site, tree


def kept(folder: Path) -> dict[str, tuple[int, bytes]]:
    """All but the lease, in which whoever holds it writes its pid."""
    return {name: what for name, what in tree(folder).items() if not name.endswith("kernel.lock")}


def test_links_within_a_run_are_taken_and_what_they_lead_to_stays(site: Site) -> None:
    site.worker("alpha", SAY)
    run_id = site.run().document["runId"]
    until(lambda: not site.processes(), "the kernel has ended")
    outside = site.root / "outside"
    (outside / "deep").mkdir(parents=True)
    (outside / "deep" / "mine.txt").write_text("mine")
    folder = site.home.workflows_dir / run_id
    (folder / "folder").symlink_to(outside)
    (folder / "file").symlink_to(outside / "deep" / "mine.txt")
    (folder / "real").mkdir()
    (folder / "real" / "up").symlink_to(outside)
    before = tree(outside)
    assert site.say("runs", "delete", run_id, "--yes").code == 0
    assert not folder.exists() and tree(outside) == before


def test_the_folder_of_a_run_that_is_a_link_loses_nothing(site: Site) -> None:
    site.worker("alpha", SAY)
    run_id = site.run().document["runId"]
    until(lambda: not site.processes(), "the kernel has ended")
    folder = site.home.workflows_dir / run_id
    moved = site.root / "moved"
    shutil.move(folder, moved)
    (moved / "notes.txt").write_text("mine")
    folder.symlink_to(moved)
    before = kept(moved)
    said = site.say("runs", "delete", run_id, "--yes")
    assert said.code == 0 and kept(moved) == before, said.err
    assert not folder.is_symlink() and site.say("runs", "list", "--json").document["runs"] == []


def test_a_link_among_the_runs_is_no_run_to_be_pruned(site: Site) -> None:
    site.worker("alpha", SAY)
    site.run()
    until(lambda: not site.processes(), "the kernel has ended")
    outside = site.root / "outside"
    outside.mkdir()
    (outside / "mine.txt").write_text("mine")
    (site.home.workflows_dir / "wf-other-000000").symlink_to(outside)
    before = tree(outside)
    site.say("home", "prune", "--days", "0")
    assert tree(outside) == before
