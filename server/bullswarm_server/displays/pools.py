"""The lines of ``bullswarm pools`` (docs/design/routing.md, "One row of `pools`")."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from bullswarm_core.fast.text import duration, number
from bullswarm_core.pools import EFFORTS, Rate, Window
from bullswarm_core.quota.windows import CLOCK_TOLERANCE, MINUTE, spent
from bullswarm_core.routing.billing import grant_command
from bullswarm_core.routing.overview import PoolOverview
from bullswarm_core.wire import whole_second
from bullswarm_server.displays.text import Style, one_line

UNDER_WAY = "being read"
"""What stands for the numbers of a pool whose first reading still runs."""
_PLAIN = Style(colour=False)
_MINUTE_SECONDS = 60


def pool_lines(overviews: Sequence[PoolOverview], *, style: Style = _PLAIN) -> list[str]:
    """One line per pool, the names padded to one width; labels in place of ids."""
    names = [one_line(item.pool.shown_name) for item in overviews]
    width = max((len(name) for name in names), default=0)
    return [f"{name:<{width}} {_columns(item, style)}" for name, item in zip(names, overviews, strict=True)]


def _columns(item: PoolOverview, style: Style) -> str:
    columns = [
        f"cost={item.pool.cost_rank}",
        f"lanes={'/'.join(item.lanes) or '-'}",
        _meter(item),
        f"surplus={_surplus(item)}",
        f"inflight={item.row.inflight}",
        *_five_hour(item),
        *_daily(item),
        *_models(item),
        *_free(item),
        _state(item, style),
        *_provenance(item),
    ]
    return " ".join(columns)


def _meter(item: PoolOverview) -> str:
    window = item.pacing
    if window is None or window.used_pct is None:
        trouble = trouble_text(item)
        word = UNDER_WAY.replace(" ", "-") if item.pool.meter_under_way else "unmetered"
        return f"{word} [{trouble}]" if trouble else word
    elapsed = item.row.pacing_elapsed_pct
    clock = "?" if elapsed is None else f"{number(elapsed)}%"
    used = f"{number(window.used_pct)}%{_moved(window.used_pct, item.row.projected_pacing_pct)}"
    return f"{window.kind} used {used} elapsed {clock} [{_source(item)}]"


def _source(item: PoolOverview) -> str:
    source = item.pacing.source if item.pacing else "stale"
    if source != "stale":
        return source
    return " · ".join(filter(None, ("stale", trouble_text(item))))


def missing_reading(item: PoolOverview) -> str:
    """What is said of a pool without a reading: that one runs, that none was had, or that it has no meter."""
    if item.pool.meter_under_way:
        return f"{UNDER_WAY} …"
    return "no reading yet" if item.pool.metered else "no meter"


def trouble_text(item: PoolOverview) -> str:
    """Why the last reading is not a new one, and when there may be one."""
    parts = [one_line(item.pool.meter_error)] if item.pool.meter_error else []
    hold = item.pool.meter_hold_until
    if hold is not None and hold > item.now:
        parts.append(f"retry in {duration((hold - item.now).total_seconds() / _MINUTE_SECONDS)}")
    return ", ".join(parts)


def _surplus(item: PoolOverview) -> str:
    if item.row.pace is not None:
        return number(item.row.pace)
    return "-" if item.pool.metered else "0"


def _five_hour(item: PoolOverview) -> list[str]:
    row = item.row
    return _protecting("5h", row.five_hour_used_pct, row.projected_five_hour_pct, row.five_hour_elapsed_pct)


def _daily(item: PoolOverview) -> list[str]:
    row = item.row
    return _protecting("daily", row.daily_used_pct, row.forecast_daily_pct, row.daily_elapsed_pct)


def _models(item: PoolOverview) -> list[str]:
    """What is used of the limits that hold one model alone; a spent one with its return."""
    columns = []
    for window in item.model_limits:
        columns.append(f"{window.kind}({model_of(window)})={number(window.used_pct or 0.0)}%")
        if is_spent_model(window, item.now):
            columns.append(f"(spent{_resets_in(window, item.now)})")
    return columns


def model_of(window: Window) -> str:
    """The model of a window, as one word: its vendor wrote it."""
    return "-".join(one_line(window.scope or "").split())


def is_spent_model(window: Window, now: datetime) -> bool:
    """Tell whether the limit of this window's own model is used up."""
    return spent(window, now, model=window.scope)


def _resets_in(window: Window, now: datetime) -> str:
    return "" if window.resets_at is None else f", resets in {duration((window.resets_at - now) / MINUTE)}"


def _protecting(name: str, used: float | None, projected: float | None, elapsed: float | None) -> list[str]:
    if used is None:
        return []
    column = [f"{name}={number(used)}%{_moved(used, projected)}"]
    return column if elapsed is None else [*column, f"({number(elapsed)}% elapsed)"]


