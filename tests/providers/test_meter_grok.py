"""Grok: what its CLI, or its vendor, answers about the week's credits, in our windows."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from tests.providers.metering import NOW, TOKEN, Vendor, assert_sane, body, odd, shown, with_binaries, write

from bullswarm_core.errors import MeterError
from bullswarm_core.meters.normalize import used_percent
from bullswarm_providers.grok import meter as grok


@pytest.fixture
def environ(tmp_path: Path, own_home: Path) -> dict[str, str]:
    """Give a machine with the CLI, which can't be asked anything itself."""
    return with_binaries(tmp_path / "bin", "grok")


BILLING = body("grok-billing")
SETTINGS = body("grok-settings")
WEEK = "2026-12-04T00:00:00Z"


@pytest.fixture
def grok_signed_in(own_home: Path) -> Path:
    file = own_home / ".grok" / "auth.json"
    write(file, {"https://auth.x.ai::id": {"key": TOKEN, "expires_at": "2026-12-05T00:00:00Z"}})
    return file


def config(**changes: Any) -> dict[str, Any]:
    """Give the recorded billing with some fields changed; a value of None takes the field out."""
    changed = BILLING["config"] | changes
    return {"config": {name: value for name, value in changed.items() if value is not None}}


@pytest.mark.parametrize(
    ("billing", "settings", "use", "reset", "overage", "plan"),
    [
        (BILLING, SETTINGS, 42.5, WEEK, False, None),
        (config(creditUsagePercent="61"), SETTINGS, 61.0, WEEK, False, None),
        (config(creditUsagePercent=104), SETTINGS, 104.0, WEEK, False, None),
        (config(creditUsagePercent=None), SETTINGS, 0.0, WEEK, False, "SuperGrok"),
        (config(creditUsagePercent=None), {}, 0.0, WEEK, False, None),
        (config(onDemandCap={"val": 5000}, onDemandUsed={"val": 1250}), SETTINGS, 42.5, WEEK, True, None),
        (config(prepaidBalance={"val": 700}), SETTINGS, 42.5, WEEK, True, None),
        (config(onDemandCap=None, prepaidBalance=None), SETTINGS, 42.5, WEEK, None, None),
        (config(currentPeriod={"type": "USAGE_PERIOD_TYPE_WEEKLY"}), SETTINGS, 42.5, "2026-12-01T00:00:00Z", False, None),
        (
            config(currentPeriod={"type": "USAGE_PERIOD_TYPE_WEEKLY"}, billingPeriodEnd="2027-01-01T00:00:00Z"),
            SETTINGS, 42.5, None, False, None,
        ),
        (config(currentPeriod={"start": "2026-11-27T00:00:00Z", "end": WEEK}), SETTINGS, 42.5, WEEK, False, None),
    ],
)  # fmt: skip
def test_grok_tells_the_used_share_of_the_week(
    grok_signed_in: Path,
    environ: dict[str, str],
    billing: Any,
    settings: Any,
    use: float,
    reset: str | None,
    overage: bool | None,
    plan: str | None,
) -> None:
    found = Vendor(billing=billing, settings=settings).read("grok", environ)
    assert shown(found) == {"weekly": (use, reset)}
    assert (found.overage, found.plan, found.read_by) == (overage, plan, "billing endpoint")


@pytest.mark.parametrize(
    ("billing", "settings", "kind"),
    [
        (config(creditUsagePercent=None), {"subscription_tier": "supergrok_heavy"}, "unsupported"),
        (config(creditUsagePercent=None), MeterError("HTTP 500", kind="unreachable"), "unreadable"),
        (config(creditUsagePercent="many"), SETTINGS, "unreadable"),
        (config(creditUsagePercent=-3), SETTINGS, "unreadable"),
        (config(currentPeriod={"type": "USAGE_PERIOD_TYPE_MONTHLY", "end": WEEK}), SETTINGS, "unsupported"),
        (config(currentPeriod=None), SETTINGS, "unsupported"),
        (
            config(currentPeriod={"type": "USAGE_PERIOD_TYPE_WEEKLY", "start": "2026-11-04T00:00:00Z", "end": WEEK}),
            SETTINGS, "unsupported",
        ),
        (
            config(currentPeriod={"type": "USAGE_PERIOD_TYPE_WEEKLY", "end": "2026-11-29T00:00:00Z"}),
            SETTINGS, "unreadable",
        ),
        ({}, SETTINGS, "unreadable"),
        ([], SETTINGS, "unreadable"),
        (MeterError("HTTP 429", kind="limited", retry_after_sec=60), SETTINGS, "limited"),
    ],
)  # fmt: skip
def test_what_grok_does_not_tell_is_no_number(
    grok_signed_in: Path, environ: dict[str, str], billing: Any, settings: Any, kind: str
) -> None:
    with pytest.raises(MeterError) as caught:
        Vendor(billing=billing, settings=settings).read("grok", environ)
    assert caught.value.kind == kind
    assert TOKEN not in str(caught.value)


def test_grok_asks_with_the_persons_token_and_leaves_it_where_it_is(
    grok_signed_in: Path, environ: dict[str, str]
) -> None:
    before = grok_signed_in.read_bytes()
    vendor = Vendor(billing=BILLING)
    vendor.read("grok", environ)
    ((name, headers, _),) = vendor.asked
    assert (name, headers["Authorization"]) == ("billing", f"Bearer {TOKEN}")
    assert headers["X-XAI-Token-Auth"] == "xai-grok-cli"
    assert grok_signed_in.read_bytes() == before


