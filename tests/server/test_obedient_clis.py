"""A CLI that would obey a project's settings takes no task there, and another pool takes it."""

from __future__ import annotations

import pytest
from tests.server.site import CONNECTOR, SAY, Site


@pytest.fixture
def obedient(site: Site) -> Site:
    """A site with a CLI that obeys `.ada/` of a project, one that doesn't, and a project with such settings."""
    site.worker("ada", SAY, launch={**CONNECTOR["launch"], "project": {"refused": [".ada/"]}}, costRank=1)
    site.worker("bob", SAY, costRank=2)
    (site.project / ".ada").mkdir()
    (site.project / ".ada" / "settings.json").write_text('{"model": "dear"}', encoding="utf-8")
    return site


def test_another_pool_takes_the_task(obedient: Site) -> None:
    done = obedient.run()
    assert (done.code, done.document["pick"]["pool"]) == (0, "bob")


def test_the_pool_is_shown_as_left_out_with_the_command_that_allows_it(obedient: Site) -> None:
    shown = obedient.say("route", "--lane", "analyze", "--add-dir", str(obedient.project), "--json").document
    (left_out,) = (row for row in shown["excluded"] if row["pool"] == "ada")
    assert ".ada/settings.json" in left_out["reason"] and "allow-project-settings" in left_out["reason"]


def test_named_by_the_person_it_is_refused_and_nothing_starts(obedient: Site) -> None:
    refused = obedient.run("--pool", "ada")
    assert refused.document["failureKind"] == "unavailable"
    assert "allow-project-settings" in refused.document["why"]


def test_it_takes_the_task_once_the_person_allowed_the_file_as_it_is(obedient: Site) -> None:
    allow = ("strategy", "allow-project-settings", str(obedient.project), "--yes")
    assert obedient.say(*allow).code == 0
    assert obedient.run("--pool", "ada").code == 0
    (obedient.project / ".ada" / "settings.json").write_text('{"model": "dearer"}', encoding="utf-8")
    assert obedient.run("--pool", "ada").document["failureKind"] == "unavailable"


def test_in_another_project_it_works(obedient: Site) -> None:
    (obedient.project / ".ada" / "settings.json").unlink()
    (obedient.project / ".ada").rmdir()
    assert obedient.run("--pool", "ada").code == 0
