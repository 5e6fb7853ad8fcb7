"""What the attempts of a run add up to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.runs.journals import Written, document

from bullswarm_core.reports.workflow_result import totals_of


@given(st.lists(st.tuples(st.sampled_from(["codex", "grok"]), st.floats(0, 900)), min_size=1, max_size=30))
def test_short_attempts_count_as_long_as_they_took(attempts: list[tuple[str, float]]) -> None:
    """Seconds are told to people, so that a tenth of a minute (6 s) is too coarse; and nothing is lost by adding up."""
    written = Written(document(*({"id": f"s{place}"} for place in range(len(attempts)))))
    for place, (pool, seconds) in enumerate(attempts):
        written.run(f"s{place}", pool=pool, meta={"wallSec": seconds})
    totals = totals_of(written.state)
    assert totals["minutes"] * 60 == pytest.approx(sum(seconds for _, seconds in attempts), abs=0.05)
    for pool in {pool for pool, _ in attempts}:
        alone = [seconds for name, seconds in attempts if name == pool]
        assert totals["byPool"][pool]["attempts"] == len(alone)
        assert totals["byPool"][pool]["minutes"] * 60 == pytest.approx(sum(alone), abs=0.05)
