"""The machine on which the pages' commands are run: two signed-in agent CLIs that answer from recordings, a small project."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.server.documents import Command, GivenFile, made_equal
from tests.server.site import SYSTEM_PATH, Said, Site

from bullswarm_core.pools import Window
from bullswarm_core.quota.history import append_history
from bullswarm_core.quota.observation import Observation
from bullswarm_core.quota.reading import write_reading
from bullswarm_core.store.home import Home
from bullswarm_core.wire import stamp

RECORDINGS = Path(__file__).parents[1] / "recordings"
_RECORDED_ANSWER = "The answer is 42."
EXPLAINED = """The parser is one function, `parse(line)`, in parser.py.

1. It splits the line at each comma that is not inside double quotes.
2. It strips the quotes of a quoted field and turns a doubled quote into one.
3. It raises ValueError for a quote that is never closed; the caller adds the line number."""
# What stands in a task -> what the CLI does with it; the first that fits counts.
ANSWERS: tuple[tuple[str, str], ...] = (
    ("Explain the parser", EXPLAINED),
    ("linear", "parse() in src/parser.py is linear now: it walks over the line once."),
    ("off-by-one", "I read src/parser.py from end to end and found no off-by-one error in its three loops."),
    ("an empty line", '{"passed": true}'),
    ("release notes", "I wrote the release notes into NOTES.md, one line for each change since the last tag."),
)
_CLAUDE = """#!/bin/sh
p=$(cat)
case "$p" in
  *"out of quota"*) cat {answers}/limit.jsonl; exit 1;;
  *"take your time"*) cat {answers}/begun.jsonl; sleep 60;;
esac
case "$p" in
  *"linear"*) echo '# linear' >> src/parser.py;;
  *"release notes"*) echo '- first' > NOTES.md;;
esac
{cases}
"""
# Pool, what is used of its week and how much of that is left, the same of its 5 hours: one behind its clock, one ahead.
WEEKS = (("claude-code", 30.0, 0.344, 15.0, 0.56), ("codex", 61.0, 0.443, 40.0, 0.30))
_TASK = timedelta(minutes=30)
# Where this machine can't confine a worker the verdict says so; the pages show one that can.
_UNCONFINED = re.compile(r"note: .*\bconfine")
_COMMANDS_OF_THE_SHELL = re.compile(r"[|<>;&`]|\$[({A-Za-z]")


@dataclass(slots=True)
class Machine(Site):
    """A site whose home is where people have it: `~/.bullswarm`, with the project in `~/app`."""

    @property
    def home(self) -> Home:
        return Home(self.root / "home" / ".bullswarm")

    @property
    def project(self) -> Path:
        return self.root / "home" / "app"

    def give(self, file: GivenFile) -> None:
        """Write a file that a page shows."""
        name = file.name
        path = self.root / "home" / name[2:] if name.startswith("~/") else self.project / name
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.write_text(file.content, encoding="utf-8")

    def work_for_days(self) -> None:
        """Let 30 tasks of half an hour lie behind the two accounts, with hourly readings of the week that runs now."""
        now = datetime.now(UTC).replace(microsecond=0)
        begins = now - timedelta(days=3.5)
        for number, (pool, week, week_left, _, _) in enumerate(WEEKS):
            self.home.meter_history_file(pool).unlink()
            starts = [begins + timedelta(hours=2.8 * (2 * place + number)) for place in range(15)]
            with self.database() as connection:
                connection.executemany(
                    "INSERT INTO decisions (at, lane, effort, picked, ok, failure_kind, wall_sec, started_at, ended_at)"
                    " VALUES (?, 'build', 'medium', ?, 1, NULL, 1800, ?, ?)",
                    [(stamp(start + _TASK), pool, stamp(start), stamp(start + _TASK)) for start in starts],
                )
            for hour in range(int(3.5 * 24) + 1):
                at = begins + timedelta(hours=hour)
                worked = sum((min(max(at - start, timedelta(0)), _TASK) for start in starts), timedelta(0))
                used = week * (worked / (_TASK * len(starts)))
                reading = Window("weekly", used, now + timedelta(days=7 * week_left), reset_source="provider")
                append_history(self.home, pool, Observation(at, (reading,)), now=now)

    def call(self, command: Command) -> Said:
        """Run a command of a page: in this process where it is `bullswarm` alone, else in a shell."""
        if command.text.startswith("bullswarm ") and not _COMMANDS_OF_THE_SHELL.search(without_quotes(command.text)):
            import shlex

            words = [self._expanded(word) for word in shlex.split(command.text)[1:]]
            if words[0] not in ("--version", "--help", "mcp"):
                return self.say(*words)
        done = subprocess.run(
            ["sh", "-c", command.text], cwd=self.project, env=self.environ, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=240, check=False,
        )  # fmt: skip
        return Said(done.returncode, done.stdout, done.stderr)

    def _expanded(self, word: str) -> str:
        return str(self.root / "home" / word[2:]) if word.startswith("~/") else word

    def printed(self, said: Said) -> list[str]:
        """What a person sees of a command, made equal; messages of the run on standard error stand elsewhere on a page."""
        ids = self.short_ids()
        lines = [made_equal(line, ids) for line in self.readable(said).splitlines() if not _UNCONFINED.match(line)]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def readable(self, said: Said) -> str:
        """What a command printed, with the places of a usual machine in place of the test's."""
        text = said.out or said.err
        for place, name in (
            (self.root / "home", "~"), (self.root / "bin", "/usr/local/bin"), (Path(sys.executable).parent, "/usr/local/bin"),
        ):  # fmt: skip
            text = text.replace(str(place), name)
        return text

    def short_ids(self) -> tuple[str, ...]:
        """The short ids of every run so far."""
        if not self.home.database_file.exists():
            return ()
        with self.database() as connection:
            return tuple(row[0] for row in connection.execute("SELECT short_id FROM runs"))


