"""Work that may take long, done beside a kernel's loop: looking at a large tree, making a worktree, reading a meter.

In the loop it would hold up all else that the kernel does: a wish to stop another step's worker, the reading of its stream,
the end of a third. Measured: 20,000 changed files take 2 s at each look, and a git that hangs is given a minute.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable
from typing import Generic, TypeVar, cast

from bullswarm_core.errors import StorageError
from bullswarm_core.store.database import open_database
from bullswarm_core.store.home import Home

Result = TypeVar("Result")


class Aside(Generic[Result]):
    """One piece of work in a thread of its own; whoever began it looks whether it is done.

    It is given a connection of its own that only reads: all that is written is written by the kernel's own thread, in order.
    """

    def __init__(
        self, work: Callable[[sqlite3.Connection], Result], *, home: Home, name: str, wake: Callable[[], object]
    ) -> None:
        """Begin at once; ``wake`` is called at the end, from the thread."""
        self._work = work
        self._home = home
        self._wake = wake
        self._ended = threading.Event()
        self._result: Result | None = None
        self._error: Exception | None = None
        # A kernel that ends doesn't wait for it: to its successor it is work that a dead kernel left half done.
        threading.Thread(target=self._run, name=name, daemon=True).start()

    @property
    def done(self) -> bool:
        """Whether `result` returns at once."""
        return self._ended.is_set()

    def result(self) -> Result:
        """Return what came of it, waiting for it if need be; raises what it raised."""
        self._ended.wait()
        if self._error is not None:
            raise self._error
        return cast(Result, self._result)

    def _run(self) -> None:
        try:
            connection = open_database(self._home, readonly=True)
            if connection is None:
                raise StorageError(f"{self._home.root} was deleted", hint="to write would bring it back")
            with contextlib.closing(connection):
                self._result = self._work(connection)
        except Exception as error:
            self._error = error
        finally:
            self._ended.set()
            self._wake()
