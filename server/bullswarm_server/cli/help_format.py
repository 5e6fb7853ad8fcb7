"""How the help pages of quick verbs are laid out."""

from __future__ import annotations

import argparse
import os

_WIDTH_WITHOUT_TERMINAL = 100


class QuickHelp(argparse.HelpFormatter):
    """The usual layout, but the width is asked of the terminal itself.

    argparse asks ``shutil``, also when no help is printed, and with it come bz2, lzma and zlib: a tenth of the time in
    which ``bullswarm pools`` answers.
    """

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_columns() - 2)


def _columns() -> int:
    try:
        return int(os.environ["COLUMNS"])
    except (KeyError, ValueError):
        pass
    try:
        return os.get_terminal_size().columns or _WIDTH_WITHOUT_TERMINAL
    except OSError:
        return _WIDTH_WITHOUT_TERMINAL
