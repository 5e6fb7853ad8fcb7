"""Signs of life as they are read from the files of a running attempt."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.core.runs.journals import Written, document
from tests.stream_tables import load_table

from bullswarm_core._dataclasses import replace
from bullswarm_core.reports.stalls import Activity, Life
from bullswarm_core.runs.run_files import RunFolder
from bullswarm_core.streams.table import StreamTable

RECORDINGS = Path(__file__).parents[2] / "recordings"


class Attempt:
    """A running attempt of a writer in a folder of its own."""

    def __init__(self, root: Path, *, lane: str = "build", table: StreamTable | None = None) -> None:
        self.project, self.folder = root / "project", RunFolder(root / "run")
        self.project.mkdir()
        self.folder.path.mkdir()
        self.written = Written(document({"id": "a", "lane": lane, "files": ["named.txt"]}))
        created = self.written.state.created
        self.written.pick("a", lane=lane)
        self.state = replace(self.written.state, created=replace(created, cwd=str(self.project)))
        self.files = self.folder.attempt("a", 1)
        self.activity = Activity(self.folder, table_of=lambda _: table)

    def say(self, *events: dict[str, Any]) -> None:
        with self.files.stream.open("a") as stream:
            stream.writelines(json.dumps(event) + "\n" for event in events)

    def life(self, *, minutes: float = 0) -> Life:
        (life,) = self.activity.lives(self.state, now=self.written.now + timedelta(minutes=minutes))
        return life

    def touch(self, name: str, *, minutes: float) -> None:
        path = self.project / name
        path.write_text("x")
        moment = (self.written.now + timedelta(minutes=minutes)).timestamp()
        os.utime(path, (moment, moment))


def claude(command: str, number: int) -> dict[str, Any]:
    content = [{"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": command}}]
    return {"type": "assistant", "uuid": f"u{number}", "message": {"id": f"m{number}", "content": content}}


def result(number: int) -> dict[str, Any]:
    content = [{"type": "tool_result", "tool_use_id": f"t{number}", "content": "ok"}]
    return {"type": "user", "uuid": f"r{number}", "message": {"content": content}}


def test_commands_are_counted_and_one_that_has_not_come_back_is_in_flight(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path, table=load_table("claude_code"))
    assert (attempt.life().commands, attempt.life().in_flight) == (0, False)
    attempt.say(claude("make", 1))
    assert (attempt.life().commands, attempt.life().in_flight, attempt.life().last_command) == (1, True, "Bash make")
    attempt.say(result(1), claude("make test", 2), result(2), claude("make test", 3), result(3), claude("make test", 4))
    assert (attempt.life().commands, attempt.life().same_command, attempt.life().in_flight) == (4, 3, True)
    attempt.say(result(4))
    assert attempt.life().in_flight is False and attempt.life().same_command == 3


def test_a_line_that_is_still_being_written_is_read_when_it_is_whole(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path, table=load_table("claude_code"))
    line = json.dumps(claude("make", 1)) + "\n"
    attempt.files.stream.write_text(line[:40])
    assert attempt.life().commands == 0
    attempt.files.stream.write_text(line)
    assert attempt.life().commands == 1


def test_what_is_no_event_is_no_command_and_no_error(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path, table=load_table("claude_code"))
    attempt.files.stream.write_bytes(b"\xff\xfe nothing\n[1]\n{}\nnull\n" + b"[" * 100_000 + b"\n")
    assert attempt.life().commands == 0


@pytest.mark.parametrize(("name", "provider"), [("claude-code", "claude_code"), ("codex", "codex")])
def test_every_recorded_stream_of_a_real_cli_is_read(tmp_path: Path, name: str, provider: str) -> None:
    most = 0
    for number, recording in enumerate(sorted((RECORDINGS / name).glob("*.jsonl"))):
        (tmp_path / str(number)).mkdir()
        attempt = Attempt(tmp_path / str(number), table=load_table(provider))
        attempt.files.stream.write_bytes(recording.read_bytes())
        most = max(most, attempt.life().commands)
    assert most >= 1


def test_quiet_is_counted_from_the_last_byte_of_any_output(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path)
    attempt.files.stdout.write_text("said")
    moment = (attempt.written.now + timedelta(minutes=3)).timestamp()
    os.utime(attempt.files.stdout, (moment, moment))
    life = attempt.life(minutes=10)
    assert life.quiet(attempt.written.now + timedelta(minutes=10)) == timedelta(minutes=7)
    assert life.checking is False and life.commands == 0


def test_checks_are_a_sign_of_life_of_their_own(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path)
    attempt.files.concluded.write_text("{}")
    attempt.files.evidence_log(1).write_text("running")
    moment = (attempt.written.now + timedelta(minutes=9)).timestamp()
    for path in (attempt.files.concluded, attempt.files.evidence_log(1)):
        os.utime(path, (moment, moment))
    life = attempt.life(minutes=10)
    assert life.checking and life.quiet(attempt.written.now + timedelta(minutes=10)) == timedelta(minutes=1)


def test_a_writers_change_is_seen_in_named_files_and_at_last_in_the_whole_tree(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path, table=load_table("claude_code"))
    attempt.touch("named.txt", minutes=5)
    assert attempt.life(minutes=60).last_change == attempt.written.now + timedelta(minutes=5)
    attempt.touch("unnamed.txt", minutes=55)
    assert attempt.life(minutes=60).last_change == attempt.written.now + timedelta(minutes=5)
    for number in range(5):
        attempt.say(claude(f"make {number}", number), result(number))
    assert attempt.life(minutes=60).last_change == attempt.written.now + timedelta(minutes=55)


def test_a_step_that_only_reads_has_no_change_to_miss(tmp_path: Path) -> None:
    assert Attempt(tmp_path, lane="analyze").life().last_change is None
