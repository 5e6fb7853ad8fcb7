"""Command Code: what its vendor answers about windows and credits, in our windows."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from tests.providers.metering import NOW, TOKEN, Vendor, assert_sane, body, odd, shown, with_binaries, write

from bullswarm_core.errors import MeterError
from bullswarm_providers.command_code import meter as command_code


@pytest.fixture
def environ(tmp_path: Path, own_home: Path) -> dict[str, str]:
    """Give a machine with the CLI, which can't be asked anything itself."""
    return with_binaries(tmp_path / "bin", "command-code")


CREDITS = body("command-code-credits")
SUBSCRIPTIONS = body("command-code-subscriptions")
HOURS = ("5h", (25.0, "2026-11-30T12:30:00Z"))
WEEK = ("weekly", (75.0, "2026-12-04T00:00:00Z"))
ENDS = "2026-12-14T08:00:00Z"
MONTH = ("monthly", (60.0, ENDS))


@pytest.fixture
def command_code_signed_in(own_home: Path) -> None:
    write(own_home / ".commandcode" / "auth.json", {"apiKey": TOKEN, "userName": "someone"})


def with_(recorded: Any, *path: str, value: Any) -> Any:
    """Give a recorded body with one value changed."""
    key, *rest = path
    return recorded | {key: with_(recorded[key], *rest, value=value) if rest else value}


def test_command_code_tells_used_of_caps_and_what_is_left_of_the_month(
    command_code_signed_in: None, environ: dict[str, str]
) -> None:
    vendor = Vendor(credits=CREDITS, subscriptions=SUBSCRIPTIONS)
    found = vendor.read("command-code", environ)
    # 12 of the plan's 30 credits are LEFT, so 60 % are used.
    assert shown(found) == dict([HOURS, WEEK, MONTH])
    assert [window.length for window in found.windows] == [None, None, timedelta(days=30)]
    assert (found.plan, found.overage, found.read_by) == ("individual-pro", False, "billing endpoint")
    assert {headers["Authorization"] for _, headers, _ in vendor.asked} == {f"Bearer {TOKEN}"}


@pytest.mark.parametrize(
    ("credits_told", "subscription", "windows"),
    [
        (CREDITS, MeterError("HTTP 500", kind="unreachable"), [HOURS, WEEK]),
        (CREDITS, with_(SUBSCRIPTIONS, "data", "status", value="canceled"), [HOURS, WEEK]),
        (CREDITS, with_(SUBSCRIPTIONS, "data", "planId", value="enterprise"), [HOURS, WEEK]),
        # More left than the plan holds: it is not the plan that we know.
        (with_(CREDITS, "credits", "monthlyCredits", value=31), SUBSCRIPTIONS, [HOURS, WEEK]),
        (with_(CREDITS, "credits", "monthlyCredits", value=0), SUBSCRIPTIONS, [HOURS, WEEK, ("monthly", (100.0, ENDS))]),
        (with_(CREDITS, "windowLimits", "limited", value=False), SUBSCRIPTIONS, [MONTH]),
        (with_(CREDITS, "windowLimits", "weekly", "cap", value=0), SUBSCRIPTIONS, [HOURS, MONTH]),
        (with_(CREDITS, "windowLimits", "weekly", "used", value=30), SUBSCRIPTIONS,
         [HOURS, ("weekly", (125.0, "2026-12-04T00:00:00Z")), MONTH]),
        (with_(CREDITS, "windowLimits", "fiveHour", value=None), SUBSCRIPTIONS, [WEEK, MONTH]),
        # The reset has passed: what was used since is not known.
        (with_(CREDITS, "windowLimits", "fiveHour", "resetAt", value=1796000000000), SUBSCRIPTIONS, [WEEK, MONTH]),
        (with_(CREDITS, "windowLimits", "fiveHour", "resetAt", value=1796041800), SUBSCRIPTIONS, [HOURS, WEEK, MONTH]),
        (CREDITS, with_(SUBSCRIPTIONS, "data", "planId", value="individual_pro_v1_yearly"),
         [HOURS, WEEK, ("monthly", (85.0, ENDS))]),
    ],
)  # fmt: skip
def test_command_codes_windows_are_those_that_are_known(
    command_code_signed_in: None, environ: dict[str, str], credits_told: Any, subscription: Any, windows: Any
) -> None:
    found = Vendor(credits=credits_told, subscriptions=subscription).read("command-code", environ)
    assert shown(found) == dict(windows)


def test_a_window_of_command_code_that_could_not_be_had_may_be_open_all_the_same() -> None:
    assert not command_code.observation(CREDITS, SUBSCRIPTIONS, now=NOW).partial
    assert command_code.observation(CREDITS, None, now=NOW).partial
    unlimited = with_(CREDITS, "windowLimits", "limited", value=False)
    assert not command_code.observation(unlimited, SUBSCRIPTIONS, now=NOW).partial


@pytest.mark.parametrize(("bought", "overage"), [(0, False), (25, True), (None, None), ("x", None)])
def test_credits_that_were_bought_are_overage(bought: Any, overage: bool | None) -> None:
    told = with_(CREDITS, "credits", "purchasedCredits", value=bought)
    assert command_code.observation(told, SUBSCRIPTIONS, now=NOW).overage is overage


@pytest.mark.parametrize("answer", [{}, [], "no", {"credits": {}}, {"windowLimits": {"fiveHour": {"used": 1}}}])
def test_an_answer_of_command_code_without_windows_is_no_reading(
    command_code_signed_in: None, environ: dict[str, str], answer: Any
) -> None:
    with pytest.raises(MeterError) as caught:
        Vendor(credits=answer, subscriptions={}).read("command-code", environ)
    assert caught.value.kind == "unreadable" and TOKEN not in str(caught.value)


def test_command_code_without_a_sign_in_is_asked_nothing(environ: dict[str, str]) -> None:
    vendor = Vendor(credits=CREDITS)
    with pytest.raises(MeterError) as caught:
        vendor.read("command-code", environ)
    assert (caught.value.kind, vendor.asked) == ("sign-in", [])
    vendor.read("command-code", environ | {"COMMAND_CODE_API_KEY": TOKEN})
    assert vendor.asked[0][1]["Authorization"] == f"Bearer {TOKEN}"


@given(credits_told=odd(CREDITS), subscription=odd(SUBSCRIPTIONS))
def test_no_answer_of_command_code_breaks_the_reader(credits_told: Any, subscription: Any) -> None:
    assert_sane(lambda: command_code.observation(credits_told, subscription, now=NOW))
