"""A home that an older bullswarm wrote, with work half done when its kernel and keeper were killed, goes on with this one."""

from __future__ import annotations

import base64
import json
import re
import socket
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.server.site import ANSWER, Site, make_site

HOMES = sorted((Path(__file__).resolve().parents[1] / "recordings" / "homes").glob("*.json"))
OTHER_BOOT = "00000000-0000-4000-8000-000000000000"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3,6})?Z")


@dataclass(frozen=True, slots=True)
class OlderHome:
    """A site whose home was written by an older program, and what that program showed of it."""

    site: Site
    runs: Mapping[str, str]
    documents: Mapping[str, Any]

    def document(self, *words: str, code: int = 0) -> dict[str, Any]:
        """Call a verb for its document; nothing of it may look like a fault of ours."""
        done = self.site.say(*words, "--json")
        assert done.code == code and "Traceback" not in done.err, f"{words}: {done.out}\n{done.err}"
        return done.document

    def started(self) -> list[str]:
        """Which steps have ever begun to work, in order."""
        return (self.site.root / "home" / "started").read_text().split()

    def tries(self, name: str) -> dict[str, list[str | None]]:
        """How each attempt of each step of a run ended."""
        steps = self.site.state_of(self.runs[name]).steps
        return {
            step: [attempt.finished.failure_kind if attempt.finished else "under way" for attempt in state.attempts]
            for step, state in steps.items()
        }


def _moved(text: str, by: timedelta) -> str:
    """Move every time of a text, so that what was recorded happened a minute ago."""

    def later(match: re.Match[str]) -> str:
        moment = (datetime.fromisoformat(match[0]) + by).strftime("%Y-%m-%dT%H:%M:%S.%f")
        digits = len(match[0]) - len("2026-01-01T00:00:00Z")
        return (moment[:19] if digits == 0 else moment[: 19 + digits]) + "Z"

    return _TIME.sub(later, text)


def _built(site: Site, recording: Mapping[str, Any], boot: str) -> OlderHome:
    """Write the recorded files and database below the site."""
    since = datetime.now(UTC) - datetime.fromisoformat(recording["recordedAt"]) - timedelta(minutes=1)

    def here(text: str) -> str:
        places = (("@ROOT@", str(site.root)), ("@BOOT@", boot), ("@HOST@", socket.gethostname()))
        for shown, real in places:
            text = text.replace(shown, real)
        for folder in ("project", "project/.git"):
            found = (site.root / folder).stat()
            text = text.replace(f"@STAT {folder}@", f"{found.st_dev}, {found.st_ino}")
        return _moved(text, since)

    for name, kept in recording["files"].items():
        path = site.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir(exist_ok=True)
        elif "text" in kept:
            path.write_text(here(kept["text"]), encoding="utf-8")
        else:
            path.write_bytes(b" " * kept["blanks"] if "blanks" in kept else base64.b64decode(kept["base64"]))
        path.chmod(int(kept["mode"], 8))
    site.home.root.chmod(0o700)
    connection = sqlite3.connect(site.home.database_file)
    connection.executescript(here("\n".join(recording["database"])))
    connection.close()
    site.home.database_file.chmod(0o600)
    return OlderHome(site, recording["runs"], recording["documents"])


@pytest.fixture(params=[pytest.param(path, id=path.stem) for path in HOMES])
def recording(request: pytest.FixtureRequest) -> dict[str, Any]:
    """A recorded home."""
    found: dict[str, Any] = json.loads(request.param.read_text(encoding="utf-8"))
    return found


@pytest.fixture(params=["killed", "machine restarted"])
def older(request: pytest.FixtureRequest, recording: Mapping[str, Any], tmp_path: Path) -> Iterator[OlderHome]:
    """The recorded home, on this machine as it runs now, or with the machine started anew since."""
    root = tmp_path / "site"
    root.mkdir()
    site = make_site(root)
    boot = Path("/proc/sys/kernel/random/boot_id")
    known = request.param == "killed" and boot.exists()
    yield _built(site, recording, boot.read_text().strip() if known else OTHER_BOOT)
    site.close()


def shape(value: Any) -> Any:
    """The keys of a document, all the way down; a list shows the shapes of its members."""
    if isinstance(value, dict):
        return {key: shape(inner) for key, inner in value.items()}
    return [shape(inner) for inner in value] if isinstance(value, list) else None


def lost(before: Any, after: Any, at: str = "") -> list[str]:
    """Name every key of a document that a later one lacks."""
    if isinstance(before, dict) and isinstance(after, dict):
        gone = [f"{at}.{key}" for key in before.keys() - after.keys()]
        return gone + [
            name for key in before.keys() & after.keys() for name in lost(before[key], after[key], f"{at}.{key}")
        ]
    if isinstance(before, list) and isinstance(after, list):
        return [name for one, other in zip(before, after, strict=False) for name in lost(one, other, f"{at}[]")]
    return []


def test_there_is_a_recording() -> None:
    assert HOMES


