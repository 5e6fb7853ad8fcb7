"""A free model is tried with one word before a task is trusted to it, and the answer is kept for a quarter of an hour."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bullswarm_core.dispatch.probe import PROMPT, TIMEOUT_SEC, is_probed, probe
from bullswarm_core.dispatch.services import Services
from bullswarm_core.pools import Rung
from bullswarm_core.pools.connector import Connector, PoolProfile
from bullswarm_core.process.child import ChildResult
from bullswarm_core.store.home import Home

NOW = datetime(2026, 11, 30, 6, 0, tzinfo=UTC)
RUNG = Rung(model="qwen:free", free=True, source="settings")
PROFILE = PoolProfile(
    id="free", connector=Connector("free", "Free", "free", launch_data={"modelFlag": "-m"}), binary="/bin/x"
)
Runner = Callable[..., ChildResult]


def answering(result: ChildResult, calls: list[tuple[Any, ...]]) -> Runner:
    def run(argv: tuple[str, ...], **options: Any) -> ChildResult:
        assert options["timeout_sec"] == TIMEOUT_SEC
        assert options["input"] == PROMPT.encode()
        calls.append(argv)
        return result

    return run


def services_at(home: Path, now: datetime) -> Services:
    return Services(
        home=Home(home / ".bullswarm"), environ={"PATH": "/bin"}, load_profiles=lambda: [PROFILE], now=lambda: now
    )


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (ChildResult(0, b"", b""), None),
        (ChildResult(0, b"PONG: timeout, 404", b""), None),
        (ChildResult(None, b"", b"", timed_out=True), "timeout"),
        (ChildResult(1, b'{"error":{"statusCode":404}}', b""), "404"),
        (ChildResult(1, b"", b"Model not found: qwen:free"), "404"),
        (ChildResult(1, b"", b"the request met a timeout somewhere"), "provider error"),
    ],
)
def test_the_exit_and_the_timer_judge(own_home: Path, result: ChildResult, reason: str | None) -> None:
    assert probe(services_at(own_home, NOW), PROFILE, RUNG, run=answering(result, [])) == reason


@pytest.mark.parametrize("code", [0, 1])
def test_the_answer_is_kept_for_15_minutes(own_home: Path, code: int) -> None:
    calls: list[tuple[Any, ...]] = []
    run = answering(ChildResult(code, b"", b""), calls)
    for minutes in (0, 14.9, 15.1):
        probe(services_at(own_home, NOW + timedelta(minutes=minutes)), PROFILE, RUNG, run=run)
    assert len(calls) == 2
    probe(services_at(own_home, NOW + timedelta(minutes=16)), PROFILE, replace(RUNG, model="other:free"), run=run)
    assert len(calls) == 3


def test_a_damaged_cache_is_an_empty_one(own_home: Path) -> None:
    cache = own_home / ".bullswarm" / "cache" / "free-model-probes.json"
    cache.parent.mkdir(parents=True)
    for content in ("{", "[]", '{"entries": {"free qwen:free": {"at": "soon"}}}', '{"entries": 7}'):
        cache.write_text(content)
        assert probe(services_at(own_home, NOW), PROFILE, RUNG, run=answering(ChildResult(0, b"", b""), [])) is None


@pytest.mark.parametrize(
    "rung",
    [
        None,
        replace(RUNG, free=False),
        Rung(model=None, free=True, source="settings"),
        replace(RUNG, source="connector"),
        replace(RUNG, source="request"),
    ],
)
def test_only_a_free_model_that_a_rung_names_is_tried(rung: Rung | None) -> None:
    assert not is_probed(rung)
    assert is_probed(RUNG)
