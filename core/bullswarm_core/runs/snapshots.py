"""The tree before an attempt, on disk: a kernel that takes the attempt over later must be able to compare with it."""

from __future__ import annotations

import os
from pathlib import Path

from bullswarm_core.errors import StateError
from bullswarm_core.home import Home, read_json, write_json
from bullswarm_core.judging.deliverable import TreeSnapshot, take_snapshot
from bullswarm_core.judging.fingerprint import Entry
from bullswarm_core.values import replace
from bullswarm_core.wire import from_wire, to_wire
from bullswarm_core.workers.spawn import run_child


def outside_of(cwd: str, home: Home) -> tuple[str, ...]:
    """Return what is none of a worker's in ``cwd``: bullswarm's own home, unless the folder itself lies in it (a worktree)."""
    own = (str(home.root), os.path.realpath(home.root))
    return () if os.path.realpath(cwd).startswith(f"{own[1]}/") else own


def remember(path: Path, cwd: str, *, home: Home, environ: dict[str, str], declared: tuple[str, ...] = ()) -> None:
    """Look at the tree under ``cwd`` and keep what was seen in ``path``; ``declared`` files even where git ignores them."""
    snapshot = take_snapshot(cwd, run=run_child, environ=environ, declared=declared, left_out=outside_of(cwd, home))
    write_json(path, to_wire(snapshot))


def recall(path: Path) -> TreeSnapshot | None:
    """Return what `remember` kept; None when that was never done or can't be read any more."""
    try:
        document = read_json(path)
    except StateError:
        return None
    if document is None:
        return None
    before = from_wire(TreeSnapshot, document)
    return replace(before, entries={name: from_wire(Entry, entry) for name, entry in document["entries"].items()})


def look_again(
    before: TreeSnapshot, cwd: str, *, home: Home, environ: dict[str, str], declared: tuple[str, ...] = ()
) -> TreeSnapshot:
    """Look at the tree once more, to be compared with ``before``.

    ``declared`` files are looked at even where git ignores them or the tree is too large to see all of it.
    """
    return take_snapshot(
        cwd, run=run_child, environ=environ, since=before, declared=declared, left_out=outside_of(cwd, home)
    )