def test_what_ended_reads_as_the_older_program_showed_it(older: OlderHome) -> None:
    for verb in ("show", "result"):
        recorded = older.documents[f"{verb} run"]
        now = older.document("runs", verb, older.runs["run"])
        assert (now["schemaVersion"], shape(now)) == (recorded["schemaVersion"], shape(recorded)), verb
    assert older.site.say("runs", "result", older.runs["run"]).out.strip() == ANSWER
    waited = older.document("runs", "wait", older.runs["run"])
    recorded = older.documents["verdict"]
    assert (waited["schemaVersion"], shape(waited)) == (recorded["schemaVersion"], shape(recorded))
    assert (waited["ok"], waited["pick"]["pool"], waited["why"]) == (True, "alpha", recorded["why"])


def test_every_list_and_every_run_is_shown(older: OlderHome) -> None:
    for name, words in {
        "list": ("runs", "list"),
        "pools": ("pools",),
        "strategy": ("strategy", "show"),
        "home": ("home", "status"),
        **{f"show {name}": ("runs", "show", run) for name, run in older.runs.items()},
    }.items():
        now, recorded = older.document(*words), older.documents[name]
        assert now["schemaVersion"] == recorded["schemaVersion"] and lost(recorded, now) == [], name
        shown = older.site.say(*words)
        assert shown.code == 0 and shown.out and "Traceback" not in shown.err, (name, shown)
    assert {row["runId"] for row in older.document("runs", "list")["runs"]} == set(older.runs.values())


def test_what_was_decided_and_read_is_still_in_force(older: OlderHome) -> None:
    rows = {row["pool"]: row for row in older.document("pools")["pools"]}
    recorded = {row["pool"]: row for row in older.documents["pools"]["pools"]}
    assert rows["alpha"]["poolLabel"] == recorded["alpha"]["poolLabel"] == "first"
    assert rows["beta"]["enabled"] is recorded["beta"]["enabled"] is False
    for key in ("pacingUsedPct", "fiveHourUsedPct"):
        assert rows["claude-code"][key] == recorded["claude-code"][key] is not None
    now, then = older.document("strategy", "show"), older.documents["strategy"]
    assert json.loads(_TIME.sub("", json.dumps(now))) == json.loads(_TIME.sub("", json.dumps(then)))


def test_a_run_that_was_killed_in_its_second_step_goes_on_there(older: OlderHome) -> None:
    (older.site.root / "home" / "go").touch()
    assert older.started() == ["FIRST", "FIRST", "SECOND"], "one is the first step of the run with the gate"
    done = older.document("runs", "resume", older.runs["half"], "--foreground")
    assert (done["status"], {step["id"]: step["status"] for step in done["steps"]}) == (
        "completed",
        {"a": "succeeded", "b": "succeeded", "c": "succeeded"},
    )
    assert older.tries("half") == {"a": [None], "b": ["interrupted", None], "c": [None]}
    assert older.started() == ["FIRST", "FIRST", "SECOND", "SECOND", "THIRD"]
    assert older.document("runs", "result", older.runs["half"])["status"] == "completed"


def test_a_gate_that_waits_is_opened(older: OlderHome) -> None:
    run = older.runs["gate"]
    assert older.document("runs", "show", run)["gates"][0]["status"] == "waiting"
    assert older.site.say("workflow", "continue", run, "g").code == 0
    assert older.document("workflow", "wait", run)["status"] == "completed"
    assert older.tries("gate") == {"a": [None], "b": [None]}


def test_a_paused_run_is_resumed(older: OlderHome) -> None:
    (older.site.root / "home" / "go").touch()
    assert older.document("runs", "result", older.runs["paused"], code=1)["status"] == "paused"
    done = older.document("workflow", "resume", older.runs["paused"], "--foreground")
    assert done["status"] == "completed" and older.tries("paused") == {"a": ["paused", None], "b": [None]}


def test_isolated_work_that_was_killed_goes_on_in_a_worktree_and_is_merged(older: OlderHome) -> None:
    (older.site.root / "home" / "go").touch()
    done = older.document("runs", "resume", older.runs["isolated"], "--foreground")
    assert done["status"] == "completed", done
    assert older.tries("isolated") == {"a": [None], "b": ["interrupted", None]}
    project = older.site.project
    assert [(project / name).read_text() for name in ("first.txt", "second.txt")] == ["made\n", "made\n"]


def test_new_work_starts_in_an_older_home(older: OlderHome) -> None:
    verdict = older.document("run", "--lane", "analyze", "--add-dir", str(older.site.project), "Explain the parser.")
    assert (verdict["ok"], verdict["pick"]["pool"]) == (True, "alpha")


def test_the_recordings_name_no_machine() -> None:
    for path in HOMES:
        text = path.read_text(encoding="utf-8")
        assert path.stat().st_size < 200_000
        assert not re.search(r"/(?:root|work|opt|Users|tmp|var|home)/\w", text), path
