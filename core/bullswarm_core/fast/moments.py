"""Times without the ``datetime`` module, which costs a hook a tenth of its budget."""

from __future__ import annotations

_DAYS_BEFORE_MONTH = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)
_DAYS_TO_1970 = 719_162


def epoch_of(text: object) -> float | None:
    """Read a time as our documents hold it (``2026-03-01T00:00:00Z``, with or without a fraction) as Unix seconds.

    Anything else is None.
    """
    if not isinstance(text, str) or not text.endswith("Z") or len(text) < 20 or text[4] + text[7] + text[10] != "--T":
        return None
    parts = (text[0:4], text[5:7], text[8:10], text[11:13], text[14:16], text[17:19])
    if not all(part.isascii() and part.isdigit() for part in parts) or text[13] + text[16] != "::":
        return None
    fraction = text[19:-1]
    if fraction and not (fraction[0] == "." and fraction[1:].isascii() and fraction[1:].isdigit()):
        return None
    year, month, day, hour, minute, second = map(int, parts)
    if not (year and 1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second < 61):
        return None
    leap = month > 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    past = year - 1
    days = past * 365 + past // 4 - past // 100 + past // 400 + _DAYS_BEFORE_MONTH[month - 1] + leap + day - 1
    return (
        (days - _DAYS_TO_1970) * 86400.0 + hour * 3600 + minute * 60 + second + float(f"0{fraction}" if fraction else 0)
    )


def iso_of(epoch: float) -> str:
    """Write Unix seconds as our documents hold a time, to the second."""
    import time

    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch))


def span(seconds: float) -> str:
    """Write a duration for people: ``40 s``, ``12 min``, ``3 h``, ``2 d``."""
    for unit, name in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= unit:
            return f"{int(seconds // unit)} {name}"
    return f"{max(0, int(seconds))} s"
