"""A provider as it comes out of its folder, wherever that is: packaged, the person's own, or in an installed package."""

from __future__ import annotations

from typing import Any

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.pools.connector import Connector


@dataclass(frozen=True, slots=True)
class Loaded:
    """One provider that was loaded; ``module`` is its provider.py, None when it has none."""

    connector: Connector
    module: Any = None
