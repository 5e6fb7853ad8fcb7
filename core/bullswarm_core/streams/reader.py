"""The one reader of every worker's output: bytes in any chunks go in, what the stream said comes out.

It never stops and never raises on what a worker printed: broken, huge, cut and repeated lines are counted. Memory is
flat. The words of the tables are explained in ``table``.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Mapping
from json.scanner import make_scanner
from typing import Any

from bullswarm_core._dataclasses import replace
from bullswarm_core.process.line_splitter import LINE_CAP_BYTES, LineSplitter
from bullswarm_core.streams.bounded import CappedText
from bullswarm_core.streams.facts import Denial, ProviderError, StreamFacts
from bullswarm_core.streams.state import StreamState, bind
from bullswarm_core.streams.table import Skip, StreamTable, compile_table
from bullswarm_core.streams.values import count, number
from bullswarm_core.streams.values import text as as_text

# One step of work: small enough that the lines of a step are no memory worth speaking of.
_STEP_BYTES = 256 << 10
_KEPT_IDS = 1_024
# The tail of plain output that may be a provider's notice.
PLAIN_TAIL_CHARS = 4_000
# The line before is kept to recognise its repetition; a larger one is not worth its memory.
_KEPT_LINE_BYTES = 1 << 20


class StreamReader:
    """Reads one attempt's stdout by its CLI's table; without one (or by ``stdout_is_answer``) stdout is the answer.

    Raises ConnectorError when a table that isn't compiled yet is wrong. ``line_cap`` is in bytes.
    """

    __slots__ = ("_source",)

    def __init__(
        self,
        table: StreamTable | Mapping[str, Any] | None,
        *,
        stdout_is_answer: bool = False,
        line_cap: int = LINE_CAP_BYTES,
    ) -> None:
        self._source: _EventSource | _PlainSource
        if stdout_is_answer or not table:
            self._source = _PlainSource()
        else:
            compiled = table if isinstance(table, StreamTable) else compile_table(table)
            self._source = _EventSource(compiled, line_cap=line_cap)

    def feed(self, data: bytes) -> None:
        """Take the next bytes of stdout, cut anywhere."""
        for start in range(0, len(data), _STEP_BYTES):
            self._source.feed(data[start : start + _STEP_BYTES])

    def gap(self, size: int) -> None:
        """Note that ``size`` bytes of stdout are missing here (bounded capture dropped them)."""
        self._source.gap(size)

    def snapshot(self) -> StreamFacts:
        """Return what is known so far, complete lines only."""
        return self._source.facts()

    def finish(self) -> StreamFacts:
        """Return what the whole stream said; a last line without its line feed is read, too."""
        self._source.end()
        return self._source.facts()


class _PlainSource:
    """The output of a CLI without an event stream: one text."""

    def __init__(self) -> None:
        # A character may be cut between two chunks, so the decoder keeps its first bytes until the rest comes.
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._text = CappedText()
        self._tail = ""
        self._lines = self._gap_bytes = 0
        self._open_line = False

    def feed(self, data: bytes) -> None:
        self._lines += data.count(b"\n")
        self._open_line = not data.endswith(b"\n")
        self._take(self._decoder.decode(data))

    def _take(self, text: str) -> None:
        self._text.add(text)
        self._tail = (self._tail + text[-PLAIN_TAIL_CHARS:])[-PLAIN_TAIL_CHARS:]

    def gap(self, size: int) -> None:
        self._take(self._decoder.decode(b"", final=True) + f"\n[… {size} bytes missing …]\n")
        self._decoder.reset()
        self._gap_bytes += size

    def end(self) -> None:
        self._take(self._decoder.decode(b"", final=True))
        self._lines += self._open_line
        self._open_line = False

    def facts(self) -> StreamFacts:
        answer = self._text.text()
        return StreamFacts(
            answer=answer,
            answer_source="stdout" if answer else "none",
            event_stream=False,
            plain_text=self._tail,
            lines=self._lines,
            gap_bytes=self._gap_bytes,
        )


class _EventSource:
    """The output of a CLI that prints one JSON object a line."""

    def __init__(self, table: StreamTable, *, line_cap: int) -> None:
        self._table = table
        self._splitter = LineSplitter(cap=line_cap)
        self._state = StreamState(table)
        self._actions = bind(table, self._state)
        # The scanner behind json.loads, without its two searches for white space: a tenth of the time of a short line.
        self._scan = make_scanner(json.JSONDecoder())  # type: ignore[arg-type]  # its stub asks for itself
        self._previous = b""
        self._new_ids: set[str] = set()
        self._old_ids: set[str] = set()
        self._plain = ""
        self._lines = self._bad_lines = self._duplicates = self._gap_bytes = 0
        self._after_gap = False

    def feed(self, data: bytes) -> None:
        lines = self._splitter.split(data)
        if self._after_gap and lines:
            self._fragment(lines.pop(0))
            self._after_gap = False
        self._read(lines)

    def gap(self, size: int) -> None:
        self._fragment(self._splitter.rest())
        self._after_gap = True
        self._gap_bytes += size

    def end(self) -> None:
        rest = self._splitter.rest()
        if self._after_gap:
            self._fragment(rest)
        elif rest:
            self._read([rest])

    def facts(self) -> StreamFacts:
        return replace(
            self._state.facts(),
            plain_text=self._plain,
            lines=self._lines + self._splitter.long_lines,
            bad_lines=self._bad_lines,
            long_lines=self._splitter.long_lines,
            duplicate_lines=self._duplicates,
            gap_bytes=self._gap_bytes,
        )

    def _fragment(self, piece: bytes) -> None:
        """Read what stands beside a gap: whole by chance, or a broken line whose fault is ours and isn't counted."""
        bad, plain = self._bad_lines, self._plain
        self._read([piece] if piece else [])
        if self._bad_lines > bad:
            self._bad_lines, self._plain = bad, plain
            self._lines -= 1

    def _read(self, lines: list[bytes]) -> None:
        table, scan, actions = self._table, self._scan, self._actions
        skip, skip_unless, kind_of, id_of = table.skip, table.skip_unless, table.kind, table.event_id
        repeats = table.identical_lines_are_duplicates
        for raw in lines:
            line = raw.strip()
            if not line:
                continue
            self._lines += 1
            if skip and line.startswith(skip):
                continue
            if skip_unless and _matters_not(line, skip_unless):
                continue
            if repeats and line == self._previous:
                self._duplicates += 1
                continue
            try:
                text = line.decode("utf-8", "replace")
                event, end = scan(text, 0)
                if type(event) is not dict or end != len(text):
                    raise ValueError("no event")
                self._previous = line if len(line) <= _KEPT_LINE_BYTES else b""
                if id_of is not None and self._is_repeated(id_of(event)):
                    continue
                kind = kind_of(event)
                if type(kind) is str and (apply := actions.get(kind)) is not None:
                    apply(event)
            except (ValueError, StopIteration, RecursionError):
                self._bad(line)

    def _is_repeated(self, identity: Any) -> bool:
        if type(identity) is not str:
            return False
        if identity in self._new_ids or identity in self._old_ids:
            self._duplicates += 1
            return True
        self._new_ids.add(identity)
        if len(self._new_ids) >= _KEPT_IDS:
            self._old_ids, self._new_ids = self._new_ids, set()
        return False

    def _bad(self, line: bytes) -> None:
        self._bad_lines += 1
        self._previous = b""
        tail = line[-4 * PLAIN_TAIL_CHARS :].decode("utf-8", "replace")
        self._plain = f"{self._plain}{tail}\n"[-PLAIN_TAIL_CHARS:]


