"""What is read of a Claude account's usage from the endpoint: percent USED, ISO times."""

import copy
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from tests.providers.claude_metering import IN_3_D, IN_3_H, assert_in_range, ms, numbers, stored
from tests.providers.metering import JUNK, NOW, TOKEN, Vendor, body, odd, shown, with_binaries, write

from bullswarm_core.errors import MeterError
from bullswarm_core.pools import Window
from bullswarm_core.quota.observation import Observation
from bullswarm_providers.claude_code.meter import installed_version, usage_overage, usage_windows


@pytest.fixture
def environ(own_home: Path, tmp_path: Path) -> dict[str, str]:
    return with_binaries(tmp_path / "bin", "claude")


def read(name: str, *, now: datetime = NOW, **changes: Any) -> tuple[Window, ...]:
    return usage_windows({**body(name), **changes}, captured_at=now, now=now)


def test_the_recorded_body_is_read_as_percent_used() -> None:
    windows = read("claude-code-usage")
    assert shown(Observation(NOW, windows)) == {
        "5h": (41.0, "2026-11-30T11:59:59.943648Z"),
        "weekly": (62.0, "2026-12-03T04:59:59.943679Z"),
        "weekly opus": (18.0, "2026-12-03T04:59:59.943690Z"),
    }
    assert [window.length for window in windows] == [timedelta(hours=5), timedelta(days=7), timedelta(days=7)]
    assert {(window.source, window.reset_source, window.captured_at) for window in windows} == {
        ("live", "provider", NOW)
    }


def test_the_newer_list_of_limits_is_classified_by_kind_and_by_model() -> None:
    windows = read("claude-code-usage-limits")
    assert shown(Observation(NOW, windows)) == {
        "5h": (7.0, IN_3_H),
        "weekly": (62.0, IN_3_D),
        "weekly fable": (93.0, IN_3_D),
    }


@pytest.mark.parametrize(
    "told", [None, {}, {"utilization": None, "resets_at": None}, {"utilization": 0, "resets_at": None}]
)
def test_a_window_that_is_not_open_is_no_number(told: Any) -> None:
    assert "5h" not in numbers(read("claude-code-usage", five_hour=told))


def test_a_window_that_is_not_named_is_unknown() -> None:
    recorded = body("claude-code-usage")
    del recorded["seven_day"]
    assert numbers(usage_windows(recorded, captured_at=NOW, now=NOW)) == {"5h": 41.0, "weekly opus": 18.0}


def test_nothing_used_of_an_open_window_is_a_number() -> None:
    told = {"utilization": 0.0, "resets_at": IN_3_H}
    assert numbers(read("claude-code-usage", five_hour=told))["5h"] == 0.0


def test_a_window_whose_reset_has_passed_says_nothing() -> None:
    assert numbers(read("claude-code-usage", now=NOW + timedelta(hours=3))) == {"weekly": 62.0, "weekly opus": 18.0}
    assert read("claude-code-usage", now=NOW + timedelta(days=4)) == ()


@pytest.mark.parametrize("used", [None, "x", "NaN", -1, True, [], {}, float("nan"), float("inf"), 10**400, 5000])
def test_an_odd_number_is_unknown_and_hurts_no_other(used: Any) -> None:
    told = {"utilization": used, "resets_at": IN_3_H}
    assert numbers(read("claude-code-usage", five_hour=told)) == {"weekly": 62.0, "weekly opus": 18.0}


@pytest.mark.parametrize("reset", [None, "soon", -1, True, [], float("nan"), 10**30, "2026-12-24T00:00:00Z"])
def test_a_number_with_an_odd_reset_stays_with_its_reset_unknown(reset: Any) -> None:
    (window, *_) = read("claude-code-usage", five_hour={"utilization": 97, "resets_at": reset})
    assert (window.kind, window.used_pct, window.resets_at) == ("5h", 97.0, None)


@pytest.mark.parametrize("reset", [1796040000, 1796040000000, "1796040000", "2026-11-30T13:00:00+01:00"])
def test_a_reset_in_any_unit(reset: Any) -> None:
    (window, *_) = read("claude-code-usage", five_hour={"utilization": "97", "resets_at": reset})
    assert (window.used_pct, window.resets_at) == (97.0, datetime(2026, 11, 30, 12, tzinfo=UTC))


@pytest.mark.parametrize(
    ("name", "scope"),
    [
        ("Opus", "opus"),
        ("Opus 4.5", "opus"),
        ("Claude Sonnet 5", "sonnet"),
        ("claude-haiku-5", "haiku"),
        (" FABLE ", "fable"),
    ],
)
def test_a_models_window_is_named_after_its_family(name: str, scope: str) -> None:
    limit = {"kind": "weekly_scoped", "percent": 100, "resets_at": IN_3_D, "scope": {"model": {"display_name": name}}}
    assert numbers(usage_windows({"limits": [limit]}, captured_at=NOW, now=NOW)) == {f"weekly {scope}": 100.0}


