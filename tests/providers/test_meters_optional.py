"""The optional providers: what their vendors answer about usage, in our windows."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from tests.providers.metering import (
    NOW,
    TOKEN,
    Vendor,
    assert_sane,
    body,
    enable,
    odd,
    profile,
    shown,
    with_binaries,
    write,
)

from bullswarm_core.errors import MeterError
from bullswarm_providers.copilot import meter as copilot
from bullswarm_providers.gemini import meter as gemini
from bullswarm_providers.glm import meter as glm
from bullswarm_providers.kimi import meter as kimi

NAMES = ("gemini", "copilot", "qwen", "kimi", "glm")
FIVE_HOURS, WEEK, MORNING = "2026-11-30T12:30:00Z", "2026-12-04T00:00:00Z", "2026-12-01T06:00:00Z"


@pytest.fixture
def environ(tmp_path: Path, own_home: Path) -> dict[str, str]:
    enable(*NAMES)
    return with_binaries(tmp_path / "bin", "gemini", "copilot", "qwen", "claude")


def refusal(vendor: Vendor, pool_id: str, environ: dict[str, str]) -> MeterError:
    """Give the error that a reading ends in; no token may ever stand in it."""
    with pytest.raises(MeterError) as caught:
        vendor.read(pool_id, environ)
    assert TOKEN not in f"{caught.value}{caught.value.__cause__}"
    return caught.value


# --- Gemini CLI

QUOTA, PROJECT = body("gemini-quota"), body("gemini-project")


def bucket(**changes: Any) -> dict[str, Any]:
    """Give an answer with one bucket, changed."""
    return {"buckets": [QUOTA["buckets"][0] | changes]}


def gemini_signs_in(own_home: Path, **changes: Any) -> None:
    credentials = {"access_token": TOKEN, "expiry_date": 1796040000000, "refresh_token": "never-sent"} | changes
    write(own_home / ".gemini" / "oauth_creds.json", credentials)


def test_gemini_tells_what_remains_of_each_models_day(own_home: Path, environ: dict[str, str]) -> None:
    gemini_signs_in(own_home)
    vendor = Vendor(project=PROJECT, quota=QUOTA)
    found = vendor.read("gemini", environ)
    assert shown(found) == {"daily gemini-3-pro": (75.0, MORNING), "daily gemini-2.5-flash": (0.0, MORNING)}
    assert (found.plan, found.read_by) == ("standard-tier", "quota endpoint")
    assert [(name, sent) for name, _, sent in vendor.asked][1] == ("quota", {"project": "some-project-1"})
    assert {headers["Authorization"] for _, headers, _ in vendor.asked} == {f"Bearer {TOKEN}"}


@pytest.mark.parametrize(
    ("answer", "windows"),
    [
        (bucket(remainingFraction=0), {"daily gemini-3-pro": (100.0, MORNING)}),
        (bucket(remainingFraction=0.999), {"daily gemini-3-pro": (0.1, MORNING)}),
        (bucket(modelId=None), {"daily": (75.0, MORNING)}),
        (bucket(resetTime="2026-12-06T06:00:00Z"), {"weekly gemini-3-pro": (75.0, "2026-12-06T06:00:00Z")}),
        # Two buckets of one model: the one that is hit first.
        ({"buckets": [QUOTA["buckets"][0], QUOTA["buckets"][0] | {"remainingFraction": 0.1}]},
         {"daily gemini-3-pro": (90.0, MORNING)}),
    ],
)  # fmt: skip
def test_a_bucket_is_a_window_of_its_model(answer: Any, windows: Any) -> None:
    assert shown(gemini.observation(answer, now=NOW)) == windows


@pytest.mark.parametrize(
    "answer",
    [
        bucket(remainingFraction=None),
        bucket(remainingFraction=75),
        bucket(resetTime=None),
        bucket(resetTime="2026-11-29T06:00:00Z"),
        {},
        [],
    ],
)
def test_a_bucket_that_says_nothing_is_no_window(answer: Any) -> None:
    with pytest.raises(MeterError):
        gemini.observation(answer, now=NOW)


def test_gemini_without_a_usable_sign_in_is_asked_nothing(own_home: Path, environ: dict[str, str]) -> None:
    gemini_signs_in(own_home, expiry_date=1796029000000)
    vendor = Vendor(project=PROJECT, quota=QUOTA)
    assert (refusal(vendor, "gemini", environ).kind, vendor.asked) == ("sign-in", [])
    gemini_signs_in(own_home)
    assert refusal(Vendor(project={}), "gemini", environ).kind == "unsupported"
    assert refusal(Vendor(project=MeterError("HTTP 401", kind="sign-in")), "gemini", environ).kind == "sign-in"


@given(answer=odd(QUOTA))
def test_no_answer_of_gemini_breaks_the_reader(answer: Any) -> None:
    assert_sane(lambda: gemini.observation(answer, now=NOW))


# --- GitHub Copilot

USER, FREE = body("copilot-user"), body("copilot-user-free")
MONTH = "2026-12-01T00:00:00Z"


def snapshot(**changes: Any) -> dict[str, Any]:
    """Give the recorded answer with another snapshot of the premium requests."""
    told = USER["quota_snapshots"]["premium_interactions"] | changes
    return {**USER, "quota_snapshots": {"premium_interactions": told}}


@pytest.mark.parametrize(
    ("answer", "use", "reset", "overage"),
    [
        (USER, 78.0, MONTH, False),
        (FREE, 75.0, "2026-12-14T00:00:00Z", None),
        (snapshot(percent_remaining=None), 78.0, MONTH, False),
        (snapshot(remaining=-150, percent_remaining=-10.0, overage_permitted=True), 110.0, MONTH, True),
        (snapshot(remaining=0, percent_remaining=0), 100.0, MONTH, False),
        ({name: value for name, value in USER.items() if name != "quota_reset_date_utc"}, 78.0, MONTH, False),
    ],
)
def test_copilot_tells_what_remains_of_the_month(
    environ: dict[str, str], answer: Any, use: float, reset: str, overage: bool | None
) -> None:
    vendor = Vendor(user=answer)
    found = vendor.read("copilot", environ | {"GH_TOKEN": TOKEN})
    assert shown(found) == {"monthly": (use, reset)}
    assert (found.overage, found.plan) == (overage, answer["copilot_plan"])
    assert vendor.asked[0][1]["Authorization"] == f"token {TOKEN}"


@pytest.mark.parametrize(
    "answer",
    [
        snapshot(entitlement=0, remaining=0),
        snapshot(unlimited=True),
        snapshot(percent_remaining=None, remaining=None),
        FREE | {"limited_user_quotas": {}},
        {},
        "no",
    ],
)
def test_no_entitlement_is_no_number(answer: Any) -> None:
    with pytest.raises(MeterError):
        copilot.observation(answer, now=NOW)


def test_copilots_token_is_the_clis_then_an_editors(own_home: Path, environ: dict[str, str]) -> None:
    assert refusal(Vendor(user=USER), "copilot", environ).kind == "sign-in"
    editors = {"ghe.example:x": {"oauth_token": "other"}, "github.com:Iv1.x": {"oauth_token": TOKEN}}
    write(own_home / ".config" / "github-copilot" / "apps.json", editors)
    vendor = Vendor(user=USER)
    vendor.read("copilot", environ)
    vendor.read("copilot", environ | {"GITHUB_TOKEN": "last", "COPILOT_GITHUB_TOKEN": "first"})
    assert [headers["Authorization"] for _, headers, _ in vendor.asked] == [f"token {TOKEN}", "token first"]
    assert profile("copilot", environ | {"COPILOT_PROVIDER_BASE_URL": "x"}).connector.meter.type == "none"


@given(answer=odd(USER) | odd(FREE))
def test_no_answer_of_copilot_breaks_the_reader(answer: Any) -> None:
    assert_sane(lambda: copilot.observation(answer, now=NOW))


# --- Kimi and GLM, over Claude Code

USAGES, LIMITS = body("kimi-usages"), body("glm-quota")


def plan_signs_in(own_home: Path, name: str, address: str) -> None:
    settings = {"env": {"ANTHROPIC_BASE_URL": address, "ANTHROPIC_AUTH_TOKEN": TOKEN}}
    write(own_home / f".{name}-claude" / "settings.json", settings)


def test_kimi_tells_the_used_points_of_a_week_and_of_five_hours(own_home: Path, environ: dict[str, str]) -> None:
    plan_signs_in(own_home, "kimi", "https://api.kimi.com/coding/")
    vendor = Vendor(usages=USAGES)
    found = vendor.read("kimi", environ)
    assert shown(found) == {
        "weekly": (37.0, "2026-12-04T11:22:33.123456Z"),
        "5h": (12.0, "2026-11-30T13:00:00Z"),
    }
    assert vendor.asked[0][1]["Authorization"] == f"Bearer {TOKEN}"


@pytest.mark.parametrize(
    ("usage", "windows"),
    [
        ({"limit": "100", "remaining": "63"}, {"weekly": (37.0, None)}),
        ({"limit": 100, "used": 137}, {"weekly": (137.0, None)}),
        ({"limit": "100", "used": "37", "resetTime": "2026-12-24T00:00:00Z"}, {}),
        ({"limit": "0", "used": "0"}, {}),
        ({"limit": "100", "remaining": "101"}, {}),
        ({"limit": "100", "used": "a few"}, {}),
    ],
)
def test_kimis_numbers_are_text_and_used(usage: Any, windows: Any) -> None:
    five_hours = {"5h": (12.0, "2026-11-30T13:00:00Z")}
    assert shown(kimi.observation(USAGES | {"usage": usage}, now=NOW)) == windows | five_hours


@pytest.mark.parametrize(
    ("length", "kind"),
    [
        ({"duration": 5, "timeUnit": "TIME_UNIT_HOUR"}, "5h"),
        ({"duration": "1", "timeUnit": "DAY"}, "daily"),
        ({"duration": 7, "timeUnit": "TIME_UNIT_DAY"}, "weekly"),
        ({"duration": 300, "timeUnit": "TIME_UNIT_FORTNIGHT"}, None),
        ({"duration": None, "timeUnit": "TIME_UNIT_MINUTE"}, None),
        (None, None),
    ],
)
def test_kimis_windows_are_what_their_length_says(length: Any, kind: str | None) -> None:
    limit = {"window": length, "limit": 100, "used": 12}
    answer = {"usage": {"limit": 100, "used": 1}, "limits": [limit]}
    expected = {"weekly": (1.0, None)} | ({kind: (12.0, None)} if kind else {})
    assert shown(kimi.observation(answer, now=NOW)) == expected


def tokens(unit: int, number: int | None, **more: Any) -> dict[str, Any]:
    """Give one limit of tokens."""
    return {"type": "TOKENS_LIMIT", "unit": unit, "number": number, **more}


def test_glm_tells_the_used_share_of_tokens_and_leaves_other_lanes_out(own_home: Path, environ: dict[str, str]) -> None:
    plan_signs_in(own_home, "glm", "https://api.z.ai/api/anthropic")
    found = Vendor(quota=LIMITS).read("glm", environ)
    assert shown(found) == {"5h": (41.0, FIVE_HOURS), "weekly": (63.0, WEEK)}
    assert [window.length for window in found.windows] == [timedelta(hours=5), timedelta(days=7)]
    assert found.plan == "pro"


@pytest.mark.parametrize(
    ("limits", "windows"),
    [
        ([tokens(3, 5, percentage=0)], {"5h": (0.0, None)}),
        ([tokens(6, 1, percentage="12.5", nextResetTime=1796342400)], {"weekly": (12.5, WEEK)}),
        ([tokens(3, 5, percentage=41), tokens(9, 1, percentage=5)], {"5h": (41.0, None)}),
        ([tokens(3, 5, percentage=41), tokens(6, None, percentage=5)], {"5h": (41.0, None)}),
    ],
)
def test_glms_windows_are_those_whose_length_is_stated(limits: Any, windows: Any) -> None:
    assert shown(glm.observation({"data": {"limits": limits}}, now=NOW)) == windows


@pytest.mark.parametrize(
    "answer", [{"data": None}, {"data": {"limits": [{"type": "TIME_LIMIT", "percentage": 5}]}}, {}, 5]
)
def test_an_answer_of_glm_without_windows_is_no_reading(answer: Any) -> None:
    with pytest.raises(MeterError):
        glm.observation(answer, now=NOW)


def test_a_key_goes_only_to_the_vendor_that_it_is_for(own_home: Path, environ: dict[str, str]) -> None:
    vendor = Vendor(quota=LIMITS, quotaChina=LIMITS, usages=USAGES)
    plan_signs_in(own_home, "glm", "https://open.bigmodel.cn/api/anthropic")
    vendor.read("glm", environ)
    assert [name for name, _, _ in vendor.asked] == ["quotaChina"]
    for address in ("https://gateway.example/z.ai", "https://notz.ai/", "http://[", ""):
        plan_signs_in(own_home, "glm", address)
        plan_signs_in(own_home, "kimi", address)
        assert refusal(vendor, "glm", environ).kind == refusal(vendor, "kimi", environ).kind == "unsupported"
    write(own_home / ".glm-claude" / "settings.json", {"env": {"ANTHROPIC_AUTH_TOKEN": 5}})
    assert refusal(vendor, "glm", environ | {"ANTHROPIC_AUTH_TOKEN": TOKEN}).kind == "sign-in"
    assert len(vendor.asked) == 1


@given(usages=odd(USAGES), limits=odd(LIMITS))
def test_no_answer_of_kimi_or_glm_breaks_the_reader(usages: Any, limits: Any) -> None:
    assert_sane(lambda: kimi.observation(usages, now=NOW))
    assert_sane(lambda: glm.observation(limits, now=NOW))
