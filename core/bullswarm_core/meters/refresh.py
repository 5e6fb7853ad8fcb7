"""Reads one pool's meter: what lies about on this machine first, then the vendor, once, for all processes together.

The result is in the files afterwards: the reading and its history, or the hold with the reason why there is none. Nothing that
a provider's code does wrong reaches another pool.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from bullswarm_core._dataclasses import dataclass, replace
from bullswarm_core.errors import BullswarmError, MeterError, StorageError
from bullswarm_core.fast.rate_limits import READ_BY as STATUS_LINE
from bullswarm_core.meters.due import fresh, mode_of
from bullswarm_core.meters.endpoints import endpoints_of, guarded_fetch, guarded_post
from bullswarm_core.quota.holds import (
    CLOCK_TOLERANCE,
    Hold,
    clear_hold,
    hold_after,
    identity_of,
    is_young,
    lease,
    load_hold,
    may_ask_at,
    meter_lock,
    next_step,
    note_poll,
    polled_at,
    write_hold,
)
from bullswarm_core.quota.observation import MeterContext, Observation
from bullswarm_core.quota.reading import Reading, load_reading, write_reading
from bullswarm_core.quota.reconcile import merged, refusal_left
from bullswarm_core.store.home import Home

if TYPE_CHECKING:
    from bullswarm_core.pools.connector import PoolProfile
    from bullswarm_core.pools.model import Window

Step = Literal["live", "passive", "fresh", "held", "waits", "busy", "failed", "off"]
AT_ONCE = timedelta(seconds=10)
"""Whoever asks this soon after another process did gets the other one's answer, also when told to force it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one pool's turn.

    ``live``: the vendor answered; ``passive``: only what lies about was read; ``fresh``: there was nothing to do; ``held`` and
    ``waits``: the vendor may be asked from ``retry_at`` on; ``busy``: another process asks just now; ``failed``: see ``why``;
    ``off``: meters are turned off.
    """

    pool: str
    step: Step
    why: str = ""
    hint: str | None = None
    retry_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Refresher:
    """Reads meters of one home. ``environ`` is that of the calling agent or shell, ``now`` a clock."""

    home: Home
    environ: Mapping[str, str]
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def refresh(self, profile: PoolProfile, *, force: bool = False, wait_sec: float = 0.0) -> Outcome:
        """Bring the pool's reading up to date; ``force`` goes past freshness and hold (see ``ladder.next_step``).

        With another process at it already, wait for its reading up to ``wait_sec`` seconds. Raises StorageError when the disk
        refuses; whatever the provider's code raises is in the outcome.
        """
        if mode_of(self.environ) == "off":
            return Outcome(profile.id, "off")
        trouble = self._passive(profile)
        reading = load_reading(self.home, profile.id, now=self.now())
        if mode_of(self.environ) != "live" or not callable(getattr(profile.provider, "live_reading", None)):
            return Outcome(profile.id, "failed" if trouble else "passive", trouble)
        step = next_step(fresh=fresh(reading, profile, now=self.now()), hold=reading.hold, now=self.now(), force=force)
        if step != "live":
            return _untouched(profile.id, step, reading.hold)
        with lease(self.home, identity_of(profile), wait_sec=wait_sec) as alone:
            if not alone:
                return Outcome(profile.id, "busy", "another process reads this meter just now")
            return self._in_turn(profile, force=force)

    def _in_turn(self, profile: PoolProfile, *, force: bool) -> Outcome:
        """Ask the vendor, unless whoever had the lease before has done it for us."""
        identity, now = identity_of(profile), self.now()
        reading = load_reading(self.home, profile.id, now=now)
        asked_before, interval = polled_at(self.home, identity), profile.connector.meter.min_interval_sec
        if asked_before is not None and is_young(asked_before, now, AT_ONCE):
            if reading.checked_at is not None and reading.checked_at >= asked_before:
                return Outcome(profile.id, "live")
            if reading.hold is not None and reading.hold.failed_at >= asked_before:
                return _failed(profile.id, reading.hold)
        step = next_step(
            fresh=fresh(reading, profile, now=now),
            hold=reading.hold,
            now=now,
            polled_at=asked_before,
            min_interval_sec=interval,
            force=force,
        )
        if step == "waits":
            why = f"its vendor is asked once in {interval:g} s at most"
            return Outcome(profile.id, "waits", why, retry_at=may_ask_at(asked_before, interval, now))
        if step != "live":
            return _untouched(profile.id, step, reading.hold)
        note_poll(self.home, identity, now=now)
        sent: list[str] = []
        try:
            observation = self._live(profile, sent)
        except MeterError as error:
            self._home_is_there()
            if interval and not sent:
                # Nothing left this machine: whoever mends the sign-in or an address need not wait for the vendor's sake.
                note_poll(self.home, identity, now=asked_before)
            return self._hold(profile, error)
        self._home_is_there()
        keep(self.home, profile.id, (observation,), now=self.now(), whole=True, billing=profile.billing)
        clear_hold(self.home, profile.id)
        return Outcome(profile.id, "live")

    def _home_is_there(self) -> None:
        """Raise StorageError when the home was deleted while the vendor was asked: to write would bring it back."""
        if not self.home.root.is_dir():
            raise StorageError(f"{self.home.root} was deleted while a meter was read", hint="the reading is not kept")

    def _live(self, profile: PoolProfile, sent: list[str]) -> Observation:
        """Ask the provider; ``sent`` names the requests that it made by way of us."""
        found = _guarded(lambda: profile.provider.live_reading(self._context(profile, sent)))
        if not isinstance(found, Observation):
            raise MeterError(f"{profile.connector.display_name}'s reader gave no reading", kind="unreadable")
        # Its clock may run ahead of ours, and it was read no later than now.
        return replace(found, captured_at=min(_aware(found.captured_at), self.now()))

    def _passive(self, profile: PoolProfile) -> str:
        """Keep what lies about; return what went wrong, if something did."""
        look = getattr(profile.provider, "passive_readings", None)
        if not callable(look):
            return ""
        try:
            found = _guarded(lambda: tuple(look(self._context(profile))))
        except MeterError as error:
            return error.message
        told = [item for item in found if isinstance(item, Observation)]
        now = self.now()
        sound = [item for item in told if _aware(item.captured_at) - now <= CLOCK_TOLERANCE]
        keep(self.home, profile.id, sound, now=now, billing=profile.billing)
        if len(told) < len(found):
            return f"{profile.connector.display_name}'s reader gave no reading"
        return ""

    def _context(self, profile: PoolProfile, sent: list[str] | None = None) -> MeterContext:
        endpoints = endpoints_of(self.home, profile.connector)
        environ = reader_environment(self.environ, profile, self.home)
        noted = [] if sent is None else sent
        fetch = _noting(guarded_fetch(endpoints, environ), noted)
        post = _noting(guarded_post(endpoints, environ), noted)
        return MeterContext(profile, environ, self.now(), fetch, endpoints, post)

    def _hold(self, profile: PoolProfile, error: MeterError) -> Outcome:
        previous, _ = load_hold(self.home, profile.id)
        hold = hold_after(
            kind=error.kind,
            reason=error.message,
            hint=error.hint,
            retry_after_sec=error.retry_after_sec,
            previous=previous,
            now=self.now(),
        )
        write_hold(self.home, profile.id, hold)
        return _failed(profile.id, hold)


def keep(
    home: Home,
    pool_id: str,
    observations: Iterable[Observation],
    *,
    now: datetime,
    whole: bool = False,
    billing: str | None = None,
) -> None:
    """Store what sources told of a pool, window by window, and add it to the pool's history.

    ``whole`` says that each told all windows of the account, ``billing`` how its sign-in is paid; what was known of one that
    is paid otherwise goes. Raises StorageError when the disk refuses, LockTimeoutError when
    another process rewrites the file for seconds.
    """
    told = sorted((_stamped(item, now) for item in observations), key=lambda item: item.captured_at)
    if not told:
        return
    with meter_lock(home, pool_id):
        known = load_reading(home, pool_id, now=now)
        if billing is not None:
            known = replace(known.of(billing), billing=billing)
        reading = after(known, told, now=now, whole=whole)
        if whole or _changed(known, reading):
            write_reading(
                home,
                pool_id,
                reading.windows,
                captured_at=reading.captured_at or now,
                refusal=reading.refusal,
                checked_at=reading.checked_at,
                read_by=reading.read_by,
                plan=reading.plan,
                overage=reading.overage,
                billing=reading.billing,
            )
    _add_to_history(home, pool_id, known, told, now)


def after(known: Reading, told: Iterable[Observation], *, now: datetime, whole: bool = False) -> Reading:
    """Return the reading that is known after ``told``, oldest first; pure."""
    for item in told:
        captured_at = known.captured_at
        newest = _later(captured_at, item.captured_at, now) == item.captured_at
        known = replace(
            known,
            captured_at=item.captured_at if newest else captured_at,
            windows=merged(
                known.windows,
                item.windows,
                now=now,
                whole=whole,
                told_before=None if item.partial else known.checked_at,
            ),
            checked_at=_later(known.checked_at, item.captured_at, now) if whole else known.checked_at,
            read_by=(item.read_by or known.read_by) if newest else known.read_by,
            plan=(item.plan if newest else None) or known.plan or item.plan,
            overage=known.overage if item.overage is None or not (newest or known.overage is None) else item.overage,
            refusal=refusal_left(known.refusal, item.windows, now=now, whole=whole and not item.partial),
        )
    return known


def _later(one: datetime | None, other: datetime, now: datetime) -> datetime:
    return other if one is None or one <= other or one - now > CLOCK_TOLERANCE else one


def reader_environment(environ: Mapping[str, str], profile: PoolProfile, home: Home) -> dict[str, str]:
    """Return the environment in which a pool's CLI lives: the account's, without the keys that are billed apart."""
    from bullswarm_core.process.environment import is_session_variable

    kept = {
        name: value for name, value in environ.items() if name not in profile.withheld and not is_session_variable(name)
    }
    return {**kept, **profile.environment, "BULLSWARM_HOME": str(home.root)}


def _noting(ask: Callable[..., Any], sent: list[str]) -> Callable[..., Any]:
    def noted(url: str, *arguments: Any, **named: Any) -> Any:
        sent.append(url)
        return ask(url, *arguments, **named)

    return noted


def _guarded(ask: Callable[[], Any]) -> Any:
    """Run a provider's code; whatever it raises becomes a MeterError, told by its kind alone: its text may hold a token."""
    try:
        return ask()
    except MeterError:
        raise
    except BullswarmError as error:
        raise MeterError(error.message, kind="unreachable", hint=error.hint) from None
    except (Exception, SystemExit) as error:
        raise MeterError(f"the reader failed ({type(error).__name__})", kind="unreadable") from None


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _stamped(item: Observation, now: datetime) -> Observation:
    """Give every window the time at which its source told it."""
    captured_at = min(_aware(item.captured_at), now)
    windows = tuple(replace(window, captured_at=_own(window, captured_at)) for window in item.windows)
    return replace(item, captured_at=captured_at, windows=windows)


