"""Lines for people: the ``pools`` lines, the dry run's pick and forecast, labels, colours, control sequences."""

from __future__ import annotations

import io
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.routing.builders import NOW, busy, ending, history, pool, window

from bullswarm_core.pools import Pool, Rate, Rung
from bullswarm_core.routing import Request, RoutingContext, decide
from bullswarm_core.routing.overview import PoolOverview, overview
from bullswarm_server.displays.pools import pool_lines
from bullswarm_server.displays.route import decision_lines, forecast_line, pick_line, reason_line
from bullswarm_server.displays.text import Style, duration, number, one_line, plain, style_for

UNION = Rung("opencode/union-alpha", free=True)
FREE = {"high": UNION, "medium": UNION, "low": UNION}


def views(*pools: Pool) -> list[PoolOverview]:
    return [overview(item, now=NOW) for item in pools]


def line(one: Pool) -> str:
    return pool_lines(views(one))[0]


def test_the_seed_lines_of_the_worked_example() -> None:
    pools = [
        pool("claude-code", window("weekly", 31, 26.3), window("5h", 27, 54), cost_rank=4),
        pool("claude-code:acme", window("weekly", 30, 65.6), window("5h", 15, 44), cost_rank=4),
        pool("codex", enabled=False, cost_rank=3),
        pool("grok", window("weekly", 74, 72.5), cost_rank=2),
    ]
    lanes = "lanes=analyze/build/chore"
    assert pool_lines(views(*pools)) == [
        f"claude-code      cost=4 {lanes} weekly used 31% elapsed 26.3% [cache] surplus=-4.7 inflight=0"
        " 5h=27% (54% elapsed) ready",
        f"claude-code:acme cost=4 {lanes} weekly used 30% elapsed 65.6% [cache] surplus=35.6 inflight=0"
        " 5h=15% (44% elapsed) ready",
        f"codex            cost=3 {lanes} unmetered surplus=- inflight=0 disabled",
        f"grok             cost=2 {lanes} weekly used 74% elapsed 72.5% [cache] surplus=-1.5 inflight=0 ready",
    ]


def test_the_seed_lines_of_labels_and_free_models() -> None:
    pools = [
        pool("relay:one", label="answerer", metered=False, cost_rank=3),
        pool("opencode", metered=False, tiers=FREE, cost_rank=1),
    ]
    assert pool_lines(views(*pools)) == [
        "answerer cost=3 lanes=analyze/build/chore unmetered surplus=0 inflight=0 ready",
        "opencode cost=1 lanes=analyze/build/chore unmetered surplus=0 inflight=0 free=opencode/union-alpha ready",
    ]


@pytest.mark.parametrize(
    ("one", "shown"),
    [
        (pool("a", tiers={"high": Rung("paid"), "medium": UNION}), " free=medium:opencode/union-alpha ready"),
        (pool("a", tiers={"high": Rung(free=True), "low": UNION}), " free=high:default,low:opencode/union-alpha ready"),
        (pool("a", lanes=frozenset({"build"})), " lanes=build unmetered"),
        (pool("a", window("weekly", 30)), " weekly used 30% elapsed ? [cache] surplus=- "),
        (
            pool("a", window("monthly", 30, 40, source="declared")),
            " monthly used 30% elapsed 40% [declared] surplus=10 ",
        ),
        (
            pool(
                "a",
                window("weekly", 30, 40, source="stale"),
                meter_error="429",
                meter_hold_until=NOW + timedelta(minutes=12, seconds=30),
            ),
            " [stale · 429, retry in 12m] ",
        ),
        (pool("a", window("weekly", 30, 40, source="stale"), meter_hold_until=NOW), " [stale] "),
        (
            pool("a", meter_error="429", meter_hold_until=NOW + timedelta(minutes=5)),
            " unmetered [429, retry in 5m] surplus=- ",
        ),
        (pool("a", window("5h", 76, 10)), " 5h=76% (10% elapsed) NEAR-5H-LIMIT"),
        (pool("a", window("daily", 76, 10)), " daily=76% (10% elapsed) NEAR-DAILY-LIMIT"),
        (pool("a", window("5h", 100, 10)), " BURST-GATED (5h limit, resets in 4h30m)"),
        (pool("a", window("5h", 100)), " 5h=100% BURST-GATED"),
        (pool("a", ending("weekly", 100, timedelta(hours=60))), " BURST-GATED (weekly limit, resets in 2d12h)"),
        (pool("a", ending("weekly", 30, timedelta(minutes=122))), " resets in 2h02m EXPIRING-SOON urgency=5733"),
        (pool("a", ending("weekly", 99.5, timedelta(hours=9))), " EXPIRING-SOON urgency=-91 draining"),
        (pool("a", unavailable="not signed in\x1b[2J: run a login"), " unavailable: not signed in: run a login"),
        (
            pool("a", window("5h", 27, 54), rates={"5h": history(0.5)}, inflight=busy(2, 10)),
            " inflight=2 5h=27%->37% (54% elapsed) ready",
        ),
        (
            pool("a", window("weekly", 27, 54), rates={"weekly": history(0.5)}, inflight=busy(2, 10)),
            " weekly used 27%->37% elapsed 54% [cache] surplus=27 inflight=2 ready rate=0.5%/min(history,4)",
        ),
        (
            pool(
                "a",
                window("weekly", 27, 54, captured_at=NOW - timedelta(minutes=12), reset_source="declared"),
                meter_read_by="usage endpoint",
            ),
            " ready age=12m read-by=usage-endpoint reset=declared",
        ),
        (pool("a", window("weekly", 27, 54, captured_at=NOW + timedelta(days=9))), " surplus=27 inflight=0 ready "),
        (pool("a", window("weekly", 27, 54, unstable=True), overage=True), " ready unstable overage=on"),
        (pool("a", billing="api-key", billing_granted=True), " ready billing=api-key"),
        (pool("a", window("weekly", 80, 50, scope="opus")), " surplus=- inflight=0 weekly(opus)=80% ready "),
        (
            pool("a", ending("weekly", 100, timedelta(hours=60), scope="GPT 9\x1b[2J")),
            " weekly(GPT-9)=100% (spent, resets in 2d12h) ready ",
        ),
        (pool("a", window("5h", 100, None, scope="opus")), " 5h(opus)=100% (spent) ready "),
        (
            pool("a", billing="api-key"),
            " BILLING-GATED (to allow it: bullswarm strategy set-provider a --allow-billing on) billing=api-key",
        ),
    ],
)
def test_the_columns_of_a_pool_line(one: Pool, shown: str) -> None:
    assert shown in line(one) + " "


