"""`bullswarm strategy`: decisions about models, tiers and levels; what they do to the file and to the next pick."""

import io
import json
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.server.strategy_site import CODEX_MODELS, StrategySite, strategy_site

from bullswarm_core.dispatch.assemble import current_pools, routing_context
from bullswarm_core.errors import UsageError
from bullswarm_core.pools import Effort
from bullswarm_core.pools.labels import Labels, set_label
from bullswarm_core.pools.settings import RungChoice, Settings, Subscription
from bullswarm_core.quota.refusals import load_plan_refusals, note_plan_refusal
from bullswarm_core.routing import Decision, Request, decide
from bullswarm_core.store.home import write_json
from bullswarm_providers.registry import load
from bullswarm_server.cli import strategy
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.displays.strategy import lines

NOW = datetime(2026, 3, 1, 10, tzinfo=UTC)


@pytest.fixture
def site(own_home: Path, tmp_path: Path) -> StrategySite:
    return strategy_site(own_home, tmp_path)


def pick(site: StrategySite, tier: Effort = "high", *, model: str | None = None) -> Decision:
    """Decide among the pools that the home's decisions make."""
    settings, profiles = site.settings(), load(site.home, site.context.environ).profiles
    codex = [profile for profile in profiles if profile.id == "codex"]
    pools = current_pools(site.home, codex, settings, now=NOW)
    request = Request("build", effort=tier, model=model)
    return decide(request, pools, now=NOW, context=routing_context(settings))


def runs(site: StrategySite, tier: Effort = "high") -> tuple[str | None, str | None] | None:
    """Return the model and level that codex would run on a tier, None when it is left out."""
    rung = pick(site, tier).rung
    return (rung.model, rung.reasoning) if rung else None


def test_a_model_runs_on_exactly_its_tiers(site: StrategySite) -> None:
    text = site("set-model", "codex", "gpt", "--tiers", "high,low")
    assert text.startswith("codex runs gpt on high, low and on no other tier\n")
    assert "left out on the tiers without a rung: medium" in site.said
    assert (runs(site, "high"), runs(site, "medium"), runs(site, "low")) == (("gpt", "high"), None, ("gpt", "low"))
    site("set-model", "codex", "mini", "--tiers", "low,medium")
    site("set-model", "codex", "gpt", "--tiers", "high")
    assert (runs(site, "high"), runs(site, "medium"), runs(site, "low")) == (
        ("gpt", "high"), ("mini", "medium"), ("mini", "low"),
    )  # fmt: skip
    assert site("set-model", "codex", "gpt", "--tiers", "high").startswith("nothing to do: codex runs gpt on high and ")


def test_a_model_that_is_turned_off_runs_nowhere_on_its_pool_until_it_is_included(site: StrategySite) -> None:
    site("set-model", "codex", "gpt", "--tiers", "high")
    site("set-model", "codex", "mini", "--tiers", "low")
    assert "turned off on codex: model gpt\n" in site("set-model", "codex", "gpt", "--tiers", "off")
    assert (runs(site, "high"), runs(site, "low")) == (None, ("mini", "low"))
    site("set-rung", "codex", "high", "--model", "gpt")
    assert "gpt is not run on codex: you turned it off there · bullswarm strategy include-model gpt" in site.said
    assert "you turned it off on this pool" in pick(site).reason
    assert site("include-model", "gpt", "--pool", "codex").startswith("the model gpt may be run again on codex\n")
    assert runs(site) == ("gpt", "high")
    nothing = "nothing to do: the model gpt is not turned off on codex, and no plan was said to lack it there"
    assert site("include-model", "gpt", "--pool", "codex").startswith(nothing)


def test_the_last_model_turned_off_leaves_the_pool_out_and_clear_rungs_is_the_way_back(site: StrategySite) -> None:
    site("set-model", "codex", "gpt", "--tiers", "high")
    site("set-model", "codex", "gpt", "--tiers", "off")
    assert runs(site) is None
    site("clear-rungs", "codex")
    assert runs(site) == (None, "high")
    assert pick(site, model="gpt").pool is None


