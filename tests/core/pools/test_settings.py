"""What the person decided: read exactly, changed one decision at a time, foreign keys kept."""

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core.errors import StateError
from bullswarm_core.pools.settings import (
    Assignment,
    PoolChoice,
    ReasoningLayers,
    RungChoice,
    Settings,
    Subscription,
    settings_from,
    update_settings,
)
from bullswarm_core.store.home import Home, read_json, write_json

FILE = Path("state.json")

# As an older program of the same name writes it: our keys among its own.
STATE: dict[str, Any] = {
    "version": 1,
    "pools": {
        "codex": {"enabled": False, "quarantinedUntil": "2025-01-01T00:00:00Z"},
        "opencode": {"enabled": True, "sandbox": "network", "workerInheritsConfig": True},
    },
    "incumbents": {"analyze": "codex"},
    "decisionLog": [{"ts": 1, "pool": "codex"}],
    "config": {"depthLimit": 3, "inflightPenaltyPct": 0, "callerName": "claude-code", "routingPolicy": "classic"},
    "strategy": {
        "modelTiers": {"grok": {"grok-4": ["high", "medium"], "grok-fast": ["medium", "low"]}},
        "rungs": {"grok": {"low": {"model": "grok-mini", "reasoning": "low", "free": True}}},
        "assignments": {
            "high": {"pool": "grok", "model": "grok-4", "source": "user"},
            "low": {"pool": "codex", "model": "x", "source": "recommended"},
        },
        "excludedModels": ["gpt-5"],
        "subscriptions": {
            "grok": {
                "plan": "pro",
                "quotaWindow": "monthly",
                "resetsAt": "2026-01-31T10:00:00Z",
                "monthlyPriceUsd": 30,
            },
            "codex": {"quotaWindow": "unknown", "resetsAt": "unknown"},
        },
        "policy": {"anything": True},
    },
}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def test_without_a_file_everything_is_the_default_and_nothing_is_made(home: Home) -> None:
    settings = Settings.load(home)
    assert settings == Settings()
    assert not settings.configured
    assert settings.enabled("anything")
    assert settings.pool("anything") == PoolChoice(enabled=True, sandbox="workspace", worker_inherits_config=False)
    assert (settings.depth_limit, settings.total_limit) == (2, 1000)
    assert (settings.inflight_penalty_pct, settings.routing_policy) == (3.0, "pace")
    assert not home.root.exists()


def test_the_decisions_of_a_full_file(home: Home) -> None:
    write_json(home.state_file, STATE)
    settings = Settings.load(home)
    assert settings.configured
    assert not settings.enabled("codex")
    assert settings.pool("opencode") == PoolChoice(enabled=True, sandbox="network", worker_inherits_config=True)
    assert settings.rungs == {
        "grok": {
            "high": RungChoice("grok-4"),
            "medium": RungChoice("grok-4"),
            "low": RungChoice("grok-mini", "low", True),
        }
    }
    assert settings.assignments == {"high": Assignment("grok", "grok-4")}
    assert settings.excluded_models == {"gpt-5"}
    assert settings.subscriptions == {
        "grok": Subscription("monthly", datetime(2026, 1, 31, 10, tzinfo=UTC), plan="pro"),
        "codex": Subscription(None, None),
    }
    assert settings.depth_limit == 3
    assert settings.inflight_penalty_pct == 0
    assert settings.routing_policy == "classic"


def test_what_the_person_keeps_allows_and_sets_of_reasoning() -> None:
    settings = settings_from(
        {
            "pools": {"codex": {"allowBilling": True}, "grok": {"allowBilling": None}},
            "strategy": {
                "subscriptions": {"codex": {"reservePct": 12.5, "plan": "plus"}},
                "disabledModels": {"codex": ["gpt-mini"]},
                "reasoning": {
                    "tiers": {"high": "xhigh", "low": None},
                    "pools": {"codex": {"medium": "low"}},
                    "models": {"codex": {"gpt-5": {"high": "default"}}},
                },
                "recommendedReasoning": {"grok": {"low": "minimal"}},
            },
        },
        file=FILE,
    )
    assert settings.pool("codex").billing_granted
    assert not settings.pool("grok").billing_granted
    assert settings.subscriptions["codex"] == Subscription(plan="plus", reserve_pct=12.5)
    assert settings.disabled_models == {"codex": {"gpt-mini"}}
    assert settings.reasoning == ReasoningLayers(
        tiers={"high": "xhigh"},
        pools={"codex": {"medium": "low"}},
        models={"codex": {"gpt-5": {"high": "default"}}},
        recommended={"grok": {"low": "minimal"}},
    )


