"""The stream tables of the packaged providers, compiled from their files."""

from __future__ import annotations

import json
from pathlib import Path

from bullswarm_core.streams.table import StreamTable, compile_table

_PROVIDERS = Path(__file__).parents[1] / "providers" / "bullswarm_providers"


def load_table(provider: str) -> StreamTable:
    """Compile the table of a packaged provider; its folder may be named with hyphens, as the provider is."""
    file = _PROVIDERS / provider.replace("-", "_") / "stream.json"
    return compile_table(json.loads(file.read_bytes()), source=str(file))
