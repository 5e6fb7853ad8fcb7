"""What a failed attempt leaves behind for the routing policy that remembers: a quarantine of its pool."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime

from bullswarm_core.dispatch.quarantines import record, remembers
from bullswarm_core.dispatch.services import Services
from bullswarm_core.errors import StateError
from bullswarm_core.fast.text import one_line
from bullswarm_core.judging.verdict import Judgement
from bullswarm_core.pools.credentials import names_of_one_credential
from bullswarm_core.pools.model import Window
from bullswarm_core.pools.settings import Settings
from bullswarm_core.quota.notice import Notice
from bullswarm_core.quota.reading import load_reading
from bullswarm_core.quota.windows import readings
from bullswarm_core.routing.quarantine import Quarantine, after_auth_failure, after_limit

# The why stands in a line of `pools` and in reasons, beside the numbers of other pools.
_LONGEST_WHY = 120


def note_quarantine(
    services: Services, connection: sqlite3.Connection, pool: str, judgement: Judgement, notice: Notice | None
) -> None:
    """Record what the end of an attempt on ``pool`` means for later picks, where the policy in force remembers it.

    Of a refused sign-in only the error channel of the provider counts, not what stood in place of a reply.
    """
    if judgement.failure_kind not in ("quota", "auth") or notice is None or not _remembers(services):
        return
    now = services.now()
    if judgement.failure_kind == "auth":
        siblings = names_of_one_credential(services.load_profiles(), [pool])
        heard = notice.said_by != "reply"
        entries = after_auth_failure(pool, _why(notice), now=now, siblings=siblings) if heard else ()
    else:
        windows = load_reading(services.home, pool, now=now).windows
        entries = quarantines_after_limit(pool, judgement, notice, windows, now=now)
    record(connection, entries, at=now)


def quarantines_after_limit(
    pool: str, judgement: Judgement, notice: Notice, windows: Sequence[Window], *, now: datetime
) -> tuple[Quarantine, ...]:
    """Return the quarantine after a usage limit; ``windows`` are the pool's last readings.

    A limit of one model alone leaves none: it keeps that model out by its own window, and the pool has others.
    """
    if notice.scope is not None:
        return ()
    named = judgement.back_at if judgement.back_at_source == "named" else None
    five_hour = readings(windows, now).get(("5h", None))
    reset = five_hour.resets_at if five_hour is not None else None
    found = after_limit(pool, _why(notice), now=now, named_reset=named, five_hour_reset=reset)
    return (found,) if found else ()


def _remembers(services: Services) -> bool:
    try:
        return remembers(Settings.load(services.home))
    except StateError:  # nobody's verdict is lost for it; whoever picks next is told
        return False


def _why(notice: Notice) -> str:
    line = one_line(notice.line)
    return line if len(line) <= _LONGEST_WHY else f"{line[: _LONGEST_WHY - 1]}…"
