"""A routing decision for people: the pick, its reason with labels, the forecast, and the pools compared."""

from __future__ import annotations

from bullswarm_core.fast.text import number
from bullswarm_core.routing import Candidate, Decision, render
from bullswarm_core.routing.reasons import surplus
from bullswarm_core.wire import whole_second
from bullswarm_server.displays.text import Style, one_line

_PLAIN = Style(colour=False)


def reason_line(decision: Decision) -> str:
    """The reason with labels in place of ids, on one line."""
    return one_line(render(decision.reason_parts, decision.labels))


def pick_line(decision: Decision, *, style: Style = _PLAIN) -> str:
    """``OK [grok] most-behind capable pool (surplus -2.1)``, or ``FAIL [-] <why no pool>``."""
    if decision.pool is None:
        return f"{style.bad('FAIL')} [-] {reason_line(decision)}"
    return f"{style.good('OK')} [{_shown(decision, decision.pool)}] {reason_line(decision)}"


def forecast_line(decision: Decision) -> str | None:
    """The dry run's forecast, read off the winning row; None without a pick."""
    row = decision.row
    if row is None:
        return None
    expected = decision.forecast.get("expectedMinutes")
    rate = "unmeasured" if row.rate_per_minute is None else f"{_short(row.rate_per_minute, 3)}%/min"
    return (
        f"forecast: inflight={row.inflight}"
        f" 5h {_percent(row.projected_five_hour_pct)}->{_percent(row.forecast_five_hour_pct)}"
        f" expected={'?' if expected is None else _short(expected, 2)}m rate={rate} basis={row.estimate_source}"
    )


def decision_lines(decision: Decision, *, style: Style = _PLAIN) -> list[str]:
    """The whole decision: pick, return time, forecast, candidates in preference order, pools left out."""
    lines = [pick_line(decision, style=style)]
    if decision.back_at is not None:
        lines.append(f"back at {whole_second(decision.back_at)}")
    forecast = forecast_line(decision)
    if forecast:
        lines.append(forecast)
    if decision.candidates:
        lines.append("candidates:")
        lines.extend(f"  {_candidate(decision, row)}" for row in decision.candidates)
    if decision.excluded:
        lines.append("left out:")
        lines.extend(f"  {_shown(decision, entry.pool)}: {one_line(entry.reason)}" for entry in decision.excluded)
    return lines


def _candidate(decision: Decision, row: Candidate) -> str:
    facts = [_shown(decision, row.pool), f"surplus={surplus(row)}", f"inflight={row.inflight}"]
    if row.five_hour_used_pct is not None:
        facts.append(f"5h={_percent(row.five_hour_used_pct)}->{_percent(row.forecast_five_hour_pct)}")
    if row.pacing_window is not None:
        facts.append(f"{row.pacing_window}={_percent(row.pacing_used_pct)}->{_percent(row.forecast_pacing_pct)}")
    if row.urgency_state is not None:
        facts.append(f"{row.urgency_state} urgency={round(row.urgency or 0.0)}")
    flags = {
        "free": row.free,
        "near-limit": row.near_five_hour_limit,
        "last-mile": row.near_five_hour_penalty,
        "over-limit": row.forecast_over_limit,
        "gated": row.forecast_gated,
    }
    facts.extend(word for word, holds in flags.items() if holds)
    if row.model:
        facts.append(f"model={one_line(row.model)}")
    return " ".join(facts)


def _shown(decision: Decision, pool_id: str) -> str:
    return one_line(decision.labels.get(pool_id, pool_id))


def _percent(value: float | None) -> str:
    return "?%" if value is None else f"{number(value)}%"


def _short(value: float, decimals: int) -> str:
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