def test_disabled_models_as_a_plain_list_are_run_by_no_pool() -> None:
    settings = settings_from({"strategy": {"disabledModels": ["a"], "excludedModels": ["b"]}}, file=FILE)
    assert settings.excluded_models == {"a", "b"}
    assert not settings.disabled_models


def test_a_model_that_is_on_no_tier_leaves_the_pool_without_rungs() -> None:
    settings = settings_from({"strategy": {"modelTiers": {"grok": {"grok-4": []}}, "rungs": {"codex": {}}}}, file=FILE)
    assert settings.rungs == {"grok": {}}


@pytest.mark.parametrize(
    ("document", "place"),
    [
        ([], "is not a JSON object"),
        ({"version": 2}, "version 2"),
        ({"version": "1"}, "field version"),
        ({"pools": []}, "field pools:"),
        ({"pools": {"codex": True}}, "field pools.codex:"),
        ({"pools": {"codex": {"enabled": "no"}}}, "field pools.codex.enabled: 'no' is not true or false"),
        ({"pools": {"codex": {"sandbox": "none"}}}, "'none' is not one of workspace, network, full"),
        ({"pools": {"codex": {"sandbox": ["full"]}}}, "field pools.codex.sandbox"),
        ({"config": {"depthLimit": -1}}, "field config.depthLimit"),
        ({"config": {"depthLimit": True}}, "field config.depthLimit"),
        ({"config": {"totalLimit": 1.5}}, "field config.totalLimit"),
        ({"config": {"inflightPenaltyPct": "3"}}, "field config.inflightPenaltyPct"),
        ({"config": {"routingPolicy": 3}}, "field config.routingPolicy"),
        ({"strategy": {"rungs": {"codex": {"huge": {}}}}}, "field strategy.rungs.codex.huge"),
        ({"strategy": {"rungs": {"codex": {"high": {"model": ""}}}}}, "field strategy.rungs.codex.high.model"),
        ({"strategy": {"rungs": {"codex": {"high": {"free": 1}}}}}, "field strategy.rungs.codex.high.free"),
        ({"strategy": {"modelTiers": {"codex": {"m": "high"}}}}, "field strategy.modelTiers.codex.m"),
        ({"strategy": {"modelTiers": {"codex": {"m": [None]}}}}, "field strategy.modelTiers.codex.m"),
        ({"strategy": {"assignments": {"high": {"pool": 3}}}}, "field strategy.assignments.high.pool"),
        ({"strategy": {"excludedModels": "gpt"}}, "field strategy.excludedModels"),
        ({"strategy": {"subscriptions": {"codex": {"quotaWindow": "yearly"}}}}, "is not one of weekly, monthly"),
        ({"strategy": {"subscriptions": {"codex": {"resetsAt": "soon"}}}}, "'soon' is not an ISO-8601 time"),
        ({"strategy": {"subscriptions": {"codex": {"resetsAt": 5}}}}, "field strategy.subscriptions.codex.resetsAt"),
        ({"strategy": {"subscriptions": {"codex": {"plan": 20}}}}, "field strategy.subscriptions.codex.plan"),
        ({"strategy": {"subscriptions": {"codex": {"reservePct": 101}}}}, "101 is not a percentage from 0 to 100"),
        ({"strategy": {"subscriptions": {"codex": {"reservePct": -1}}}}, "strategy.subscriptions.codex.reservePct"),
        ({"strategy": {"subscriptions": {"codex": {"reservePct": True}}}}, "strategy.subscriptions.codex.reservePct"),
        ({"pools": {"codex": {"allowBilling": "yes"}}}, "field pools.codex.allowBilling: 'yes' is not true or false"),
        ({"strategy": {"disabledModels": {"codex": "gpt"}}}, "field strategy.disabledModels.codex"),
        ({"strategy": {"disabledModels": "gpt"}}, "field strategy.disabledModels"),
        ({"strategy": {"disabledModels": [3]}}, "field strategy.disabledModels"),
        ({"strategy": {"reasoning": []}}, "field strategy.reasoning"),
        ({"strategy": {"reasoning": {"tiers": {"huge": "low"}}}}, "field strategy.reasoning.tiers.huge"),
        ({"strategy": {"reasoning": {"tiers": {"high": 3}}}}, "field strategy.reasoning.tiers.high"),
        ({"strategy": {"reasoning": {"pools": {"codex": "low"}}}}, "field strategy.reasoning.pools.codex"),
        (
            {"strategy": {"reasoning": {"models": {"codex": {"gpt": {"high": ""}}}}}},
            "field strategy.reasoning.models.codex.gpt.high",
        ),
        ({"strategy": {"recommendedReasoning": {"codex": {"x": "low"}}}}, "strategy.recommendedReasoning.codex.x"),
    ],
)
def test_a_wrong_value_is_named_and_neither_read_nor_overwritten(home: Home, document: object, place: str) -> None:
    write_json(home.state_file, document)
    with pytest.raises(StateError) as caught:
        Settings.load(home)
    assert place in str(caught.value)
    assert str(home.state_file) in str(caught.value)
    assert caught.value.exit_code == 2
    with pytest.raises(StateError):
        update_settings(home, lambda state: state.clear())
    assert read_json(home.state_file) == document


