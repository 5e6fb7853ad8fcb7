"""The price of writing the hooks' cache anew: what was said since the last time, not how much was ever said."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.core.runs.journals import document
from tests.server.site import Site, make_site

from bullswarm_core.dispatch.services import utc_now
from bullswarm_core.errors import UnknownNameError
from bullswarm_core.runs.events import RunFinished, RunReopened, SteeringAdded
from bullswarm_core.runs.journal import Folds, Journal
from bullswarm_server import hook_state, mod_state
from bullswarm_server.ops.launch import Origin, create_workflow

LONG = 300


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    root = tmp_path / "site"
    root.mkdir()
    built = make_site(root)
    yield built
    built.close()


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of every event that is read from a journal."""
    seen: list[int] = []
    read = Journal._event

    def counted(self: Journal, run_id: str, seq: int, *row: Any) -> Any:
        seen.append(seq)
        return read(self, run_id, seq, *row)

    monkeypatch.setattr(Journal, "_event", counted)
    return seen


def long_run(site: Site) -> str:
    """Record a workflow of which much was said already."""
    with site.database() as connection:
        created = create_workflow(
            site.home, connection, document({"id": "a"}), goal="the goal", cwd=str(site.project), options={},
            environ=site.environ, origin=Origin(), now=utc_now(),
        )  # fmt: skip
    say(site, created.run_id, *[SteeringAdded(message="more", by="me")] * LONG)
    return created.run_id


def say(site: Site, run_id: str, *payloads: Any) -> None:
    with site.database() as connection:
        Journal(connection).append(run_id, payloads, at=utc_now())


def drawn(site: Site) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(mod_state.state_file(site.home).read_text())
    return found


def test_whoever_writes_it_again_reads_only_what_was_said_since(site: Site, decoded: list[int]) -> None:
    run_id, folds = long_run(site), Folds()
    assert hook_state.refresh(site.home, site.environ, folds=folds) and len(decoded) > LONG
    decoded.clear()
    say(site, run_id, SteeringAdded(message="more", by="me"))
    assert hook_state.refresh(site.home, site.environ, folds=folds) and len(decoded) == 1
    assert [run["runId"] for run in drawn(site)["runs"]] == [run_id]


def test_of_a_run_that_is_over_its_length_does_not_matter(site: Site, decoded: list[int]) -> None:
    run_id, folds = long_run(site), Folds()
    hook_state.refresh(site.home, site.environ, folds=folds)
    verdict = {"ok": True, "reason": "first"}
    say(site, run_id, RunFinished(outcome="completed", verdict=verdict))
    say(site, run_id, RunReopened(by="me", why="again"))
    say(site, run_id, RunFinished(outcome="completed", verdict={**verdict, "reason": "second"}))
    decoded.clear()
    assert hook_state.refresh(site.home, site.environ, folds=folds) and len(decoded) == 2
    (shown,) = drawn(site)["verdicts"]
    assert (shown["goal"], shown["why"], shown["ok"], drawn(site)["runs"]) == ("the goal", "second", True, [])


def test_only_the_runs_that_are_drawn_are_folded(
    site: Site, decoded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mod_state, "MOST_RUNS", 1)
    long_run(site)
    newest = long_run(site)
    assert hook_state.refresh(site.home, site.environ) and len(decoded) < 2 * LONG
    assert [run["runId"] for run in drawn(site)["runs"]] == [newest]


def test_a_damaged_journal_hides_no_other_run(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mod_state, "MOST_RUNS", 1)
    good, bad, folds = long_run(site), long_run(site), Folds()
    with site.database() as connection:
        connection.execute("UPDATE events SET payload = '{' WHERE run = ? AND seq = 5", (bad,))
    for _ in range(2):
        assert hook_state.refresh(site.home, site.environ, folds=folds)
        assert [run["runId"] for run in drawn(site)["runs"]] == [good]


def test_what_was_folded_is_what_a_fresh_fold_gives_and_a_deleted_run_is_unknown(site: Site) -> None:
    run_id, folds = long_run(site), Folds()
    with site.database() as connection:
        journal = Journal(connection)
        folds.state(journal, run_id)
        journal.append(run_id, [RunFinished(outcome="completed", verdict={})], at=utc_now())
        assert folds.state(journal, run_id) == journal.state(run_id)
        folds.keep([])
        connection.execute("DELETE FROM events WHERE run = ?", (run_id,))
        with pytest.raises(UnknownNameError):
            folds.state(journal, run_id)
        with pytest.raises(UnknownNameError):
            journal.outline(run_id)
