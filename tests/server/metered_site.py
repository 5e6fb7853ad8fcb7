"""A site whose workers have meters: their reader asks an endpoint on 127.0.0.1."""

from __future__ import annotations

from typing import Any

from tests.server.site import Site

READER = """
from datetime import timedelta
from bullswarm_core.pools import Window
from bullswarm_core.quota.observation import Observation

def live_reading(context):
    body = context.fetch(context.endpoints["usage"], {"Authorization": "Bearer sk-SECRET-1"})
    reset = timedelta(hours=body.get("hours", 2))
    told = (("5h", reset), ("weekly", timedelta(days=2)))
    windows = [Window(kind, body[kind], context.now + left) for kind, left in told if kind in body]
    return Observation(context.now, tuple(windows), "usage endpoint", overage=body.get("overage"))
"""
LIVE = {"BULLSWARM_METERS": "live"}


def metered(
    site: Site, name: str, url: str, script: str = "cat > /dev/null", *, interval: float = 0, **changes: Any
) -> None:
    """Put a worker on PATH that is signed in and whose usage can be read."""
    meter = {"type": "reader", "windows": ["5h", "weekly"], "endpoints": {"usage": url}, "minIntervalSec": interval}
    sign_in = {"files": [f"~/.{name}/auth.json"], "required": True}
    site.worker(name, script, meter=meter, signIn=sign_in, **changes)
    file = site.root / "home" / f".{name}" / "auth.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text('{"token": "sk-SECRET-1"}')
    (site.home.providers_dir / name / "provider.py").write_text(READER, encoding="utf-8")