def test_a_damaged_file_is_refused_by_every_change(home: Home) -> None:
    home.ensure()
    home.state_file.write_text('{"version": 1,\n "pools": {')
    with pytest.raises(StateError, match="line 2"):
        update_settings(home, lambda state: state.update(pools={}))
    assert home.state_file.read_text() == '{"version": 1,\n "pools": {'


def test_a_change_that_would_not_be_readable_is_refused(home: Home) -> None:
    update_settings(home, lambda state: state.update(pools={"codex": {"enabled": False}}))
    with pytest.raises(StateError, match="enabled"):
        update_settings(home, lambda state: state.update(pools={"codex": {"enabled": "maybe"}}))
    assert not Settings.load(home).enabled("codex")


def test_a_change_returns_what_is_in_force_and_marks_the_version(home: Home) -> None:
    settings = update_settings(home, lambda state: state.update(pools={"codex": {"enabled": False}}))
    assert not settings.enabled("codex")
    assert settings == Settings.load(home)
    assert read_json(home.state_file) == {"pools": {"codex": {"enabled": False}}, "version": 1}


plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
foreign = st.recursive(plain, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)


@given(st.dictionaries(st.text(min_size=1).map(lambda name: f"x-{name}"), foreign, max_size=5))
def test_keys_of_other_programs_keep_their_value(
    tmp_path_factory: pytest.TempPathFactory, others: dict[str, object]
) -> None:
    home = Home(tmp_path_factory.mktemp("state"))
    document = {**others, "version": 1, "strategy": dict(others), "pools": {"codex": dict(others)}}
    write_json(home.state_file, document)

    def turn_off(state: dict[str, Any]) -> None:
        state["pools"]["codex"]["enabled"] = False

    update_settings(home, turn_off)
    expected = {**document, "pools": {"codex": {**others, "enabled": False}}}
    assert read_json(home.state_file) == expected


def test_changes_of_many_processes_are_all_kept(home: Home) -> None:
    script = (
        "import sys; from bullswarm_core.store.home import Home; from bullswarm_core.pools.settings import update_settings\n"
        "for n in range(20):\n"
        " name = f'pool-{sys.argv[2]}-{n}'\n"
        " update_settings(Home(sys.argv[1]), lambda s: s.setdefault('pools', {}).update({name: {'enabled': False}}))\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    children = [
        subprocess.Popen([sys.executable, "-c", script, str(home.root), str(number)], env=environment)
        for number in range(4)
    ]
    assert [child.wait(60) for child in children] == [0] * 4
    assert len(Settings.load(home).pools) == 80
