"""Whoever waits for a reading is told so, and a pool whose first reading still runs says that it does."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Sequence
from typing import Any

import pytest
from tests.core.meters.endpoint import endpoint
from tests.server.metered_site import LIVE, metered
from tests.server.site import Site

from bullswarm_core.quota.holds import started_file
from bullswarm_core.quota.reading import LONGEST_READING
from bullswarm_server.cli import pools
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.meters import LIMIT_SEC
from bullswarm_server.ops import meters as metering
from bullswarm_server.ops.meters import claim


class Terminal(io.StringIO):
    """A stream that says of itself that it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("words", "err", "told"),
    [
        (["--force"], Terminal, "reading fake, second …\n"),
        (["--force", "--json"], Terminal, "reading fake, second …\n"),
        (["--force"], io.StringIO, ""),
        ([], Terminal, ""),
    ],
)
def test_a_forced_reading_says_on_a_terminal_what_it_waits_for(
    site: Site, monkeypatch: pytest.MonkeyPatch, words: list[str], err: type[io.StringIO], told: str
) -> None:
    context = CommandContext(site.home, {**site.environ, **LIVE}, io.StringIO(), err())
    said_before: list[str] = []

    def read_now(home: Any, names: Sequence[str], **more: Any) -> list[metering.Outcome]:
        said_before.append(context.err.getvalue())  # type: ignore[attr-defined]
        return [{"pool": name, "step": "live", "why": None, "hint": None, "retryAt": None} for name in names]

    monkeypatch.setattr(metering, "read_now", read_now)
    monkeypatch.setattr(metering, "bring_up_to_date", lambda *known, **more: None)
    with endpoint() as vendor:
        metered(site, "fake", vendor.url)
        metered(site, "other", vendor.url)
        assert site.say("label", "other", "second").code == 0
        assert pools.run(words, context) == 0
        assert not vendor.asked
    assert said_before == ([told] if "--force" in words else [])


def test_a_first_reading_that_runs_is_said_to_run(site: Site) -> None:
    with endpoint() as vendor:
        metered(site, "fake", vendor.url)
    site.worker("alpha", "true")
    assert "unmetered" in _line(site, "fake")
    assert claim(site.home, "fake") and claim(site.home, "alpha")
    assert "being-read" in _line(site, "fake") and "unmetered" not in _line(site, "fake")
    assert "unmetered" in _line(site, "alpha"), "a CLI without a meter is never read"
    mark = started_file(site.home, "fake")
    for age in (LONGEST_READING.total_seconds() + 1, -3600):
        os.utime(mark, (time.time() - age, time.time() - age))
        assert "unmetered" in _line(site, "fake")


def test_a_reading_is_under_way_as_long_as_its_process_may_last() -> None:
    assert LONGEST_READING.total_seconds() == LIMIT_SEC


def _line(site: Site, pool: str) -> str:
    return next(line for line in site.say("pools").out.splitlines() if line.startswith(f"{pool} "))
