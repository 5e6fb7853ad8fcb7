"""How the command line answers: the layout of help pages, and one line for what was wrong."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
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


def unknown_verb(verb: str, known: Iterable[str]) -> str:
    """Say that there is no such verb, and which one may be meant, up to where the way out is told."""
    from bullswarm_core.fast.text import one_line

    return f'unknown verb "{one_line(verb)}" · {meant(verb, known)}'


def meant(word: str, known: Iterable[str]) -> str:
    """Ask whether the nearest of the ``known`` words was meant, with a blank behind it; empty when none is near."""
    from difflib import get_close_matches

    near = get_close_matches(word, list(known), n=1)
    return f"did you mean {near[0]}? " if near else ""


class Parser(argparse.ArgumentParser):
    """A verb's parser: no abbreviated flags, and one line for what was wrong (the whole usage would hide it)."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("allow_abbrev", False)
        options.setdefault("formatter_class", QuickHelp)
        super().__init__(**options)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as usual; a group of verbs that is called without one shows what there is, and leaves with exit code 2."""
        if args is not None and not args and any(action.required for action in self._groups()):
            self.exit(2, self.format_help())
        return super().parse_known_args(args, namespace)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action in self._groups() and value not in (action.choices or ()):
            self.exit(2, f"{self.prog}: {unknown_verb(value, action.choices or ())}`{self.prog} --help` lists them\n")
        super()._check_value(action, value)

    def _groups(self) -> list[argparse.Action]:
        return [action for action in self._actions if isinstance(action, argparse._SubParsersAction)]

    def error(self, message: str) -> NoReturn:
        """Leave with exit code 2."""
        self.exit(2, f"{self.prog}: {message} · `{self.prog} --help` shows what it takes\n")
