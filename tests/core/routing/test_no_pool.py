"""Why no pool is free, in words that read: the pool, then what keeps it out, then why nothing stands in."""

from __future__ import annotations

import pytest
from tests.core.routing.builders import NOW, pool, window

from bullswarm_core.pools import Pool, Rung
from bullswarm_core.routing import Request, decide

GONE = pool("claude-code", unavailable="claude was not found on PATH · install Claude Code")
ECHO = pool("echo", last_resort=True)
FREE = "no pool free: claude-code unavailable: claude was not found on PATH · install Claude Code"
UNKNOWN = " · no pool has the model gpt-99 on a tier: bullswarm strategy show lists what they have"
OTHER_MODEL = {"medium": Rung("opus")}


@pytest.mark.parametrize(
    ("request_", "pools", "reason"),
    [
        (Request("analyze", model="gpt-99"), [GONE, ECHO], FREE + "; echo cannot run gpt-99" + UNKNOWN),
        (
            Request("analyze", capabilities=("web",)),
            [pool("claude-code", unavailable=GONE.unavailable, capabilities=frozenset({"web"})), ECHO],
            FREE + "; echo lacks web",
        ),
        (Request("analyze", pin="claude-code"), [GONE, ECHO], FREE),
        (Request("analyze", use_pools=("claude-code",)), [GONE, ECHO], FREE),
        (
            Request("analyze", model="gpt-99"),
            [pool("a", tiers=OTHER_MODEL), ECHO],
            "no eligible pool: a cannot run gpt-99; echo cannot run gpt-99" + UNKNOWN,
        ),
        (
            Request("analyze", model="opus"),
            [GONE, pool("a", enabled=False, tiers=OTHER_MODEL), ECHO],
            FREE + "; echo cannot run opus",
        ),
        (
            Request("analyze"),
            [GONE, pool("spent", window("weekly", 100, 50)), ECHO],
            FREE + "; spent at its weekly limit until 2026-09-14T00:00:00Z"
            "; echo is used only when named or when no other pool is left",
        ),
    ],
)
def test_a_reason_follows_the_name_of_its_pool(request_: Request, pools: list[Pool], reason: str) -> None:
    decision = decide(request_, pools, now=NOW)
    assert (decision.pool, decision.failure_kind) == (None, "unavailable")
    assert decision.reason == reason


def test_a_limit_alone_is_told_as_it_always_was() -> None:
    decision = decide(Request("analyze"), [pool("spent", window("weekly", 100, 50)), ECHO], now=NOW)
    assert decision.failure_kind == "quota"
    assert decision.reason.startswith("no pool with quota to spare: spent at its weekly limit until ")
    assert "echo" not in decision.reason
