"""Cuts a worker's output into lines, whatever the chunks: linear in the bytes, and bounded in memory."""

from __future__ import annotations

# Two to three times the largest events that CLIs were seen to print; asyncio's own 64 KiB limit broke readers on an
# ordinary 70 kB line, so the splitter is ours and the cap is far away.
LINE_CAP_BYTES = 16 << 20


class LineSplitter:
    """Gives complete lines without their line feed; a line beyond ``cap`` bytes is dropped and counted as long."""

    __slots__ = ("_cap", "_over", "_pieces", "_size", "long_lines")

    def __init__(self, *, cap: int = LINE_CAP_BYTES) -> None:
        self._cap = cap
        self._pieces: list[bytes] = []
        self._size = 0
        self._over = False
        self.long_lines = 0

    def split(self, chunk: bytes) -> list[bytes]:
        """Take the next bytes and return the lines that they complete."""
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if lines and (self._size or self._over):
            first = self._close(lines[0])
            lines = lines[1:] if first is None else [first, *lines[1:]]
        if len(chunk) > self._cap:
            lines = [line for line in lines if not self._is_long(line)]
        if rest:
            self._keep(rest)
        return lines

    def rest(self) -> bytes:
        """Return what stands after the last line feed, and forget it; a long line gives nothing."""
        return self._close(b"") or b""

    def _is_long(self, line: bytes) -> bool:
        too_long = len(line) > self._cap
        self.long_lines += too_long
        return too_long

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._over:
            return
        if self._size > self._cap:
            # Half an event cannot be read, so its bytes are let go at once; the file on disk still has them.
            self._over = True
            self._pieces = []
            return
        self._pieces.append(piece)

    def _close(self, piece: bytes) -> bytes | None:
        self._keep(piece)
        over, line = self._over, b"".join(self._pieces)
        self._pieces, self._size, self._over = [], 0, False
        self.long_lines += over
        return None if over else line
