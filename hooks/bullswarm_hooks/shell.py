"""Finds the ``bullswarm`` commands in a shell command line, and finds fewer rather than wrong ones.

What can't be told for certain without a shell (a command substitution, a here-document) ends the reading; what stood
before it was read with certainty.
"""

from __future__ import annotations

import re

VERBS = ("run", "route", "workflow", "runs")
# No agent writes a longer command by hand; a file that is piped through the shell is not read to its end.
LONGEST_COMMAND = 20_000

_SPACE = re.compile(r"(?:[ \t]|\\\n)+")
_COMMENT = re.compile(r"#[^\n]*")
_SEPARATOR = re.compile(r"\n|;;?|\|\|?&?|&&?(?!>)|\(|\)")
# A redirection; the word behind it is a file. A here-document (<<) and a process substitution (<( or >() are not for us.
_REDIRECTION = re.compile(r"&>>?|\d*(?:>>|>\||>&|<&|<>|<(?![<(])|>(?!\())")
_PIECE = re.compile(
    r"""'(?P<single>[^']*)'"""
    r'''|"(?P<double>(?:[^"\\`$]|\\.|\$(?![({]))*)"'''
    r"|\\(?P<escaped>[^\n])"
    r"|(?P<variable>\$(?:\w+|[?@*#!$-]))"
    r"|(?P<bare>[^\s'\"\\$`;&|<>()]+)",
    re.DOTALL,
)
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=")
# Words after which the shell still expects a command.
_LEADING = frozenset({"if", "then", "else", "elif", "do", "while", "until", "!", "{", "time"})


class Command:
    """One simple command. ``start`` is where it begins; a word that only a shell could tell is None."""

    __slots__ = ("assigned", "start", "words")

    def __init__(self) -> None:
        self.start = -1
        self.assigned: list[str] = []
        self.words: list[str | None] = []

    @property
    def verb(self) -> str | None:
        """The verb of a ``bullswarm`` command that hooks care for, None for every other command."""
        program = self.words[0] if self.words else None
        if program is None or program.rpartition("/")[2] != "bullswarm" or len(self.words) < 2:
            return None
        return self.words[1] if self.words[1] in VERBS else None

    def option(self, name: str) -> str | None:
        """Return the value of the option ``name``, in either form; None when it is not given or can't be told."""
        words = self.words[2:]
        for place, word in enumerate(words):
            if word == "--":
                return None
            if word == name:
                return words[place + 1] if place + 1 < len(words) else None
            if word is not None and word.startswith(f"{name}="):
                return word[len(name) + 1 :]
        return None


def bullswarm_commands(text: str) -> list[Command]:
    """Return the commands of a command line that call ``bullswarm`` with a verb that starts, routes or awaits work."""
    return [command for command in _commands(text) if command.verb is not None]


def with_variable(text: str, commands: list[Command], name: str, value: str) -> str:
    """Return the command line with ``name=value`` set for these commands alone."""
    for command in sorted(commands, key=lambda found: -found.start):
        text = f"{text[: command.start]}{name}={quoted(value)} {text[command.start :]}"
    return text


def quoted(value: str) -> str:
    """Return ``value`` as one word of a shell."""
    if re.fullmatch(r"[\w@%+=:,./-]+", value, re.ASCII):
        return value
    return "'" + value.replace("'", "'\"'\"'") + "'"


def _commands(text: str) -> list[Command]:
    found = [Command()]
    place, skip_word = 0, False
    while place < min(len(text), LONGEST_COMMAND):
        if match := _SPACE.match(text, place) or _COMMENT.match(text, place):
            place = match.end()
        elif match := _REDIRECTION.match(text, place):
            place, skip_word = match.end(), True
        elif match := _SEPARATOR.match(text, place):
            place, skip_word = match.end(), False
            found.append(Command())
        else:
            word, end = _word(text, place)
            if end == place or _opens_something_else(text, end):
                break
            if not skip_word:
                _add(found[-1], word, text[place:end], place)
            place, skip_word = end, False
    return found


def _word(text: str, place: int) -> tuple[str | None, int]:
    """Read one word; its value is None when a variable is in it."""
    pieces: list[str] = []
    known = True
    while match := _PIECE.match(text, place):
        kind = match.lastgroup or ""
        value = match.group(kind)
        if kind == "variable" or (kind == "double" and "$" in value.replace("\\$", "")):
            known = False
        pieces.append(re.sub(r'\\([\\"$`])', r"\1", value) if kind == "double" else value)
        place = match.end()
    return ("".join(pieces) if known else None), place


def _opens_something_else(text: str, place: int) -> bool:
    """Whether the word goes on with something that isn't read here, so that it may be another word than it seems."""
    return text[place : place + 1] in ("$", "`", '"', "'", "\\") and text[place : place + 2] != "\\\n"


def _add(command: Command, word: str | None, raw: str, place: int) -> None:
    if not command.words:
        if not command.assigned and word in _LEADING and raw == word:
            return
        if command.start < 0:
            command.start = place
        if assignment := _ASSIGNMENT.match(raw):
            command.assigned.append(assignment.group(1))
            return
    command.words.append(word)
