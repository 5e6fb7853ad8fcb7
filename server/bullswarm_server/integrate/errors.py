"""Why a file of the person is left alone."""

from __future__ import annotations

from bullswarm_core.errors import BullswarmError


class IntegrationError(BullswarmError):
    """Something in the person's own files that bullswarm won't touch; the message names the file and the way out."""


class TextError(Exception):
    """A text that is not what its file should hold, or an edit that can't be made in it; ``line`` counts from 1."""

    def __init__(self, message: str, *, line: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
