"""A pool in a few words, by its label: its surplus, its 5-hour window, and the window that paces it."""

from __future__ import annotations

from bullswarm_core.fast.text import clipped, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bullswarm_core.fast.hook_state import Pool

_LONGEST_LABEL = 40


def shown(label: str) -> str:
    """Return a label as it may stand in a line."""
    return clipped(one_line(label), _LONGEST_LABEL)


def surplus_text(pool: Pool) -> str:
    """Return ``surplus 23``, or what is known instead of a number."""
    if pool.surplus is not None:
        return f"surplus {_short(pool.surplus)}"
    return "not read yet" if pool.metered else "no meter"


def use_text(pool: Pool, *, now: float) -> list[str]:
    """Return ``5h 12%`` and ``weekly 40%`` for the windows that were read and are not over."""
    windows = (pool.window("5h", "daily", now=now), pool.window("weekly", "monthly", now=now))
    return [f"{window.kind} {_short(window.used_pct)}%" for window in windows if window is not None]


def _short(value: float) -> str:
    return f"{round(value, 1) + 0.0:g}"
