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


@pytest.mark.parametrize("at_a_terminal", [True, False])
def test_a_question_that_nobody_can_read_is_no_success(
    persons: PersonsHome, monkeypatch: pytest.MonkeyPatch, at_a_terminal: bool
) -> None:
    terminal, said = io.StringIO("y\n"), io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: at_a_terminal)
    monkeypatch.setattr("sys.stdin", terminal)
    untouched = persons.tree()
    assert dispatch(["integrate", "install"], environ=persons.environ, out=Closed(), err=said) == 1
    assert said.getvalue() == "bullswarm: nothing was written · pass --yes to approve\n"
    assert persons.tree() == untouched


def test_what_was_asked_for_is_shown_with_what_came_of_it(persons: PersonsHome) -> None:
    said = persons.install().out
    assert 0 <= said.index("+++ ~/.codex/config.toml") < said.index("Codex: set up")