def test_a_pool_document_has_the_fields_of_the_reference() -> None:
    one = pool(
        "grok",
        ending("weekly", 40, timedelta(hours=84), reset_source="declared"),
        window("5h", 20, 50),
        inflight=(*busy(1, 10), *busy(1)),
        rates={"weekly": history(0.1)},
        label="gk",
        meter_error="429",
        meter_hold_until=NOW,
    )
    document = overview(one, now=NOW).to_json()
    assert (document["pool"], document["poolLabel"], document["state"]) == ("grok", "gk", "ready")
    assert (document["pacingWindow"], document["pace"], document["effectiveSurplus"]) == ("weekly", 10.0, 6.0)
    assert (document["paceResetsAt"], document["resetSource"]) == ("2026-09-14T00:00:00Z", "declared")
    assert document["spend"]["pacing"] == {
        "window": "weekly", "ratePerMinute": 0.1, "source": "history", "samples": 4,
    }  # fmt: skip
    assert document["spend"]["fiveHour"] == {"ratePerMinute": None, "source": None, "samples": 0}
    assert document["projectedPacingPct"] == 41
    assert document["projectedFiveHourPct"] is None
    load = document["inflight"]
    assert (load["count"], load["minutes"], load["remainingMinutes"], load["unknownExpected"]) == (2, 0, 10, 1)
    assert load["records"][1]["remainingMinutes"] is None
    assert document["meterSnapshot"]["windows"][0]["resetsAt"] == "2026-09-14T00:00:00Z"
    assert (document["meterError"], document["meterHoldUntil"]) == ("429", "2026-09-10T12:00:00Z")
    blank = overview(pool("blank"), now=NOW).to_json()
    assert (blank["meterSnapshot"], blank["pace"], blank["spentWindow"], blank["urgency"]) == (None,) * 4


def test_the_dry_run_of_the_worked_example() -> None:
    grok = pool("grok", window("weekly", 74, 72.5), rates={"weekly": Rate(0.106, "bootstrap")})
    decision = decide(Request("analyze", candidate_minutes=5.67), [grok, pool("codex", enabled=False)], now=NOW)
    assert decision_lines(decision) == [
        "OK [grok] most-behind capable pool (surplus -2.1)",
        "forecast: inflight=0 5h ?%->?% expected=5.67m rate=unmeasured basis=bootstrap",
        "candidates:",
        "  grok surplus=-2.1 inflight=0 weekly=74%->74.6%",
        "left out:",
        "  codex: is disabled",
    ]


def test_a_measured_forecast_line() -> None:
    one = pool("a", window("5h", 30, 50), rates={"5h": history(0.25)}, inflight=busy(1, 20))
    decision = decide(Request("analyze", candidate_minutes=12), [one], now=NOW)
    assert forecast_line(decision) == ("forecast: inflight=1 5h 35%->38% expected=12m rate=0.25%/min basis=penalty")


def test_people_read_labels_and_machines_ids() -> None:
    pools = [
        pool("codex", window("weekly", 30, 70), label="cx"),
        pool("codex:acme", window("weekly", 20, 70), label="acme", inflight=busy(5)),
        pool("grok", window("5h", 100, 50), label="gk\x1b]0;x\x07"),
    ]
    decision = decide(Request("analyze"), pools, now=NOW)
    assert decision.reason == (
        "most-behind capable pool (surplus 40) · preferred over busier: codex:acme (5 in flight) (burst-gated: grok)"
    )
    assert pick_line(decision) == (
        "OK [cx] most-behind capable pool (surplus 40) · preferred over busier: acme (5 in flight) (burst-gated: gk)"
    )
    assert decision_lines(decision)[-1] == "  gk: at its 5-hour limit until 2026-09-10T14:30:00Z"


