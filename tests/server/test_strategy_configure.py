"""`bullswarm strategy configure`: one document, all of its decisions or none; what `show` prints is such a document."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.server.strategy_site import StrategySite, strategy_site

from bullswarm_core._dataclasses import replace
from bullswarm_core.errors import UsageError
from bullswarm_core.pools.labels import set_label
from bullswarm_core.pools.settings import Assignment, PoolChoice, RungChoice, Settings, settings_from
from bullswarm_core.store.home import write_json
from bullswarm_server.cli.strategy_configure import apply_document
from bullswarm_server.cli.strategy_document import SCHEMA_FILE, json_schema, read_document
from bullswarm_server.displays.strategy import document

FILE = Path("state.json")
VERSION = {"schemaVersion": "bullswarm.strategy.v1"}
EVERYTHING: dict[str, Any] = {
    **VERSION,
    "pools": {"cx": {"enabled": False, "sandbox": "full", "allowBilling": True}},
    "rungs": {"codex": {"high": {"model": "gpt", "reasoning": "xhigh"}, "low": {"model": None, "free": True}}},
    "assignments": {"high": {"pool": "cx", "model": "gpt"}},
    "subscriptions": {"codex": {"plan": "plus", "reservePct": 20, "resetsAt": "2026-01-31T10:00:00+02:00"}},
    "reasoning": {
        "tiers": {"low": "low"},
        "pools": {"cx": {"high": "high"}},
        "models": {"codex": {"gpt": {"low": "max"}}},
    },
    "recommendedReasoning": {"codex": {"medium": "low"}},
    "excludedModels": ["old", "older"],
    "disabledModels": {"codex": ["mini"]},
    "config": {"depthLimit": 1, "inflightPenaltyPct": 0.5},
}


@pytest.fixture
def site(own_home: Path, tmp_path: Path) -> StrategySite:
    found = strategy_site(own_home, tmp_path)
    set_label(found.home, "codex", "cx", ["codex"])
    return found


def given_file(site: StrategySite, content: Any) -> str:
    path = site.folder / "decisions.json"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return str(path)


def test_everything_at_once_and_a_second_time_nothing(site: StrategySite) -> None:
    write_json(site.home.state_file, {"version": 1, "incumbents": {"a": "b"}, "strategy": {"policy": {"theirs": 1}}})
    path = given_file(site, EVERYTHING)
    assert site("configure", "--file", path).startswith(f"decided as {path} says: pools, rungs, assignments, ")
    found = site.settings()
    assert found.pool("codex") == PoolChoice(enabled=False, sandbox="full", billing_granted=True)
    assert found.rungs["codex"] == {"high": RungChoice("gpt", "xhigh"), "low": RungChoice(free=True)}
    assert found.assignments == {"high": Assignment("codex", "gpt")}
    assert found.subscriptions["codex"].reserve_pct == 20
    assert site.state()["strategy"]["subscriptions"]["codex"]["resetsAt"] == "2026-01-31T08:00:00Z"
    assert found.reasoning.models == {"codex": {"gpt": {"low": "max"}}}
    assert found.excluded_models == {"old", "older"}
    assert (found.depth_limit, found.inflight_penalty_pct, found.total_limit) == (1, 0.5, 1000)
    assert (site.state()["incumbents"], site.state()["strategy"]["policy"]) == ({"a": "b"}, {"theirs": 1})
    before = site.home.state_file.read_bytes()
    assert site("configure", "--file", path).startswith(f"nothing to do: everything is as {path} says already\n")
    assert site.home.state_file.read_bytes() == before


def test_null_takes_back_and_what_is_left_out_stays(site: StrategySite) -> None:
    site("configure", "--file", given_file(site, EVERYTHING))
    taken = {
        **VERSION,
        "pools": {"codex": {"enabled": None}},
        "rungs": {"codex": {"high": None}},
        "assignments": {"high": None},
        "reasoning": {"pools": None, "tiers": {"low": None}},
        "excludedModels": [],
        "disabledModels": {"codex": None},
        "config": {"depthLimit": None},
    }
    site("configure", "--file", given_file(site, taken))
    found = site.settings()
    assert found.pool("codex") == PoolChoice(sandbox="full", billing_granted=True)
    assert found.rungs == {"codex": {"low": RungChoice(free=True)}}
    assert (found.assignments, found.disabled_models) == ({}, {})
    assert found.excluded_models == frozenset()
    assert (found.reasoning.pools, found.reasoning.tiers) == ({}, {})
    assert found.reasoning.models == {"codex": {"gpt": {"low": "max"}}}
    assert found.depth_limit == 2
    everything = {name: None for name in EVERYTHING if name != "schemaVersion"}
    site("configure", "--file", given_file(site, {**VERSION, **everything}))
    assert replace(site.settings(), configured=False) == Settings()


WRONG: list[tuple[Any, str]] = [
    (b"", "is not a JSON document"),
    (b"{", "is not a JSON document"),
    (b"\xff", "is not a JSON document"),
    (b"[" * 100_000, "is not a JSON document"),
    (b'{"schemaVersion": "bullswarm.strategy.v1", "pools": {}, "pools": {}}', "'pools' stands twice in one object"),
    (b" " * (1 << 20) + b"{}", "is larger than 1 MB"),
    ([], "the document"),
    (3, "the document"),
    ({}, "has no schemaVersion"),
    ({"schemaVersion": "bullswarm.strategy.v2"}, "schemaVersion"),
    ({**VERSION, "polls": {}}, "polls"),
    ({**VERSION, "pools": []}, "pools"),
    (
        {**VERSION, "pools": {"codex": {"enabled": "off"}}},
        "pools.codex.enabled: Input should be a valid boolean, not 'off'",
    ),
    ({**VERSION, "pools": {"codex": {"sandbox": "none"}}}, "pools.codex.sandbox"),
    ({**VERSION, "pools": {"nobody": {"enabled": False}}}, 'unknown pool "nobody"'),
    ({**VERSION, "pools": {"codex": {"enabled": False}, "cx": {}}}, "pools names codex twice"),
    ({**VERSION, "rungs": {"codex": {"huge": {"model": "m"}}}}, "rungs.codex.huge"),
    ({**VERSION, "rungs": {"codex": {"high": {"reasoning": "low"}}}}, "rungs.codex.high.model"),
    ({**VERSION, "rungs": {"codex": {"high": {"model": ""}}}}, "rungs.codex.high.model"),
    (
        {**VERSION, "rungs": {"codex": {"high": {"model": "m", "reasoning": "giant"}}}},
        'unknown reasoning level "giant"',
    ),
    ({**VERSION, "assignments": {"high": {"model": "m"}}}, "assignments.high.pool"),
    ({**VERSION, "assignments": {"high": {"pool": "nobody"}}}, 'unknown pool "nobody"'),
    ({**VERSION, "subscriptions": {"codex": {"reservePct": 101}}}, "subscriptions.codex.reservePct"),
    ({**VERSION, "subscriptions": {"codex": {"quotaWindow": "yearly"}}}, "subscriptions.codex.quotaWindow"),
    ({**VERSION, "subscriptions": {"codex": {"resetsAt": "soon"}}}, '"soon" is not an ISO-8601 time'),
    ({**VERSION, "reasoning": {"tiers": {"high": "giant"}}}, 'unknown reasoning level "giant"'),
    ({**VERSION, "reasoning": {"models": {"codex": {"m": {"high": "giant"}}}}}, 'unknown reasoning level "giant"'),
    ({**VERSION, "excludedModels": "m"}, "excludedModels"),
    ({**VERSION, "disabledModels": {"codex": [3]}}, "disabledModels.codex.0"),
    ({**VERSION, "config": {"depthLimit": -1}}, "config.depthLimit"),
    ({**VERSION, "config": {"depthLimit": True}}, "config.depthLimit"),
    ({**VERSION, "config": {"routingPolicy": "dice"}}, "dice"),
    (b'{"schemaVersion": "bullswarm.strategy.v1", "config": {"inflightPenaltyPct": NaN}}', "config.inflightPenaltyPct"),
]


@pytest.mark.parametrize(("content", "message"), WRONG)
def test_one_wrong_decision_and_none_is_made(site: StrategySite, content: Any, message: str) -> None:
    if isinstance(content, dict) and content.keys() - {"schemaVersion"}:
        content = {"excludedModels": ["good"], **content}
    with pytest.raises(UsageError) as caught:
        site("configure", "--file", given_file(site, content))
    assert message in str(caught.value)
    assert caught.value.exit_code == 2
    assert not site.home.state_file.exists()


@pytest.mark.parametrize("path", ["missing.json", "."])
def test_a_file_that_is_none(site: StrategySite, path: str) -> None:
    with pytest.raises(UsageError, match="is no file"):
        site("configure", "--file", str(site.folder / path))


def test_a_document_on_standard_input(site: StrategySite, monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps({**VERSION, "excludedModels": ["m"]})
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert site("configure", "--file", "-").startswith("decided as standard input says: excludedModels\n")
    assert site.settings().excluded_models == {"m"}


def test_the_schema_that_ships_is_the_one_that_is_checked(site: StrategySite) -> None:
    shipped = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    assert shipped == json_schema(), "run python -m bullswarm_server.cli.strategy_document"
    assert json.loads(site("configure", "--schema")) == shipped
    import jsonschema

    checker = jsonschema.Draft202012Validator(shipped)
    checker.check_schema(shipped)
    assert list(checker.iter_errors(EVERYTHING)) == []
    assert list(checker.iter_errors({**VERSION, "pools": {"codex": {"enabled": "off"}}}))


def test_show_is_a_document_that_configure_takes(site: StrategySite) -> None:
    site("configure", "--file", given_file(site, EVERYTHING))
    shown = site.document("show")
    assert site("configure", "--file", given_file(site, shown)).startswith("nothing to do: ")


TIERS = st.sampled_from(("high", "medium", "low"))
NAMES = st.sampled_from(("a", "b", "c"))
LEVELS = st.dictionaries(TIERS, st.sampled_from(("low", "high", "default")))
RUNG = st.fixed_dictionaries(
    {"model": st.none() | NAMES},
    optional={"reasoning": st.none() | st.just("low"), "free": st.booleans(), "source": st.just("recommended")},
)
STATES = st.fixed_dictionaries(
    {"version": st.just(1)},
    optional={
        "pools": st.dictionaries(
            NAMES,
            st.fixed_dictionaries(
                {}, optional={"enabled": st.booleans(), "sandbox": st.sampled_from(("full", "network", "workspace"))}
            ),
        ),
        "config": st.fixed_dictionaries({}, optional={"depthLimit": st.integers(0, 3)}),
        "strategy": st.fixed_dictionaries(
            {},
            optional={
                "modelTiers": st.dictionaries(NAMES, st.dictionaries(NAMES, st.lists(TIERS, unique=True))),
                "rungs": st.dictionaries(NAMES, st.dictionaries(TIERS, RUNG)),
                "assignments": st.dictionaries(
                    TIERS, st.fixed_dictionaries({"pool": NAMES, "source": st.sampled_from(("user", "recommended"))})
                ),
                "subscriptions": st.dictionaries(
                    NAMES,
                    st.fixed_dictionaries(
                        {}, optional={"quotaWindow": st.sampled_from(("unknown", "weekly")), "reservePct": st.just(5)}
                    ),
                ),
                "reasoning": st.fixed_dictionaries(
                    {},
                    optional={
                        "tiers": LEVELS,
                        "pools": st.dictionaries(NAMES, LEVELS),
                        "models": st.dictionaries(NAMES, st.dictionaries(NAMES, LEVELS)),
                    },
                ),
                "recommendedReasoning": st.dictionaries(NAMES, LEVELS),
                "excludedModels": st.lists(NAMES),
                "disabledModels": st.dictionaries(NAMES, st.lists(NAMES)) | st.lists(NAMES),
            },
        ),
    },
)


@settings(max_examples=300, deadline=None)
@given(STATES)
def test_what_is_shown_and_configured_changes_nothing_and_makes_the_same_decisions_elsewhere(
    state: dict[str, Any],
) -> None:
    decided = settings_from(state, file=FILE)
    shown = json.loads(json.dumps(document(decided)))
    assert read_document(shown, source="show") == shown
    again = json.loads(json.dumps(state))
    apply_document(again, shown)
    assert settings_from(again, file=FILE) == decided
    elsewhere: dict[str, Any] = {}
    apply_document(elsewhere, shown)
    assert settings_from(elsewhere, file=FILE) == decided
