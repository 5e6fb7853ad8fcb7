"""The connector as a value: what is left out has a meaning, and a mode falls back in one direction only."""

import json
from pathlib import Path
from typing import Any

import pytest

from bullswarm_core.pools import EFFORTS, LANES, Rung
from bullswarm_core.pools.connector import Connector, PoolProfile, connector_from_json, is_free
from bullswarm_core.pools.launch_rules import Mode

MINIMAL: dict[str, Any] = {
    "schemaVersion": "bullswarm.connector.v1",
    "name": "mine",
    "binary": "mine",
    "launch": {"prompt": {"way": "stdin"}, "lanes": {"build": {"workspace": {"confinement": "cli"}}}},
}


def test_a_minimal_connector_takes_every_lane_with_the_clis_own_default_model() -> None:
    connector = connector_from_json(MINIMAL)
    assert connector.display_name == "mine"
    assert connector.lanes == frozenset(LANES)
    assert connector.tiers == {effort: Rung() for effort in EFFORTS}
    assert connector.meter.type == "none"
    assert connector.quota_window is None


def test_a_tier_that_is_left_out_is_a_tier_the_cli_does_not_serve() -> None:
    connector = connector_from_json(MINIMAL | {"tiers": {"low": {"model": "small", "free": True}}})
    assert connector.tiers == {"low": Rung("small", None, True)}


def test_a_chore_is_started_like_a_build_and_a_missing_sandbox_like_workspace() -> None:
    launch = connector_from_json(MINIMAL).launch
    assert launch.mode("chore", "full") == Mode(confinement="cli")
    assert launch.mode("analyze", "workspace") == Mode()


def test_phrases_are_kept_in_lower_case() -> None:
    connector = connector_from_json(MINIMAL | {"signatures": {"quota": ["Usage Limit"], "modelNotInPlan": ["No Plan"]}})
    assert connector.signatures.quota == ("usage limit",)
    assert connector.signatures.model_not_in_plan == ("no plan",)


def test_reasoning_levels_of_null_accept_any_name() -> None:
    launch = MINIMAL["launch"] | {"reasoning": {"arguments": ["--variant", "{reasoning}"], "levels": None}}
    assert connector_from_json(MINIMAL | {"launch": launch}).launch.reasoning.levels is None


@pytest.mark.parametrize(("model", "free"), [("x:free", True), ("x", False), (None, False)])
def test_only_a_named_model_can_be_free(model: str | None, free: bool) -> None:
    connector = connector_from_json(MINIMAL | {"modelProfiles": [{"match": ":free$", "free": True}]})
    assert is_free(connector, model) is free


def test_the_stream_table_is_read_from_the_connectors_folder(tmp_path: Path) -> None:
    assert connector_from_json(MINIMAL, folder=str(tmp_path)).stream_table() == {}
    (tmp_path / "stream.json").write_text(json.dumps({"kind": "type"}), encoding="utf-8")
    assert connector_from_json(MINIMAL, folder=str(tmp_path)).stream_table() == {"kind": "type"}
    assert Connector("a", "a", "a").stream_table() == {}


def test_only_a_proven_no_takes_a_pool_out() -> None:
    connector = connector_from_json(MINIMAL)
    assert PoolProfile("mine", connector, "/bin/mine").why_not() is None
    assert PoolProfile("mine", connector, "/bin/mine", signed_in=False, signed_in_why="not signed in").why_not()
    assert PoolProfile("mine", connector, None, signed_in=True, unavailable="missing").why_not() == "missing"
