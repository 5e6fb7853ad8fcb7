"""What Claude Code tells its status line about its own windows, as a reading of that account's meter: free of charge."""

from __future__ import annotations

from bullswarm_core.fast.hook_state import number
from bullswarm_core.fast.moments import epoch_of, iso_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SCHEMA_VERSION = "bullswarm.meter.v1"
# The names in the status line's JSON (measured, 2.1.332), our kinds, and the windows' lengths in seconds.
_WINDOWS = (("five_hour", "5h", 5 * 3600), ("seven_day", "weekly", 7 * 86400))
READ_BY = "status line"
BILLING = "subscription"
"""Claude Code tells limits of a plan alone: work by an API key has none."""
REFRESH_SEC = 60.0
# The same reset is told with a second more or less from one answer to the next.
_SAME_RESET_SEC = 120.0


def windows_in(status: object, *, now: float) -> list[dict[str, Any]]:
    """Return the windows of the caller's own account that a status document tells, as a meter file holds them.

    ``used_percentage`` is 0 or more, ``resets_at`` in Unix seconds. A window whose reset has passed is left out.
    """
    limits = status.get("rate_limits") if isinstance(status, dict) else None
    found = []
    for name, kind, length in _WINDOWS:
        entry = limits.get(name) if isinstance(limits, dict) else None
        if not isinstance(entry, dict):
            continue
        used, reset = number(entry.get("used_percentage")), number(entry.get("resets_at"))
        # Further off than the window is long: not a reset of this window.
        if used is None or used < 0 or reset is None or not now < reset <= now + length + _SAME_RESET_SEC:
            continue
        found.append(
            {"kind": kind, "usedPct": used, "resetsAt": iso_of(round(reset)), "lengthSec": float(length), "scope": None,
             "source": "live", "resetSource": "provider"}
        )  # fmt: skip
    return found


def merged_meter(meter: object, told: list[dict[str, Any]], *, pool: str, now: float) -> dict[str, Any] | None:
    """Return the meter file with the windows of ``told`` in it, or None when it says the same and is young enough.

    Other windows and keys stay, each window with the time at which it was read; one that has ended goes. A session that was
    idle tells old numbers, and a window only fills until its reset: where the file knows a higher use of the same window, or a
    window that is newer, that one stays. For the same reason a refusal outlasts what is told here.
    """
    document = dict(meter) if isinstance(meter, dict) and meter.get("schemaVersion") == SCHEMA_VERSION else {}
    listed = document.get("windows")
    known = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    newer = [entry for entry in told if not any(_outdoes(old, entry) for old in known)]
    captured_at = epoch_of(document.get("capturedAt"))
    young = captured_at is not None and 0 <= now - captured_at < REFRESH_SEC
    if not newer or (young and all(any(_same(old, entry) for old in known) for entry in newer)):
        return None
    kinds = {entry["kind"] for entry in newer}
    others = [entry for entry in known if (entry.get("kind") not in kinds or entry.get("scope")) and _lasts(entry, now)]
    return {
        "refusal": None,
        **document,
        "schemaVersion": SCHEMA_VERSION,
        "pool": pool,
        "capturedAt": iso_of(now),
        "readBy": READ_BY,
        "billing": BILLING,
        "windows": [*newer, *(_dated(entry, document.get("capturedAt")) for entry in others)],
    }


def _lasts(entry: dict[str, Any], now: float) -> bool:
    reset = epoch_of(entry.get("resetsAt"))
    return reset is None or reset > now


def _dated(entry: dict[str, Any], captured_at: Any) -> dict[str, Any]:
    """Give a window that wasn't told again the time at which it was."""
    return entry if "capturedAt" in entry or not isinstance(captured_at, str) else {**entry, "capturedAt": captured_at}


def _outdoes(old: dict[str, Any], new: dict[str, Any]) -> bool:
    if not _comparable(old, new):
        return False
    reset, new_reset = epoch_of(old.get("resetsAt")), epoch_of(new["resetsAt"])
    used = number(old.get("usedPct"))
    if reset is None or new_reset is None or used is None:
        return False
    if abs(reset - new_reset) > _SAME_RESET_SEC:
        return reset > new_reset
    return bool(used > new["usedPct"])


def _same(old: dict[str, Any], new: dict[str, Any]) -> bool:
    if not _comparable(old, new) or number(old.get("usedPct")) != new["usedPct"]:
        return False
    reset, new_reset = epoch_of(old.get("resetsAt")), epoch_of(new["resetsAt"])
    return reset is not None and new_reset is not None and abs(reset - new_reset) <= _SAME_RESET_SEC


def _comparable(old: dict[str, Any], new: dict[str, Any]) -> bool:
    return old.get("kind") == new["kind"] and not old.get("scope")