def test_one_models_window_never_stands_for_the_account() -> None:
    for scope in (None, {}, {"model": None}, {"model": {"display_name": ""}}, {"model": {"display_name": 5}}, "opus"):
        limit = {"kind": "weekly_scoped", "percent": 100, "resets_at": IN_3_D, "scope": scope}
        assert usage_windows({"limits": [limit]}, captured_at=NOW, now=NOW) == ()


@pytest.mark.parametrize(
    ("extra", "overage"),
    [
        ({"is_enabled": True}, True),
        ({"is_enabled": False}, False),
        ({}, None),
        (None, None),
        ({"is_enabled": "yes"}, None),
        ([], None),
    ],
)
def test_extra_usage_is_overage(extra: Any, overage: bool | None) -> None:
    assert usage_overage({"extra_usage": extra}) is overage


@given(told=odd(body("claude-code-usage-limits")) | odd(body("claude-code-usage")) | JUNK)
def test_no_body_breaks_the_parser(told: Any) -> None:
    windows = usage_windows(told, captured_at=NOW, now=NOW)
    assert usage_overage(told) in (True, False, None)
    assert_in_range(windows, NOW)


# --- the live reading


def test_the_endpoint_is_asked_once_with_the_stored_token(own_home: Path, environ: dict[str, str]) -> None:
    stored(
        own_home,
        subscriptionType="max",
        rateLimitTier="default_claude_max_20x",
        scopes=["user:inference", "user:profile"],
    )
    vendor = Vendor(usage=body("claude-code-usage-limits"))
    reading = vendor.read("claude-code", environ)
    assert reading.read_by == "usage endpoint"
    assert (reading.plan, reading.overage, reading.captured_at) == ("max 20x", True, NOW)
    assert set(shown(reading)) == {"5h", "weekly", "weekly fable"}
    ((name, headers, sent),) = vendor.asked
    assert (name, sent) == ("usage", None)
    assert headers["Authorization"] == f"Bearer {TOKEN}"
    assert headers["anthropic-beta"] == "oauth-2025-04-20"
    assert headers["User-Agent"].startswith("claude-code/2.")


@pytest.mark.parametrize("answer", [{}, [], None, "x", 5, {"error": "no"}, {"five_hour": "x"}, {"limits": "x"},
                                    {"five_hour": {"utilization": "many"}}])  # fmt: skip
def test_an_answer_about_something_else_is_unreadable(own_home: Path, environ: dict[str, str], answer: Any) -> None:
    stored(own_home)
    with pytest.raises(MeterError) as raised:
        Vendor(usage=answer).read("claude-code", environ)
    assert raised.value.kind == "unreadable"


@pytest.mark.parametrize(
    ("five_hour", "partial"),
    [(None, False), ({"utilization": None}, False), ({"utilization": -1}, True), ("x", True)],
)
def test_a_window_that_can_not_be_understood_is_not_one_that_is_closed(
    own_home: Path, environ: dict[str, str], five_hour: Any, partial: bool
) -> None:
    stored(own_home)
    answer = {"five_hour": five_hour, "seven_day": {"utilization": 26, "resets_at": IN_3_D}}
    reading = Vendor(usage=answer).read("claude-code", environ)
    assert (set(shown(reading)), reading.partial) == ({"weekly"}, partial)


@pytest.mark.parametrize("answer", [{"five_hour": None, "seven_day": None}, {"limits": []}])
def test_an_account_without_an_open_window_is_an_answer(own_home: Path, environ: dict[str, str], answer: Any) -> None:
    stored(own_home)
    assert Vendor(usage=answer).read("claude-code", environ).windows == ()


@pytest.mark.parametrize(("seconds", "asks"), [(-3600, False), (0, False), (59, False), (61, True)])
def test_a_token_about_to_expire_is_not_sent(own_home: Path, environ: dict[str, str], seconds: int, asks: bool) -> None:
    stored(own_home, expiresAt=ms(NOW + timedelta(seconds=seconds)))
    vendor = Vendor(usage=body("claude-code-usage"))
    if asks:
        assert vendor.read("claude-code", environ).windows
        return
    with pytest.raises(MeterError, match="open Claude Code to refresh it") as raised:
        vendor.read("claude-code", environ)
    assert raised.value.kind == "sign-in"
    assert vendor.asked == []


