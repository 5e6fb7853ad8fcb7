"""A provider folder that isn't ours: checked against the schema whenever it changed, then read like a packaged one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from bullswarm_core.errors import BullswarmError, ConnectorError
from bullswarm_core.pools.connector import SCHEMA_VERSION, connector_from_json
from bullswarm_core.store.home import Home, read_json, write_json
from bullswarm_providers.loaded import Loaded

# A change of the schema makes every earlier check worthless.
_CACHE_VERSION = 1


def load_local(
    folder: Path, *, home: Home | None, write_cache: bool, module: Any = None, origin: Any = "local"
) -> Loaded:
    """Load the provider in ``folder``: its connector.json, its provider.py, or both.

    A provider.py without a connector.json must hold the same content as a dict named ``CONNECTOR``. Raises
    ConnectorError, with file, field and value, for a connector that breaks the schema; what the provider's own code
    raises passes.
    """
    file, code = folder / "connector.json", folder / "provider.py"
    if module is None and code.is_file():
        module = _import(code)
    if file.is_file():
        data = _checked(file, home, write_cache)
    elif isinstance(content := getattr(module, "CONNECTOR", None), dict):
        data = _validated(content, code)
    else:
        raise ConnectorError(f"{folder}: there is neither a connector.json nor a provider.py with CONNECTOR")
    return Loaded(connector_from_json(data, folder=str(folder), origin=origin), module)


def _checked(file: Path, home: Home | None, write_cache: bool) -> dict[str, Any]:
    """Read a connector; the schema is loaded only when this file changed since it was last found good."""
    state = file.stat()
    stamp = [_CACHE_VERSION, SCHEMA_VERSION, state.st_mtime_ns, state.st_size]
    cache = _cache_file(home, file) if home is not None else None
    if cache is not None and _cached(cache) == stamp:
        data: dict[str, Any] = json.loads(file.read_bytes())
        return data
    data = _validated(_parsed(file), file)
    if cache is not None and write_cache:
        try:
            write_json(cache, stamp)
        except (BullswarmError, OSError):
            # A cache that can't be written costs time, nothing else.
            return data
    return data


def _cache_file(home: Home, file: Path) -> Path:
    return home.cache_dir / "connectors" / f"{_short_name(file)}.json"


def _short_name(file: Path) -> str:
    import hashlib

    return hashlib.sha256(str(file).encode()).hexdigest()[:24]


def _cached(cache: Path) -> Any:
    try:
        return read_json(cache)
    except BullswarmError:
        return None


def _parsed(file: Path) -> Any:
    try:
        return json.loads(file.read_bytes().decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        raise ConnectorError(
            f"{file}: line {error.lineno}: {error.msg}", hint="it must hold one JSON object"
        ) from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise ConnectorError(f"{file}: {error}", hint="it must hold one JSON object") from error
    except OSError as error:
        raise ConnectorError(f"{file}: {error.strerror or error}", hint="make it a file that you may read") from error


def _validated(data: Any, file: Path) -> dict[str, Any]:
    from bullswarm_core.pools.connector_schema import validate_connector

    return validate_connector(data, file=str(file))


def _import(code: Path) -> ModuleType:
    import importlib.util

    name = f"bullswarm_local_provider_{_short_name(code)}"
    spec = importlib.util.spec_from_file_location(name, code)
    if spec is None or spec.loader is None:
        raise ConnectorError(f"{code}: it can't be loaded as Python")
    module = importlib.util.module_from_spec(spec)
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        # A dry run writes nothing, not even Python's cache beside the person's file.
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module
