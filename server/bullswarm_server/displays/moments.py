"""Times as people say them, in the time zone of the machine and in one language whatever the locale."""

from __future__ import annotations

from datetime import datetime, timedelta

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def local_moment(moment: datetime, now: datetime) -> str:
    """A time as a person says it: ``14:05`` today, ``Thu 14:05`` within six days, else ``Dec 04``."""
    there, here = moment.astimezone(), now.astimezone()
    clock = f"{there:%H:%M}"
    if there.date() == here.date():
        return clock
    return f"{_DAYS[there.weekday()]} {clock}" if abs(moment - now) < timedelta(days=6) else local_day(moment)


def local_day(moment: datetime) -> str:
    """A day as a person says it: ``Dec 04``."""
    there = moment.astimezone()
    return f"{_MONTHS[there.month - 1]} {there.day:02}"
