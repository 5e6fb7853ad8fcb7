"""What a usage-limit notice teaches about a pool, and what it must not."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core.pools import WINDOW_KINDS, Window, WindowKind
from bullswarm_core.quota.notice import Notice
from bullswarm_core.quota.reading import load_reading, write_reading
from bullswarm_core.quota.refusals import note_refusal, refusal_from
from bullswarm_core.quota.windows import is_reading, spent_window
from bullswarm_core.store.home import Home

NOW = datetime(2026, 11, 30, 5, 0, 30, tzinfo=UTC)
SOON, LATE = NOW + timedelta(hours=2), NOW + timedelta(days=3)
WEEK = Window("weekly", 62.0, LATE, captured_at=NOW - timedelta(hours=1))
HOURS = Window("5h", 97.0, SOON, captured_at=NOW - timedelta(hours=1))


def spent(window: WindowKind | None = None, resets_at: datetime | None = None, scope: str | None = None) -> Notice:
    return Notice("quota", "You've hit your limit", window, resets_at, "named" if resets_at else None, scope)


def test_a_named_reset_marks_its_window() -> None:
    found = refusal_from(spent("5h", SOON), (), now=NOW)
    assert found is not None and (found.kind, found.resets_at, found.reset_source) == ("5h", SOON, "named")
    assert found.window().used_pct == 100.0 and found.window().source == "refusal" and is_reading(found.window(), NOW)


def test_a_notice_without_a_window_means_the_one_that_resets_then() -> None:
    minute_later = LATE + timedelta(minutes=1)
    found = refusal_from(spent(resets_at=minute_later), (HOURS, WEEK), now=NOW)
    assert found is not None and (found.kind, found.resets_at) == ("weekly", minute_later)
    short = refusal_from(spent(resets_at=NOW + timedelta(hours=4)), (WEEK,), now=NOW)
    assert short is not None and short.kind == "5h"


def test_an_earlier_reading_gives_the_reset() -> None:
    found = refusal_from(spent("weekly"), (HOURS, WEEK), now=NOW)
    assert found is not None and (found.kind, found.resets_at, found.reset_source) == ("weekly", LATE, "measured")
    unnamed = refusal_from(spent(), (HOURS, WEEK), now=NOW)
    assert unnamed is not None and (unnamed.kind, unnamed.resets_at) == ("5h", SOON)


@pytest.mark.parametrize(
    "window", [None, WEEK, Window("5h", 97.0, NOW), Window("5h", 97.0), Window("5h", 100.0, SOON, source="refusal")]
)
def test_no_known_reset_leaves_no_mark(window: Window | None) -> None:
    assert refusal_from(spent(), (window,) if window else (), now=NOW) is None


def test_a_reset_that_just_passed_keeps_nobody_out() -> None:
    assert refusal_from(spent("5h", NOW - timedelta(minutes=2)), (HOURS,), now=NOW) is None


@pytest.mark.parametrize("kind", ["throttle", "auth", "model-not-in-plan"])
def test_only_a_spent_window_leaves_a_mark(kind: str) -> None:
    notice = Notice(kind, "x", "5h", SOON, "named")  # type: ignore[arg-type]
    assert refusal_from(notice, (HOURS,), now=NOW) is None


def test_a_models_own_limit_marks_that_model_alone() -> None:
    opus = Window("weekly", 100.0, SOON, scope="opus")
    named = refusal_from(spent("weekly", LATE, "opus"), (WEEK, opus), now=NOW)
    assert named is not None and (named.scope, named.resets_at) == ("opus", LATE)
    measured = refusal_from(spent("weekly", None, "opus"), (WEEK, opus), now=NOW)
    assert measured is not None and (measured.scope, measured.resets_at) == ("opus", SOON)
    assert refusal_from(spent("weekly", None, "sonnet"), (WEEK, opus), now=NOW) is None


@pytest.mark.parametrize(
    ("model", "held", "free"),
    [
        # The CLI's default model ran into the limit of Opus: it is Opus, whatever it is called.
        (None, (None, "opus", "claude-opus-4-8"), ("sonnet", "haiku")),
        ("opusplan", ("opusplan", "opus"), (None, "sonnet")),
        ("claude-opus-4-8", ("claude-opus-4-8", "opus"), (None, "sonnet")),
    ],
)
def test_a_models_own_limit_holds_back_the_name_that_ran_into_it(
    tmp_path: Path, model: str | None, held: tuple[str | None, ...], free: tuple[str | None, ...]
) -> None:
    home = Home(tmp_path)
    write_reading(home, "claude-code", (WEEK,), captured_at=NOW - timedelta(hours=1))
    note_refusal(home, "claude-code", spent("weekly", LATE, "opus"), model=model, now=NOW)
    for later in (NOW, LATE - timedelta(seconds=1)):
        windows = load_reading(home, "claude-code", now=later).windows
        assert all(spent_window(windows, later, model=name) for name in held)
        assert not any(spent_window(windows, later, model=name) for name in free)
    windows = load_reading(home, "claude-code", now=LATE).windows
    assert not any(spent_window(windows, LATE, model=name) for name in (*held, *free))


def test_a_limit_of_the_account_marks_no_model(tmp_path: Path) -> None:
    found = note_refusal(Home(tmp_path), "claude-code", spent("weekly", LATE), model=None, now=NOW)
    assert found is not None and found.model is None and len(found.windows()) == 1


def test_the_mark_is_stored_beside_the_reading_and_a_later_reading_replaces_it(tmp_path: Path) -> None:
    home = Home(tmp_path)
    write_reading(home, "claude-code:acme", (HOURS, WEEK), captured_at=NOW - timedelta(hours=1))
    stored = note_refusal(home, "claude-code:acme", spent("5h", SOON), now=NOW)
    assert stored is not None
    windows = load_reading(home, "claude-code:acme", now=NOW).windows
    assert {(w.kind, w.used_pct) for w in windows} == {("5h", 97.0), ("weekly", 62.0), ("5h", 100.0)}
    write_reading(home, "claude-code:acme", (WEEK,), captured_at=NOW)
    assert [w.source for w in load_reading(home, "claude-code:acme", now=NOW).windows] != ["refusal"]


def test_nothing_is_stored_where_nothing_is_known(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert note_refusal(home, "codex", spent(), now=NOW) is None
    assert not home.meter_file("codex").exists()


moments = st.none() | st.integers(-600, 40 * 86400).map(lambda seconds: NOW + timedelta(seconds=seconds))
meters = st.builds(
    Window, kind=st.sampled_from(WINDOW_KINDS), used_pct=st.none() | st.floats(0, 150), resets_at=moments
)


@given(window=st.none() | st.sampled_from(WINDOW_KINDS), resets_at=moments, windows=st.lists(meters, max_size=4))
def test_a_mark_always_has_a_known_reset_ahead(
    window: WindowKind | None, resets_at: datetime | None, windows: list[Window]
) -> None:
    found = refusal_from(spent(window, resets_at), windows, now=NOW)
    if resets_at is not None:
        assert (found is not None) == (resets_at > NOW)
    if found is not None:
        assert found.resets_at is not None and found.resets_at > NOW and is_reading(found.window(), NOW)
        assert found.reset_source == ("named" if resets_at else "measured")
        assert found.resets_at == resets_at or found.resets_at in {w.resets_at for w in windows}
