"""What an attempt told of its account's windows is stored, and nothing that goes wrong with it reaches the verdict."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bullswarm_core.meters.after_attempt import keep_attempt_reading
from bullswarm_core.pools import Window
from bullswarm_core.pools.connector import Connector, PoolProfile
from bullswarm_core.quota.observation import Observation
from bullswarm_core.quota.reading import load_reading
from bullswarm_core.store.home import Home
from bullswarm_core.streams.facts import ExitFacts, StreamFacts

NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
TOLD = Observation(
    NOW - timedelta(minutes=2),
    (Window("5h", 83.0, NOW + timedelta(hours=2), source="live", reset_source="provider"),),
    "stream",
)


def keep(read: Callable[..., Any] | None, meters: str = "passive") -> None:
    provider = SimpleNamespace(**({"attempt_reading": read} if read else {}))
    profile = PoolProfile(
        "claude-code", Connector("claude-code", "Claude Code", "claude"), "/bin/claude", provider=provider
    )
    keep_attempt_reading(
        Home().ensure(),
        profile,
        stream_file=Path("/nowhere"),
        stream=StreamFacts(),
        ended=ExitFacts("exited"),
        environ={"BULLSWARM_METERS": meters},
        now=NOW,
    )


def known() -> tuple[tuple[str, float | None, datetime | None], ...]:
    reading = load_reading(Home(), "claude-code", now=NOW)
    return tuple((window.kind, window.used_pct, window.captured_at) for window in reading.windows)


@pytest.mark.parametrize("meters", ["live", "passive", ""])
def test_a_reading_is_stored_with_the_time_at_which_it_was_told(meters: str) -> None:
    keep(lambda profile, **facts: TOLD, meters)
    assert known() == (("5h", 83.0, NOW - timedelta(minutes=2)),)


def test_with_meters_off_nobody_looks() -> None:
    keep(lambda profile, **facts: pytest.fail("it was asked"), "off")
    assert known() == ()


@pytest.mark.parametrize("found", [None, 5, Observation(NOW)])
def test_no_reading_leaves_the_known_one_alone(found: Any) -> None:
    keep(lambda profile, **facts: TOLD)
    keep(lambda profile, **facts: found)
    assert len(known()) == 1


def test_a_provider_that_knows_no_way_or_fails() -> None:
    def fail(profile: PoolProfile, **facts: Any) -> Observation:
        raise RuntimeError("a bug of its own")

    keep(None)
    keep(fail)
    assert known() == ()


def test_a_disk_that_refuses_costs_the_reading_only(monkeypatch: pytest.MonkeyPatch) -> None:
    from bullswarm_core.errors import StorageError
    from bullswarm_core.meters import refresh

    def refuse(*words: Any, **options: Any) -> None:
        raise StorageError("the disk is full")

    monkeypatch.setattr(refresh, "keep", refuse)
    keep(lambda profile, **facts: TOLD)
    assert known() == ()
