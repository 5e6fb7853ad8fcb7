"""The real Codex is asked what its account has used: by its app-server, against a backend on 127.0.0.1, and by its rollouts."""

import base64
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.agents.conftest import MachineMaker, needs
from tests.agents.install import BIN_FOLDER
from tests.agents.machine import SYSTEM_PATH, Machine
from tests.agents.scripted_model.scenario import say
from tests.agents.setups import CODEX
from tests.agents.usage_backend import UsageBackend, usage_backend

from bullswarm_core.errors import MeterError
from bullswarm_core.meters.refresh import Refresher
from bullswarm_core.process.child import marked
from bullswarm_core.process.descendants import parents
from bullswarm_core.quota.observation import MeterContext, Observation
from bullswarm_core.quota.reading import load_reading
from bullswarm_core.store.home import Home
from bullswarm_providers import registry
from bullswarm_providers.codex import meter

pytestmark = pytest.mark.real_cli

RESET = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=2)
WEEK = RESET + timedelta(days=3)


def token(**claims: Any) -> str:
    account = {"chatgpt_plan_type": "plus", "chatgpt_user_id": "u", "chatgpt_account_id": "acct-fake-1"}
    known = {"email": "person@example.com", "https://api.openai.com/auth": account, "exp": int(time.time()) + 5 * 86400}
    parts = ({"alg": "none"}, known | claims)
    return ".".join(
        [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts] + ["sig"]
    )


def sign_in(folder: Path) -> str:
    """Store a sign-in as Codex does, and return its token."""
    access = token()
    tokens = {"id_token": token(), "access_token": access, "refresh_token": "fake", "account_id": "acct-fake-1"}
    refreshed = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    document = {"auth_mode": "chatgpt", "OPENAI_API_KEY": None, "tokens": tokens, "last_refresh": refreshed}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "auth.json").write_text(json.dumps(document), encoding="utf-8")
    return access


def usage(**more: Any) -> dict[str, Any]:
    """An answer that the real app-server accepts: the weekly window stands first."""
    now = int(time.time())
    weekly = {
        "used_percent": 77,
        "limit_window_seconds": 604800,
        "reset_after_seconds": 5,
        "reset_at": int(WEEK.timestamp()),
    }
    short = {
        "used_percent": 42,
        "limit_window_seconds": 18000,
        "reset_after_seconds": 5,
        "reset_at": int(RESET.timestamp()),
    }
    other = {"used_percent": 0, "limit_window_seconds": 604800, "reset_after_seconds": 604800, "reset_at": now + 604800}
    return {
        "user_id": "u",
        "account_id": "acct-fake-1",
        "email": "person@example.com",
        "plan_type": "plus",
        "rate_limit": {
            "allowed": True,
            "limit_reached": False,
            "primary_window": weekly,
            "secondary_window": short,
            **more,
        },
        "credits": {"has_credits": True, "unlimited": False, "balance": "12.5"},
        "additional_rate_limits": [
            {
                "limit_name": "GPT-Other",
                "metered_feature": "codex_other",
                "rate_limit": {
                    "allowed": True,
                    "limit_reached": False,
                    "primary_window": other,
                    "secondary_window": None,
                },
            }
        ],
    }


class Asking:
    """A home with the real Codex, signed in to a backend of the test's own."""

    def __init__(self, root: Path, home: Path, backend: UsageBackend) -> None:
        self.folder, self.backend = home / ".codex", backend
        self.token = sign_in(self.folder)
        config = f'chatgpt_base_url = "{backend.url}/backend-api/"\n'
        (self.folder / "config.toml").write_text(config, encoding="utf-8")
        (root / "bin").mkdir()
        (root / "bin" / "codex").symlink_to(BIN_FOLDER / "codex")
        self.environ = {
            "PATH": f"{root / 'bin'}:{SYSTEM_PATH}",
            "HOME": str(home),
            "CODEX_REFRESH_TOKEN_URL_OVERRIDE": f"{backend.url}/oauth/token",
            "BULLSWARM_TEST_METER": str(root),
        }

    def read(self, **endpoints: str) -> Observation:
        """Take a live reading; by HTTP only where the test names an endpoint."""
        from bullswarm_core.meters.http import fetch_json

        profile = registry.load(Home(), self.environ).profile("codex")

        def fetch(url: str, headers: Any) -> Any:
            return fetch_json(url, headers, environ={})

        context = MeterContext(profile, self.environ, datetime.now(UTC), fetch, endpoints)
        reading: Observation = profile.provider.live_reading(context)
        return reading

    def processes(self) -> set[int]:
        return marked(f"BULLSWARM_TEST_METER={self.environ['BULLSWARM_TEST_METER']}", parents())


