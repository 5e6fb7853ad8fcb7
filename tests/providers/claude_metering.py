"""What the tests on Claude Code's usage share: a stored sign-in, and how windows are looked at."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.providers.metering import NOW, TOKEN, write

from bullswarm_core.pools import Window

IN_3_H, IN_3_D = "2026-11-30T12:00:00Z", "2026-12-03T05:00:00Z"


def ms(moment: datetime) -> int:
    """Give Unix milliseconds."""
    return int(moment.timestamp() * 1000)


def stored(home: Path, *, place: str = ".claude/.credentials.json", **more: Any) -> None:
    """Store a sign-in that is good for an hour, as Claude Code does."""
    document = {
        "accessToken": TOKEN,
        "refreshToken": "refresh-me-not",
        "expiresAt": ms(NOW + timedelta(hours=1)),
        **more,
    }
    write(home / place, {"claudeAiOauth": document})


def numbers(windows: tuple[Window, ...]) -> dict[str, float | None]:
    """Give the used percent of each window; one of a model is named after it, too."""
    return {f"{window.kind} {window.scope}" if window.scope else window.kind: window.used_pct for window in windows}


def assert_in_range(windows: tuple[Window, ...], now: datetime) -> None:
    """Let no window be out of range, told twice, or over."""
    assert len({(window.kind, window.scope) for window in windows}) == len(windows)
    for window in windows:
        assert window.used_pct is not None and 0 <= window.used_pct <= 1000
        assert window.length is not None
        assert window.resets_at is None or now < window.resets_at <= now + window.length + timedelta(hours=1)
