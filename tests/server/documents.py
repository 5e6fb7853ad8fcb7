"""The pages for users as data: their commands with what they show, the files they give, their links.

A block of the kind `console` holds commands behind `$ ` with their output; `sh` holds commands alone. A command must end
with the code that the page tells (`# exit 1` behind it, or `$ echo $?` and the number after it; else 0). What is shown must
match line by line once ids, times and measures are made equal; `…` stands for anything that was left out. A block with
`file=NAME` behind its language, or in a comment on the line before, is a file that the commands after it find.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")))
_FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```[ ]*$", re.M | re.S)
_FILE = re.compile(r"\bfile=(\S+)")
_FILE_BEFORE = re.compile(r"<!-- file=(\S+) -->\n\Z")
_DAYS = "<!-- days of work -->\n"
_EXIT = re.compile(r"\s+# exit (\d+)$")
OMITTED = "…"
# In this order: what has no fixed length first, so that a number in it is not taken for a measure.
_EQUAL: tuple[tuple[str, str], ...] = (
    (r"\x1b\[[0-9;]*m", ""),
    (r"(?:/[\w.-]+)*/bin/(python)?[\d.]*", r"BIN/\1"),
    (r"Python \d+\.\d+\.\d+ on \w+", "PYTHON"),
    (r"^(ok|warning) +confinement .*", "confinement"),
    (r"wf-[0-9a-z]+-[0-9a-f]{6}", "RUN"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?", "TIME"),
    (r"\b\d\d?:\d\d(:\d\d)?([ap]m)?\b", "TIME"),
    (r"\b\d+d\d+h\b|\b\d+h\d+m\b|\b\d+m\d+s\b", "TIME"),
    (r"\b\d+(\.\d+)? ?(s|ms|min|m|h|d)\b", "TIME"),
    (r"\b(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d\d?\b", "DATE"),
    (r"[-+]?\d+(\.\d+)?%", "N%"),
    (r"((?:surplus|urgency|elapsed|forecast)[ =:]*)[-+]?\d+(\.\d+)?", r"\1N"),
    (r"\b\d+(,\d{3})*(\.\d+)? (bytes|characters|KiB|MiB|kB|MB)\b", r"N \3"),
    (r"confinement(: |\": \")\w+", r"confinement\1KIND"),
    (r"\s+", " "),
)


@dataclass(frozen=True, slots=True)
class Command:
    """One command of a page: where it stands, what it is, what it shows (None: the page doesn't say), how it ends."""

    place: str
    text: str
    shown: tuple[str, ...] | None
    code: int = 0


@dataclass(frozen=True, slots=True)
class GivenFile:
    """A file that a page shows; the commands after it find it in the project, or in the home where its name says so."""

    place: str
    name: str
    content: str


@dataclass(frozen=True, slots=True)
class Days:
    """A place from which the machine has some days of work behind it (`<!-- days of work -->` on a line of its own)."""

    place: str


@dataclass(slots=True)
class _Reading:
    """The commands of one block while it is read."""

    place: str
    found: list[Command] = field(default_factory=list)

    def add(self, line: str, number: int, *, shown: tuple[str, ...] | None) -> None:
        text, code = line, 0
        if ending := _EXIT.search(line):
            text, code = line[: ending.start()], int(ending[1])
        self.found.append(Command(f"{self.place}:{number}", text.strip(), shown, code))


def parts_of(page: str) -> list[Command | GivenFile | Days]:
    """Return the commands and files of a page in their order, and from where on there are days of work."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found: list[Command | GivenFile | Days] = []
    days = text.find(_DAYS)
    for fence in _FENCE.finditer(text):
        words, body = fence[1].strip(), fence[2]
        first = text[: fence.start(2)].count("\n") + 1
        if -1 < days < fence.start():
            found.append(Days(f"{page}:{first}"))
            days = -1
        if name := _FILE.search(words) or _FILE_BEFORE.search(text[: fence.start()]):
            found.append(GivenFile(f"{page}:{first}", name[1], body))
        elif words == "sh":
            found += _plain(page, body, first)
        elif words == "console":
            found += _with_output(page, body, first)
        elif re.search(r"^(\$ )?(bullswarm|python3 develop\.py) ", body, re.M):
            raise AssertionError(f"{page}:{first}: a block with commands is `sh` or `console`, this one is `{words}`")
    return found


def _plain(page: str, body: str, first: int) -> list[Command]:
    reading = _Reading(page)
    for number, line in _joined(body, first):
        if line.strip() and not line.startswith("#"):
            reading.add(line, number, shown=None)
    return reading.found


def _with_output(page: str, body: str, first: int) -> list[Command]:
    reading = _Reading(page)
    lines = body.splitlines()
    starts = [index for index, line in enumerate(lines) if line.startswith("$ ")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        shown = _stripped(lines[start + 1 : end])
        text = lines[start][2:]
        if text == "echo $?":
            last = reading.found.pop()
            reading.found.append(Command(last.place, last.text, last.shown, int(shown[0])))
        else:
            reading.add(text, first + start, shown=shown or None)
    return reading.found


def _joined(body: str, first: int) -> list[tuple[int, str]]:
    lines: list[tuple[int, str]] = []
    for number, line in enumerate(body.splitlines(), first):
        if lines and lines[-1][1].endswith("\\"):
            lines[-1] = (lines[-1][0], f"{lines[-1][1][:-1].rstrip()} {line.strip()}")
        else:
            lines.append((number, line))
    return lines


def _stripped(lines: list[str]) -> tuple[str, ...]:
    """The lines without empty ones at the end."""
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    return tuple(lines)


def made_equal(line: str, short_ids: tuple[str, ...] = ()) -> str:
    """Return a line with everything that differs from run to run replaced by a word for its kind."""
    for short_id in short_ids:
        line = re.sub(rf"\b{re.escape(short_id)}\b", "ID", line)
    for pattern, word in _EQUAL:
        line = re.sub(pattern, word, line)
    return line.strip()


def first_difference(shown: tuple[str, ...], printed: list[str]) -> str | None:
    """Compare lines that were made equal; None when they match. `…` alone is any lines, within a line any text."""
    patterns = [
        None if line == OMITTED else re.compile(".*".join(re.escape(part) for part in line.split(OMITTED)))
        for line in shown
    ]
    return _compare(shown, patterns, printed)


def _compare(shown: tuple[str, ...], patterns: list[re.Pattern[str] | None], printed: list[str]) -> str | None:
    position, free = 0, False
    for line, pattern in zip(shown, patterns, strict=True):
        if pattern is None:
            free = True
            continue
        places = range(position, len(printed)) if free else range(position, min(position + 1, len(printed)))
        place = next((index for index in places if pattern.fullmatch(printed[index])), None)
        if place is None:
            there = printed[position] if position < len(printed) else "(nothing more)"
            return f"the page shows\n  {line}\nand the program prints\n  {there}"
        position, free = place + 1, False
    if position < len(printed) and not free:
        return f"the program goes on with\n  {printed[position]}"
    return None