def test_no_pick_says_why_and_when_to_come_back() -> None:
    decision = decide(Request("analyze"), [pool("codex", window("weekly", 100, 50), label="cx")], now=NOW)
    assert decision_lines(decision)[:2] == [
        "FAIL [-] no pool with quota to spare: cx at its weekly limit until 2026-09-14T00:00:00Z",
        "back at 2026-09-14T00:00:00Z",
    ]
    assert forecast_line(decision) is None
    painted = pick_line(decision, style=Style(colour=True))
    assert painted.startswith("\x1b[31mFAIL\x1b[0m [-] ")


def test_a_route_summary_cannot_drive_the_terminal() -> None:
    context = RoutingContext(route_summary="avoid \x1b[2Jgrok\nOK [fake]")
    decision = decide(Request("analyze"), [pool("codex")], now=NOW, context=context)
    assert reason_line(decision).endswith(" · route: avoid grok OK [fake]")


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("a\x1b[2Jb\x1b[1;31mc\x1b[0m", "abc"),
        ("a\x1b]52;c;c2VjcmV0\x07b", "ab"),
        ("a\x1b]0;title\x1b\\b", "ab"),
        ("a\x1bP1;2|data\x1b\\b\x1b_apc\x1b\\c\x1b^pm\x1b\\d", "abcd"),
        ("a\x9b2Jb\x9d0;t\x9cc", "abc"),
        ("a\x1b]0;never closed\nb", "a\nb"),
        ("he said â€œyesâ€\x9d and then left\nb", "he said â€œyesâ€ and then left\nb"),
        ("a\x90b\x98c\x9ed\x9fe\nf", "abcde\nf"),
        ("a\x90data\x1b\\b\x9fapc\x9cc\x9d52;c;x\x07d", "abcd"),
        ("a\x1b]0;â€\x9d title\x07b", "ab"),
        ("a\x1bcb\x1b(Bc\x1b", "abc"),
        ("one\r\ntwo\rthree\ttab\x00\x08\x7f", "one\ntwothree\ttab"),
        ("ünï 日本 ✓ → Ґ Đ М М", "ünï 日本 ✓ → Ґ Đ М М"),
        ("", ""),
    ],
)
def test_control_sequences_are_stripped_and_letters_are_not(raw: str, shown: str) -> None:
    assert plain(raw) == shown


@given(st.text(st.sampled_from("ab[]0;m\\P_^\x07\x1b\x9b\x9d\x90\n\r\tü日")) | st.text())
def test_nothing_that_drives_a_terminal_is_left_and_stripping_again_changes_nothing(text: str) -> None:
    shown = plain(text)
    assert not any((ord(char) < 32 and char not in "\n\t") or 127 <= ord(char) <= 159 for char in shown)
    assert plain(shown) == shown
    assert "\n" not in one_line(text)


@given(st.text(st.sampled_from("ab \u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u200f\u061cשלום\n")))
def test_one_line_of_foreign_text_does_not_turn_the_rest_of_ours(text: str) -> None:
    import unicodedata

    shown = one_line(text)
    turns = {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}
    assert not any(unicodedata.bidirectional(letter) in turns for letter in shown)
    assert len(shown.splitlines()) <= 1
    kept = [letter for letter in text if letter.isalpha()]
    assert [letter for letter in shown if letter != " "] == kept


# Format characters and separators of lines have no shape: tests/core/fast/test_text.py is about them.
@given(
    st.text(
        st.characters(min_codepoint=160, exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp"])
        | st.sampled_from("\u0600\u06dd")
    )
)
def test_utf8_text_passes_whole(text: str) -> None:
    assert plain(text) == text
    assert plain(text.encode(errors="replace").decode()) == text.encode(errors="replace").decode()


@pytest.mark.parametrize(
    ("minutes", "text"),
    [(8520, "5d22h"), (122, "2h02m"), (45, "45m"), (0, "0m"), (-5, "0m"), (59.9, "59m"), (1440, "1d00h")],
)
def test_durations_are_short(minutes: float, text: str) -> None:
    assert duration(minutes) == text


@pytest.mark.parametrize(
    ("value", "text"), [(30.0, "30"), (-4.7, "-4.7"), (-0.04, "0"), (12.34, "12.3"), (1e3, "1000")]
)
def test_numbers_are_in_their_shortest_form(value: float, text: str) -> None:
    assert number(value) == text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colour_is_for_terminals_that_want_it() -> None:
    assert style_for(Terminal(), {}).colour
    assert not style_for(io.StringIO(), {}).colour
    assert not style_for(Terminal(), {"NO_COLOR": "1"}).colour
    assert not style_for(Terminal(), {"TERM": "dumb"}).colour
    assert pool_lines(views(pool("a")), style=Style(colour=True))[0].endswith("\x1b[32mready\x1b[0m")
