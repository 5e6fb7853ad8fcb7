"""A provider whose reader asks one endpoint, and a clock that stands."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from bullswarm_core.meters.refresh import Refresher
from bullswarm_core.pools import Window
from bullswarm_core.pools.connector import Connector, Meter, PoolProfile
from bullswarm_core.quota.observation import MeterContext, Observation
from bullswarm_core.store.home import Home

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
SECRET = "sk-SECRET-0123456789"


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


def live_reading(context: MeterContext) -> Observation:
    """A reader as a provider has one: asks its endpoint with the account's token."""
    body = context.fetch(context.endpoints["usage"], {"Authorization": f"Bearer {SECRET}"})
    windows = tuple(
        Window(kind, body[kind], context.now + 2 * HOUR, reset_source="provider")
        for kind in ("5h", "weekly")
        if kind in body
    )
    partial = body.get("partial", False)
    return Observation(context.now, windows, "usage endpoint", "pro", overage=body.get("overage"), partial=partial)


def profile(url: str = "https://example.invalid/", *, interval: float = 0.0, **hooks: Any) -> PoolProfile:
    meter = Meter("reader", ("5h", "weekly"), {"usage": url}, interval)
    connector = Connector("fake", "Fake", "fake", meter=meter)
    hooks = {"live_reading": live_reading, **hooks}
    return PoolProfile(
        "fake", connector, "/bin/true", config_dir="/nowhere/fake", account="acct-1", signed_in=True,
        provider=SimpleNamespace(**hooks),
    )  # fmt: skip


def refresher(home: Home, clock: Clock, **environ: str) -> Refresher:
    return Refresher(home, {"BULLSWARM_METERS": "live", **environ}, clock)
