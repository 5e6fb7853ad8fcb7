"""Record the home of an older bullswarm, with work half done, for tests/server/test_older_homes.py.

Needs a checkout of that older commit and its environment (`python3 develop.py --version` there makes it):

    git worktree add --detach OLD bb6100a && (cd OLD && python3 develop.py --version)
    (cd OLD && .venv/bin/python THIS_CHECKOUT/tests/recordings/homes/record.py bb6100a)

It uses nothing but the standard library and that program's own command line.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ANSWER = "The parser splits the line at each comma and unquotes every field that starts with a quote."
# Says, waits, or writes and then waits, as the prompt says; every run of it leaves a line, so that a test can count them.
WORKER = f"""#!/bin/sh
p=$(cat)
case "$p" in
  *"FIRST"*) echo FIRST >> "$HOME/started";;
  *"SECOND"*) echo SECOND >> "$HOME/started";;
  *"THIRD"*) echo THIRD >> "$HOME/started";;
esac
case "$p" in
  *"WRITE"*) f=$(printf '%s' "$p" | sed -n 's/.*WRITE \\([a-z.]*\\).*/\\1/p' | head -n 1); echo made > "$f";;
esac
case "$p" in
  *"WAIT"*) n=0; while [ ! -e "$HOME/go" ] && [ $n -lt 600 ]; do sleep 0.05; n=$((n+1)); done;;
esac
echo '{ANSWER}'
"""
LANES = ("analyze", "build")
CONNECTOR: dict[str, Any] = {
    "schemaVersion": "bullswarm.connector.v1",
    "lanes": ["analyze", "build", "chore"],
    "meter": {"type": "none"},
    "launch": {
        "prompt": {"way": "stdin"},
        "lanes": {lane: {"workspace": {"confinement": "none"}} for lane in LANES},
    },
    "signIn": {"required": False, "fileBilling": "none"},
    "tiers": {"high": {}, "medium": {}, "low": {}},
}
# The commit that isolated work starts from is the same wherever these are.
COMMIT = {
    **{f"GIT_{role}_{field}": value for role in ("AUTHOR", "COMMITTER") for field, value in (
        ("NAME", "Somebody"), ("EMAIL", "somebody@example.org"), ("DATE", "2026-11-30T12:00:00Z"),
    )},
    "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1",
}  # fmt: skip
DOCUMENTS = {
    "list": ("runs", "list", "--json"),
    "pools": ("pools", "--json"),
    "strategy": ("strategy", "show", "--json"),
    "home": ("home", "status", "--json"),
}


def program(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a program of these steps."""
    return {"schemaVersion": "bullswarm.workflow.program.v3", "steps": list(steps), **more}


PROGRAMS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "gate": (
        program(
            {"id": "a", "prompt": "Say FIRST."},
            {"id": "b", "prompt": "Say it.", "dependsOn": ["g"]},
            gates=[{"id": "g", "dependsOn": ["a"], "note": "look"}],
        ),
        (),
    ),
    "paused": (program({"id": "a", "prompt": "WAIT and say it."}, {"id": "b", "prompt": "Say it.", "dependsOn": ["a"]}), ()),
    "half": (
        program(
            {"id": "a", "prompt": "Say FIRST."},
            {"id": "b", "prompt": "WAIT, then say SECOND.", "dependsOn": ["a"]},
            {"id": "c", "prompt": "Say THIRD.", "dependsOn": ["b"]},
        ),
        (),
    ),
    "isolated": (
        program(
            {"id": "a", "lane": "build", "files": ["first.txt"], "prompt": "WRITE first.txt"},
            {"id": "b", "lane": "build", "files": ["second.txt"], "prompt": "WRITE second.txt WAIT", "dependsOn": ["a"]},
        ),
        ("--isolation", "worktree"),
    ),
}  # fmt: skip


