"""`workflow watch` and `runs watch` on scripted workers: lines, JSON lines, cursors, exit codes, and the view on a terminal."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from typing import Any

import pytest
from tests.core.runs.journals import document
from tests.processes import until
from tests.server.site import Site
from tests.server.terminals import on_terminal, plain_text
from tests.server.workflows import ACTOR, begin, ended

from bullswarm_core.pools.labels import set_label
from bullswarm_core.runs.events import KernelStarted
from bullswarm_core.runs.journal import Journal
from bullswarm_core.store.database import open_database
from bullswarm_server.displays.terminal import cells

UTF8 = {"LC_ALL": "C.UTF-8", "TERM": "xterm-256color"}
FRAME = "\x1b[?2026h"


@pytest.fixture
def actors(site: Site) -> Site:
    """Two pools that do as they are told, one of them with a label."""
    site.worker("one", ACTOR)
    site.worker("two", ACTOR)
    set_label(site.home, "one", "first", ["one", "two"])
    return site


def short_id(site: Site, run_id: str) -> str:
    with site.database() as connection:
        return Journal(connection).state(run_id).created.short_id


def objects(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def events(text: str) -> list[dict[str, Any]]:
    return [found for found in objects(text) if found["type"] not in ("attached", "outcome", "cursor")]


def test_a_watch_tells_each_event_in_a_line_and_how_the_run_ended(actors: Site) -> None:
    program = document({"id": "a"}, {"id": "b", "dependsOn": ["a"], "lane": "build", "prompt": "WRITE made.txt"})
    run_id = begin(actors, program)
    said = actors.say("workflow", "watch", run_id, "--after", "0", "--interval", "0.1")
    assert (said.code, said.err) == (0, "")
    lines = said.out.splitlines()
    assert lines[0].startswith(f"watching {short_id(actors, run_id)} · the goal · ")
    marks = [line.split(" · ")[0] for line in lines[1:]]
    assert marks.index("▶ a") < marks.index("✓ a done") < marks.index("▶ b") < marks.index("✓ b done")
    assert lines[-3:-1] == ["outcome: completed", "reason: 2 of 2 steps succeeded"] and lines[-1].startswith("proof: ")
    assert "1 file" in next(line for line in lines if line.startswith("✓ b done"))
    assert " one " not in said.out, "people read the pool's label"


def test_a_failed_run_ends_with_its_ways_on_and_exit_code_1(actors: Site) -> None:
    run_id = begin(actors, document({"id": "a", "prompt": "FAIL"}, {"id": "b", "dependsOn": ["a"]}), retryAttempts=0)
    ended(actors, run_id)
    said = actors.say("runs", "watch", run_id, "--after", "0")
    assert said.code == 1
    lines = said.out.splitlines()
    outcome = lines.index("outcome: partial")
    assert any(line.startswith("✗ a needs you · process") for line in lines[:outcome])
    assert not any("your call" in line for line in lines[:outcome]), "of a run that is over the outcome has the ways on"
    assert any(line.startswith("step a failed · process") for line in lines[outcome:]) and "step b blocked" in lines
    assert "your call:" in lines[outcome:] and not any(line.startswith("next:") for line in lines)
    commands = [line.split(None, 2) for line in lines if "bullswarm workflow step rerun" in line]
    assert commands, "a way on is a command"


def test_until_trouble_ends_at_the_first_trouble_and_its_next_command_goes_on_from_there(actors: Site) -> None:
    program = document({"id": "a", "prompt": "FAIL"}, {"id": "w", "prompt": "WAIT"}, {"id": "c", "dependsOn": ["a"]})
    run_id = begin(actors, program, retryAttempts=0)
    said = actors.say("workflow", "watch", run_id, "--until", "trouble", "--interval", "0.1", "--timeout", "30")
    assert said.code == 0, said
    lines = said.out.splitlines()
    assert lines[1].startswith("✗ a needs you · process · not retried")
    assert "  your call:" in lines and not any(line.startswith("▶") for line in lines)
    assert any("waiting on this: c" in line for line in lines)
    command = lines[-1].removeprefix("next: bullswarm ").split()
    assert command[:2] == ["workflow", "watch"] and "--after" in command and "--since" in command
    (actors.project / "go").touch()
    ended(actors, run_id)
    again = actors.say(*command)
    assert "needs you" not in again.out and "outcome: partial" in again.out and again.code == 1


def test_until_outcome_tells_the_same_and_goes_on_to_the_end(actors: Site) -> None:
    run_id = begin(actors, document({"id": "a", "prompt": "FAIL"}, {"id": "b"}), retryAttempts=0)
    said = actors.say("workflow", "watch", run_id, "--until", "outcome", "--interval", "0.1")
    assert said.code == 1 and "✗ a needs you" in said.out and "outcome: partial" in said.out
    assert not any(line.startswith(("▶", "✓")) for line in said.out.splitlines())


def test_json_lines_each_carry_their_sequence_and_any_cursors_lose_and_repeat_nothing(actors: Site) -> None:
    program = document({"id": "a", "prompt": "FAIL"}, {"id": "b"}, {"id": "c", "dependsOn": ["b"]})
    run_id = begin(actors, program)
    newest = ended(actors, run_id).seq
    whole = actors.say("runs", "watch", run_id, "--jsonl", "--after", "0")
    assert all("sequence" in found and "schemaVersion" in found for found in objects(whole.out))
    assert objects(whole.out)[-1]["outcome"] == "partial" and objects(whole.out)[-1]["options"]
    needs = next(found for found in objects(whole.out) if found["type"] == "needs-you")
    assert needs["failureKind"] == "process" and needs["retries"] == 1 and len(needs["attempts"]) == 2
    told = events(whole.out)
    for cursor in range(newest + 1):
        rest = events(actors.say("runs", "watch", run_id, "--jsonl", "--after", str(cursor), "--once").out)
        assert rest == [found for found in told if found["sequence"] > cursor]


def test_next_returns_after_the_first_look_with_news(actors: Site) -> None:
    run_id = begin(actors, document({"id": "w", "prompt": "WAIT"}))
    until(lambda: actors.newest_events(), "events")
    said = actors.say("runs", "watch", run_id, "--next", "--after", "0", "--interval", "0.1", "--jsonl")
    assert said.code == 0 and events(said.out)[0]["type"] == "started"
    assert objects(said.out)[-1]["type"] == "cursor" and "--next" in objects(said.out)[-1]["next"]
    (actors.project / "go").touch()
    ended(actors, run_id)


def test_a_gate_that_waits_is_trouble_and_an_outcome_that_nobody_delivered(actors: Site) -> None:
    program = document({"id": "a"}, {"id": "b", "dependsOn": ["g"]}, gates=[{"id": "g", "dependsOn": ["a"]}])
    run_id = begin(actors, program)
    ended(actors, run_id)
    trouble = actors.say("workflow", "watch", run_id, "--until", "trouble")
    assert trouble.code == 0 and f"workflow continue {short_id(actors, run_id)} g" in trouble.out
    outcome = actors.say("workflow", "watch", run_id)
    assert outcome.code == 1 and "outcome: waiting" in outcome.out
    assert outcome.out.splitlines()[-1].startswith("next: bullswarm workflow watch ")


def test_a_kernel_that_is_gone_is_started_again_by_a_watch_and_only_told_by_one_look(actors: Site) -> None:
    run_id = begin(actors, document({"id": "w", "prompt": "WAIT"}, {"id": "b", "dependsOn": ["w"]}))
    until(lambda: "attempt.launched" in str(actors.newest_events()), "a launch")
    (kernel,) = [pid for pid, line in actors.processes().items() if "bullswarm_server.kernel" in line]
    os.kill(kernel, signal.SIGKILL)
    until(lambda: kernel not in actors.processes(), "the kernel's end")
    once = actors.say("workflow", "watch", run_id, "--once")
    assert once.code == 1 and "outcome: interrupted" in once.out and "runs resume" in once.out
    assert not any("bullswarm_server.kernel" in line for line in actors.processes().values()), "it only looked"
    (actors.project / "go").touch()
    said = actors.say("workflow", "watch", run_id, "--interval", "0.1", "--after", "0")
    assert said.code == 0 and "a new kernel goes on with the run" in said.out and "outcome: completed" in said.out


def test_a_watch_whose_reader_has_gone_ends_quietly_though_nothing_happens(actors: Site) -> None:
    run_id = begin(actors, document({"id": "w", "prompt": "WAIT"}))
    process = actors.start("workflow", "watch", run_id, "--interval", "0.1")
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline().startswith("watching ")
    process.stdout.close()
    assert process.wait(30) == 0
    assert process.stderr.read() == ""
    (actors.project / "go").touch()
    assert ended(actors, run_id).finished is not None, "the run never noticed"


def test_ctrl_c_leaves_the_run_alone_and_says_how_to_come_back(actors: Site) -> None:
    run_id = begin(actors, document({"id": "w", "prompt": "WAIT"}))
    process = actors.start("workflow", "watch", run_id, "--interval", "0.1")
    assert process.stdout is not None and process.stderr is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    assert "come back: bullswarm workflow watch" in process.stderr.read()
    (actors.project / "go").touch()
    assert ended(actors, run_id).finished is not None


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--after", "999"), "beyond the newest event"),
        (("--since", "yesterday"), "is no time"),
    ],
)
def test_a_wrong_cursor_is_refused(actors: Site, words: tuple[str, ...], reason: str) -> None:
    run_id = begin(actors, document({"id": "a"}))
    ended(actors, run_id)
    said = actors.say("runs", "watch", run_id, *words)
    assert said.code == 2 and reason in said.err and said.out == ""


def test_a_heartbeat_is_told_only_on_request_and_a_timeout_ends_a_watch_well(actors: Site) -> None:
    run_id = begin(actors, document({"id": "w", "prompt": "WAIT"}))
    until(lambda: "attempt.launched" in str(actors.newest_events()), "a launch")
    words = ("workflow", "watch", run_id, "--interval", "0.1", "--timeout", "1.5")
    quiet, beating = actors.say(*words), actors.say(*words, "--heartbeat", "0.3")
    assert (quiet.code, beating.code) == (0, 0)
    assert "alive" not in quiet.out and len(quiet.out.splitlines()) == 2
    assert "· alive · 0 of 1 steps done · last output: w " in beating.out
    (actors.project / "go").touch()
    ended(actors, run_id)


def test_a_single_run_is_watched_too(actors: Site) -> None:
    created = actors.create()
    said = actors.say("runs", "watch", created.run_id, "--interval", "0.1", "--after", "0")
    assert said.code == 0 and "▶ run · " in said.out and "✓ run done" in said.out


def test_goal_with_watch_follows_what_it_started_from_its_first_event(actors: Site) -> None:
    file = actors.root / "p.json"
    file.write_text(json.dumps(document({"id": "a"})))
    words = ("--program", str(file), "--cwd", str(actors.project), "--watch", "--json")
    said = actors.say("workflow", "goal", "try it", *words)
    assert said.code == 0
    assert [found["type"] for found in events(said.out)] == ["started", "done"]
    assert objects(said.out)[-1]["outcome"] == "completed"


# --- on a terminal


def frames(text: str) -> list[str]:
    return [plain_text(part).replace("\r", "") for part in text.split(FRAME)[1:]]


def last_frame(text: str) -> list[str]:
    return frames(text)[-1].split("\n")


@pytest.mark.parametrize("columns", [32, 55, 80, 140])
def test_the_view_on_a_terminal_fits_it_and_what_came_of_the_run_stays(actors: Site, columns: int) -> None:
    program = document(
        {"id": "a", "phase": "find"}, {"id": "w", "prompt": "WAIT", "phase": "build"},
        {"id": "c", "dependsOn": ["w"], "phase": "build"},
    )  # fmt: skip
    run_id = begin(actors, program)
    with on_terminal(["workflow", "watch", run_id], {**actors.environ, **UTF8}, columns=columns) as terminal:
        terminal.until(
            lambda text: bool(frames(text)) and all(part in frames(text)[-1] for part in ("1 of 3 done", "▶ w ")),
            "a frame with a done step and a running one",
        )
        shown = last_frame(terminal.seen)
        assert max(cells(line) for line in shown) <= columns
        assert any(re.match(r"✓ a ", line) for line in shown) and any(re.match(r"▶ w ", line) for line in shown)
        assert any(line.startswith("· c ") for line in shown) and "build" in shown
        assert "\x1b[2J" not in terminal.seen, "no frame begins with an empty screen"
        (actors.project / "go").touch()
        assert terminal.end() == 0
        after = plain_text(terminal.seen).rpartition("reason:")[2]
        assert "3 of 3 steps succeeded" in after and terminal.seen.rindex("\x1b[?1049l") < terminal.seen.rindex(
            "reason:"
        )


def test_the_view_follows_the_size_of_its_window_and_ctrl_c_leaves_the_run_alone(actors: Site) -> None:
    run_id = begin(
        actors, document({"id": "w", "prompt": "WAIT"}, *({"id": f"s{n}", "dependsOn": ["w"]} for n in range(30)))
    )
    with on_terminal(["workflow", "watch", run_id], {**actors.environ, **UTF8}, columns=100) as terminal:
        terminal.until(lambda text: bool(frames(text)) and "▶ w" in frames(text)[-1], "a frame")
        assert len(last_frame(terminal.seen)) <= 24
        seen = len(frames(terminal.seen))
        terminal.resize(40, 10)
        terminal.until(
            lambda text: len(frames(text)) > seen and max(cells(line) for line in last_frame(text)) <= 40,
            "a smaller frame",
        )
        assert len(last_frame(terminal.seen)) <= 10
        terminal.type("\x03")
        assert terminal.end() == 130
        assert "come back: bullswarm workflow watch" in plain_text(terminal.seen)
    (actors.project / "go").touch()
    assert ended(actors, run_id).finished is not None


def test_what_needs_the_person_stands_in_the_view_with_its_command_and_no_colour_where_none_is_wanted(
    actors: Site,
) -> None:
    run_id = begin(actors, document({"id": "a", "prompt": "FAIL"}, {"id": "w", "prompt": "WAIT"}), retryAttempts=0)
    environ = {**actors.environ, **UTF8, "NO_COLOR": "1"}
    with on_terminal(["workflow", "watch", run_id], environ, columns=100) as terminal:
        terminal.until(lambda text: bool(frames(text)) and "✗ a needs you" in frames(text)[-1], "the trouble")
        assert any("bullswarm workflow step rerun" in line for line in last_frame(terminal.seen))
        (actors.project / "go").touch()
        assert terminal.end() == 1
        assert not re.search(r"\x1b\[[0-9;]*m", terminal.seen)


# --- the graph


def test_show_draws_the_graph_in_the_letters_of_the_terminal(actors: Site) -> None:
    program = document(
        {"id": "a"},
        {"id": "b", "dependsOn": ["a"]},
        {"id": "c", "dependsOn": ["a"]},
        {"id": "d", "dependsOn": ["b", "c"]},
    )
    run_id = begin(actors, program)
    ended(actors, run_id)
    before = actors.newest_events()
    said = actors.say("runs", "show", run_id, "--graph", environ=UTF8)
    assert said.code == 0
    assert [line.partition(" succeeded")[0] for line in said.out.splitlines()] == ["✓ a", "├─✓ b", "✓ │ c", "✓─╯ d"]
    plain = actors.say("runs", "show", run_id, "--graph", environ={"LC_ALL": "C"})
    assert plain.out.isascii() and [line.partition(" succeeded")[0] for line in plain.out.splitlines()][1] == "+-+ b"
    assert actors.newest_events() == before and actors.say("runs", "show", run_id, "--graph", "--json").code == 2


def test_a_watch_keeps_up_with_a_long_journal(actors: Site) -> None:
    run_id = begin(actors, document({"id": "w", "prompt": "WAIT"}))
    connection = open_database(actors.home)
    try:
        journal = Journal(connection)
        until(lambda: journal.last_seq(run_id) >= 4, "the launch")
        more = [KernelStarted({}, resumed=True)] * 3000
        journal.append(run_id, more, at=journal.state(run_id).created_at)
    finally:
        connection.close()
    began = time.monotonic()
    said = actors.say("runs", "watch", run_id, "--after", "0", "--once", "--jsonl")
    assert len(events(said.out)) > 3000 and time.monotonic() - began < 20
    (actors.project / "go").touch()
    ended(actors, run_id)
