"""The real Claude Code and Codex feed `bullswarm pools`, and a limit that one of them met keeps it out until its reset."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.agents.conftest import MachineMaker, needs
from tests.agents.install import BIN_FOLDER
from tests.agents.machine import COMMAND_LIMIT_SEC, SYSTEM_PATH
from tests.agents.setups import CLAUDE, CODEX
from tests.agents.test_meters_codex import RESET, WEEK, sign_in, usage
from tests.agents.usage_backend import UsageBackend, usage_backend

from bullswarm_core._dataclasses import replace
from bullswarm_core.dispatch.assemble import current_pools
from bullswarm_core.pools.settings import Settings
from bullswarm_core.routing import Request, decide
from bullswarm_core.store.home import Home, write_json
from bullswarm_providers import registry

pytestmark = pytest.mark.real_cli

CLAUDE_TOKEN = "sk-ant-oat01-fake-token-of-a-test"


@pytest.fixture
def backend() -> Iterator[UsageBackend]:
    with usage_backend() as running:
        running.answers["/wham/usage"] = (200, usage())
        running.answers["/api/oauth/usage"] = (
            200,
            {
                "five_hour": {"utilization": 12.0, "resets_at": RESET.isoformat()},
                "seven_day": {"utilization": 62.0, "resets_at": WEEK.isoformat()},
            },
        )
        yield running


@pytest.fixture
def environ(tmp_path: Path, own_home: Path, backend: UsageBackend, request: pytest.FixtureRequest) -> dict[str, str]:
    """Both real CLIs, each signed in with an account of the test's own."""
    (tmp_path / "bin").mkdir()
    for setup in (CLAUDE, CODEX):
        needs(setup, request.config)
        (tmp_path / "bin" / setup.binary).symlink_to(BIN_FOLDER / setup.binary)
    sign_in(own_home / ".codex")
    (own_home / ".codex" / "config.toml").write_text(
        f'chatgpt_base_url = "{backend.url}/backend-api/"\n', encoding="utf-8"
    )
    expires = int((time.time() + 3600) * 1000)
    stored = {"accessToken": CLAUDE_TOKEN, "expiresAt": expires, "scopes": ["user:profile"], "subscriptionType": "max"}
    (own_home / ".claude").mkdir()
    (own_home / ".claude" / ".credentials.json").write_text(json.dumps({"claudeAiOauth": stored}), encoding="utf-8")
    home = Home(own_home / ".bullswarm").ensure()
    write_json(home.providers_file, {"endpoints": {"claude-code": {"usage": f"{backend.url}/api/oauth/usage"}}})
    return {
        "PATH": f"{tmp_path / 'bin'}:{SYSTEM_PATH}",
        "HOME": str(own_home),
        "BULLSWARM_HOME": str(home.root),
        "BULLSWARM_METERS": "live",
        "CODEX_REFRESH_TOKEN_URL_OVERRIDE": f"{backend.url}/oauth/token",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "LANG": "C.UTF-8",
    }


def pools(environ: dict[str, str], *words: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "bullswarm_server.cli.main", "pools", "--json", *words],
        env=environ, capture_output=True, text=True, timeout=COMMAND_LIMIT_SEC, check=True,
    )  # fmt: skip
    assert CLAUDE_TOKEN not in done.stdout + done.stderr
    return {row["pool"]: row for row in json.loads(done.stdout)["pools"]}


def test_both_feed_pools_end_to_end(environ: dict[str, str], backend: UsageBackend) -> None:
    rows = pools(environ, "--force")
    told = {
        name: (
            row["fiveHourUsedPct"],
            row["pacingWindow"],
            row["pacingUsedPct"],
            row["meterReadBy"],
            row["pacingSource"],
        )
        for name, row in rows.items()
        if name in ("claude-code", "codex")
    }
    assert told == {
        "claude-code": (12, "weekly", 62, "usage endpoint", "live"),
        "codex": (42, "weekly", 77, "app-server", "live"),
    }
    assert rows["codex"]["paceResetsAt"] == rows["claude-code"]["paceResetsAt"] == f"{WEEK:%Y-%m-%dT%H:%M:%SZ}"
    # From now on it is known, and nobody is asked again, forced or not: Claude's endpoint bears it once in three minutes.
    pools(environ)
    pools(environ, "--force")
    assert backend.count("/api/oauth/usage") == 1


@pytest.mark.parametrize("setup", [CLAUDE, CODEX], ids=lambda setup: setup.name)
def test_a_limit_keeps_the_pool_out_until_its_reset_and_not_a_minute_longer(
    make_machine: MachineMaker, setup: Any
) -> None:
    reset = datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(hours=2)
    made = make_machine(setup, [setup.usage_limit(reset)])
    made.environ["BULLSWARM_METERS"] = "passive"
    assert made.run().kind == "quota"
    home = Home(made.state)
    profiles = registry.load(home, made.environ, write_cache=False).profiles

    def takes(now: datetime) -> bool:
        found = current_pools(home, profiles, Settings.load(home), now=now)
        alone = [replace(pool, unavailable=None, billing_granted=True) for pool in found if pool.id == setup.name]
        return bool(decide(Request("analyze"), alone, now=now).pool == setup.name)

    assert not takes(datetime.now(UTC))
    assert not takes(reset - timedelta(minutes=1))
    assert takes(reset + timedelta(minutes=1))
