"""What routing judges is put together from the connector, the person's decisions, the meters and the load."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bullswarm_core.dispatch.assemble import (
    assemble_pools,
    current_pools,
    routing_context,
    rungs_of,
    with_supposed_meters,
)
from bullswarm_core.errors import UnknownNameError
from bullswarm_core.pools import EFFORTS, Billing, Inflight, Rung, Window
from bullswarm_core.pools.connector import Connector, Meter, ModelProfile, PoolProfile
from bullswarm_core.pools.labels import Labels
from bullswarm_core.pools.settings import Assignment, PoolChoice, RungChoice, Settings, Subscription
from bullswarm_core.quota.holds import Hold
from bullswarm_core.quota.overrides import parse_meters
from bullswarm_core.quota.reading import Reading, write_reading
from bullswarm_core.routing import Request, decide
from bullswarm_core.store.home import Home, write_json

NOW = datetime(2026, 3, 10, tzinfo=UTC)
CODEX = Connector(
    name="codex",
    display_name="Codex",
    binary="codex",
    capabilities=frozenset({"file-editing"}),
    cost_rank=3,
    credential_group="openai",
    meter=Meter("reader", ("5h", "weekly")),
    quota_window="weekly",
    tiers={effort: Rung(reasoning=effort) for effort in EFFORTS},
    model_profiles=(ModelProfile("^gratis-", free=True),),
)
PROFILE = PoolProfile("codex", CODEX, "/bin/codex", signed_in=True)
ECHO = PoolProfile("echo", Connector("echo", "Echo", "python", last_resort=True), "/bin/python", signed_in=True)


def test_a_pool_carries_what_its_connector_says() -> None:
    (pool,) = assemble_pools([PROFILE], Settings(), now=NOW)
    assert (pool.id, pool.provider, pool.label, pool.enabled) == ("codex", "codex", None, True)
    assert pool.capabilities == {"file-editing"}
    assert (pool.cost_rank, pool.credential_group, pool.pacing, pool.metered) == (3, "openai", "weekly", True)
    assert pool.tiers["high"] == Rung(reasoning="high", level_source="connector")
    assert (pool.windows, pool.inflight, pool.rates, pool.unavailable) == ((), (), {}, None)


def test_a_connector_without_a_meter_is_unmetered_and_the_embedded_worker_is_the_last_resort() -> None:
    (pool,) = assemble_pools([ECHO], Settings(), now=NOW)
    assert not pool.metered
    assert pool.last_resort


@pytest.mark.parametrize(
    ("profile", "why"),
    [
        (replace(PROFILE, signed_in=False, signed_in_why="not signed in · run codex login"), "not signed in"),
        (replace(PROFILE, signed_in=None), None),
        (replace(PROFILE, binary=None, unavailable="codex was not found on PATH"), "codex was not found"),
    ],
)
def test_only_a_proven_no_takes_a_pool_out(profile: PoolProfile, why: str | None) -> None:
    (pool,) = assemble_pools([profile], Settings(), now=NOW)
    assert (pool.unavailable or "").startswith(why or "")
    assert (pool.unavailable is None) == (why is None)


def test_the_persons_decisions_are_applied() -> None:
    settings = Settings(
        pools={"codex": PoolChoice(enabled=False)},
        subscriptions={"codex": Subscription("monthly", datetime(2026, 1, 31, tzinfo=UTC))},
    )
    meters = {"codex": Reading(NOW, (Window("monthly", 40, captured_at=NOW), Window("weekly", 10, captured_at=NOW)))}
    (pool,) = assemble_pools([PROFILE], settings, now=NOW, meters=meters, labels=Labels({"codex": "cx"}))
    assert not pool.enabled
    assert pool.label == "cx"
    assert pool.pacing == "monthly"
    monthly, weekly = pool.windows
    assert (monthly.resets_at, monthly.reset_source) == (datetime(2026, 3, 31, tzinfo=UTC), "declared")
    assert weekly.resets_at is None


def test_set_rungs_restrict_the_tiers() -> None:
    settings = Settings(rungs={"codex": {"high": RungChoice("gpt", None), "low": RungChoice(None, "minimal")}})
    assert rungs_of(PROFILE, settings) == {
        "high": Rung("gpt", "high", source="settings", level_source="connector"),
        "low": Rung(None, "minimal", source="settings", level_source="settings"),
    }
    pools = assemble_pools([PROFILE], settings, now=NOW)
    decision = decide(Request("analyze", effort="medium"), pools, now=NOW)
    assert decision.pool is None
    assert decision.excluded[0].reason == "has no model on the medium tier"


@pytest.mark.parametrize(
    ("choice", "free"),
    [
        (RungChoice("gratis-1"), True),
        (RungChoice("vendor/qwen:free"), True),
        (RungChoice("freedom"), False),
        (RungChoice("gratis-1", free=False), False),
        (RungChoice("gpt", free=True), True),
        (RungChoice(None), False),
    ],
)
def test_free_belongs_to_a_tier(choice: RungChoice, free: bool) -> None:
    assert rungs_of(PROFILE, Settings(rungs={"codex": {"high": choice}}))["high"].free is free


def test_an_excluded_model_is_refused_wherever_it_comes_from() -> None:
    settings = Settings(
        rungs={"codex": {"high": RungChoice("gpt"), "low": RungChoice("mini")}}, excluded_models=frozenset({"gpt"})
    )
    pools = assemble_pools([PROFILE], settings, now=NOW)
    assert decide(Request("build", effort="high"), pools, now=NOW).pool is None
    assert decide(Request("build", effort="low"), pools, now=NOW).pool == "codex"


def test_pools_come_by_id_and_a_label_that_became_an_id_is_dropped() -> None:
    other = PoolProfile("codex:work", CODEX, "/bin/codex")
    pools = assemble_pools([other, PROFILE], Settings(), now=NOW, labels=Labels({"codex": "codex:work"}))
    assert [(pool.id, pool.label) for pool in pools] == [("codex", None), ("codex:work", None)]


def test_meters_are_read_from_the_home_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    write_reading(home, "codex", [Window("weekly", 31, NOW + timedelta(days=2), captured_at=NOW)], captured_at=NOW)
    write_json(home.meter_file("echo"), [])
    inflight = {"codex": (Inflight(NOW, 5.0),)}
    codex, echo = current_pools(home, [PROFILE, ECHO], Settings(), now=NOW, inflight=inflight)
    assert [window.used_pct for window in codex.windows] == [31]
    assert codex.inflight == inflight["codex"]
    assert echo.windows == ()
    assert echo.meter_error


@pytest.mark.parametrize(
    ("read_under", "paid_by", "counts"),
    [
        ("subscription", "subscription", True),
        ("api-key", "api-key", True),
        # The plan is used up, and its person works by a key that they allowed: the plan's week holds no key back.
        ("subscription", "api-key", False),
        ("api-key", "subscription", False),
        (None, "api-key", True),
        ("subscription", "unknown", True),
    ],
)
def test_the_windows_of_a_plan_hold_back_its_own_sign_in_alone(
    tmp_path: Path, read_under: str | None, paid_by: Billing, counts: bool
) -> None:
    home, week = Home(tmp_path), Window("weekly", 100.0, NOW + timedelta(days=2), captured_at=NOW)
    write_reading(home, "codex", (week,), captured_at=NOW, overage=True, billing=read_under)
    (pool,) = current_pools(home, [replace(PROFILE, billing=paid_by)], Settings(), now=NOW)
    assert [window.used_pct for window in pool.windows] == ([100.0] if counts else [])
    assert pool.overage is (True if counts else None)


@pytest.mark.parametrize(
    ("kind", "hint", "told"),
    [
        ("sign-in", "open Codex to refresh it", "the sign-in has expired: open Codex to refresh it"),
        ("sign-in", None, "the sign-in has expired"),
        ("unreachable", "check the network", "the sign-in has expired"),
    ],
)
def test_a_sign_in_that_hinders_the_meter_is_told_with_the_way_out(kind: str, hint: str | None, told: str) -> None:
    hold = Hold(NOW, timedelta(minutes=5), kind, "the sign-in has expired", hint)
    (pool,) = assemble_pools([PROFILE], Settings(), now=NOW, meters={"codex": Reading(hold=hold)})
    assert pool.meter_error == told


def test_a_supposed_meter_replaces_what_was_read_by_id_or_label() -> None:
    read = (Window("5h", 10, captured_at=NOW), Window("weekly", 20, captured_at=NOW))
    meters = {"codex": Reading(NOW, read, read_by="app-server")}
    labels = Labels({"codex": "cx"})
    pools = assemble_pools([PROFILE, ECHO], Settings(), now=NOW, meters=meters, labels=labels)
    codex, echo = with_supposed_meters(pools, parse_meters(["cx:5h=99@+1h"], now=NOW), labels=labels)
    assert {window.kind: window.used_pct for window in codex.windows} == {"weekly": 20, "5h": 99}
    assert codex.meter_read_by == "app-server"
    assert echo is pools[1]
    (week, _) = with_supposed_meters(pools, parse_meters(["cx:weekly=99"], now=NOW), labels=labels)
    assert week.meter_read_by == "--meter"
    with pytest.raises(UnknownNameError, match='unknown pool "nobody"'):
        with_supposed_meters(pools, parse_meters(["nobody:5h=1"], now=NOW))


def test_routing_learns_the_assignments_and_the_penalty() -> None:
    settings = Settings(
        assignments={"high": Assignment("codex", "gpt"), "low": Assignment("echo")}, inflight_penalty_pct=0
    )
    context = routing_context(settings, probes={"codex": "timeout"})
    assert context.assigned("high") == ("codex", "gpt")
    assert context.assigned("low") == ("echo", None)
    assert context.inflight_penalty_pct == 0
    assert context.probes == {"codex": "timeout"}
