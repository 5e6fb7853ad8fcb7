"""How routing writes numbers and durations: the shortest form that a person can check against a row."""

from __future__ import annotations

MINUTES_PER_HOUR = 60
MINUTES_PER_DAY = 1440


def number(value: float) -> str:
    """``30`` for 30.0, ``-4.7`` for -4.72: at most one decimal, never ``-0``."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def duration(minutes: float) -> str:
    """``5d22h``, ``2h02m`` or ``45m``: whole minutes, rounded down; nothing below 0."""
    whole = max(0, int(minutes))
    days, rest = divmod(whole, MINUTES_PER_DAY)
    hours, rest_minutes = divmod(rest, MINUTES_PER_HOUR)
    if days:
        return f"{days}d{hours:02d}h"
    return f"{hours}h{rest_minutes:02d}m" if hours else f"{rest_minutes}m"
