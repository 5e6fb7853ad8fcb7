"""Help: every key, and what the words mean. Pure."""

from __future__ import annotations

from bullswarm_server.dashboard.rows import Row, RowTable, heading, text_rows
from bullswarm_server.displays.terminal import Terminal

KEYS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (
        "Everywhere",
        (
            ("1 2 3", "Home, Runs, Pools"),
            ("?", "this page"),
            ("up down", "move; also j k, page up and down, home and end, the wheel"),
            ("enter", "open what is under the cursor; also a click on it twice"),
            ("esc", "back"),
            ("t", "light or dark"),
            ("q", "leave; what runs goes on"),
        ),
    ),
    (
        "Where something needs you (Home, Run, Step)",
        (
            ("r", "rerun the step, elsewhere where another pool could take it"),
            ("a", "accept its work as it is, with a reason: a choice, no proof"),
            ("c", "continue a gate, or give a loop one more round"),
            ("o", "take over: read its output and its diff, and go on by hand"),
            ("u", "resume a run that is paused, interrupted, or over with something to try again"),
        ),
    ),
    ("Runs", (("/", "filter by words of id, goal, folder, kind, caller, state"), ("f", "all, open, done, not done"))),
    (
        "Step",
        (
            ("tab", "activity, output, evidence, task"),
            ("p", "the plan that it is of"),
        ),
    ),
    (
        "Pools",
        (
            ("l", "name the pool; an empty name takes its label away"),
            ("e", "turn the pool on or off"),
            ("w", "draw its next window"),
            ("u", "end its quarantine before its time"),
        ),
    ),
)
WORDS: tuple[tuple[str, str], ...] = (
    ("bar", "used quota; the mark in it is the window's clock: left of the mark is surplus"),
    ("surplus", "how many percent of its window a pool is behind its clock; it would expire unused"),
    ("rung", "model and reasoning level that a pool runs on an effort tier"),
    ("proof", "how far a step's result is proven: by checks, a review, a typed answer, or only your word"),
)
_KEY_WIDTH = 9


def help_rows(terminal: Terminal) -> RowTable:
    """Return the page. Each action first shows the command that it equals, and nothing happens before you agree."""
    rows: list[Row] = []
    for title, keys in KEYS:
        rows += [heading(title, terminal), *_table(keys, terminal), Row("")]
    rows += [heading("Words", terminal), *_table(WORDS, terminal), Row("")]
    rows += text_rows(["Every action shows the command that it equals; nothing happens before you agree."], terminal)
    return RowTable(rows)


def _table(pairs: tuple[tuple[str, str], ...], terminal: Terminal) -> list[Row]:
    rows = []
    for name, text in pairs:
        room = Terminal(max(12, terminal.width - _KEY_WIDTH - 3), 1, terminal.unicode, terminal.style)
        first, *rest = [row.line for row in text_rows([text], room)]
        rows.append(Row(f"  {name:<{_KEY_WIDTH}} {first}"))
        rows += [Row(f"{'':<{_KEY_WIDTH + 3}}{line}") for line in rest]
    return rows
