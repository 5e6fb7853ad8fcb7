"""Providers that installed packages bring by the entry-point group ``bullswarm.providers``.

Asking the installation costs tens of milliseconds, so its answer is kept until a folder of the import path changes.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from bullswarm_core.errors import BullswarmError, ConnectorError
from bullswarm_core.store.home import Home, read_json, write_json
from bullswarm_providers.loaded import Loaded

GROUP = "bullswarm.providers"
# Two installations that share a home, and a server that was started in another folder, must not undo each other's answer.
_KEPT = 8


def entry_points(home: Home, *, write_cache: bool) -> tuple[tuple[str, str], ...]:
    """Name each registered provider and the module that it points to, from the cache while the import path stays."""
    key = _import_path_state()
    cache = home.cache_dir / "entry-points.json"
    kept = _kept(cache)
    for answer in kept:
        if answer["key"] == key:
            return tuple((str(name), str(value)) for name, value in answer["entries"])
    entries = _ask()
    if write_cache:
        answers = [{"key": key, "entries": [list(entry) for entry in entries]}, *kept]
        with suppress(BullswarmError, OSError):
            write_json(cache, answers[:_KEPT])
    return entries


def _kept(cache: Path) -> list[dict[str, Any]]:
    """Read the answers of before; whatever can't be understood is none."""
    try:
        kept = read_json(cache)
    except BullswarmError:
        return []
    found = kept if isinstance(kept, list) else []
    return [
        answer
        for answer in found
        if isinstance(answer, dict)
        and isinstance(answer.get("key"), list)
        and isinstance(answer.get("entries"), list)
        and all(isinstance(entry, list) and len(entry) == 2 for entry in answer["entries"])
    ]


def load_entry_point(value: str, *, home: Home, write_cache: bool) -> Loaded:
    """Load the provider behind ``module`` or ``module:attribute``: one with a connector.json or with CONNECTOR."""
    import importlib

    module_name, _, attribute = value.partition(":")
    module: Any = importlib.import_module(module_name)
    file = getattr(module, "__file__", None)
    for part in attribute.split(".") if attribute else ():
        module = getattr(module, part)
    if file is None:
        raise ConnectorError(f"{value}: a namespace package has no folder to look in")
    from bullswarm_providers.local import load_local

    return load_local(Path(file).parent, home=home, write_cache=write_cache, module=module, origin="installed")


def _ask() -> tuple[tuple[str, str], ...]:
    from importlib.metadata import entry_points as installed

    return tuple(sorted({(point.name, point.value) for point in installed(group=GROUP)}))


def _import_path_state() -> list[Any]:
    """Describe the import path: a package that is installed, changed or removed changes the time of its folder."""
    return [sys.version, *([folder, _changed(folder)] for folder in sys.path)]


def _changed(folder: str) -> int:
    try:
        return os.stat(folder or ".").st_mtime_ns  # noqa: PTH116 - a Path for each of them costs more than the question
    except OSError:
        return 0
