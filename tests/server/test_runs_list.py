"""`bullswarm runs list`: the newest runs, by the words of their goal and by when they began; pools by their labels of today."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from argparse import ArgumentTypeError
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.server.site import SAY, Site

from bullswarm_core.fast.text import plain
from bullswarm_core.store.database import open_database
from bullswarm_core.wire import stamp
from bullswarm_server.cli import runs_list
from bullswarm_server.cli.completion import whole_parser
from bullswarm_server.cli.context import escaped
from bullswarm_server.dashboard.source import Source

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def runs_of(site: Site, goals: Mapping[str, timedelta]) -> dict[str, str]:
    """Begin runs so long ago, none of them with a worker; return their short ids by goal."""
    found = {}
    connection = open_database(site.home)
    assert isinstance(connection, sqlite3.Connection)
    for goal, ago in goals.items():
        created = site.create()
        at = stamp(datetime.now(UTC) - ago)
        connection.execute("UPDATE runs SET goal = ?, created_at = ? WHERE id = ?", (goal, at, created.run_id))
        found[goal] = created.short_id
    connection.commit()
    connection.close()
    return found


def listed(site: Site, *words: str) -> list[str]:
    said = site.say("runs", "list", "--json", *words)
    assert said.code == 0, said
    return [row["goal"] for row in said.document["runs"]]


@pytest.fixture
def goals(site: Site) -> Site:
    site.worker("alpha", SAY)
    runs_of(site, {
        "Mend the PARSER": timedelta(minutes=10), "Straße vermessen": timedelta(hours=5), "parser, again": timedelta(days=3),
        "100% _done_": timedelta(days=20),
    })  # fmt: skip
    return site


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ((), ["Mend the PARSER", "Straße vermessen", "parser, again", "100% _done_"]),
        (("--name", "parser"), ["Mend the PARSER", "parser, again"]),
        (("--name", "STRASSE"), ["Straße vermessen"]),
        (("--name", "%"), ["100% _done_"]),
        (("--name", "_"), ["100% _done_"]),
        (("--name", "nothing like it"), []),
        (("--since", "1h"), ["Mend the PARSER"]),
        (("--since", "7d"), ["Mend the PARSER", "Straße vermessen", "parser, again"]),
        (("--since", "2w6d23h"), ["Mend the PARSER", "Straße vermessen", "parser, again", "100% _done_"]),
        (("--since", "2000-01-01"), ["Mend the PARSER", "Straße vermessen", "parser, again", "100% _done_"]),
        (("--since", "2999-01-01T00:00:00Z"), []),
        (("--name", "parser", "--since", "24h"), ["Mend the PARSER"]),
        (("--name", "parser", "--limit", "1"), ["Mend the PARSER"]),
        (("--name", "again", "--limit", "1"), ["parser, again"]),
    ],
)
def test_the_list_is_of_those_that_were_asked_for(goals: Site, words: tuple[str, ...], shown: list[str]) -> None:
    assert listed(goals, *words) == shown


def test_a_list_without_a_line_says_why(goals: Site, site: Site) -> None:
    said = goals.say("runs", "list", "--name", "no such")
    assert (
        (said.code, said.out) == (0, "") and "no run of these" in said.err and "runs list shows the newest" in said.err
    )


def test_a_run_whose_time_is_damaged_is_listed_whatever_was_asked(goals: Site) -> None:
    connection = open_database(goals.home)
    assert isinstance(connection, sqlite3.Connection)
    connection.execute("UPDATE runs SET created_at = 'yesterday' WHERE goal = 'parser, again'")
    connection.commit()
    connection.close()
    assert "parser, again" in listed(goals, "--since", "1h")


@pytest.mark.parametrize("text", ["", "soon", "1", "h", "-1h", "1y", "1h1d", "2026-13-01", "99999999d", "١h", "1.5h"])
def test_what_is_no_time_is_refused(site: Site, text: str) -> None:
    said = site.say("runs", "list", f"--since={text}")
    assert said.code == 2 and "7d" in said.err and not said.out


@given(st.integers(0, 999), st.integers(0, 999), st.integers(0, 999), st.integers(0, 9999))
def test_a_duration_reaches_back_from_now(weeks: int, days: int, hours: int, minutes: int) -> None:
    text = f"{weeks}w{days}d{hours}h{minutes}m"
    assert runs_list.moment(text, now=NOW) == NOW - timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes)


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_moment_is_taken_as_it_stands_and_as_utc_without_an_offset(at: datetime) -> None:
    assert runs_list.moment(at.isoformat(), now=NOW) == at
    assert runs_list.moment(at.replace(tzinfo=None).isoformat(), now=NOW) == at


@given(st.text())
def test_every_text_is_a_time_or_is_refused(text: str) -> None:
    with contextlib.suppress(ArgumentTypeError):
        assert runs_list.moment(text, now=NOW).tzinfo is not None


def test_the_completion_knows_the_options() -> None:
    verbs = next(action for action in whole_parser()._actions if action.choices)
    assert isinstance(verbs.choices, dict)
    operations = next(action for action in verbs.choices["runs"]._actions if action.choices)
    assert {"--name", "--since", "--limit"} <= set(operations.choices["list"]._option_string_actions)


# --- a label that became the id of another pool


def test_a_label_that_became_a_pool_id_is_shown_on_no_page(site: Site) -> None:
    site.worker("alpha", SAY)
    assert site.say("label", "alpha", "beta").code == 0
    run = site.run().document["shortId"]
    assert "[beta]" in site.say("runs", "list").out and "[beta]" in site.say("runs", "show", run).out
    site.worker("beta", SAY)
    assert site.say("pools").code == 0
    for verb in (("runs", "list"), ("runs", "show", run)):
        said = site.say(*verb).out
        assert "[alpha]" in said and "[beta]" not in said, verb
    assert Source(site.home, site.environ).runs(whole=True).labels.shown("alpha") == "alpha"
    assert site.say("label", "--list").out == "alpha  beta (not shown: it is another pool's id)\n"
    assert site.say("label", "beta").out == "beta has no label\n"
    assert site.say("label", "alpha", "--clear").code == 0


def test_a_folder_of_another_program_is_named_on_one_line_without_control_sequences(site: Site) -> None:
    (site.home.workflows_dir / "evil\x1b[2J\nrun").mkdir(parents=True)
    said = site.say("runs", "list")
    assert "view-only, from another program: evil run\n" in said.err
    assert json.loads(site.say("runs", "list", "--json").out)["viewOnly"] == ["evil\x1b[2J\nrun"]


@given(
    st.text(
        st.one_of(st.characters(codec="utf-8"), st.sampled_from("\x7f\x9b\x9d\u202e\u2028\u2066\ufeff\U000e0041\u200d"))
    )
)
def test_a_document_on_a_terminal_is_the_same_and_nothing_in_it_is_obeyed(text: str) -> None:
    written = escaped(json.dumps({text: [text]}, ensure_ascii=False, indent=2))
    assert json.loads(written) == {text: [text]}
    unseen = {letter for letter in written if plain(f"a{letter}a") != f"a{letter}a"}
    assert unseen <= {"\u200c", "\u200d"}, "only joiners, which spell words and emoji"