def test_models_of_the_reference_form_are_moved_and_other_keys_stay(site: StrategySite) -> None:
    theirs = {"modelTiers": {"codex": {"old": ["high", "medium"], "mini": ["low"]}}, "policy": {"theirs": 1}}
    write_json(site.home.state_file, {"version": 1, "strategy": theirs, "decisionLog": [1]})
    site("set-model", "codex", "old", "--tiers", "medium")
    assert (runs(site, "high"), runs(site, "medium"), runs(site, "low")) == (None, ("old", "medium"), ("mini", "low"))
    state = site.state()
    assert (state["decisionLog"], state["strategy"]["policy"]) == ([1], {"theirs": 1})


def test_a_list_of_disabled_models_of_the_reference_program_stays_in_force(site: StrategySite) -> None:
    write_json(site.home.state_file, {"version": 1, "strategy": {"disabledModels": ["a", "b"]}})
    site("set-model", "codex", "c", "--tiers", "off")
    settings = site.settings()
    assert settings.excluded_models == {"a", "b"}
    assert settings.disabled_models == {"codex": {"c"}}
    write_json(site.home.state_file, {"version": 1, "strategy": {"disabledModels": ["a", "b"]}})
    site("include-model", "a")
    assert site.settings().excluded_models == {"b"}


def test_a_tier_is_reset_for_every_pool(site: StrategySite) -> None:
    site("set-model", "codex", "gpt", "--tiers", "high,low")
    site("assign", "high", "--pool", "codex", "--model", "gpt")
    site("set-reasoning", "--tier", "high", "--level", "low")
    site("set-reasoning", "--tier", "high", "--level", "low", "--pool", "codex", "--model", "gpt")
    site("set-reasoning", "--tier", "low", "--level", "high")
    assert site("reset-tier", "high").startswith("nothing of yours is left on the high tier")
    assert (runs(site, "high"), runs(site, "medium"), runs(site, "low")) == ((None, "high"), None, ("gpt", "high"))
    assert site.settings().assignments == {}
    site("reset-tier", "low")
    site("reset-tier", "medium")
    assert runs(site, "low") == (None, "low")


def test_a_tier_about_which_nothing_was_decided(site: StrategySite) -> None:
    assert site("reset-tier", "high").startswith("nothing to do: you decided nothing about the high tier\n")
    assert not site.home.state_file.exists()


def test_levels_are_set_from_wide_to_narrow_and_taken_back(site: StrategySite) -> None:
    text = site("set-reasoning", "--tier", "high", "--level", "low")
    assert text.startswith("every pool reasons at low on the high tier\n") and "\nreasoning high: low\n" in text
    assert runs(site) == (None, "low")
    site("set-reasoning", "--tier", "high", "--level", "xhigh", "--pool", "codex")
    assert runs(site) == (None, "xhigh")
    site("set-reasoning", "--tier", "high", "--level", "medium")
    assert "codex keeps xhigh (yours for the pool) on the high tier, which was set more closely" in site.said
    site("set-rung", "codex", "high", "--model", "gpt", "--reasoning", "minimal")
    site("set-reasoning", "--tier", "high", "--level", "low", "--pool", "codex", "--model", "gpt")
    assert runs(site) == ("gpt", "low")
    site("set-rung", "codex", "high", "--model", "gpt", "--reasoning", "high")
    assert runs(site) == ("gpt", "high")
    assert site("set-reasoning", "--tier", "high", "--level", "medium").startswith("nothing to do: every pool reasons")
    site("clear-rungs", "codex")
    assert site("reset-reasoning", "--pool", "codex").startswith("the reasoning levels of codex that you set are taken")
    assert runs(site) == (None, "medium")
    site("reset-reasoning", "--tier", "high")
    assert runs(site) == (None, "high")
    assert site("reset-reasoning").startswith("nothing to do: no reasoning level was set\n")


