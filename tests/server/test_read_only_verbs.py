"""Looking changes nothing: no verb that only shows something makes a home or writes in one, its cache apart."""

from __future__ import annotations

import pytest
from tests.core.runs.journals import document
from tests.processes import until
from tests.server.site import SAY, Site, tree
from tests.server.workflow_site import goal, program_file

LOOKS = [
    ("assignments",), ("completion", "bash"), ("doctor",), ("health",), ("home", "status"), ("home", "prune", "--dry-run"),
    ("integrate", "status"), ("label",), ("pools",), ("pools", "history", "alpha"), ("provider", "list"),
    ("provider", "validate"), ("route", "--lane", "analyze"), ("run", "--dry-run", "--lane", "analyze", "Look."),
    ("runs", "list"), ("runs", "list", "--limit", "99999999999999999999"), ("strategy", "show"), ("strategy", "routes"),
    ("strategy", "rungs"), ("workflow", "plan", "contract"), ("workflow", "plan", "schema"),
    ("workflow", "plan", "validate", "PROGRAM"), ("workflow", "list"), ("delegation", "status"),
]  # fmt: skip
OF_A_RUN = [
    ("runs", "show", "last"), ("runs", "result", "last"), ("runs", "result", "last", "--cursor", "99999999999999999999"),
    ("runs", "wait", "last"), ("runs", "watch", "last"), ("workflow", "watch", "last", "--after", "99999999999999999999"),
    ("runs", "show", "last", "--graph"), ("runs", "delete", "last"),
]  # fmt: skip


def kept(site: Site) -> dict[str, tuple[int, bytes]]:
    cache = str(site.home.cache_dir)
    return {name: what for name, what in tree(site.root).items() if not name.startswith(cache)}


def look(site: Site, words: tuple[str, ...], program: str) -> None:
    said = site.say(*(program if word == "PROGRAM" else word for word in words))
    assert said.code in (0, 1, 2) and "Traceback" not in said.err, (words, said.err)
    assert said.out or said.err, words


@pytest.mark.parametrize("words", LOOKS, ids=" ".join)
def test_on_a_machine_that_never_used_it(site: Site, words: tuple[str, ...]) -> None:
    site.worker("alpha", SAY)
    program = str(program_file(site, document({"id": "a"})))
    before = kept(site)
    look(site, words, program)
    assert kept(site) == before


def test_in_a_home_with_work(site: Site) -> None:
    site.worker("alpha", SAY)
    assert goal(site, document({"id": "a"}), "--foreground").code == 0
    assert site.run().code == 0
    until(lambda: not site.processes(), "the kernels have ended")
    program = str(program_file(site, document({"id": "a"})))
    for words in (*LOOKS, *OF_A_RUN):
        before = kept(site)
        look(site, words, program)
        assert kept(site) == before, words
