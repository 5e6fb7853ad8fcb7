"""Files that a caller names: read whole within a limit, never waited for, and as strict JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bullswarm_core.errors import UsageError
from bullswarm_core.fast.files import open_ordinary
from bullswarm_core.wire import repeated_key

# Far beyond any number that a program or a schema holds, and within what Python reads (4300).
_MOST_DIGITS = 1000


def read_regular(path: Path, *, what: str, most: int, irregular: str, too_large: str) -> bytes:
    """Return the content of a regular file of at most ``most`` bytes; ``what`` names it in an error.

    A device or a FIFO is refused with the hint ``irregular``, a larger file with the hint ``too_large``. Neither is read: a
    FIFO would be waited for, a device never ends. Raises UsageError.
    """
    try:
        if path.exists() and not path.is_file():
            raise UsageError(f"{what} is no regular file", hint=irregular)
        # It may have become a FIFO since: this opens one without waiting for its writer, and refuses it.
        with open_ordinary(path) as file:
            return limited(file.read(most + 1), what=what, most=most, too_large=too_large)
    except (OSError, ValueError) as error:
        words = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot read {what}: {words}", hint="give a file that exists") from error


def limited(data: bytes, *, what: str, most: int, too_large: str) -> bytes:
    """Return ``data`` if it has at most ``most`` bytes. Raises UsageError with the hint ``too_large``."""
    if len(data) > most:
        raise UsageError(f"{what} has more than {most} bytes", hint=too_large)
    return data


def decoded(data: bytes, *, what: str) -> str:
    """Return UTF-8 text, without a byte order mark. Raises UsageError."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{what} is not UTF-8 (byte {error.start})", hint="save it as UTF-8") from error


def parse_json_strict(data: bytes, *, what: str, contract: str) -> Any:
    """Return the JSON value in ``data``; ``contract`` is the hint that tells where its form is described.

    Raises UsageError for what is not UTF-8 or not JSON, for NaN and numbers of over 1000 digits, and for an object with a
    key twice, of which one value would be ignored.
    """
    text = decoded(data, what=what)
    try:
        return json.loads(text, parse_constant=_refuse_constant, parse_int=_whole, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}: {error.msg}"
        raise UsageError(f"{what} is not JSON: {place}", hint=contract) from error
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise UsageError(f"{what} is not JSON: {why}", hint="correct it") from error


def tail(path: Path, most: int) -> tuple[bytes, bool]:
    """Return the last ``most`` bytes of a file and whether others precede them. Raises OSError."""
    with open_ordinary(path) as file:
        start = max(0, file.seek(0, 2) - most)
        file.seek(start)
        return file.read(most), start > 0


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _whole(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a number has {len(digits)} digits")
    return int(digits)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if (twice := repeated_key(pairs)) is not None:
        raise ValueError(f'the key "{twice}" stands twice in one object')
    return dict(pairs)