def _own(window: Window, captured_at: datetime) -> datetime:
    return captured_at if window.captured_at is None else min(window.captured_at, captured_at)


def _changed(known: Reading, reading: Reading) -> bool:
    def facts(item: Reading) -> list[Any]:
        windows = [window for window in item.windows if window.source != "refusal"]
        return [item.captured_at, item.plan, item.overage, item.refusal] + [
            (window.kind, window.scope, window.used_pct, window.resets_at, window.captured_at, window.unstable)
            for window in windows
        ]

    return facts(known) != facts(reading)


def _add_to_history(home: Home, pool_id: str, known: Reading, told: Iterable[Observation], now: datetime) -> None:
    """Add the readings, and first what the status line kept: it is written several times a minute and has no time for it."""
    from bullswarm_core.quota.history import append_history

    items = list(told)
    if known.read_by == STATUS_LINE and known.captured_at is not None:
        seen = tuple(window for window in known.windows if window.captured_at == known.captured_at)
        items.insert(0, Observation(known.captured_at, seen, STATUS_LINE))
    for item in items:
        # The reading is stored; a history that is locked or full costs the rates one measurement.
        with contextlib.suppress(BullswarmError):
            append_history(home, pool_id, item, now=now)


def _untouched(pool_id: str, step: Any, hold: Hold | None) -> Outcome:
    if step == "held" and hold is not None:
        return Outcome(pool_id, "held", hold.reason, hold.hint, hold.until)
    return Outcome(pool_id, step)


def _failed(pool_id: str, hold: Hold) -> Outcome:
    return Outcome(pool_id, "failed", hold.reason, hold.hint, hold.until)