@pytest.mark.parametrize("expires_at", [None, 0, "soon", -5, True])
def test_a_token_without_a_time_of_expiry_is_tried(own_home: Path, environ: dict[str, str], expires_at: Any) -> None:
    stored(own_home, expiresAt=expires_at)
    assert Vendor(usage=body("claude-code-usage")).read("claude-code", environ).windows


def test_a_sign_in_without_leave_to_read_is_not_used(own_home: Path, environ: dict[str, str]) -> None:
    stored(own_home, scopes=["user:inference"])
    vendor = Vendor(usage=body("claude-code-usage"))
    with pytest.raises(MeterError, match="may not read usage") as raised:
        vendor.read("claude-code", environ)
    assert (raised.value.kind, vendor.asked) == ("unsupported", [])


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"mcpOAuth": {"x": {"accessToken": TOKEN}}},
        {"claudeAiOauth": {"accessToken": ""}},
        {"claudeAiOauth": {"accessToken": f"{TOKEN}\nX: 1"}},
        {"claudeAiOauth": [TOKEN]},
    ],
)
def test_no_stored_sign_in(own_home: Path, environ: dict[str, str], document: Any) -> None:
    write(own_home / ".claude/.credentials.json", document)
    with pytest.raises(MeterError) as raised:
        Vendor(usage=body("claude-code-usage")).read("claude-code", environ)
    assert raised.value.kind == "sign-in"
    assert TOKEN not in str(raised.value)


def test_work_by_a_key_has_no_windows(own_home: Path, environ: dict[str, str]) -> None:
    stored(own_home)
    write(own_home / ".claude/settings.json", {"env": {"ANTHROPIC_API_KEY": "sk-x"}})
    vendor = Vendor(usage=body("claude-code-usage"))
    with pytest.raises(MeterError) as raised:
        vendor.read("claude-code", environ)
    assert (raised.value.kind, vendor.asked) == ("unsupported", [])


@pytest.mark.parametrize("kind", ["sign-in", "limited", "refused", "unreachable"])
def test_what_the_endpoint_refuses_passes_with_a_way_out_and_no_token(
    own_home: Path, environ: dict[str, str], kind: str
) -> None:
    stored(own_home)
    with pytest.raises(MeterError) as raised:
        Vendor(usage=MeterError("api.anthropic.com answered 4xx", kind=kind, retry_after_sec=7)).read(
            "claude-code", environ
        )
    assert (raised.value.kind, raised.value.retry_after_sec) == (kind, 7)
    assert ("open Claude Code" in str(raised.value)) == (kind == "sign-in")
    assert TOKEN not in str(raised.value)


def test_the_default_home_has_a_second_place_for_its_sign_in(own_home: Path, environ: dict[str, str]) -> None:
    stored(own_home, expiresAt=ms(NOW - timedelta(days=1)), accessToken="old-token")
    stored(own_home, place=".config/claude/credentials.json")
    vendor = Vendor(usage=body("claude-code-usage"))
    vendor.read("claude-code", environ)
    assert vendor.asked[0][1]["Authorization"] == f"Bearer {TOKEN}"


def test_another_account_is_asked_with_its_own_sign_in(own_home: Path, environ: dict[str, str]) -> None:
    stored(own_home)
    stored(own_home, place=".claude-work/.credentials.json", accessToken="work-token")
    vendor = Vendor(usage=body("claude-code-usage"))
    vendor.read("claude-code:work", environ)
    assert vendor.asked[0][1]["Authorization"] == "Bearer work-token"


# --- the version


def test_the_version_is_read_from_where_the_binary_lies(tmp_path: Path) -> None:
    native = tmp_path / "versions" / "2.1.340"
    native.parent.mkdir()
    native.write_text("")
    (tmp_path / "claude").symlink_to(native)
    assert installed_version(str(tmp_path / "claude")) == "2.1.340"
    package = tmp_path / "node_modules" / "@anthropic-ai" / "claude-code"
    write(package / "package.json", {"name": "@anthropic-ai/claude-code", "version": "2.2.0"})
    write(package / "bin" / "claude.exe", "")
    assert installed_version(str(package / "bin" / "claude.exe")) == "2.2.0"
    write(package / "package.json", {"name": "@anthropic-ai/claude-code", "version": "2.2.0\nX: 1"})
    assert installed_version(str(package / "bin" / "claude.exe")) is None
    assert installed_version(str(tmp_path / "nowhere")) is None
    assert installed_version(None) is None


def test_a_body_is_never_changed_by_reading_it() -> None:
    told = body("claude-code-usage-limits")
    before = copy.deepcopy(told)
    usage_windows(told, captured_at=NOW, now=NOW)
    assert told == before
