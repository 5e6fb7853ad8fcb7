"""Which model and reasoning level a pool runs: the person's word about models, and what a plan doesn't include."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from bullswarm_core.dispatch.assemble import assemble_pools, current_pools, routing_context, rungs_of
from bullswarm_core.pools import EFFORTS, Rung
from bullswarm_core.pools.connector import Connector, PoolProfile
from bullswarm_core.pools.settings import Assignment, ReasoningLayers, RungChoice, Settings
from bullswarm_core.quota.refusals import PlanRefusal, note_plan_refusal
from bullswarm_core.routing import Decision, Request, decide
from bullswarm_core.store.home import Home

NOW = datetime(2026, 3, 10, tzinfo=UTC)
CODEX = Connector("codex", "Codex", "codex", tiers={effort: Rung(reasoning=effort) for effort in EFFORTS})
PROFILE = PoolProfile("codex", CODEX, "/bin/codex", signed_in=True)
REFUSED = {"codex": {"gpt": PlanRefusal("codex", "gpt", NOW, "no")}}


def picked(
    settings: Settings, *, model: str | None = None, refusals: dict[str, dict[str, PlanRefusal]] | None = None
) -> Decision:
    pools = assemble_pools([PROFILE], settings, now=NOW, plan_refusals=refusals)
    request = Request("build", effort="high", model=model)
    return decide(request, pools, now=NOW, context=routing_context(settings))


def test_the_persons_levels_are_in_the_rungs() -> None:
    settings = Settings(
        reasoning=ReasoningLayers(
            tiers={"low": "minimal", "high": "max"},
            pools={"codex": {"high": "xhigh"}},
            models={"codex": {"gpt": {"medium": "none"}}},
        ),
        rungs={"codex": {"high": RungChoice("a"), "medium": RungChoice("gpt", "low"), "low": RungChoice("b")}},
    )
    assert {tier: rung.reasoning for tier, rung in rungs_of(PROFILE, settings).items()} == {
        "high": "xhigh",
        "medium": "none",
        "low": "minimal",
    }


@pytest.mark.parametrize(
    ("layers", "wanted", "source"),
    [
        (ReasoningLayers(), "high", "connector"),
        (ReasoningLayers(models={"codex": {"gpt": {"high": "low"}}}), "low", "settings"),
        (ReasoningLayers(models={"codex": {"gpt": {"low": "minimal"}}}), "high", "connector"),
        (ReasoningLayers(pools={"codex": {"high": "medium"}}), "medium", "settings"),
        (ReasoningLayers(tiers={"high": "medium"}), "medium", "settings"),
        (ReasoningLayers(recommended={"codex": {"high": "medium"}}), "medium", "recommendation"),
    ],
)
def test_a_model_that_is_asked_for_or_assigned_has_its_own_level(
    layers: ReasoningLayers, wanted: str, source: str
) -> None:
    asked = picked(Settings(reasoning=layers), model="gpt")
    assigned = picked(Settings(reasoning=layers, assignments={"high": Assignment("codex", "gpt")}))
    for decision in (asked, assigned):
        assert decision.rung is not None
        assert (decision.rung.model, decision.rung.reasoning) == ("gpt", wanted)
        # Who named the model says nothing of who named the level.
        assert decision.rung.level_source == source


def test_the_model_of_a_rung_and_its_level_each_have_their_own_source() -> None:
    by_person = RungChoice("gpt", "low")
    settings = Settings(rungs={"codex": {"high": RungChoice("gpt"), "low": by_person}})
    rungs = rungs_of(PROFILE, settings)
    assert {tier: (rung.source, rung.level_source) for tier, rung in rungs.items()} == {
        "high": ("settings", "connector"),
        "low": ("settings", "settings"),
    }
    plain = PoolProfile("plain", Connector("plain", "Plain", "plain", tiers={"high": Rung()}), "/bin/plain")
    assert rungs_of(plain, Settings())["high"].level_source == "cli-default"


def test_a_model_of_another_tier_runs_with_the_level_of_the_tier_that_is_asked_for() -> None:
    settings = Settings(rungs={"codex": {"low": RungChoice("gpt", "minimal"), "high": RungChoice("big")}})
    decision = picked(settings, model="gpt")
    assert decision.rung == Rung("gpt", "high", source="request", level_source="connector")


def test_a_model_that_is_turned_off_on_a_pool_is_not_run_there_whatever_names_it() -> None:
    settings = Settings(disabled_models={"codex": frozenset({"gpt"}), "grok": frozenset({"other"})})
    decision = picked(settings, model="gpt")
    assert decision.pool is None
    assert "may not run gpt: you turned it off on this pool" in decision.reason
    assert picked(settings, model="other").pool == "codex"
    by_rung = Settings(disabled_models=settings.disabled_models, rungs={"codex": {"high": RungChoice("gpt")}})
    assert picked(by_rung).pool is None


@pytest.mark.parametrize("excluded", [True, False])
def test_an_assigned_model_that_may_not_run_leaves_the_pool_with_its_own(excluded: bool) -> None:
    settings = Settings(
        assignments={"high": Assignment("codex", "gpt")}, excluded_models=frozenset({"gpt"} if excluded else ())
    )
    decision = picked(settings, refusals=None if excluded else REFUSED)
    assert decision.rung is not None and decision.rung.model is None


def test_a_model_that_the_plan_lacks_is_passed_over_with_the_way_back() -> None:
    decision = picked(Settings(rungs={"codex": {"high": RungChoice("gpt")}}), refusals=REFUSED)
    assert decision.pool is None
    assert "the plan doesn't include it, said its provider at 2026-03-10T00:00:00Z" in decision.reason
    assert "bullswarm strategy include-model gpt --pool codex tries it again" in decision.reason
    other = picked(Settings(rungs={"codex": {"high": RungChoice("other")}}), refusals=REFUSED)
    assert other.rung is not None and other.rung.model == "other"


def test_the_memory_of_the_home_counts_also_for_the_default_model(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    note_plan_refusal(home, "codex", None, "no", now=NOW)
    (pool,) = current_pools(home, [PROFILE], Settings(), now=NOW)
    assert all(rung.refused for rung in pool.tiers.values())
    decision = decide(Request("build"), [pool], now=NOW)
    assert "may not run its default model: the plan doesn't include it" in decision.reason
