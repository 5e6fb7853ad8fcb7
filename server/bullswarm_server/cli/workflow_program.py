"""Programs as they come in: a file or standard input, read whole, parsed, and checked."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from bullswarm_server.ops.files import limited, parse_json_strict, read_regular
from bullswarm_server.ops.workflows import MOST_PROGRAM_BYTES

STDIN = "-"
_CONTRACT = "see the form: bullswarm workflow plan contract"
_TOO_LARGE = "is it the right file?"


def read_document(name: str, *, what: str) -> Any:
    """Return the JSON value in the file ``name``, or on standard input for ``-``; ``what`` names the option in an error.

    A device or a FIFO is never opened. Raises UsageError for what is no file, no UTF-8, no JSON or too large.
    """
    if name == STDIN:
        what = f"{what} standard input"
        data = limited(
            sys.stdin.buffer.read(MOST_PROGRAM_BYTES + 1), what=what, most=MOST_PROGRAM_BYTES, too_large=_TOO_LARGE
        )
    else:
        what = f"{what} {name}"
        data = read_regular(
            Path(name).expanduser(), what=what, most=MOST_PROGRAM_BYTES, too_large=_TOO_LARGE,
            irregular="give a JSON file, or - for standard input",
        )  # fmt: skip
    return parse_json_strict(data, what=what, contract=_CONTRACT)
