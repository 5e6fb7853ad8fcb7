"""Pools: what each account can run, what it has used, and what the person decided about it.

The values that routing judges are imported from here. Each is loaded when it is asked for: a command that reads the
settings alone needs none of them.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from bullswarm_core.pools.model import (
        DEFAULT_COST_RANK,
        DEFAULT_EFFORT,
        EFFORTS,
        LANES,
        WINDOW_KINDS,
        Billing,
        Effort,
        Inflight,
        Lane,
        Pool,
        Rate,
        RateSource,
        ResetSource,
        Rung,
        Window,
        WindowKind,
        WindowSource,
        refuse_nan,
    )

__all__ = [
    "DEFAULT_COST_RANK",
    "DEFAULT_EFFORT",
    "EFFORTS",
    "LANES",
    "WINDOW_KINDS",
    "Billing",
    "Effort",
    "Inflight",
    "Lane",
    "Pool",
    "Rate",
    "RateSource",
    "ResetSource",
    "Rung",
    "Window",
    "WindowKind",
    "WindowSource",
    "refuse_nan",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from bullswarm_core.pools import model

    value = globals()[name] = getattr(model, name)
    return value
