"""One word through a free model before it is trusted with a task: a free endpoint never reads as spent, it only falls silent.

Only a model that the person's rung names is tried, and only for a real dispatch. The answer
is kept for 15 minutes per pool and model, a bad one too; no other model is ever taken in its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from bullswarm_core.dispatch.services import Services
from bullswarm_core.errors import BullswarmError, StateError
from bullswarm_core.fast.tree import temporary_folder
from bullswarm_core.launch.plan import plan_launch
from bullswarm_core.pools.connector import PoolProfile
from bullswarm_core.pools.model import Rung
from bullswarm_core.process.child import ChildResult, run_child
from bullswarm_core.store.home import file_lock, read_json, write_json
from bullswarm_core.wire import iso, parse_iso

PROMPT = "PONG"
TIMEOUT_SEC = 30.0
KEPT = timedelta(minutes=15)
_NO_SUCH_MODEL = re.compile(r"\b404\b|model[ _]not[ _]found", re.I)
# Read for the status only; nothing of it is shown.
_READ_CHARS = 4000

Run = Callable[..., ChildResult]


def is_probed(rung: Rung | None) -> bool:
    """Tell whether a pick of this rung is tried first: a free model that a rung of the person's names."""
    return rung is not None and rung.free and rung.model is not None and rung.source == "settings"


def probe(services: Services, profile: PoolProfile, rung: Rung, *, run: Run = run_child) -> str | None:
    """Return why the free model does not answer (``timeout``, ``404``, ``provider error``), or None when it does."""
    key = f"{profile.id} {rung.model}"
    now = services.now()
    known = _known(services, key, now)
    if known is not None:
        return None if known["ok"] else str(known["reason"])
    reason = _try(services, profile, rung, run)
    _keep(services, key, {"ok": reason is None, "reason": reason, "at": iso(now)}, now)
    return reason


def _try(services: Services, profile: PoolProfile, rung: Rung, run: Run) -> str | None:
    with temporary_folder("bullswarm-probe-") as folder:
        place = Path(folder).resolve()
        prompt, cwd, private_tmp = place / "prompt", place / "work", place / "tmp"
        prompt.write_text(PROMPT, encoding="utf-8")
        cwd.mkdir()
        private_tmp.mkdir()
        try:
            plan = plan_launch(
                profile,
                rung=rung,
                lane="analyze",
                cwd=str(cwd),
                prompt_file=str(prompt),
                private_tmp=str(private_tmp),
                environ=services.environ,
                can_confine=False,
            )
            result = run(
                plan.argv,
                cwd=cwd,
                environ=plan.environment,
                timeout_sec=TIMEOUT_SEC,
                input=PROMPT.encode() if plan.stdin_file else None,
            )
        except BullswarmError:
            return "provider error"
    if result.timed_out:
        return "timeout"
    if result.ok:
        return None
    said = (result.stderr + result.stdout)[-_READ_CHARS:].decode("utf-8", "replace")
    return "404" if _NO_SUCH_MODEL.search(said) else "provider error"


def _cache_file(services: Services) -> Path:
    return services.home.cache_dir / "free-model-probes.json"


def _entries(services: Services, now: datetime) -> dict[str, dict[str, Any]]:
    try:
        document = read_json(_cache_file(services), default={})
        entries = document["entries"] if isinstance(document, dict) and "entries" in document else {}
        return {key: entry for key, entry in entries.items() if now - parse_iso(entry["at"]) < KEPT}
    except (StateError, ValueError, KeyError, TypeError, AttributeError):
        # A cache that can't be read is only an empty one.
        return {}


def _known(services: Services, key: str, now: datetime) -> dict[str, Any] | None:
    return _entries(services, now).get(key)


def _keep(services: Services, key: str, entry: dict[str, Any], now: datetime) -> None:
    try:
        with file_lock(_cache_file(services).with_suffix(".lock")):
            write_json(_cache_file(services), {"entries": {**_entries(services, now), key: entry}})
    except BullswarmError:
        # Without a cache the next task asks again.
        return
