"""Every command that a page shows is run on a machine in small, in the order of the page, and shows what the page says."""

from __future__ import annotations

import io
import re
import shlex
from pathlib import Path

import pytest
from tests.server.documents import PAGES, Command, Days, GivenFile, first_difference, made_equal, parts_of
from tests.server.documents_machine import make_machine

from bullswarm_server.cli.main import VERBS

# What a unit test can't run, and why; of those that are ours the words are checked all the same.
NOT_RUN: tuple[tuple[str, str], ...] = (
    (r"python3 develop\.py( |$)", "makes an environment and installs packages"),
    (r"(pip|pipx|uv|npm|apt|brew) ", "installs packages"),
    (r"(claude|codex|opencode|grok) ", "starts a real agent CLI; the tests on the real agent CLIs do"),
    (r"bullswarm dashboard", "draws on a terminal, or serves, until somebody ends it"),
    (r"bullswarm pools --watch", "follows until Ctrl-C"),
    (r"bullswarm provider probe", "starts a real worker with the account's quota"),
    (r'eval "\$\(bullswarm completion', "changes the shell that reads the page"),
)
_SHORT_ID = re.compile(r"(?:bullswarm runs show |^run |^watching )([0-9a-z]{6})(?=$|\)| started| is | ·)")
_OURS = re.compile(r"bullswarm (\S+)")


def why_not_run(command: str) -> str | None:
    return next((why for pattern, why in NOT_RUN if re.match(pattern, command)), None)


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_do_what_it_says(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = make_machine(tmp_path / "m")
    monkeypatch.chdir(machine.project)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    try:
        for part in parts_of(page):
            if isinstance(part, Days):
                machine.work_for_days()
                continue
            if isinstance(part, GivenFile):
                machine.give(part)
                continue
            if why_not_run(part.text):
                continue
            said = machine.call(part)
            assert said.code == part.code, f"{part.place}: {part.text}\n{said.out}{said.err}"
            if part.shown is None:
                continue
            shown = tuple(made_equal(line, shown_ids(page)) for line in part.shown)
            wrong = first_difference(shown, machine.printed(said))
            assert wrong is None, f"{part.place}: {part.text}\n{wrong}\n\nall of it:\n{machine.readable(said)}"
    finally:
        machine.close()


def shown_ids(page: str) -> tuple[str, ...]:
    """The short ids of runs that a page shows anywhere."""
    lines = [line for part in parts_of(page) if isinstance(part, Command) for line in part.shown or ()]
    return tuple(dict.fromkeys(found[1] for line in lines if (found := _SHORT_ID.search(line))))


@pytest.mark.parametrize("page", PAGES)
def test_what_is_not_run_is_still_one_of_our_commands(page: str) -> None:
    for part in parts_of(page):
        if isinstance(part, Command) and why_not_run(part.text) and (ours := _OURS.match(part.text)):
            assert ours[1] in VERBS, part.place
            shlex.split(part.text)


def test_there_is_something_to_run() -> None:
    run = [
        part for page in PAGES for part in parts_of(page) if isinstance(part, Command) and not why_not_run(part.text)
    ]
    assert len(run) > 60
    assert sum(part.shown is not None for part in run) > 25


def test_nothing_is_excepted_that_no_page_shows() -> None:
    commands = [part.text for page in PAGES for part in parts_of(page) if isinstance(part, Command)]
    for pattern, _ in NOT_RUN:
        assert any(re.match(pattern, command) for command in commands), pattern


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        (("a", "b"), ["a", "b"], True),
        (("a", "b"), ["a", "c"], False),
        (("a",), ["a", "b"], False),
        (("a", "b"), ["a"], False),
        (("a", "…"), ["a", "b", "c"], True),
        (("…", "c"), ["a", "b", "c"], True),
        (("…", "b"), ["a", "b", "c"], False),
        (("a … c",), ["a bb c"], True),
        (("a … c",), ["a bb d"], False),
    ],
)
def test_shown_lines_are_compared_one_by_one(shown: tuple[str, ...], printed: list[str], same: bool) -> None:
    assert (first_difference(shown, printed) is None) is same


def test_measures_differ_and_words_do_not() -> None:
    one = "claude weekly used 30% elapsed 65.6% surplus=35.6 ready age=10m wf-mx398bf5-7b545f 296 bytes"
    two = "claude weekly used 31% elapsed 65.7% surplus=-3 ready age=1h02m wf-ab398bf5-0b545f 1,204 bytes"
    assert made_equal(one) == made_equal(two)
    assert made_equal(one) != made_equal(one.replace("ready", "disabled"))