def _matters_not(line: bytes, skips: tuple[Skip, ...]) -> bool:
    for skip in skips:
        if line.startswith(skip.start):
            return all(sign not in line for sign in skip.unless)
    return False


def stderr_errors(text: str) -> tuple[ProviderError, ...]:
    """Read what our own plug-ins in a worker report on stderr, in lines ``bullswarm-<plug-in> {json}``.

    The object may hold status (HTTP), code, message, retryAfterSec and fatal (true unless said otherwise). The last
    32 are given; of two that say the same, one.
    """
    errors: dict[tuple[str, int | None], ProviderError] = {}
    for line in text.splitlines():
        name, _, rest = line.strip().partition(" ")
        if not name.startswith("bullswarm-") or not rest.startswith("{"):
            continue
        try:
            said = json.loads(rest)
        except (ValueError, RecursionError):
            continue
        status, wait, code = count(said.get("status")), number(said.get("retryAfterSec")), said.get("code")
        error = ProviderError(
            text=as_text(said.get("message")),
            status=status if status is not None and 100 <= status <= 599 else None,
            code=code[:300] if isinstance(code, str) and code else None,
            retry_after_sec=wait if wait is not None and wait >= 0 else None,
            fatal=said.get("fatal") is not False,
        )
        errors.pop((error.text, error.status), None)
        errors[error.text, error.status] = error
    return tuple(errors.values())[-32:]


def stderr_denials(text: str, table: StreamTable) -> tuple[Denial, ...]:
    """Read the denials that a CLI tells on stderr alone, by its table; the first 64, each once."""
    denials: dict[Denial, None] = {}
    for line in text.splitlines() if table.stderr else ():
        for rule in table.stderr:
            _, found, reason = line.partition(rule.marker)
            if found and any(word in reason for word in rule.words):
                denials[Denial(rule.tool, as_text(reason.strip()))] = None
                break
    return tuple(denials)[:64]


def with_stderr(facts: StreamFacts, stderr: str, *, table: StreamTable | None = None) -> StreamFacts:
    """Add what stderr tells: our plug-ins' errors, and the denials that the table knows.

    A good last word on stdout means that the worker went on by itself after those errors.
    """
    denials = () if table is None else stderr_denials(stderr, table)
    went_on = facts.terminal and not facts.terminal_error
    errors = tuple(replace(one, fatal=one.fatal and not went_on) for one in stderr_errors(stderr))
    return replace(
        facts,
        errors=facts.errors + errors,
        denials=facts.denials + denials,
        denial_count=facts.denial_count + len(denials),
    )
