"""The real Claude Code tells of its account's windows in passing, and its stored sign-in reads them from the endpoint."""

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.agents.conftest import MachineMaker, needs
from tests.agents.install import BIN_FOLDER
from tests.agents.machine import SYSTEM_PATH, Machine
from tests.agents.scripted_model.scenario import say
from tests.agents.setups import CLAUDE
from tests.agents.usage_backend import UsageBackend, usage_backend

from bullswarm_core.meters.refresh import Outcome, Refresher
from bullswarm_core.quota.reading import load_reading
from bullswarm_core.store.home import Home
from bullswarm_providers import registry

pytestmark = pytest.mark.real_cli

RESET = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=2)
WEEK = RESET + timedelta(days=3)
TOKEN = "sk-ant-oat01-fake-token-of-a-test"


def kept(made: Machine) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((made.state / "meters" / "claude-code.json").read_bytes())
    return document


def windows(document: dict[str, Any]) -> dict[str, tuple[float, str]]:
    return {window["kind"]: (window["usedPct"], window["resetsAt"]) for window in document["windows"]}


def iso(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def test_a_run_leaves_a_reading_of_its_account_behind(make_machine: MachineMaker) -> None:
    made = make_machine(CLAUDE, [say("Done.", headers=CLAUDE.window_headers(RESET))])
    made.environ["BULLSWARM_METERS"] = "passive"
    assert made.run().verdict["ok"]
    document = kept(made)
    assert windows(document) == {"5h": (83.0, iso(RESET)), "weekly": (62.0, iso(WEEK))}
    assert document["readBy"] == "stream"
    rows = json.loads(made.bullswarm("pools", "--json").stdout)["pools"]
    (pool,) = (row for row in rows if row["pool"] == "claude-code")
    assert (pool["fiveHourUsedPct"], pool["pacingWindow"], pool["pacingUsedPct"]) == (83.0, "weekly", 62.0)


def test_a_run_that_hits_the_limit_leaves_a_full_window_until_its_reset(make_machine: MachineMaker) -> None:
    made = make_machine(CLAUDE, [CLAUDE.usage_limit(RESET)])
    made.environ["BULLSWARM_METERS"] = "passive"
    assert made.run().kind == "quota"
    assert windows(kept(made)) == {"5h": (100.0, iso(RESET)), "weekly": (62.0, iso(WEEK))}
    made.turns[:] = [say("Done.")]
    assert made.bullswarm("route", "--json", "--lane", "analyze", "--pool", "claude-code").returncode == 1


def test_a_run_without_a_word_of_windows_leaves_no_reading(make_machine: MachineMaker) -> None:
    made = make_machine(CLAUDE, [say("Done.")])
    made.environ["BULLSWARM_METERS"] = "passive"
    assert made.run().verdict["ok"]
    assert not (made.state / "meters" / "claude-code.json").exists()


@pytest.fixture
def installed(tmp_path: Path, own_home: Path, request: pytest.FixtureRequest) -> dict[str, str]:
    """Install the real Claude Code and store a sign-in as it does."""
    needs(CLAUDE, request.config)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "claude").symlink_to(BIN_FOLDER / "claude")
    stored = {
        "accessToken": TOKEN,
        "refreshToken": "refresh-me-not",
        "expiresAt": int((time.time() + 3600) * 1000),
        "scopes": ["user:inference", "user:profile"],
        "subscriptionType": "max",
        "rateLimitTier": "default_claude_max_20x",
    }
    (own_home / ".claude").mkdir()
    (own_home / ".claude" / ".credentials.json").write_text(json.dumps({"claudeAiOauth": stored}), encoding="utf-8")
    return {"PATH": f"{tmp_path / 'bin'}:{SYSTEM_PATH}", "HOME": str(own_home), "BULLSWARM_METERS": "live"}


def refresh(environ: dict[str, str], backend: UsageBackend) -> Outcome:
    """Read the meter as the ladder does, at an endpoint that the person's own home names."""
    home = Home().ensure()
    endpoints = {"endpoints": {"claude-code": {"usage": f"{backend.url}/api/oauth/usage"}}}
    home.providers_file.write_text(json.dumps(endpoints), encoding="utf-8")
    return Refresher(home, environ).refresh(registry.load(home, environ).profile("claude-code"))


def test_the_stored_sign_in_reads_the_endpoint(installed: dict[str, str], own_home: Path) -> None:
    before = (own_home / ".claude" / ".credentials.json").read_bytes()
    body = {
        "five_hour": None,
        "seven_day": {"utilization": 62.0, "resets_at": WEEK.isoformat()},
        "extra_usage": {"is_enabled": True},
    }
    with usage_backend() as backend:
        backend.answers["/api/oauth/usage"] = (200, body)
        assert refresh(installed, backend).step == "live"
    ((_, headers),) = backend.asked
    assert headers["authorization"] == f"Bearer {TOKEN}"
    package = json.loads(((BIN_FOLDER / "claude").resolve().parent / "package.json").read_bytes())
    assert headers["user-agent"] == f"claude-code/{package['version']}"
    reading = load_reading(Home(), "claude-code", now=datetime.now(UTC))
    assert [(window.kind, window.used_pct, window.resets_at) for window in reading.windows] == [("weekly", 62.0, WEEK)]
    assert (reading.plan, reading.overage, reading.read_by) == ("max 20x", True, "usage endpoint")
    assert (own_home / ".claude" / ".credentials.json").read_bytes() == before


@pytest.mark.parametrize("status", [401, 403, 429, 500])
def test_what_the_endpoint_refuses_leaves_no_token_anywhere(
    installed: dict[str, str], own_home: Path, status: int
) -> None:
    with usage_backend() as backend:
        backend.answers["/api/oauth/usage"] = (status, {"error": {"message": f"no, {TOKEN}"}})
        outcome = refresh(installed, backend)
        again = refresh(installed, backend)
    assert (outcome.step, again.step) == ("failed", "held")
    assert str(status) in outcome.why
    assert backend.count("/api/oauth/usage") == 1
    for file in (own_home / ".bullswarm").rglob("*"):
        assert not file.is_file() or TOKEN.encode() not in file.read_bytes()
    assert TOKEN not in repr(outcome)
