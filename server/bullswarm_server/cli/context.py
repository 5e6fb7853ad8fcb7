"""What a verb may touch: the home, the environment and the two output streams."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TextIO

from bullswarm_core.home import Home
from bullswarm_core.values import dataclass


@dataclass(frozen=True, slots=True)
class CommandContext:
    """Handed to every verb, so that a test can call one without a process of its own."""

    home: Home
    environ: Mapping[str, str]
    out: TextIO
    err: TextIO
    colour: bool = False

    def print(self, *lines: str) -> None:
        """Write lines for people to standard output."""
        for line in lines:
            self.out.write(line + "\n")

    def print_json(self, value: Any) -> None:
        """Write exactly one JSON document to standard output."""
        self.out.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")

    def note(self, *lines: str) -> None:
        """Write remarks for people to standard error, where they can't spoil a document."""
        for line in lines:
            self.err.write(line + "\n")