class Machine:
    """A home, a project and a worker below one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("home", "project", "bin", "tmp", "state/providers/alpha", "state/providers/beta"):
            (root / name).mkdir(parents=True)
        self.environ = {
            "PATH": f"{root / 'bin'}:/usr/local/bin:/usr/bin:/bin", "HOME": str(root / "home"),
            "BULLSWARM_HOME": str(root / "state"), "TMPDIR": str(root / "tmp"), "LANG": "C.UTF-8",
            "BULLSWARM_METERS": "off", **COMMIT,
        }  # fmt: skip
        for name in ("alpha", "beta"):
            binary = root / "bin" / f"{name}-cli"
            binary.write_text(WORKER)
            binary.chmod(0o755)
            connector = {**CONNECTOR, "name": name, "binary": binary.name}
            (root / "state" / "providers" / name / "connector.json").write_text(json.dumps(connector))
        (root / "project" / "read.me").write_text("A parser.\n")
        for words in (("init", "--quiet", "-b", "main"), ("add", "--all"), ("commit", "--quiet", "-m", "first")):
            subprocess.run(["git", "-C", str(root / "project"), *words], check=True, env=self.environ)

    def say(self, *words: str, stdin: str = "", good: bool = True) -> str:
        """Call the older program's command line and return what it printed."""
        done = subprocess.run(
            [sys.executable, "-m", "bullswarm_server.cli.main", *words], cwd=self.root / "project", env=self.environ,
            input=stdin, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        if good and done.returncode:
            sys.exit(f"bullswarm {' '.join(words)}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def start(self, name: str) -> str:
        """Start one of the programs and return its run id."""
        document, options = PROGRAMS[name]
        file = self.root / f"{name}.json"
        file.write_text(json.dumps(document))
        return str(
            json.loads(self.say("workflow", "goal", f"the goal {name}", "--program", str(file), "--json", *options))[
                "runId"
            ]
        )

    def happened(self, run: str, kind: str, step: str) -> None:
        """Wait until a step of a run has an event of this type."""
        with contextlib.closing(sqlite3.connect(self.root / "state" / "bullswarm.db")) as connection:
            until(
                lambda: any(
                    json.loads(payload).get("step") == step
                    for (payload,) in connection.execute(
                        "SELECT payload FROM events WHERE run=? AND type=?", (run, kind)
                    )
                ),
                f"{kind} of {step}",
            )

    def processes(self) -> dict[int, str]:
        """Every living process of this home."""
        mark, found = f"BULLSWARM_HOME={self.root / 'state'}\0".encode(), {}
        for place in Path("/proc").iterdir():
            if place.name.isdigit() and int(place.name) != os.getpid():
                with contextlib.suppress(OSError):
                    if mark in (place / "environ").read_bytes() and b"State:\tZ" not in (place / "status").read_bytes():
                        found[int(place.name)] = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        return found

    def idle(self) -> None:
        """Wait until nothing of this home runs."""
        until(lambda: not self.processes(), "no process of the home is left")

    def kill(self) -> None:
        """Kill the kernel first, so that it sees nothing of the other deaths, then the keeper and the worker."""
        for mark in ("bullswarm_server.kernel", "keeper", ""):
            for pid, line in self.processes().items():
                if mark in line:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
        self.idle()


def until(look: Callable[[], object], what: str) -> None:
    """Ask until there is an answer."""
    deadline = time.monotonic() + 30
    while not look():
        if time.monotonic() > deadline:
            sys.exit(f"not within 30 s: {what}")
        time.sleep(0.05)


def fill(machine: Machine) -> tuple[str, dict[str, str]]:
    """Make the home, and return the verdict of its finished run and the id of each run by its name here."""
    machine.say("label", "alpha", "first")
    machine.say("strategy", "set-provider", "beta", "off", "--yes")
    week = time.strftime("%Y-%m-%dT%H:00:00Z", time.gmtime(time.time() + 3 * 86_400))
    subscription = ("--quota-window", "weekly", "--resets-at", week, "--plan", "Max", "--reserve", "10")
    machine.say("strategy", "set-subscription", "claude-code", *subscription)
    in_hours = int(time.time()) + 3600
    limits = {
        "five_hour": {"used_percentage": 30, "resets_at": in_hours},
        "seven_day": {"used_percentage": 40, "resets_at": in_hours + 2 * 86_400},
    }
    machine.say("statusline", stdin=json.dumps({"model": {"display_name": "A model"}, "rate_limits": limits}))
    first = machine.say("run", "--lane", "analyze", "--json", "Explain the parser.")
    runs = {"run": json.loads(first)["runId"]}
    for name in ("gate", "paused"):
        runs[name] = machine.start(name)
        if name == "paused":
            machine.happened(runs[name], "attempt.launched", "a")
            machine.say("workflow", "pause", runs[name], "--now")
        machine.idle()
    for name in ("half", "isolated"):
        runs[name] = machine.start(name)
        machine.happened(runs[name], "attempt.launched", "b")
        if name == "isolated":
            until(lambda: list((machine.root / "state").rglob("second.txt")), "the isolated step has written")
        else:
            until(lambda: "SECOND" in (machine.root / "home" / "started").read_text(), "the second step works")
        machine.kill()
    return first, runs


def without_machine(text: str, root: Path) -> str:
    """Put placeholders where a text names this machine."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    for real, shown in ((str(root), "@ROOT@"), (boot, "@BOOT@"), (socket.gethostname(), "@HOST@")):
        text = text.replace(real, shown)
    for folder in ("project", "project/.git"):  # by which a run knows them again
        found = (root / folder).stat()
        text = re.sub(rf"\b{found.st_dev},\s*{found.st_ino}\b", f"@STAT {folder}@", text)
    return text


def content(data: bytes, root: Path) -> dict[str, Any]:
    """Say what a file holds, as text where it is text."""
    if data and not data.strip(b" "):
        return {"blanks": len(data)}  # the room that a keeper reserves for its last words
    try:
        return {"text": without_machine(data.decode(), root)}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def main(commit: str) -> None:
    with tempfile.TemporaryDirectory(prefix="bullswarm-record-") as folder:
        machine = Machine(Path(folder).resolve())
        verdict, runs = fill(machine)
        documents = {"verdict": verdict, **{name: machine.say(*words) for name, words in DOCUMENTS.items()}}
        for verb in ("show", "result"):
            for name, run in runs.items():
                documents[f"{verb} {name}"] = machine.say("runs", verb, run, "--json", good=False)
        machine.idle()
        database = sqlite3.connect(machine.root / "state" / "bullswarm.db")
        version = database.execute("PRAGMA user_version").fetchone()[0]
        rows = [*database.iterdump(), f"PRAGMA user_version = {version};"]
        database.close()
        files: dict[str, Any] = {}
        for path in sorted(machine.root.rglob("*")):
            name = str(path.relative_to(machine.root))
            if re.match(
                r"project/\.git/(hooks|description|(.*/)?(logs|info)/)|tmp|state/bullswarm\.db|state/cache/entry-points|[a-z]*\.json",
                name,
            ):
                continue
            if path.is_file():
                files[name] = {"mode": f"{path.stat().st_mode & 0o777:o}", **content(path.read_bytes(), machine.root)}
            elif path.is_dir() and not any(path.iterdir()):
                files[f"{name}/"] = {"mode": f"{path.stat().st_mode & 0o777:o}"}
        recording = {
            "commit": commit,
            "recordedAt": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime()),
            "runs": runs,
            "documents": {
                name: json.loads(without_machine(text, machine.root)) for name, text in documents.items() if text
            },
            "files": files,
            "database": [without_machine(row, machine.root) for row in rows],
        }
        place = Path(__file__).with_name(f"{commit}.json")
        place.write_text(json.dumps(recording, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        sys.stdout.write(f"{place}: {place.stat().st_size} bytes\n")


if __name__ == "__main__":
    main(sys.argv[1])