def test_a_recommended_level_is_taken_back_with_the_others(site: StrategySite) -> None:
    write_json(
        site.home.state_file, {"version": 1, "strategy": {"recommendedReasoning": {"codex": {"high": "low"}, "x": {}}}}
    )
    assert runs(site) == (None, "low")
    assert "recommended reasoning codex high: low\n" in site("show")
    site("reset-reasoning", "--pool", "codex")
    assert runs(site) == (None, "high")


def test_what_a_plan_lacks_is_shown_and_tried_again_on_the_persons_word(site: StrategySite) -> None:
    set_label(site.home, "codex", "cx", ["codex"])
    site("set-model", "codex", "gpt", "--tiers", "high")
    note_plan_refusal(site.home, "codex", "gpt", "gpt is not available on your plan", now=NOW)
    assert pick(site).pool is None
    text = site("show")
    assert "not in the plan of cx: model gpt, since 2026-03-01T10:00:00Z (“gpt is not available on your plan”)" in text
    shown = site.document("show")["modelsNotInPlan"]
    assert shown == [
        {
            "pool": "codex",
            "model": "gpt",
            "at": "2026-03-01T10:00:00Z",
            "why": "gpt is not available on your plan",
            "wayBack": "bullswarm strategy include-model gpt --pool codex",
        }
    ]
    before = site.home.state_file.read_bytes()
    assert site("include-model", "gpt", "--pool", "cx").startswith("the model gpt may be run again on cx\n")
    assert runs(site) == ("gpt", "high")
    assert site.home.state_file.read_bytes() == before


def test_a_plan_of_another_name_may_include_other_models(site: StrategySite) -> None:
    site("set-subscription", "codex", "--plan", "plus")
    note_plan_refusal(site.home, "codex", "gpt", "no", now=NOW)
    site("set-subscription", "codex", "--plan", "plus", "--reserve", "10")
    assert "gpt" in load_plan_refusals(site.home)["codex"]
    text = site("set-subscription", "codex", "--plan", "pro")
    assert "subscription codex plan=pro window=weekly (its connector's) resets=unknown reserve=10%\n" in text
    assert "codex may run again what its former plan lacked: gpt" in site.said
    assert load_plan_refusals(site.home) == {}
    assert site.settings().subscriptions["codex"] == Subscription(plan="pro", reserve_pct=10)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["--quota-window", "monthly"], "window=monthly resets"),
        (["--quota-window", "unknown", "--plan", "pro"], "window=weekly (its connector's) resets"),
    ],
)
def test_the_window_in_force_is_shown_with_who_named_it(site: StrategySite, words: list[str], shown: str) -> None:
    assert shown in site("set-subscription", "codex", *words) and shown in site("show")


def test_a_window_of_a_pool_that_is_gone_is_unknown() -> None:
    settings = Settings(subscriptions={"codex": Subscription(plan="pro")})
    (line, *_) = lines(settings, Labels(), {})
    assert line == "subscription codex plan=pro window=unknown (the pool is not on this machine) resets=unknown"


def test_a_reserve_reaches_routing(site: StrategySite) -> None:
    site("set-subscription", "codex", "--reserve", "12.5")
    assert routing_context(site.settings()).reserves == {"codex": 12.5}


