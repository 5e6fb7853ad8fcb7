"""The home is deleted while something of ours is at work in the background: it doesn't come back, and nothing stays running."""

from __future__ import annotations

import json
import shutil
import threading
from typing import Any

import pytest
from tests.core.meters.endpoint import Answer, Endpoint, endpoint
from tests.processes import until
from tests.server.metered_site import LIVE, metered
from tests.server.site import WAIT_FOR_GO, Site


@pytest.fixture
def vendor() -> Any:
    with endpoint() as running:
        running.tells({"5h": 30, "weekly": 40})
        yield running


def left(site: Site) -> list[str]:
    root = site.home.root
    return sorted(str(path.relative_to(root)) for path in root.rglob("*")) if root.exists() else []


def take_away(site: Site) -> None:
    """Move it away first: who writes meanwhile would keep a folder from being deleted."""
    away = site.root / "away"
    site.home.root.rename(away)
    shutil.rmtree(away)


def test_a_reading_of_a_meter_does_not_bring_it_back(site: Site, vendor: Endpoint) -> None:
    metered(site, "fake", vendor.url)
    gone = threading.Event()
    vendor.answer = Answer(vendor.answer.body, before=lambda: gone.wait(30))
    site.say("pools", environ=LIVE)
    until(lambda: vendor.asked, "the vendor is asked")
    take_away(site)
    gone.set()
    until(lambda: not site.processes(), "the reading process has ended")
    assert not left(site), left(site)


def test_a_kernel_does_not_bring_it_back(site: Site) -> None:
    site.worker("alpha", WAIT_FOR_GO)
    process = site.start_run()
    site.worker_pid()
    site.kill_launcher(process)
    state = site.home.cache_dir / "hook-state.json"
    until(lambda: state.exists() and json.loads(state.read_bytes())["runs"], "the kernel has told of its worker")
    mod = site.home.cache_dir / "mod-state.json"
    until(lambda: mod.exists() and json.loads(mod.read_bytes())["runs"], "and all of it")
    take_away(site)
    site.go()
    until(lambda: not site.processes(), "kernel, keeper and worker have ended")
    assert not left(site), left(site)
