"""What Codex's app-server, its vendor's endpoint and its rollouts tell of usage: percent USED, windows by their length."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from tests.providers.metering import JUNK, NOW, body, odd, shown

from bullswarm_core.quota.observation import Observation
from bullswarm_core.quota.windows import gates_model
from bullswarm_providers.codex.usage import app_server_reading, http_reading, limit_id, overage_of, rollout_reading

Reading = Observation | None
IN_2_H = "2026-11-30T11:00:00Z"
RESET = int((NOW + timedelta(hours=2)).timestamp())


def by_rpc(told: Any, now: datetime = NOW) -> Reading:
    return app_server_reading(told, now=now)


def by_http(told: Any, now: datetime = NOW) -> Reading:
    return http_reading(told, now=now)


def by_rollout(told: Any, now: datetime = NOW) -> Reading:
    return rollout_reading(told, captured_at=now, now=now)


def rpc_body(primary: Any, secondary: Any = None) -> Any:
    return {"rateLimits": {"limitId": "codex", "primary": primary, "secondary": secondary}}


def http_body(primary: Any, secondary: Any = None, **more: Any) -> Any:
    return {"rate_limit": {"primary_window": primary, "secondary_window": secondary, **more}}


def rollout_body(primary: Any, secondary: Any = None) -> Any:
    return {"limit_id": "codex", "primary": primary, "secondary": secondary}


def rpc_window(used: Any, minutes: Any, reset: Any = RESET) -> Any:
    return {"usedPercent": used, "windowDurationMins": minutes, "resetsAt": reset}


def http_window(used: Any, minutes: Any, reset: Any = RESET) -> Any:
    seconds = minutes * 60 if type(minutes) is int else minutes
    return {"used_percent": used, "limit_window_seconds": seconds, "reset_at": reset}


def rollout_window(used: Any, minutes: Any, reset: Any = RESET) -> Any:
    return {"used_percent": used, "window_minutes": minutes, "resets_at": reset}


Shape = tuple[Callable[..., Reading], Callable[..., Any], Callable[..., Any]]
SHAPES: dict[str, Shape] = {
    "app-server": (by_rpc, rpc_body, rpc_window),
    "http": (by_http, http_body, http_window),
    "rollout": (by_rollout, rollout_body, rollout_window),
}
every_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())


def test_the_app_servers_answer() -> None:
    reading = by_rpc(body("codex-app-server"))
    assert reading is not None
    assert (reading.read_by, reading.plan, reading.overage, reading.captured_at) == ("app-server", "plus", True, NOW)
    assert shown(reading) == {
        "5h": (42.0, IN_2_H),
        "weekly": (77.0, "2026-12-04T19:44:27Z"),
        "weekly GPT-Other": (0.0, "2026-12-07T09:00:00Z"),
    }


def test_the_endpoints_answer() -> None:
    reading = by_http(body("codex-usage"))
    assert reading is not None
    assert (reading.read_by, reading.plan, reading.overage) == ("usage endpoint", "plus", False)
    assert shown(reading) == {
        "5h": (42.0, IN_2_H),
        "weekly": (77.0, "2026-12-04T19:44:27Z"),
        "weekly GPT-Other": (0.0, "2026-12-07T09:00:00Z"),
    }


def test_a_rollouts_limits() -> None:
    then = NOW - timedelta(minutes=30)
    reading = rollout_reading(body("codex-rollout"), captured_at=then, now=NOW)
    assert reading is not None
    assert (reading.read_by, reading.plan, reading.overage, reading.captured_at) == ("rollout", None, True, then)
    assert shown(reading) == {"5h": (41.5, IN_2_H), "weekly": (61.5, "2026-12-03T20:33:48Z")}
    assert {window.captured_at for window in reading.windows} == {then}


@every_shape
@pytest.mark.parametrize(
    ("minutes", "kind"),
    [
        (300, "5h"),
        (180, "5h"),
        (1440, "daily"),
        (10080, "weekly"),
        (20160, "weekly"),
        (40320, "monthly"),
        (43200, "monthly"),
    ],
)
def test_a_window_in_any_slot_is_known_by_its_length(shape: Shape, minutes: int, kind: str) -> None:
    read, made, window = shape
    for entry in (made(window(9, minutes)), made(None, window(9, minutes))):
        reading = read(entry)
        assert reading is not None
        ((found),) = reading.windows
        assert (found.kind, found.used_pct, found.length) == (kind, 9.0, timedelta(minutes=minutes))


@every_shape
def test_a_weekly_primary_beside_a_short_secondary(shape: Shape) -> None:
    read, made, window = shape
    reading = read(made(window(70, 10080), window(5, 300)))
    assert reading is not None
    assert {found.kind: found.used_pct for found in reading.windows} == {"weekly": 70.0, "5h": 5.0}


@every_shape
def test_the_percent_is_what_is_used(shape: Shape) -> None:
    read, made, window = shape
    reading = read(made(window(98, 300)))
    assert reading is not None
    assert reading.windows[0].used_pct == 98.0


@every_shape
@pytest.mark.parametrize(
    "reset", [RESET, RESET * 1000, str(RESET), "2026-11-30T11:00:00Z", "2026-11-30T12:00:00+01:00"]
)
def test_a_reset_in_any_unit(shape: Shape, reset: Any) -> None:
    read, made, window = shape
    reading = read(made(window("42", 300, reset)))
    assert reading is not None
    assert shown(reading) == {"5h": (42.0, IN_2_H)}


@every_shape
@pytest.mark.parametrize("reset", [None, -1, "soon", True, [], float("nan"), 1e30, RESET + 86400])
def test_a_window_with_an_odd_reset_has_none(shape: Shape, reset: Any) -> None:
    read, made, window = shape
    reading = read(made(window(42, 300, reset)))
    assert reading is not None
    assert shown(reading) == {"5h": (42.0, None)}


@every_shape
def test_a_window_whose_reset_has_passed_says_nothing(shape: Shape) -> None:
    read, made, window = shape
    reading = read(made(window(99, 300, RESET - 86400), window(40, 10080)))
    assert reading is not None
    assert shown(reading) == {"weekly": (40.0, IN_2_H)}


@every_shape
@pytest.mark.parametrize("used", [None, -1, "x", "NaN", True, [], {}, float("nan"), float("inf"), 10**400, 99999])
def test_an_odd_number_is_unknown_and_hurts_no_other(shape: Shape, used: Any) -> None:
    read, made, window = shape
    reading = read(made(window(used, 300), window(40, 10080)))
    assert reading is not None
    assert shown(reading) == {"weekly": (40.0, IN_2_H)}


@pytest.mark.parametrize(
    ("first", "second", "partial"), [(None, "week", False), ("x", "week", True), ({}, "week", True), (None, None, True)]
)
def test_a_window_that_is_left_out_is_closed_only_where_the_rest_was_understood(
    first: Any, second: Any, partial: bool
) -> None:
    for read, made, window in (SHAPES["app-server"], SHAPES["http"]):
        reading = read(made(first, window(40, 10080) if second else None))
        assert reading is not None and reading.partial is partial


@pytest.mark.parametrize("entry", [None, [], "x", 5, True, {}])
def test_an_odd_slot_is_unknown_and_hurts_no_other(entry: Any) -> None:
    for read, made, window in SHAPES.values():
        reading = read(made(entry, window(40, 10080)))
        assert reading is not None
        assert shown(reading) == {"weekly": (40.0, IN_2_H)}


@every_shape
@pytest.mark.parametrize("minutes", [None, 0, -300, 5, "x", True, float("nan"), 1e12])
def test_a_window_of_unknown_length_protects_and_never_paces(shape: Shape, minutes: Any) -> None:
    read, made, window = shape
    reading = read(made(window(40, minutes)))
    assert reading is not None
    assert shown(reading) == {"5h": (40.0, IN_2_H)}
    far = read(made(window(40, minutes, RESET + 5 * 86400)))
    assert far is not None
    assert shown(far) == {"daily": (40.0, "2026-12-05T11:00:00Z")}
    spent = read(made(window(100, minutes, None)))
    assert spent is not None
    assert shown(spent) == {"5h": (100.0, None)}


@every_shape
def test_a_window_of_unknown_length_beside_a_known_one(shape: Shape) -> None:
    read, made, window = shape
    beside = read(made(window(90, None), window(10, 300)))
    assert beside is not None
    assert shown(beside) == {"5h": (10.0, IN_2_H)}
    spent = read(made(window(100, None), window(10, 300)))
    assert spent is not None
    assert shown(spent) == {"5h": (100.0, IN_2_H)}


@pytest.mark.parametrize("name", ["reset_after_seconds", "resets_in_seconds"])
def test_seconds_that_are_left_count_from_the_reading(name: str) -> None:
    entry = {"used_percent": 5, "window_minutes": 300, "resets_at": None, name: 7200}
    for reading in (by_rollout(rollout_body(entry)), by_http(http_body(entry))):
        assert reading is not None
        assert shown(reading) == {"5h": (5.0, IN_2_H)}


@pytest.mark.parametrize("more", [{"limit_reached": True}, {"allowed": False}])
def test_a_limit_that_is_reached_is_full_whatever_its_number(more: Any) -> None:
    reading = by_http(http_body(http_window(97, 300), http_window(50, 10080), **more))
    assert reading is not None
    assert shown(reading) == {"5h": (100.0, IN_2_H), "weekly": (50.0, IN_2_H)}
    full = by_http(http_body(http_window(130, 300), http_window(50, 10080), **more))
    assert full is not None
    assert full.windows[0].used_pct == 130.0


def test_the_app_server_says_that_a_limit_is_reached() -> None:
    told = {**rpc_body(rpc_window(20, 300), rpc_window(96, 10080)), "ordinaryUsageAllowed": False}
    other = {"limitId": "codex_other", "primary": rpc_window(99, 10080)}
    reading = by_rpc({**told, "rateLimitsByLimitId": {"codex_other": other}})
    assert reading is not None
    assert shown(reading) == {"5h": (20.0, IN_2_H), "weekly": (100.0, IN_2_H), "weekly codex_other": (99.0, IN_2_H)}


def test_a_models_limit_is_kept_apart_from_the_accounts() -> None:
    other = {"limitId": "codex_spark", "limitName": "GPT-5.3-Codex-Spark", "primary": rpc_window(100, 300)}
    told = {**rpc_body(rpc_window(10, 300)), "rateLimitsByLimitId": {"codex_spark": other}}
    reading = by_rpc(told)
    assert reading is not None
    account, model = reading.windows
    assert (account.scope, account.used_pct) == (None, 10.0)
    assert gates_model(model, "gpt-5.3-codex-spark")
    assert not gates_model(model, "gpt-6-sol")


def test_a_limit_without_an_id_is_the_accounts() -> None:
    reading = by_rollout({"primary": rollout_window(10, 300)})
    assert reading is not None
    assert reading.windows[0].scope is None
    assert limit_id({}) == limit_id(None) == limit_id({"limit_id": None}) == "codex"


@pytest.mark.parametrize(
    ("credits", "overage"),
    [
        ({"has_credits": True, "balance": "3.2"}, True),
        ({"hasCredits": True}, True),
        ({"has_credits": False, "unlimited": True}, True),
        ({"has_credits": False, "unlimited": False, "balance": "0"}, False),
        ({"hasCredits": False}, False),
        ({"has_credits": "yes"}, None),
        ({}, None),
        (None, None),
        ([], None),
    ],
)
def test_credits_are_overage(credits: Any, overage: bool | None) -> None:  # noqa: A002
    assert overage_of(credits) is overage


@pytest.mark.parametrize(
    "told", [None, [], "x", 5, {}, {"rateLimits": None}, {"rateLimits": []}, rpc_body("x"), rpc_body({})]
)
def test_an_app_servers_answer_about_something_else(told: Any) -> None:
    assert by_rpc(told) is None


@pytest.mark.parametrize(
    "told", [None, [], "x", 5, {}, {"rate_limit": []}, {"rate_limit": "x"}, http_body("x"), http_body({})]
)
def test_an_endpoints_answer_about_something_else(told: Any) -> None:
    assert by_http(told) is None


def test_an_account_without_an_open_window_is_an_answer() -> None:
    for reading in (
        by_rpc(rpc_body(None)),
        by_http(http_body(None)),
        by_http({"rate_limit": None, "plan_type": "business"}),
    ):
        assert reading is not None
        assert reading.windows == ()


def in_range(reading: Reading) -> None:
    if reading is None:
        return
    assert len({(window.kind, window.scope) for window in reading.windows}) == len(reading.windows)
    for window in reading.windows:
        assert window.used_pct is not None and 0 <= window.used_pct <= 1000
        assert window.resets_at is None or window.resets_at > NOW
        assert window.captured_at == NOW
    assert reading.overage in (True, False, None)


@given(told=odd(body("codex-app-server")) | JUNK)
def test_no_app_servers_answer_breaks_the_reader(told: Any) -> None:
    in_range(by_rpc(told))


@given(told=odd(body("codex-usage")) | JUNK)
def test_no_endpoints_answer_breaks_the_reader(told: Any) -> None:
    in_range(by_http(told))


@given(told=odd(body("codex-rollout")) | JUNK)
def test_no_rollout_breaks_the_reader(told: Any) -> None:
    in_range(by_rollout(told))
    in_range(rollout_reading(told, captured_at=NOW, now=datetime(2026, 11, 30, 9, 0, tzinfo=UTC)))
