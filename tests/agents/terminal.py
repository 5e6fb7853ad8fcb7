"""A terminal in which a person's program runs: real tmux on a socket of its own, read as text and typed into."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

# A full-screen program on two busy cores needs seconds for what takes a tenth on a quiet machine.
PATIENCE_SEC = 90.0
_LOOK_SEC = 0.1
_LIMIT_SEC = 20.0


@dataclass(frozen=True, slots=True)
class Terminal:
    """One window of a tmux server that lives as long as the test."""

    socket: Path

    def command(self, *words: str) -> str:
        """Call tmux and return what it printed."""
        done = subprocess.run(
            ["tmux", "-S", str(self.socket), *words], capture_output=True, text=True, timeout=_LIMIT_SEC, check=False
        )
        assert done.returncode == 0, f"tmux {words}: {done.stderr}"
        return done.stdout

    def screen(self) -> str:
        """What stands on the screen now; a space is a space."""
        return self.command("capture-pane", "-p", "-t", "0").replace("\xa0", " ")

    def rows(self, words: str) -> list[str]:
        """The rows of the screen that hold these words."""
        return [row for row in self.screen().splitlines() if words in row]

    def type(self, text: str) -> None:
        """Type text as it is; a control character would be a key."""
        self.command("send-keys", "-t", "0", "-l", text)

    def press(self, *keys: str) -> None:
        """Press keys by tmux's names: Enter, Escape, Tab, Up, C-c."""
        self.command("send-keys", "-t", "0", *keys)

    def click(self, column: int, row: int) -> None:
        """Press and release the left button there, counted from 1, as a terminal reports a mouse."""
        # In one go: a program that draws itself anew between the two may take neither for a click.
        self.type(f"\x1b[<0;{column};{row}M\x1b[<0;{column};{row}m")

    def wheel(self, column: int, row: int, *, up: bool = False) -> None:
        """Turn the wheel one notch there, counted from 1, as a terminal reports a mouse."""
        self.type(f"\x1b[<{64 if up else 65};{column};{row}M")

    def resize(self, columns: int, rows: int) -> None:
        self.command("resize-window", "-t", "0", "-x", str(columns), "-y", str(rows))

    def wait(self, wanted: str | Callable[[str], bool], *, gone: bool = False, seconds: float = PATIENCE_SEC) -> str:
        """Wait until the screen matches a regular expression or a condition (or does so no more); return the screen."""
        matches = wanted if callable(wanted) else partial(_holds, wanted)
        deadline = time.monotonic() + seconds
        while True:
            screen = self.screen()
            if matches(screen) is not gone:
                return screen
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"not within {seconds:.0f} s: {wanted!r} {'gone from' if gone else 'on'}\n{screen}"
                )
            time.sleep(_LOOK_SEC)


def _holds(wanted: str, screen: str) -> bool:
    return re.search(wanted, screen) is not None


@contextmanager
def terminal(
    folder: Path, words: Sequence[str], *, cwd: Path, environ: Mapping[str, str], columns: int, rows: int
) -> Iterator[Terminal]:
    """Run a program in a terminal of this size until the block ends, with this environment and no other."""
    assert shutil.which("tmux") is not None, "tmux is not installed: apt-get install tmux"
    opened = Terminal(folder / "tmux")
    line = shlex.join(["env", "-i", *(f"{name}={value}" for name, value in environ.items()), *words])
    start = ("new-session", "-d", "-x", str(columns), "-y", str(rows), "-c", str(cwd), line)
    subprocess.run(["tmux", "-S", str(opened.socket), "-f", "/dev/null", "-u", *start], check=True, timeout=_LIMIT_SEC)
    try:
        yield opened
    finally:
        subprocess.run(["tmux", "-S", str(opened.socket), "kill-server"], capture_output=True, timeout=_LIMIT_SEC)