def without_quotes(text: str) -> str:
    """Return a command without what stands in single quotes, which no shell reads."""
    return re.sub(r"'[^']*'", "", text)


def make_machine(root: Path) -> Machine:
    """Build the machine: Claude Code behind the clock of its week, Codex ahead of it, and nothing else signed in."""
    for name in ("home/app/src", "home/.claude", "home/.codex", "bin", "tmp", "answers"):
        (root / name).mkdir(parents=True)
    environ = {
        "PATH": f"{root / 'bin'}:{SYSTEM_PATH}",
        "HOME": str(root / "home"),
        "BULLSWARM_HOME": str(root / "home" / ".bullswarm"),
        "TMPDIR": str(root / "tmp"),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "BULLSWARM_METERS": "off",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    machine = Machine(root, environ)
    _sign_in(root / "home")
    _write_command(root, "bullswarm", "bullswarm_server.cli.main")
    _write_command(root, "bullswarm-hook", "bullswarm_hooks.main")
    _executable(root / "bin" / "python3", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    _write_claude(root)
    _write_codex(root)
    _write_meters(machine.home)
    (machine.project / "src" / "parser.py").write_text(
        "def parse(line):\n    return line.split(',')\n", encoding="utf-8"
    )
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "start"]):
        subprocess.run(
            ["git", "-c", "user.name=me", "-c", "user.email=me@example.org", *words],
            cwd=machine.project, env=environ, check=True, capture_output=True,
        )  # fmt: skip
    return machine


def _sign_in(home: Path) -> None:
    later = int((datetime.now(UTC) + timedelta(days=1)).timestamp() * 1000)
    claude = {"claudeAiOauth": {"accessToken": "t", "refreshToken": "r", "expiresAt": later}}
    (home / ".claude" / ".credentials.json").write_text(json.dumps(claude), encoding="utf-8")
    (home / ".codex" / "auth.json").write_text(json.dumps({"tokens": {"access_token": "t"}}), encoding="utf-8")


def _write_command(root: Path, name: str, module: str) -> None:
    _executable(root / "bin" / name, f'#!/bin/sh\nexec {sys.executable} -m {module} "$@"\n')


def _executable(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def _write_claude(root: Path) -> None:
    folder = root / "answers"
    recording = (RECORDINGS / "claude-code" / "text.jsonl").read_text(encoding="utf-8")
    limit = (RECORDINGS / "claude-code" / "usage-limit.jsonl").read_text(encoding="utf-8")
    (folder / "limit.jsonl").write_text(_in_two_hours(limit), encoding="utf-8")
    (folder / "begun.jsonl").write_text(recording.splitlines()[0] + "\n", encoding="utf-8")
    script = _CLAUDE.format(answers=folder, cases=_cases(folder, "claude", recording))
    _executable(root / "bin" / "claude", script)


def _in_two_hours(recording: str) -> str:
    """A recorded usage limit as it would be told now: a window that is spent for two hours, a week that has three days."""
    reset = datetime.now(UTC) + timedelta(hours=2)
    hour = f"{reset.hour % 12 or 12}:{reset.minute:02}{'pm' if reset.hour >= 12 else 'am'}"
    week = reset + timedelta(days=3)
    told = recording.replace("1796026526", str(int(reset.timestamp()))).replace("8:15am", hour)
    return told.replace("1796285726", str(int(week.timestamp())))


def _write_codex(root: Path) -> None:
    recording = (RECORDINGS / "codex" / "text.jsonl").read_text(encoding="utf-8")
    cases = _cases(root / "answers", "codex", recording)
    slow = 'case "$p" in *"take your time"*) sleep 60;; esac'
    _executable(root / "bin" / "codex", f'#!/bin/sh\n[ "$1" = exec ] || exit 1\np=$(cat)\n{slow}\n{cases}\n')


def _cases(folder: Path, name: str, recording: str) -> str:
    branches = []
    for number, (mark, answer) in enumerate(ANSWERS):
        file = folder / f"{name}-{number}.jsonl"
        escaped = json.dumps(answer)[1:-1]
        file.write_text(recording.replace(_RECORDED_ANSWER, escaped), encoding="utf-8")
        branches.append(f'  *"{mark}"*) cat {file};;')
    return 'case "$p" in\n' + "\n".join([*branches, f"  *) cat {folder / name}-0.jsonl;;"]) + "\nesac"


def _write_meters(home: Home) -> None:
    now = datetime.now(UTC)
    for pool, week, week_left, five, five_left in WEEKS:
        weekly, protecting = now + timedelta(days=7 * week_left), now + timedelta(hours=5 * five_left)
        for hours in (24, 12, 0):
            at = now - timedelta(hours=hours, minutes=10)
            windows = (Window("weekly", week - hours / 2, weekly), Window("5h", five, protecting))
            append_history(home, pool, Observation(at, windows, "status line"), now=now)
        write_reading(home, pool, windows, captured_at=now - timedelta(minutes=10))
