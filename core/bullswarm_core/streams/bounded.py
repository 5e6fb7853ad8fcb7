"""Bounded memories for a reader that may see a gigabyte: the first and last of many, a text with its middle cut."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

from bullswarm_core.streams.values import clean

T = TypeVar("T")

# What a caller can still use; the whole output stays in the attempt's files.
MAX_ANSWER_CHARS = 1 << 20
# Streamed words arrive one by one, plain output in large chunks; joining either in time keeps the list small at no cost
# that shows.
_PIECES_TO_JOIN = 1_024
_CHARS_TO_JOIN = 1 << 16


class FirstLast(Generic[T]):
    """Keeps the first and the last few of what is added; ``total`` counts them all."""

    __slots__ = ("_first", "_last", "_size", "total")

    def __init__(self, size: int) -> None:
        self._size = size
        self._first: list[T] = []
        self._last: deque[T] = deque(maxlen=size)
        self.total = 0

    def add(self, value: T) -> None:
        self.total += 1
        (self._first if len(self._first) < self._size else self._last).append(value)

    def __iter__(self) -> Iterator[T]:
        yield from self._first
        yield from self._last

    def __bool__(self) -> bool:
        return self.total > 0

    def find(self, wanted: T) -> bool:
        return wanted in self._first or wanted in self._last

    def replace(self, old: T, new: T) -> None:
        """Put ``new`` in the place of ``old``."""
        for values in (self._first, self._last):
            if old in values:
                values[values.index(old)] = new
                return


class RecentKeys(Generic[T]):
    """Remembers a value for each of at least the last ``size`` keys, and at most twice as many.

    Two generations: taking the oldest key out of one dict, time and again, walks over the holes that it left.
    """

    __slots__ = ("_new", "_old", "_size")

    def __init__(self, size: int) -> None:
        self._size = size
        self._new: dict[str, T] = {}
        self._old: dict[str, T] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._new or key in self._old

    def get(self, key: str) -> T | None:
        return self._new.get(key) or self._old.get(key)

    def put(self, key: str, value: T) -> None:
        if len(self._new) >= self._size:
            self._old, self._new = self._new, {}
        self._new[key] = value


class CappedText:
    """A text of which at most ``cap`` characters are kept: the first and the last half, with a mark between them."""

    __slots__ = ("_cap", "_head", "_head_size", "_recent", "_settled", "_tail", "_tail_size", "size")

    def __init__(self, *, cap: int = MAX_ANSWER_CHARS) -> None:
        self._cap = cap
        self._head: list[str] = []
        self._head_size = 0
        self._recent: list[str] = []
        self._tail: list[str] = []
        self._tail_size = 0
        self.size = self._settled = 0

    def add(self, piece: str) -> None:
        self.size += len(piece)
        self._recent.append(piece)
        if len(self._recent) >= _PIECES_TO_JOIN or self.size - self._settled >= _CHARS_TO_JOIN:
            self._settle()

    def clear(self) -> None:
        """Begin anew."""
        self._recent.clear()
        self.size = self._settled = 0
        if self._head:
            self._head, self._tail = [], []
            self._head_size = self._tail_size = 0

    def _settle(self) -> None:
        text = "".join(self._recent)
        self._recent = []
        self._settled = self.size
        half = self._cap // 2
        if self._head_size < half:
            part = text[: half - self._head_size]
            self._head.append(part)
            self._head_size += len(part)
            text = text[len(part) :]
        if not text:
            return
        text = text[-half:]
        self._tail.append(text)
        self._tail_size += len(text)
        while self._tail_size - len(self._tail[0]) >= half:
            self._tail_size -= len(self._tail.pop(0))

    def text(self) -> str:
        """Return the text; ``size`` characters were added in all."""
        self._settle()
        half = self._cap // 2
        head, tail = "".join(self._head), "".join(self._tail)[-half:]
        missing = self.size - len(head) - len(tail)
        mark = f"\n[… {missing} characters left out …]\n" if missing > 0 else ""
        return clean(head + mark + tail)

    def opening(self, length: int) -> str:
        """Return about the first ``length`` characters of what was added."""
        self._settle()
        return "".join(self._head)[:length]
