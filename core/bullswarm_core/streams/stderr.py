"""The waits that a CLI tells on stderr alone, while it waits: Codex sleeps for as long as a 429 asks and says so only there."""

from __future__ import annotations

import re
from pathlib import Path

from bullswarm_core.process.capture import Stillness, captured_size, read_tail
from bullswarm_core.streams.facts import ProviderError
from bullswarm_core.streams.table import StderrRetry, StreamTable
from bullswarm_core.streams.values import status_in_text
from bullswarm_core.streams.values import text as as_text

# What of stderr belongs to the error channel.
_TAIL_BYTES = 4_000
_KEPT = 32
_WAIT = re.compile(r"\s*(?P<number>\d{1,12}(?:\.\d+)?)(?P<unit>ms|s)\b")


def stderr_retries(text: str, table: StreamTable) -> tuple[ProviderError, ...]:
    """Read the retries that ``text`` tells by the table's rules: the last 32, none of them fatal."""
    found = []
    for line in text.splitlines() if table.stderr_retries else ():
        for rule in table.stderr_retries:
            _, is_marked, rest = line.partition(rule.marker)
            if is_marked and any(word in rest for word in rule.words):
                found.append(_retry(rest, rule))
                break
    return tuple(found[-_KEPT:])


class StderrWatch:
    """Looks at a running worker's stderr for the retries that only it tells; free for a CLI whose table knows none."""

    def __init__(self, file: Path, table: StreamTable | None) -> None:
        self._file = file
        self._table = table if table is not None and table.stderr_retries else None
        self._stillness = Stillness(file)
        self._seen = 0

    def moved(self) -> bool:
        """Tell whether there is more to read than at the last call."""
        if self._table is None or self._stillness.holds():
            return False
        with self._stillness.look():
            size = captured_size(self._file)
        moved, self._seen = size != self._seen, size
        return moved

    def errors(self) -> tuple[ProviderError, ...]:
        """Return the retries in the last 4,000 bytes."""
        if self._table is None:
            return ()
        return stderr_retries(read_tail(self._file, _TAIL_BYTES).decode("utf-8", "replace"), self._table)


def _retry(rest: str, rule: StderrRetry) -> ProviderError:
    before, _, text = rest.partition(rule.text_after)
    said = as_text(text.strip() or rest.strip())
    seconds = None
    if match := _WAIT.match(before.partition(rule.wait_after)[2]):
        seconds = float(match["number"]) / (1000 if match["unit"] == "ms" else 1)
    named = seconds if seconds is not None and seconds >= rule.least_wait_sec else None
    return ProviderError(text=said, status=status_in_text(said), retry_after_sec=named, fatal=False)