def _moved(used: float, projected: float | None) -> str:
    return "" if projected is None or number(projected) == number(used) else f"->{number(projected)}%"


def _provenance(item: PoolOverview) -> list[str]:
    """Where the numbers of the line come from: the rate, who read the meter and when, who named the reset, the bill."""
    pool, window = item.pool, item.pacing
    columns = [f"rate={rate_text(rate)}"] if (rate := pacing_rate(item)) else []
    if window is not None:
        age = age_minutes(item)
        columns += [f"age={duration(age)}"] if age is not None and age >= 1 else []
        columns += [f"read-by={one_line(pool.meter_read_by).replace(' ', '-')}"] if pool.meter_read_by else []
        columns += [f"reset={window.reset_source}"] if window.reset_source and item.row.pacing_resets_at else []
        columns += ["unstable"] if window.unstable else []
    columns += [f"reserve={number(item.row.reserve_pct)}%"] if item.row.reserve_pct else []
    columns += ["overage=on"] if pool.overage else []
    # A key is paid by the token: the person must see it next to the pool that would spend it.
    columns += ["billing=api-key"] if pool.billing == "api-key" else []
    return columns


def pacing_rate(item: PoolOverview) -> Rate | None:
    """The rate by which the pool's pace is charged: of its pacing window, else of the week."""
    rates = item.pool.rates
    return (rates.get(item.pacing.kind) if item.pacing else None) or rates.get("weekly")


def rate_text(rate: Rate) -> str:
    """``0.12%/min(history,4)``: what a minute of work spends, how that was learned and from how many readings."""
    return f"{rate.pct_per_minute:.2g}%/min({rate.source},{rate.samples})"


def age_minutes(item: PoolOverview) -> float | None:
    """Minutes since the pacing window was read; None when nobody knows, as with a stamp from the future."""
    captured_at = item.pacing.captured_at if item.pacing else None
    if captured_at is None or captured_at > item.now + CLOCK_TOLERANCE:
        return None
    return max(0.0, (item.now - captured_at) / MINUTE)


def _free(item: PoolOverview) -> list[str]:
    """``free=<model>`` when every tier runs that free model, else one entry per tier that does."""
    free = {tier: one_line(model or "default") for tier, model in item.free_models.items()}
    if not free:
        return []
    if len(free) == len(item.pool.tiers) and len(set(free.values())) == 1:
        return [f"free={next(iter(free.values()))}"]
    return ["free=" + ",".join(f"{tier}:{free[tier]}" for tier in EFFORTS if tier in free)]


def _state(item: PoolOverview, style: Style) -> str:
    if item.state == "disabled":
        return style.faint("disabled")
    if item.state == "unavailable":
        return style.bad(f"unavailable: {one_line(item.pool.unavailable or '')}")
    if item.state == "billing-gated":
        return style.warn(f"BILLING-GATED (to allow it: {grant_command(item.pool.id)})")
    if item.state == "quarantined" and item.quarantine is not None:
        spent_too = f" BURST-GATED{_limit(item)}" if item.spent is not None else ""
        why = one_line(item.quarantine.why)
        return style.bad(f"QUARANTINED until {whole_second(item.quarantine.until)} ({why}){spent_too}")
    if item.state == "burst-gated":
        return style.bad(f"BURST-GATED{_limit(item)}")
    words = ["NEAR-5H-LIMIT"] if item.row.near_window == "5h" else []
    if item.row.near_window == "daily":
        words.append("NEAR-DAILY-LIMIT")
    if item.row.expiring_soon:
        words.append(_expiring(item))
    return style.warn(" ".join(words)) if words else style.good("ready")


def _limit(item: PoolOverview) -> str:
    """Which window is spent and when it returns; the bare word is the 5-hour window with no known reset."""
    if item.spent is None:
        return ""
    kind = item.spent.kind
    if item.spent.resets_at is None:
        return "" if kind == "5h" else f" ({kind} limit)"
    left = duration((item.spent.resets_at - item.now).total_seconds() / _MINUTE_SECONDS)
    return f" ({kind} limit, resets in {left})"


def limit_left(item: PoolOverview) -> str:
    """How long the spent window stays closed, with a space before it; nothing where nobody knows."""
    return "" if item.spent is None else closed_for(item.spent, item.now)


def closed_for(window: Window, now: datetime) -> str:
    """How long a window stays closed, with a space before it; nothing where nobody knows."""
    return "" if window.resets_at is None else f" {duration((window.resets_at - now) / MINUTE)}"


def _expiring(item: PoolOverview) -> str:
    row = item.row
    text = f"resets in {duration(row.pace_resets_in_minutes or 0.0)} EXPIRING-SOON urgency={round(row.urgency or 0.0)}"
    return f"{text} draining" if row.urgency_state == "draining" else text
