"""Where work takes place: the tree that a folder belongs to, and the folder of worktrees in a run's folder."""

from __future__ import annotations

from pathlib import Path

WORKTREES = "workspaces"


def tree_of(folder: str) -> str:
    """Return the real path of the git work tree around ``folder``, or of ``folder`` when there is none.

    Found by looking for ``.git`` upwards, a folder or the file of a linked work tree, without starting git.
    """
    start = Path(folder).resolve()
    for place in (start, *start.parents):
        if (place / ".git").exists():
            return str(place)
    return str(start)