@pytest.mark.parametrize(
    ("auth", "kind", "hint"),
    [
        ({"a": {"key": TOKEN, "expires_at": "2026-11-30T09:00:30Z"}}, "sign-in", "open Grok to refresh it"),
        ({"a": {"key": f"{TOKEN}\r\nX: y"}}, "sign-in", "run grok login"),
        ({"a": {"key": TOKEN, "principal_type": "Team"}}, "unsupported", None),
        ({"a": TOKEN, "b": []}, "sign-in", "run grok login"),
        ("{", "sign-in", "run grok login"),
    ],
)
def test_grok_without_a_usable_token_is_asked_nothing(
    own_home: Path, environ: dict[str, str], auth: Any, kind: str, hint: str | None
) -> None:
    write(own_home / ".grok" / "auth.json", auth)
    vendor = Vendor(billing=BILLING)
    with pytest.raises(MeterError) as caught:
        vendor.read("grok", environ)
    assert (caught.value.kind, caught.value.hint) == (kind, hint)
    assert TOKEN not in str(caught.value)
    assert vendor.asked == []


def test_grok_takes_the_token_that_lasts_longest(own_home: Path, environ: dict[str, str]) -> None:
    entries = {
        "old": {"key": "spent", "expires_at": "2026-11-01T00:00:00Z"},
        "team": {"key": "theirs", "principalType": "team"},
        "short": {"key": "short", "expires_at": "2026-12-01T00:00:00Z"},
        "long": {"key": TOKEN, "expires_at": 1796400000},
        "undated": {"key": "undated"},
    }
    write(own_home / ".grok" / "auth.json", entries)
    vendor = Vendor(billing=BILLING)
    vendor.read("grok", environ)
    assert vendor.asked[0][1]["Authorization"] == f"Bearer {TOKEN}"


def test_grok_on_an_api_key_has_no_included_quota(environ: dict[str, str]) -> None:
    vendor = Vendor(billing=BILLING)
    with pytest.raises(MeterError) as caught:
        vendor.read("grok", environ | {"XAI_API_KEY": TOKEN})
    assert (caught.value.kind, vendor.asked) == ("unsupported", [])


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ('{"result":{"config":%s}}', None),
        ('{"error":{"code":-32000,"message":"Authentication required"}}', "sign-in"),
        ('{"error":{"code":-32603,"message":"Internal error","data":"Billing service error: HTTP 401"}}', "sign-in"),
        ('{"error":{"code":-32603,"message":"Internal error","data":"Billing service error: HTTP 429"}}', "limited"),
        ('{"error":{"code":-32603,"message":"Internal error","data":"Billing service error: HTTP 403"}}', "refused"),
    ],
)
def test_what_the_cli_says_is_final(
    own_home: Path, environ: dict[str, str], tmp_path: Path, said: str, kind: str | None
) -> None:
    asked_cli(
        own_home, tmp_path, said.replace("%s", json.dumps({"creditUsagePercent": 7, "currentPeriod": {"type": WEEKLY}}))
    )
    vendor = Vendor(billing=BILLING)
    if kind is None:
        found = vendor.read("grok", environ)
        assert shown(found) == {"weekly": (7.0, None)}
        assert found.read_by == "grok agent"
    else:
        with pytest.raises(MeterError) as caught:
            vendor.read("grok", environ)
        assert caught.value.kind == kind
    assert vendor.asked == []


@pytest.mark.parametrize(
    "said",
    [
        '{"error":{"code":-32601,"message":"Method not found"}}',
        '{"error":{"code":-32603,"message":"Internal error","data":"Failed to fetch billing data: error sending request"}}',
        "",
    ],
)
def test_a_cli_that_cannot_tell_leads_to_the_address(
    own_home: Path, environ: dict[str, str], tmp_path: Path, said: str
) -> None:
    asked_cli(own_home, tmp_path, said)
    assert shown(Vendor(billing=BILLING).read("grok", environ)) == {"weekly": (42.5, WEEK)}


WEEKLY = "USAGE_PERIOD_TYPE_WEEKLY"


def asked_cli(own_home: Path, tmp_path: Path, said: str) -> None:
    """Let `grok agent stdio` answer the second question with ``said``; without it, it ends after the first."""
    write(own_home / ".grok" / "auth.json", {"a": {"key": TOKEN}})
    second = said and "read -r line; printf '%s\\n' '" + said.replace('{"', '{"jsonrpc":"2.0","id":2,"', 1) + "'"
    script = '#!/bin/sh\nread -r line; echo \'{"jsonrpc":"2.0","id":1,"result":{}}\'\n' + second + "\nread -r line\n"
    write(tmp_path / "bin" / "grok", script)


@given(answer=odd(BILLING))
def test_no_answer_of_grok_breaks_the_reader(answer: Any) -> None:
    changed = answer.get("config") if isinstance(answer, dict) else None
    settings = changed if isinstance(changed, dict) else {}
    use = used_percent(settings.get("creditUsagePercent"))
    assert_sane(lambda: grok.observation(settings, use, now=NOW, read_by="x"))
