"""OpenCode: what its own vendor answers about a plan's windows, and when there is nothing to meter."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from tests.providers.metering import NOW, TOKEN, Vendor, assert_sane, body, odd, profile, shown, with_binaries, write

from bullswarm_core.errors import MeterError
from bullswarm_providers.opencode import meter as opencode


@pytest.fixture
def environ(tmp_path: Path, own_home: Path) -> dict[str, str]:
    """Give a machine with the CLI, which can't be asked anything itself."""
    return with_binaries(tmp_path / "bin", "opencode")


USAGE = body("opencode-go-usage")
GO = {
    "5h": (12.0, "2026-11-30T12:30:00Z"),
    "weekly": (48.5, "2026-12-04T00:00:00Z"),
    "monthly": (20.0, "2026-12-19T00:00:00Z"),
}


def opencode_signs_in(own_home: Path, **keys: str) -> None:
    entries = {name.replace("_", "-"): {"type": "api", "key": key} for name, key in keys.items()}
    write(own_home / ".local" / "share" / "opencode" / "auth.json", entries)


@pytest.mark.parametrize("recorded", ["opencode-go-usage", "opencode-go-usage-older"])
@pytest.mark.parametrize("wrapped", [False, True])
def test_opencode_tells_the_used_share_of_three_windows(
    own_home: Path, environ: dict[str, str], recorded: str, wrapped: bool
) -> None:
    opencode_signs_in(own_home, opencode_go=TOKEN, opencode="other-key")
    answer = {"usage": body(recorded)} if wrapped else body(recorded)
    vendor = Vendor(usage=answer)
    found = vendor.read("opencode", environ)
    assert shown(found) == GO
    assert (found.read_by, found.overage, found.partial) == ("usage endpoint", None, False)
    assert vendor.asked[0][1]["Authorization"] == f"Bearer {TOKEN}"


def test_opencodes_plan_holds_only_its_own_models_beside_other_vendors(own_home: Path, environ: dict[str, str]) -> None:
    opencode_signs_in(own_home, opencode=TOKEN, openrouter="k")
    assert set(shown(Vendor(usage=USAGE).read("opencode", environ))) == {
        "5h opencode", "weekly opencode", "monthly opencode",
    }  # fmt: skip


def test_opencode_without_a_key_of_its_vendor_has_no_meter(own_home: Path, environ: dict[str, str]) -> None:
    assert profile("opencode", environ).connector.meter.type == "none"
    opencode_signs_in(own_home, openrouter=TOKEN)
    assert profile("opencode", environ).connector.meter.type == "none"
    assert profile("opencode", environ | {"OPENCODE_API_KEY": TOKEN}).connector.meter.type == "reader"
    opencode_signs_in(own_home, opencode=TOKEN)
    assert profile("opencode", environ).connector.meter.type == "reader"


@pytest.mark.parametrize(
    "answer", [{}, None, {"rolling": {"percent": -1}}, {"rolling": [], "weekly": {"percent": None}}]
)
def test_an_answer_of_opencode_without_windows_is_no_reading(answer: Any) -> None:
    with pytest.raises(MeterError) as caught:
        opencode.observation(answer, now=NOW)
    assert caught.value.kind == "unreadable"


@given(answer=odd(USAGE) | odd(body("opencode-go-usage-older")))
def test_no_answer_of_opencode_breaks_the_reader(answer: Any) -> None:
    assert_sane(lambda: opencode.observation(answer, now=NOW))
