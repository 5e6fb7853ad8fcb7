"""What becomes a row: texts of workers stay texts, lines fit, choices choose."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.runs.journals import START, Written, document

from bullswarm_core.pools.labels import Labels
from bullswarm_core.runs.events import GateWaiting, RunFinished, RunParked, StepUnplaced
from bullswarm_core.runs.journal import RunRow
from bullswarm_core.runs.run_files import RunFolder
from bullswarm_core.runs.status import statuses
from bullswarm_server.dashboard.actions import actions_at, resume_of
from bullswarm_server.dashboard.bars import Key, key_parts
from bullswarm_server.dashboard.follow import RunView, StepTexts
from bullswarm_server.dashboard.ink import INK, bare, pieces, safe, sheet, wants_ascii, wants_light
from bullswarm_server.dashboard.rows import wrapped
from bullswarm_server.dashboard.source import Glance, RunsLook
from bullswarm_server.dashboard.view_home import needs_of
from bullswarm_server.dashboard.view_run import run_rows
from bullswarm_server.dashboard.view_runs import STANDINGS, Standing, chosen, run_line
from bullswarm_server.dashboard.view_step import PARTS, step_head, step_rows
from bullswarm_server.displays.terminal import cells

NOW = datetime(2026, 3, 1, 14, 0, tzinfo=UTC)
FOLDER = RunFolder(Path("/nowhere"))
# Texts as workers write them, rich in what a terminal or a markup would obey.
LETTERS = st.one_of(
    st.characters(), st.sampled_from(list("\x1b[]@\r\n\t\x07\x9b;0m/=()' \u202e\u2066\u200f漢é")), st.just("\x1b[31m")
)
TEXTS = st.lists(LETTERS, max_size=60).map("".join)


@given(TEXTS)
def test_nothing_that_a_terminal_obeys_becomes_a_piece(text: str) -> None:
    for piece, _ in pieces(text):
        assert not any(unicodedata.category(letter) == "Cc" for letter in piece)
        assert not any(0x202A <= ord(letter) <= 0x202E or 0x2066 <= ord(letter) <= 0x2069 for letter in piece)


@given(st.text(alphabet=st.characters(codec="utf-8", categories=["L", "N", "P"]), max_size=40))
def test_a_text_stays_what_it_says(text: str) -> None:
    assert bare(text) == safe(text)
    assert pieces(INK.good(text)) == ([(text, "good")] if text else [])


def test_markup_is_text() -> None:
    assert pieces("[red]x[/red] [@click=app.quit]y") == [("[red]x[/red] [@click=app.quit]y", "")]
    assert pieces("\x1b[32mgood\x1b[0m \x1b[5mplain") == [("good", "good"), (" plain", "")]


@given(TEXTS.map(safe), st.integers(4, 60))
def test_wrapping_loses_nothing_but_spaces_and_fits(text: str, width: int) -> None:
    found = wrapped(text, width)
    assert all(cells(line) <= width for line in found)
    assert "".join(found).replace(" ", "") == text.replace(" ", "")


@given(st.integers(0, 220))
def test_keys_fit_their_line(width: int) -> None:
    keys = [Key("enter", "open"), Key("slash", "filter", "/"), Key("question_mark", "help", "?"), Key("q", "quit")]
    assert sum(len(part.text) for part in key_parts(keys, width)) <= width
    parts = key_parts(keys[:2], width, kept=keys[2:])
    shown = "".join(part.text for part in parts)
    assert len(shown) <= width
    assert shown.endswith(" ? help  q quit ") or width < 16
    assert " enter open " in shown or width < 16 + 12


@pytest.mark.parametrize(
    ("environ", "ascii_only"),
    [
        ({"LANG": "en_US.UTF-8"}, False), ({"LANG": "C"}, True), ({"LANG": "C.UTF-8", "TERM": "linux"}, True),
        ({"LANG": "C.UTF-8", "BULLSWARM_ASCII": "1"}, True), ({"LANG": "C", "BULLSWARM_UNICODE": "1"}, False),
        ({"LANG": "C.UTF-8", "TERM_PROGRAM": "Apple_Terminal"}, True),
    ],
)  # fmt: skip
def test_ascii_where_a_terminal_has_little_else(environ: dict[str, str], ascii_only: bool) -> None:
    assert wants_ascii(environ) is ascii_only


@pytest.mark.parametrize(("said", "light"), [("0;15", True), ("15;0", False), ("0;default;7", True), ("", False)])
def test_light_where_the_terminal_says_so(said: str, light: bool) -> None:
    assert wants_light({"COLORFGBG": said}) is light


def row(number: int, outcome: str | None, goal: str = "mend it") -> RunRow:
    return RunRow(
        run_id=f"wf-{number}", short_id=f"s{number:05}", created_at=START, cwd="/project", goal=goal, kind="run",
        outcome=outcome, finished_at=START if outcome else None,
    )  # fmt: skip


OUTCOMES = st.sampled_from([None, "completed", "failed", "partial", "cancelled", "interrupted", "a-new-word"])


@given(st.lists(OUTCOMES, max_size=12), st.sampled_from(STANDINGS))
def test_every_run_is_open_done_or_not_done(outcomes: list[str | None], standing: Standing) -> None:
    rows = tuple(row(number, outcome) for number, outcome in enumerate(outcomes))
    look = RunsLook(NOW, Labels(), rows)
    parts = [chosen(look, words="", standing=one) for one in STANDINGS[1:]]
    assert sorted(one.run_id for part in parts for one in part) == sorted(one.run_id for one in rows)
    assert chosen(look, words="", standing="all") == rows
    assert chosen(look, words="no such word", standing=standing) == ()


def test_words_choose_by_everything_that_a_line_says() -> None:
    rows = (row(1, "completed", "Mend the Lexer"), row(2, None, "look"), row(3, "failed", "lexer again"))
    look = RunsLook(NOW, Labels(), rows)
    for words, wanted in (
        ("lexer", [1, 3]),
        ("LEXER mend", [1]),
        ("failed", [3]),
        ("s00002", [2]),
        ("project", [1, 2, 3]),
    ):
        assert [int(one.run_id[3:]) for one in chosen(look, words=words, standing="all")] == wanted


@given(TEXTS, OUTCOMES, st.integers(10, 200), st.booleans())
def test_a_run_is_one_line_that_fits(goal: str, outcome: str | None, width: int, unicode: bool) -> None:
    one = row(1, outcome, goal)
    line = bare(run_line(one, RunsLook(NOW, Labels(), (one,)), sheet(width, unicode=unicode)))
    assert cells(line) <= width and (unicode or line.isascii())


def view(written: Written, *, status: str = "running") -> RunView:
    state = written.state
    return RunView(state, statuses(state), status, {}, (), Labels({"codex": "cx"}), NOW)


@settings(max_examples=20)
@given(st.integers(40, 200), st.booleans(), TEXTS)
def test_a_run_and_its_steps_fit_every_width(width: int, unicode: bool, text: str) -> None:
    written = Written(document({"id": "a", "phase": text or None}, {"id": "b" * 40, "dependsOn": ["a"]}))
    written.run("a", "failed-evidence", evidenceResults=[{"cmd": text, "status": "failed", "why": text}])
    terminal = sheet(width, unicode=unicode)
    found = view(written)
    rows = [*run_rows(found, terminal)]
    texts = StepTexts(calls=(text,), task=text, output=text, output_from="/out.md", cut=3)
    for part in PARTS:
        rows += [*step_rows(found, "a", part, texts, terminal, folder=FOLDER)]
    for each in rows:
        line = bare(each.line)
        assert cells(line) <= width and (unicode or line.isascii()), line
        assert "codex" not in line


def test_a_task_that_no_pool_could_take_says_why() -> None:
    written = Written(document({"id": "run"}), kind="run")
    written.write(StepUnplaced("run", why="no pool free: codex at its 5-hour limit", failure_kind="unavailable"))
    found, terminal = view(written), sheet(100)
    head = [bare(line) for line in step_head(found, "run", terminal)]
    assert head[1] == "failed, no attempt yet · unavailable · no pool free: cx at its 5-hour limit"
    texts = StepTexts()
    shown = [bare(row.line) for row in step_rows(found, "run", "activity", texts, terminal, folder=FOLDER)]
    assert "no pool free: cx at its 5-hour limit" in shown


def glance(written: Written, status: str) -> Glance:
    return Glance(written.state, statuses(written.state), status)


def test_what_needs_somebody_is_each_gate_each_failed_step_and_a_lost_kernel() -> None:
    gates = [{"id": "g", "dependsOn": ["a"], "note": "look"}]
    written = Written(document({"id": "a"}, {"id": "b"}, {"id": "c", "dependsOn": ["g"]}, gates=gates), retryAttempts=0)
    assert needs_of(glance(written, "running"), FOLDER) == []
    written.run("a")
    written.run("b", "failed-evidence")
    written.write(GateWaiting("g"))
    found = needs_of(glance(written, "running"), FOLDER)
    assert [need.place.name for need in found] == ["g", "b"]
    assert found[0].line.startswith("⧖ gate g waits for you") and found[1].line.startswith("✗ b needs you")
    written.write(RunParked("waiting", ("g",)))
    assert [need.place.name for need in needs_of(glance(written, "kernel-gone"), FOLDER)] == ["g", "b", ""]


def test_each_place_has_the_actions_that_make_sense_there() -> None:
    gates = [{"id": "g", "dependsOn": ["a"]}]
    written = Written(document({"id": "a"}, {"id": "b"}, gates=gates), retryAttempts=0)
    written.pick("b")

    def names(node: str) -> list[str]:
        state = written.state
        return [one.name for one in actions_at(state, node, statuses(state), folder=FOLDER, labels=Labels())]

    assert names("a") == names("b") == names("g") == names("unknown") == []
    written.end("b", "failed-evidence")
    written.run("a")
    written.write(GateWaiting("g"))
    assert (names("a"), names("b"), names("g")) == ([], ["rerun", "accept"], ["continue"])


def test_a_run_that_is_over_is_resumed_only_where_another_try_may_end_otherwise() -> None:
    for kind, again in (("throttle", True), ("failed-evidence", False), (None, False)):
        written = Written(document({"id": "a"}), retryAttempts=0)
        written.run("a", kind)
        assert resume_of(written.state, "running") is None
        written.write(RunFinished("completed" if kind is None else "partial", {"ok": kind is None}))
        assert (resume_of(written.state, "partial") is not None) is again


def test_a_single_run_takes_no_wishes() -> None:
    written = Written(document({"id": "run"}), kind="run")
    written.run("run", "failed-evidence")
    assert actions_at(written.state, "run", statuses(written.state), folder=FOLDER, labels=Labels()) == []
    found = resume_of(written.state, "kernel-gone")
    assert found is not None and found.single and found.command == "bullswarm runs resume abcdef"
