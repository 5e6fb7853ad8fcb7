"""Paths as connectors write them, made absolute with an environment that is passed in."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping


def expand_path(text: str, environ: Mapping[str, str]) -> str | None:
    """Expand ``${NAME:-default}`` and a leading ``~`` with the given environment; None for what is no absolute path."""

    def variable(match: re.Match[str]) -> str:
        return environ.get(match[1]) or match[2]

    path = re.sub(r"\$\{([A-Z_]+):-([^}]*)\}", variable, text)
    if path == "~" or path.startswith("~/"):
        path = environ.get("HOME", "") + path[1:]
    if not path.startswith("/"):
        return None
    # A slash at the end says "a folder, to be made when it is missing"; normpath would take it away.
    return os.path.normpath(path) + ("/" if path.endswith("/") and len(path) > 1 else "")
