"""What is advised for each pool and tier, and why: models made for a tier, levels by pace, never a preferred pool."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core.dispatch.advice import AHEAD_POINTS, PoolAdvice, advise
from bullswarm_core.dispatch.assemble import assemble_pools
from bullswarm_core.pools import EFFORTS, Pool, Rate, Rung, Window
from bullswarm_core.pools.connector import Connector, ModelProfile, PoolProfile, made_for
from bullswarm_core.pools.model_catalog import ModelEntry, ModelList
from bullswarm_core.pools.settings import PoolChoice, Settings
from bullswarm_core.quota.reading import Reading
from bullswarm_core.routing.request import RoutingContext

NOW = datetime(2026, 3, 10, tzinfo=UTC)
CODEX = Connector(
    "codex",
    "Codex",
    "codex",
    tiers={effort: Rung(reasoning=effort) for effort in EFFORTS},
    quota_window="weekly",
    model_profiles=(
        ModelProfile("-astra", tier="high"),
        ModelProfile("-luna", tier="low"),
        ModelProfile("-sol", tier="medium"),
    ),
    launch_data={"reasoning": {"arguments": ["{reasoning}"], "levels": ["minimal", "low", "medium", "high", "xhigh"]}},
)
PROFILE = PoolProfile("codex", CODEX, "/bin/codex", signed_in=True, billing="subscription")
KNOWN = ModelList(
    (
        ModelEntry("7-sol", default=True),
        ModelEntry("7-astra"),
        ModelEntry("6-astra"),
        ModelEntry("6-luna", levels=("minimal",)),
    ),
    NOW - timedelta(hours=2),
)


def pool_with(used: float | None, settings: Settings, rate: float | None = None) -> Pool:
    """Codex half-way through its week; ``used`` is the reading in percent."""
    window = Window("weekly", used, resets_at=NOW + timedelta(days=3.5), captured_at=NOW)
    meters = {} if used is None else {"codex": Reading(windows=(window,))}
    rates = {"codex": {"weekly": Rate(rate, "history", 7)}} if rate else {}
    (pool,) = assemble_pools([PROFILE], settings, now=NOW, meters=meters, rates=rates)  # type: ignore[arg-type]
    return pool


def advice(
    *,
    used: float | None = None,
    known: ModelList = KNOWN,
    settings: Settings | None = None,
    own: bool = False,
    rate: float | None = None,
) -> PoolAdvice:
    decided = settings or Settings()
    pool = pool_with(used, decided, rate)
    return advise(pool, PROFILE, known, decided, now=NOW, own_rungs=own, context=RoutingContext())


def test_the_first_profile_that_matches_says_what_a_model_is_made_for() -> None:
    assert [made_for(CODEX, name) for name in ("7-astra", "7-sol", "6-luna", "other")] == [
        "high",
        "medium",
        "low",
        None,
    ]


def test_each_tier_gets_the_model_made_for_it_and_the_default_is_left_to_the_cli() -> None:
    found = advice()
    assert {tier: (each.model, each.level) for tier, each in found.tiers.items()} == {
        "high": ("7-astra", "high"),
        "medium": (None, "medium"),
        "low": ("6-luna", "minimal"),
    }
    assert "the first in its list that is made for this tier (4 models, asked 2h00m ago)" in found.tiers["high"].why
    assert "the nearest to low that this model takes" in found.tiers["low"].why
    assert found.names_models and found.kept is None


def test_models_that_may_not_be_run_are_passed_by() -> None:
    found = advice(settings=Settings(excluded_models=frozenset({"7-astra", "6-luna"})))
    assert found.tiers["high"].model == "6-astra"
    assert found.tiers["low"].model is None
    assert "those made for this tier may not be run" in found.tiers["low"].why


@pytest.mark.parametrize("known", [ModelList(), ModelList((), None, "no answer", NOW)])
def test_without_a_list_every_tier_keeps_the_default(known: ModelList) -> None:
    found = advice(known=known)
    assert not found.names_models
    assert {each.level for each in found.tiers.values()} == {"high", "medium", "low"}
    assert any("bullswarm strategy inventory" in hint for hint in found.hints)


@pytest.mark.parametrize(("used", "spared"), [(None, False), (20, False), (59.9, False), (60, True), (95, True)])
def test_a_pool_ahead_of_its_pace_is_spared_on_the_easier_tiers(used: float | None, spared: bool) -> None:
    found = advice(used=used, known=ModelList())
    assert found.tiers["high"].level == "high"
    assert found.tiers["medium"].level == ("low" if spared else "medium")
    assert found.tiers["low"].level == ("minimal" if spared else "low")
    assert ("points ahead of its pace" in found.tiers["medium"].why) is spared


@given(st.floats(0, 200, allow_nan=False))
def test_advice_never_raises_a_level_and_never_spends_more_when_more_is_used(used: float) -> None:
    found = advice(used=used, known=ModelList())
    order = ("minimal", "low", "medium", "high")
    for tier, each in found.tiers.items():
        assert each.level is not None and order.index(each.level) <= order.index(tier)
    assert (found.tiers["low"].level == "minimal") is (round(50 - used, 1) <= -AHEAD_POINTS)


def test_the_standing_tells_what_is_left_and_how_it_is_known() -> None:
    assert advice(used=40, rate=0.5).standing == (
        "weekly used 40%, surplus 10, about 2h00m of work left at 0.5 %/min (history, 7 samples)"
    )
    assert advice(used=40).standing == "weekly used 40%, surplus 10"


def test_what_the_person_set_is_kept_and_says_how_it_is_let_go() -> None:
    assert "bullswarm strategy clear-rungs codex" in (advice(own=True).kept or "")
    off = advice(settings=Settings(pools={"codex": PoolChoice(enabled=False)}))
    assert off.kept == "it is off (bullswarm strategy set-provider codex on)"


def test_hints_name_what_only_the_person_can_add() -> None:
    free = ModelList((ModelEntry("x-free", free=True),), NOW)
    assert any("bullswarm strategy set-rung codex low --model x-free" in hint for hint in advice(known=free).hints)
    failed = ModelList(KNOWN.models, NOW, "it fell silent", NOW)
    assert advice(known=failed).hints == (
        "its models: it fell silent · bullswarm strategy inventory --refresh asks again",
    )
