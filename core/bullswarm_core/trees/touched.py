"""What a check does to the tree that it checks: to the deliverable, to anything else, and to the commit checked out."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.process.child import run_child
from bullswarm_core.trees.fingerprint import FOLDER_FILES, Budget, Entry, Looker
from bullswarm_core.trees.snapshot import TreeSnapshot, compare, take_snapshot

# A GiB is read in about a second; beyond it files are told by size and times.
_HASHED_BYTES = 1024 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Moved:
    """What is not as it was: paths of the deliverable, other paths, and whether another commit is checked out."""

    deliverable: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    head: bool = False


class CheckedTree:
    """Looks at the folder before and after each check; ``deliverable`` are paths relative to it."""

    def __init__(
        self, cwd: str, environ: Mapping[str, str], deliverable: tuple[str, ...], left_out: tuple[str, ...]
    ) -> None:
        self._cwd = cwd
        self._environ = environ
        self._paths = with_targets(cwd, deliverable)
        self._left_out = left_out
        self._entries: dict[str, Entry] = {}
        self._looked_ns = 0
        self._before: TreeSnapshot | None = None

    def remember(self) -> None:
        """Look at the tree before a check."""
        if self._before is None:
            self._before = self._snapshot(None)
        self._entries = self._look()

    def moved(self) -> Moved:
        """Return what has changed since `remember`."""
        assert self._before is not None, "a comparison needs an earlier look"
        earlier, before = self._entries, self._before
        self._entries = self._look()
        changed = tuple(path for path, entry in self._entries.items() if not earlier[path].same_as(entry))
        after = self._snapshot(before)
        facts = compare(before, after)
        self._before = after
        if facts.gone:
            return Moved(deliverable=(*changed, ".") if self._paths else ())
        others = tuple(path for path in facts.changed if path not in self._entries)
        return Moved(changed, others, facts.head_moved)

    def _look(self) -> dict[str, Entry]:
        now = time.time_ns()
        root = str(Path(self._cwd).resolve())
        looker = Looker(root, Budget(FOLDER_FILES, _HASHED_BYTES), self._entries, self._looked_ns)
        found = {path: looker.entry(path, largest=_HASHED_BYTES) for path in self._paths}
        self._looked_ns = now
        return found

    def _snapshot(self, since: TreeSnapshot | None) -> TreeSnapshot:
        return take_snapshot(self._cwd, run=run_child, environ=self._environ, since=since, left_out=self._left_out)


def with_targets(cwd: str, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return ``paths`` and what the links among them lead to, as far as that lies in the folder too."""
    root = Path(cwd).resolve()
    found = dict.fromkeys(paths)
    for path in paths:
        try:
            real = (root / path).resolve()
        except (OSError, RuntimeError):
            continue
        if real.is_relative_to(root) and real != root:
            found[str(real.relative_to(root))] = None
    return tuple(found)
