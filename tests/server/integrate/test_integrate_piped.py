"""`bullswarm integrate … --yes | head`: what is shown must not decide what is done."""

from __future__ import annotations

import io

import pytest
from tests.server.integrate.conftest import PersonsHome

from bullswarm_server.cli.main import dispatch


class Closed(io.StringIO):
    """A pipe whose reader has gone."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


def piped(persons: PersonsHome, action: str) -> None:
    with pytest.raises(BrokenPipeError):
        dispatch(["integrate", action, "--yes"], environ=persons.environ, out=Closed(), err=io.StringIO())


def test_a_reader_that_goes_away_keeps_nothing_from_being_done(persons: PersonsHome) -> None:
    persons.write(".codex/config.toml", '# my codex\nmodel = "gpt"\n')
    untouched = persons.tree()
    piped(persons, "install")
    assert persons.say("status").code == 0
    piped(persons, "remove")
    assert persons.tree() == untouched


def test_what_was_asked_for_is_shown_with_what_came_of_it(persons: PersonsHome) -> None:
    said = persons.install().out
    assert 0 <= said.index("+++ ~/.codex/config.toml") < said.index("Codex: set up")