def test_billed_work_is_allowed_pool_by_pool(site: StrategySite) -> None:
    def granted() -> list[str]:
        profiles = load(site.home, site.context.environ).profiles
        pools = current_pools(site.home, profiles, site.settings(), now=NOW)
        return [pool.id for pool in pools if pool.billing_granted]

    assert granted() == []
    assert "pool codex on sandbox=workspace allow-billing\n" in site("set-provider", "codex", "--allow-billing", "on")
    assert granted() == ["codex"]
    assert site.document("show")["pools"]["codex"]["allowBilling"] is True
    site("set-provider", "codex", "--allow-billing", "off")
    assert granted() == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("set-model nobody m --tiers high", 'unknown pool "nobody"'),
        ("set-reasoning --tier high --level giant", 'unknown reasoning level "giant"'),
        ("set-reasoning --tier high --level giant --pool codex", 'unknown reasoning level "giant"'),
        ("set-reasoning --tier high --level low --model m", "--model needs --pool"),
        ("set-reasoning --tier high --level low --pool nobody", 'unknown pool "nobody"'),
        ("reset-reasoning --pool nobody", 'unknown pool "nobody"'),
        ("include-model m --pool nobody", 'unknown pool "nobody"'),
        ("rungs --pool nobody", 'unknown pool "nobody"'),
    ],
)
def test_a_wrong_call_changes_nothing(site: StrategySite, words: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        site(*words.split())
    assert str(caught.value).startswith(message)
    assert not site.home.state_file.exists()


@pytest.mark.parametrize(
    "words",
    [
        "set-model codex",
        "set-model codex m",
        "set-model codex m --tiers huge",
        "set-model codex m --tiers high,off",
        "set-model codex m --tiers ,",
        "reset-tier",
        "reset-tier huge",
        "set-reasoning --tier high",
        "set-reasoning --level low",
        "set-reasoning --tier huge --level low",
        "reset-reasoning --tier huge",
        "configure",
        "configure --file f --schema",
        "inventory --refres",
    ],
)
def test_bad_arguments_exit_2(site: StrategySite, words: str) -> None:
    with pytest.raises(SystemExit) as caught:
        site(*words.split())
    assert caught.value.code == 2
    assert not site.home.root.exists()


def test_a_file_that_cannot_be_read_is_named_and_kept(site: StrategySite) -> None:
    site.home.ensure()
    site.home.state_file.write_text("{")
    for words in ("show", "set-model codex m --tiers high", "reset-tier high", "apply", "routes", "inventory"):
        with pytest.raises(UsageError, match=r"state\.json line 1"):
            site(*words.split())
    assert site.home.state_file.read_text() == "{"


def test_writers_at_once_lose_no_decision(site: StrategySite) -> None:
    def decide_things(number: int) -> None:
        context = CommandContext(site.home, site.context.environ, io.StringIO(), io.StringIO())
        strategy.run(["exclude-model", f"m{number}"], context)
        strategy.run(["set-model", "codex", f"n{number}", "--tiers", "off"], context)

    threads = [threading.Thread(target=decide_things, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    settings = site.settings()
    assert settings.excluded_models == {f"m{number}" for number in range(8)}
    assert settings.disabled_models == {"codex": {f"n{number}" for number in range(8)}}


def test_a_rung_of_each_kind_is_a_choice(site: StrategySite) -> None:
    site("set-model", "codex", "gpt", "--tiers", "high")
    assert site.settings().rungs == {"codex": {"high": RungChoice("gpt")}}
    assert json.loads(json.dumps(site.state()))["strategy"]["rungs"]["codex"]["high"]["model"] == "gpt"


def test_a_model_that_no_pool_names_is_excluded_and_said_to_be_unknown(site: StrategySite) -> None:
    site("set-rung", "codex", "high", "--model", "gpt-5", "--yes")
    assert site("exclude-model", "gtp-5").startswith("the model gtp-5 is excluded")
    assert site.settings().excluded_models == {"gtp-5"}
    assert site.said == "no pool names the model gtp-5 now; did you mean gpt-5?\n"
    site("exclude-model", "zzz")
    assert site.said == "no pool names the model zzz now\n"
    for known in ("gpt-5", "default"):
        site("exclude-model", known)
        assert site.said == ""


def test_a_model_of_a_remembered_list_is_known(site: StrategySite) -> None:
    site.offer(CODEX_MODELS)
    site("inventory", "--refresh")
    site("exclude-model", "gpt-6-astra")
    assert site.said == ""
    site("exclude-model", "gpt-6-asta")
    assert "did you mean gpt-6-astra?" in site.said