@pytest.fixture
def asking(tmp_path: Path, own_home: Path, request: pytest.FixtureRequest) -> Iterator[Asking]:
    needs(CODEX, request.config)
    with usage_backend() as backend:
        found = Asking(tmp_path, own_home, backend)
        yield found
        assert found.processes() == set()


def used(reading: Observation) -> dict[str, tuple[float | None, datetime | None]]:
    return {
        f"{window.kind} {window.scope or ''}".strip(): (window.used_pct, window.resets_at) for window in reading.windows
    }


def test_the_app_server_tells_each_window_by_its_length_and_leaves_no_session(asking: Asking) -> None:
    asking.backend.answers["/wham/usage"] = (200, usage())
    before = (asking.folder / "auth.json").read_bytes()
    reading = asking.read()
    assert (reading.read_by, reading.plan, reading.overage) == ("app-server", "plus", True)
    told = used(reading)
    assert told["5h"] == (42.0, RESET)
    assert told["weekly"] == (77.0, WEEK)
    assert told["weekly GPT-Other"][0] == 0.0
    assert asking.backend.count("/wham/usage") == 1
    assert asking.backend.count("/wham/rate-limit-reset-credits") == 0
    assert asking.backend.count("/oauth/token") == 0
    assert not list(asking.folder.glob("sessions/**/*.jsonl"))
    assert (asking.folder / "auth.json").read_bytes() == before


def test_the_ladder_keeps_what_the_app_server_told(asking: Asking) -> None:
    asking.backend.answers["/wham/usage"] = (200, usage())
    home, environ = Home().ensure(), asking.environ | {"BULLSWARM_METERS": "live"}
    profile = registry.load(home, environ).profile("codex")
    refresher = Refresher(home, environ)
    assert refresher.refresh(profile).step == "live"
    assert refresher.refresh(profile).step == "fresh"
    assert asking.backend.count("/wham/usage") == 1
    reading = load_reading(home, "codex", now=datetime.now(UTC))
    told = {(window.kind, window.scope): (window.used_pct, window.resets_at) for window in reading.windows}
    assert told["5h", None] == (42.0, RESET)
    assert told["weekly", None] == (77.0, WEEK)
    assert (reading.read_by, reading.plan, reading.overage) == ("app-server", "plus", True)
    passive = environ | {"BULLSWARM_METERS": "passive"}
    assert Refresher(home, passive).refresh(profile, force=True).step == "passive"
    assert asking.backend.count("/wham/usage") == 1


def test_a_limit_that_is_reached_is_full(asking: Asking) -> None:
    asking.backend.answers["/wham/usage"] = (200, usage(allowed=False, limit_reached=True))
    assert used(asking.read())["weekly"][0] == 100.0


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, "sign-in"), (403, "refused"), (429, "limited"), (500, "unreachable"), (503, "unreachable")],
)
def test_what_the_backend_refuses_is_told_once_and_without_the_token(asking: Asking, status: int, kind: str) -> None:
    asking.backend.answers["/wham/usage"] = (status, {"error": {"message": f"no, {asking.token}"}})
    with pytest.raises(MeterError) as raised:
        asking.read(usage=f"{asking.backend.url}/backend-api/wham/usage")
    assert raised.value.kind == kind
    assert str(status) in str(raised.value)
    assert asking.token not in str(raised.value)
    assert asking.token[-20:] not in str(raised.value)
    assert asking.backend.count("/wham/usage") == 1


def test_a_codex_without_a_sign_in_says_so(asking: Asking) -> None:
    (asking.folder / "auth.json").unlink()
    with pytest.raises(MeterError, match="run codex login") as raised:
        asking.read()
    assert raised.value.kind == "sign-in"


