"""Damage is what a journal holds in a wrong form; a fault of the program is not told as damage."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.server.site import SAY, Site

from bullswarm_core.errors import DamagedRunError
from bullswarm_core.runs.journal import Journal
from bullswarm_server.ops import runs
from bullswarm_server.ops.context import Context


def spoil(site: Site, kind: str, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the events of this kind."""
    with site.database() as connection:
        for seq, text in connection.execute("SELECT seq, payload FROM events WHERE type = ?", (kind,)).fetchall():
            payload = json.loads(text)
            change(payload)
            connection.execute("UPDATE events SET payload = ? WHERE seq = ?", (json.dumps(payload), seq))
        connection.commit()


@pytest.mark.parametrize(
    ("kind", "change", "why"),
    [
        ("attempt.finished", lambda end: end.update(why=5), "why of a step or of the run is 5"),
        ("attempt.finished", lambda end: end.update(meta=None), "meta must be a JSON object"),
        (
            "attempt.finished",
            lambda end: end["judgement"].update(changedFiles=5),
            "judgement.changedFiles must be a list, not 5",
        ),
        (
            "attempt.finished",
            lambda end: end["judgement"].update(evidenceResults=["x"]),
            "judgement.evidenceResults[0] must be a JSON object",
        ),
        ("attempt.picked", lambda pick: pick.update(pool=["alpha"]), "pool of a step or of the run is ['alpha']"),
        (
            "run.finished",
            lambda end: end["verdict"].update(pick="alpha"),
            "pick in the verdict is 'alpha', not an object",
        ),
        ("run.finished", lambda end: end.update(verdict=5), "the verdict is no object"),
    ],
)
def test_a_wrong_form_is_damage_wherever_it_is(
    site: Site, kind: str, change: Callable[[dict[str, Any]], object], why: str
) -> None:
    site.worker("alpha", SAY)
    assert site.run().code == 0
    spoil(site, kind, change)
    with pytest.raises(DamagedRunError) as caught:
        runs.find_run(Context(site.home, site.environ), "last")
    assert why in str(caught.value)
    (row,) = site.say("runs", "list", "--json").document["runs"]
    assert (row["state"], row["ok"]) == ("damaged", None) and why in row["why"]


@pytest.mark.parametrize("lane", ["analyze", "build"])
@pytest.mark.parametrize("script", [SAY, f"{SAY}\necho x > new.txt", "cat > /dev/null; exit 3"])
def test_a_run_has_its_form_whatever_came_of_it(site: Site, lane: str, script: str) -> None:
    site.worker("alpha", script)
    assert site.run(lane=lane).code in (0, 1)
    assert runs.find_run(Context(site.home, site.environ), "last").finished is not None


def test_a_fault_of_the_program_is_not_called_damage(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.worker("alpha", SAY)
    assert site.run().code == 0

    def broken(*_: object) -> None:
        raise TypeError("a fault of the program")

    monkeypatch.setattr(runs, "document_of", broken)
    with site.database() as connection:
        journal = Journal(connection)
        (row,) = journal.rows()
        with pytest.raises(TypeError, match="a fault of the program"):
            runs.row_document(site.home, journal, row)
