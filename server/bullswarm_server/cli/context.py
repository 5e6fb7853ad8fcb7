"""What a verb may touch: the home, the environment and the two output streams."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TextIO

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.errors import BullswarmError
from bullswarm_core.store.home import Home
from bullswarm_server.ops.context import Context


def escaped(document: str) -> str:
    """Return the same JSON with escapes in place of what a terminal obeys and what no eye sees.

    JSON itself escapes only C0; everything that these characters can stand in is a string.
    """
    if document.isascii() and "\x7f" not in document:
        return document
    from bullswarm_core.fast.text import HIDDEN, SPACED

    delete, c1 = {0x7F: "\\u007f"}, range(0x80, 0xA0)
    return document.translate(delete | {code: json.dumps(chr(code))[1:-1] for code in (*c1, *HIDDEN, *SPACED)})


@dataclass(frozen=True, slots=True)
class CommandContext:
    """Handed to every verb, so that a test can call one without a process of its own."""

    home: Home
    environ: Mapping[str, str]
    out: TextIO
    err: TextIO
    colour: bool = False

    @property
    def ops(self) -> Context:
        """Where the use cases work that a verb asks for."""
        return Context(self.home, self.environ)

    def print(self, *lines: str) -> None:
        """Write lines for people to standard output."""
        for line in lines:
            self.out.write(line + "\n")

    @contextmanager
    def asking(self, undone: str) -> Iterator[None]:
        """Show what a question is about, and ask it: raise BullswarmError(``undone``) when the reader has gone.

        Nobody can answer then, so that nothing is done, and the verb must not end as if it were.
        """
        try:
            yield
            self.out.flush()
        except BrokenPipeError:
            raise BullswarmError(undone) from None

    def print_json(self, value: Any) -> None:
        """Write exactly one JSON document to standard output."""
        self.out.write(escaped(json.dumps(value, ensure_ascii=False, indent=2)) + "\n")

    def note(self, *lines: str) -> None:
        """Write remarks for people to standard error, where they can't spoil a document."""
        for line in lines:
            self.err.write(line + "\n")
