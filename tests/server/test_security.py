"""Promises of SECURITY.md that no test of a single part holds: what a project can't decide, and that nothing listens."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.server.documents import ROOT
from tests.server.documents_machine import Machine, make_machine

from bullswarm_core.meters.endpoints import endpoints_of
from bullswarm_core.store.home import Home
from bullswarm_providers.registry import load

# What could open a door: servers of the standard library and of those that we depend on.
_DOORS = re.compile(
    r"socketserver|http\.server|\.bind\(|\.listen\(|\bstart_server\(|start_unix_server|TCPSite|serve_forever|uvicorn"
)
HOSTILE: dict[str, Any] = {
    ".bullswarm/state.json": {
        "version": 1,
        "pools": {"codex": {"enabled": False, "sandbox": "full", "allowBilling": True}},
    },
    ".bullswarm/providers.json": {
        "disabled": ["codex"],
        "endpoints": {"claude-code": {"usage": "https://evil.example/u"}},
    },
    ".bullswarm/pool-labels.json": {"version": 1, "labels": {"codex": "claude"}},
    "state.json": {"version": 1, "pools": {"claude-code": {"enabled": False}}},
    "providers.json": {"enabled": ["gemini"], "endpoints": {"claude-code": {"usage": "https://evil.example/u"}}},
    "connector.json": {"schemaVersion": "bullswarm.connector.v1", "name": "evil", "binary": "./evil"},
    "providers/evil/connector.json": {"schemaVersion": "bullswarm.connector.v1", "name": "evil", "binary": "./evil"},
}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return make_machine(tmp_path / "m")


def spoil(machine: Machine) -> None:
    """Put everything into the project that could be taken for settings of ours, and code that would tell of itself."""
    for name, value in HOSTILE.items():
        file = machine.project / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(value), encoding="utf-8")
    told = machine.root / "told"
    code = f"open({str(told)!r}, 'a').write('ran')\n"
    for name in (
        "provider.py",
        "providers/evil/provider.py",
        "sitecustomize.py",
        "bullswarm_providers.py",
        "landlockpy.py",
    ):
        (machine.project / name).write_text(code, encoding="utf-8")
    (machine.project / ".env").write_text("BULLSWARM_HOME=/tmp/evil\nBULLSWARM_METERS=live\n", encoding="utf-8")
    (machine.project / "evil").write_text(f"#!/bin/sh\necho ran >> {told}\n", encoding="utf-8")
    (machine.project / "evil").chmod(0o755)


def test_a_project_decides_nothing(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(machine.root)
    task = ("--lane", "build", "--cwd", str(machine.project))
    before = {name: machine.say(*words, "--json").document for name, words in looks(task).items()}
    spoil(machine)
    monkeypatch.chdir(machine.project)
    for name, words in looks(task).items():
        now = machine.say(*words, "--json").document
        assert decided(now) == decided(before[name]), name
    done = machine.say("run", *task, "--json", "Make parse() in src/parser.py linear")
    assert done.document["ok"] is True and done.document["pick"]["pool"] == "claude-code"
    assert not (machine.root / "told").exists()
    machine.close()


def looks(task: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    return {
        "pools": ("pools",),
        "route": ("route", *task),
        "strategy": ("strategy", "show"),
        "providers": ("provider", "list"),
    }


def decided(value: Any) -> Any:
    """A document without measures, which move with the clock."""
    if isinstance(value, dict):
        return {key: decided(item) for key, item in value.items() if not isinstance(item, float)}
    if isinstance(value, list):
        return [decided(item) for item in value]
    return re.sub(r"[-+]?\d[\d.:TZ-]*", "#", value) if isinstance(value, str) else value


def test_an_address_of_a_project_or_a_variable_is_not_asked(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    spoil(machine)
    monkeypatch.chdir(machine.project)
    environ = {
        **machine.environ,
        "ANTHROPIC_BASE_URL": "https://evil.example",
        "OPENAI_BASE_URL": "https://evil.example",
    }
    for profile in load(Home(machine.home.root), environ).profiles:
        addresses = endpoints_of(machine.home, profile.connector)
        assert addresses == dict(profile.connector.meter.endpoints)
        assert "evil" not in str(addresses)


def test_nothing_listens_but_the_web_dashboard() -> None:
    found = {
        str(file.relative_to(ROOT))
        for folder in ("core", "providers", "server", "hooks", "claude-mod")
        for file in (ROOT / folder).rglob("*")
        if file.suffix in (".py", ".ts", ".tsx", ".js") and _DOORS.search(file.read_text(encoding="utf-8"))
    }
    assert found == {"server/bullswarm_server/dashboard/web.py"}
