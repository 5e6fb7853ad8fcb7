"""What `bullswarm doctor` says of meters: one line for each that could not be read, with the way out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from bullswarm_core.fast.text import duration
from bullswarm_core.meters.due import VARIABLE, mode_of
from bullswarm_core.pools.connector import PoolProfile
from bullswarm_core.quota.reading import Reading, load_reading
from bullswarm_core.store.home import Home

MODES = ("live", "passive", "off")
_FIXES: Mapping[str, str] = {
    "limited": "nothing to do: it is asked again by itself",
    "refused": "sign in to the CLI again; the pool works without a meter, by what its runs tell",
    "unreachable": "check the network and https_proxy, then: bullswarm pools --force",
    "unreadable": "update bullswarm and the CLI, then: bullswarm pools --force",
    "unsupported": "nothing to do: the pool works without a meter",
}


def mode_trouble(environ: Mapping[str, str]) -> tuple[str, str] | None:
    """Say what is unusual about the switch of meters, and the way out; None where they are read as usual."""
    word = environ.get(VARIABLE, "").strip()
    if not word or word.lower() == "live":
        return None
    known = word.lower() in MODES
    what = "" if known else f", which is none of {', '.join(MODES)} and counts as off"
    told = "files of this machine alone are read" if mode_of(environ) == "passive" else "no meter is read"
    return f"{VARIABLE} is {word!r}{what}: {told}", f"unset {VARIABLE}"


def trouble(home: Home, profile: PoolProfile, *, now: datetime) -> tuple[str, str] | None:
    """Say why the pool's meter could not be read the last time, and the way out; None where it could."""
    reading = load_reading(home, profile.id, now=now)
    if reading.trouble is None:
        return None
    return " · ".join([reading.trouble, *_state(reading, now)]), _fix(reading, profile)


def _state(reading: Reading, now: datetime) -> Iterator[str]:
    if reading.captured_at is None:
        yield "never read"
    elif reading.captured_at <= now:
        yield f"last read {duration(_minutes(now, reading.captured_at))} ago"
    if (until := reading.held_until(now)) is not None:
        yield f"retry in {duration(_minutes(until, now))}"


def _minutes(later: datetime, earlier: datetime) -> float:
    return (later - earlier).total_seconds() / 60


def _fix(reading: Reading, profile: PoolProfile) -> str:
    if reading.hold is None:
        return "bullswarm pools --force replaces the file"
    if reading.hold.hint:
        return reading.hold.hint
    if reading.hold.kind == "sign-in":
        return profile.connector.sign_in.hint or f"open {profile.connector.display_name} and sign in"
    return _FIXES.get(reading.hold.kind, "bullswarm pools --force")