def test_a_codex_with_a_key_has_no_windows(asking: Asking) -> None:
    # Past the pool's own billing, as where a keyring holds the key.
    (asking.folder / "auth.json").write_text(json.dumps({"auth_mode": "apikey", "OPENAI_API_KEY": "sk-fake"}))
    profile = registry.load(Home(), asking.environ).profile("codex")
    context = MeterContext(profile, asking.environ, datetime.now(UTC), lambda url, headers: None)
    error = meter.refusal(meter.ask_app_server(context))
    assert error.kind == "unsupported"


def test_a_backend_that_is_silent_is_left_and_the_app_server_with_it(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meter, "_ASK_SEC", 4.0)
    asking.backend.answers["/wham/usage"] = None
    with pytest.raises(MeterError, match="did not answer") as raised:
        asking.read()
    assert raised.value.kind == "unreachable"


def test_the_endpoint_is_asked_where_codex_knows_no_app_server(asking: Asking, tmp_path: Path) -> None:
    older = tmp_path / "bin" / "codex"
    older.unlink()
    older.write_text("#!/bin/sh\necho 'error: unrecognized subcommand' >&2\nexit 2\n", encoding="utf-8")
    older.chmod(0o755)
    asking.backend.answers["/wham/usage"] = (200, usage())
    reading = asking.read(usage=f"{asking.backend.url}/backend-api/wham/usage")
    assert reading.read_by == "usage endpoint"
    assert used(reading)["weekly"] == (77.0, WEEK)
    ((_, headers),) = asking.backend.asked
    assert headers["authorization"] == f"Bearer {asking.token}"
    assert headers["chatgpt-account-id"] == "acct-fake-1"


SUBSCRIBER = """\
model = "stub-model"
model_provider = "stub"
chatgpt_base_url = "{url}/backend-api/"

[model_providers.stub]
name = "stub"
base_url = "{url}/v1"
wire_api = "responses"
requires_openai_auth = true
request_max_retries = 0
stream_max_retries = 0
"""


def limits(used: float) -> dict[str, str]:
    """The headers by which the vendor tells of its windows beside each answer; the weekly one stands first."""
    told = {
        "primary-used-percent": "61.5",
        "primary-window-minutes": "10080",
        "primary-reset-at": str(int(WEEK.timestamp())),
        "secondary-used-percent": str(used),
        "secondary-window-minutes": "300",
        "secondary-reset-at": str(int(RESET.timestamp())),
        "credits-has-credits": "false",
        "credits-unlimited": "false",
    }
    return {f"x-codex-{name}": value for name, value in told.items()}


def as_subscriber(made: Machine) -> None:
    folder = made.home / ".codex"
    (folder / "config.toml").write_text(SUBSCRIBER.format(url=made.model.url), encoding="utf-8")
    sign_in(folder)
    made.environ |= {
        "BULLSWARM_METERS": "passive",
        "CODEX_REFRESH_TOKEN_URL_OVERRIDE": f"{made.model.url}/oauth/token",
    }


def test_a_run_leaves_a_reading_of_its_account_behind(make_machine: MachineMaker) -> None:
    made = make_machine(CODEX, [say("Done.", headers=limits(41.5))])
    as_subscriber(made)
    outcome = made.run()
    assert outcome.verdict["ok"], outcome.verdict
    document = json.loads((made.state / "meters" / "codex.json").read_bytes())
    windows = {window["kind"]: (window["usedPct"], window["resetsAt"]) for window in document["windows"]}
    assert windows == {"5h": (41.5, f"{RESET:%Y-%m-%dT%H:%M:%SZ}"), "weekly": (61.5, f"{WEEK:%Y-%m-%dT%H:%M:%SZ}")}
    assert (document["readBy"], document["overage"]) == ("rollout", False)
    rows = json.loads(made.bullswarm("pools", "--json").stdout)["pools"]
    (pool,) = (row for row in rows if row["pool"] == "codex")
    assert (pool["fiveHourUsedPct"], pool["pacingWindow"], pool["pacingUsedPct"]) == (41.5, "weekly", 61.5)
