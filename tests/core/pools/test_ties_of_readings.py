"""Between pools that are equal otherwise, the one whose numbers are known comes first."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.routing.builders import NOW, ending, pool, window

from bullswarm_core.pools import WindowSource
from bullswarm_core.routing import Request, decide

ANALYZE = Request("analyze")


@pytest.mark.parametrize("fresh", ["live", "cache"])
@pytest.mark.parametrize("stale", ["a", "b"])
def test_a_stale_reading_never_wins_a_tie(fresh: WindowSource, stale: str) -> None:
    pools = [pool(name, window("weekly", 40, 60, source="stale" if name == stale else fresh)) for name in "ab"]
    decision = decide(ANALYZE, pools, now=NOW)
    assert decision.pool == {"a": "b", "b": "a"}[stale]
    assert [row.pacing_source for row in decision.candidates] == [fresh, "stale"]


def test_a_stale_reading_of_a_window_that_is_about_to_expire_never_wins_a_tie_either() -> None:
    soon = ending("weekly", 40, timedelta(hours=5))
    pools = [pool("a", replace(soon, source="stale")), pool("b", soon)]
    assert decide(ANALYZE, pools, now=NOW).pool == "b"


@given(used=st.integers(0, 90), more=st.integers(1, 9), sources=st.permutations(["stale", "live"]))
def test_staleness_breaks_ties_alone(used: int, more: int, sources: list[WindowSource]) -> None:
    """A pool with more surplus comes first however old its numbers are: they are the best that anybody has."""
    fuller, emptier = (
        pool(name, window("weekly", share, 95, source=source))
        for name, share, source in zip("ab", (used + more, used), sources, strict=True)
    )
    for pools in itertools.permutations([fuller, emptier]):
        assert decide(ANALYZE, list(pools), now=NOW).pool == "b"
