"""`bullswarm strategy`: inventory, routes, rungs, recommend and apply; only the last one decides anything."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.server.strategy_site import CODEX_MODELS, StrategySite, strategy_site

from bullswarm_core._dataclasses import replace
from bullswarm_core.pools.labels import set_label
from bullswarm_core.pools.model_catalog import keep_model_lists, load_model_lists
from bullswarm_core.pools.settings import Document, RungChoice, Settings, update_settings
from bullswarm_core.quota.refusals import note_plan_refusal
from bullswarm_core.store.home import Home
from bullswarm_server.cli import strategy_writing
from bullswarm_server.ops import decisions as edits

NOW = datetime.now(UTC)


@pytest.fixture
def site(own_home: Path, tmp_path: Path) -> StrategySite:
    return strategy_site(own_home, tmp_path)


def codex(document: Any) -> Any:
    (row,) = [row for row in document["pools"] if row["pool"] == "codex"]
    return row


def test_the_cli_is_asked_once_and_its_list_is_remembered_with_its_age(site: StrategySite) -> None:
    site.offer(CODEX_MODELS)
    set_label(site.home, "codex", "cx", ["codex"])
    site("set-rung", "codex", "high", "--model", "gpt-6-astra")
    site("set-rung", "codex", "low", "--model", "gone")
    text = site("inventory")
    assert "asking cx for their models …\n" in site.said
    assert "cx 3 models [live]\n" in text
    assert "  gpt-6-sol (default) · Sol · everyday\n" in text
    assert "  gpt-6-astra levels=low..medium runs on high\n" in text
    assert "  gone is on a rung and not in this list\n" in text
    assert site.asked() == 1
    document = site.document("inventory")
    assert site.asked() == 1 and document["schemaVersion"] == "bullswarm.inventory.v1"
    row = codex(document)
    assert (row["source"], row["poolLabel"], row["problem"]) == ("cache", "cx", None)
    assert row["ageSec"] < 60 and row["unlisted"] == ["gone"]
    assert row["models"][1] == {
        "id": "gpt-6-astra", "name": None, "note": None, "default": False, "levels": ["low", "medium"], "free": False,
        "tiers": ["high"], "refused": None,
    }  # fmt: skip
    site("inventory", "--refresh")
    assert site.asked() == 2


def test_a_list_of_yesterday_is_asked_for_again_and_a_failure_is_told_on_its_row(site: StrategySite) -> None:
    site.offer(CODEX_MODELS)
    site("inventory")
    known = load_model_lists(site.home)["codex"]
    old = NOW - timedelta(days=2)
    keep_model_lists(site.home, {"codex": replace(known, asked_at=old, tried_at=old)})
    site.offer(None)
    text = site("inventory")
    assert "codex 3 models [2d00h old]: codex " in text
    assert "bullswarm strategy inventory --refresh asks again" in text
    row = codex(site.document("inventory"))
    assert (row["source"], len(row["models"])) == ("cache", 3)
    # Which of the two it is depends on whether the CLI was gone before or after the question.
    assert re.search("ended before it answered initialize|closed its stdin", row["problem"])


def test_a_pool_that_is_off_is_not_asked(site: StrategySite) -> None:
    site.offer(CODEX_MODELS)
    site("set-provider", "codex", "off")
    assert "codex disabled, not asked · models unknown" in site("inventory", "--refresh")
    assert site.asked() == 0


def test_a_model_that_may_not_be_run_says_so(site: StrategySite) -> None:
    site.offer(CODEX_MODELS)
    note_plan_refusal(site.home, "codex", "gpt-6-luna", "no", now=NOW)
    assert "gpt-6-luna · the plan doesn't include it" in site("inventory")


def test_no_other_verb_asks_a_cli(site: StrategySite) -> None:
    site.offer(CODEX_MODELS)
    for words in (
        ["show"],
        ["routes"],
        ["rungs"],
        ["recommend"],
        ["apply"],
        ["set-rung", "codex", "high", "--model", "m"],
    ):
        site(*words)
    assert site.asked() == 0


def test_routes_name_the_pick_of_each_tier_and_what_is_left_out(site: StrategySite) -> None:
    site("set-rung", "codex", "high", "--model", "gpt")
    text = site("routes")
    assert "high (analyze, build, chore): [codex] " in text
    # A reading was expected and is missing, as the line above says: nothing is known, which is not 0.
    assert "(surplus -)\n  1. codex gpt at high surplus -\n" in text
    document = site.document("routes")
    assert document["schemaVersion"] == "bullswarm.routes.v1"
    high, medium = document["routes"][:2]
    assert (high["tier"], high["lanes"], high["pool"], high["model"]) == (
        "high", ["analyze", "build", "chore"], "codex", "gpt",
    )  # fmt: skip
    assert [each["effectiveSurplus"] for each in high["order"]] == [0] and "shownSurplus" not in high["order"][0]
    assert medium["tier"] == "medium" and medium["pool"] != "codex"
    left_out = {entry["pool"]: entry["reason"] for entry in medium["excluded"]}
    assert left_out["codex"] == "has no model on the medium tier"


def test_rungs_tell_who_set_a_level_and_what_is_passed(site: StrategySite) -> None:
    site("set-rung", "codex", "high", "--model", "gpt", "--reasoning", "max")
    site("set-reasoning", "--tier", "low", "--level", "none")
    site("exclude-model", "gpt")
    text = site("rungs", "--pool", "codex")
    assert "  high: gpt reasoning=max, passed as xhigh · you excluded it\n" in text
    assert "  low: no model, the pool is left out\n" in text
    site("clear-rungs", "codex")
    row = codex(site.document("rungs"))["tiers"]
    assert (row["low"]["reasoning"], row["low"]["reasoningLayer"], row["low"]["appliedReasoning"]) == (
        "none", "tier", "minimal",
    )  # fmt: skip
    assert (row["high"]["reasoning"], row["high"]["reasoningLayer"], row["high"]["refused"]) == (
        "high", "connector", None,
    )  # fmt: skip


def test_views_write_nothing_but_the_cache(site: StrategySite) -> None:
    site.offer(CODEX_MODELS)
    for words in (["show"], ["routes"], ["rungs"], ["recommend"]):
        site(*words)
    assert not site.home.root.exists() or not (site.home.root / "cache").exists()
    site("inventory")
    assert not site.home.state_file.exists()
    assert {path.name for path in site.home.cache_dir.iterdir()} >= {"models.json"}


def test_the_recommendation_is_shown_applied_and_taken_back(site: StrategySite) -> None:
    site.offer(CODEX_MODELS)
    site("inventory")
    text = site("recommend")
    assert "  high: gpt-6-astra reasoning=medium · the first in its list that is made for this tier" in text
    assert "  medium: the default of its CLI reasoning=medium · its CLI's default" in text
    assert "nothing was changed · bullswarm strategy apply writes this" in text
    assert not site.home.state_file.exists()
    document = site.document("recommend")
    assert document["schemaVersion"] == "bullswarm.recommendation.v1"
    assert codex(document)["tiers"]["low"]["model"] == "gpt-6-luna"
    assert [row["tier"] for row in document["tiers"]] == ["high", "medium", "low"]
    assert site("apply", "--yes").startswith("the recommendation for ")
    assert "the way back, pool by pool: bullswarm strategy clear-rungs POOL" in site.said
    found = site.settings()
    assert {tier: rung.model for tier, rung in found.rungs["codex"].items()} == {
        "high": "gpt-6-astra", "medium": None, "low": "gpt-6-luna",
    }  # fmt: skip
    assert found.reasoning.recommended == {"codex": {"high": "medium"}}
    assert found.assignments == {}
    before = site.home.state_file.read_bytes()
    assert site("apply").startswith("nothing to do: the recommendation for ")
    assert site.home.state_file.read_bytes() == before
    site("clear-rungs", "codex")
    site("reset-reasoning", "--pool", "codex")
    assert replace(site.settings(), configured=False) == Settings()


def test_what_the_person_set_is_never_replaced(site: StrategySite) -> None:
    site.offer(CODEX_MODELS)
    site("inventory")
    site("apply")
    site("set-rung", "codex", "low", "--model", "mine")
    rungs = json.dumps(site.state()["strategy"]["rungs"])
    site("apply")
    assert "codex stays as it is: you set its rungs yourself" in site.said
    assert json.dumps(site.state()["strategy"]["rungs"]) == rungs
    assert "stays as it is: you set its rungs yourself" in site("recommend")


def test_a_newer_recommendation_replaces_an_older_one(site: StrategySite) -> None:
    site.offer(CODEX_MODELS)
    site("inventory")
    site("apply")
    site.offer([{"id": "gpt-7-astra"}, *CODEX_MODELS])
    site("inventory", "--refresh")
    site("apply")
    assert site.settings().rungs["codex"]["high"].model == "gpt-7-astra"
    assert site.settings().reasoning.recommended == {}


def test_rungs_that_the_person_sets_while_advice_is_made_are_kept(
    site: StrategySite, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.offer(CODEX_MODELS)
    site("inventory")
    real = update_settings

    def late(home: Home, change: Callable[[Document], None]) -> Settings:
        def first(state: Document) -> None:
            edits.set_rung(state, "codex", "high", {"model": "mine", "reasoning": None})

        real(home, first)
        return real(home, change)

    monkeypatch.setattr(strategy_writing, "update_settings", late)
    site("apply")
    assert site.settings().rungs == {"codex": {"high": RungChoice("mine")}}
