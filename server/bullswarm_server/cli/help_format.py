"""How the command line answers: the layout of help pages, and one line for what was wrong."""

from __future__ import annotations

import argparse
import os
from typing import Any, NoReturn

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


class Parser(argparse.ArgumentParser):
    """A verb's parser: no abbreviated flags, and one line for what was wrong (the whole usage would hide it)."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("allow_abbrev", False)
        options.setdefault("formatter_class", QuickHelp)
        super().__init__(**options)

    def error(self, message: str) -> NoReturn:
        """Leave with exit code 2."""
        self.exit(2, f"{self.prog}: {message} · `{self.prog} --help` shows what it takes\n")
