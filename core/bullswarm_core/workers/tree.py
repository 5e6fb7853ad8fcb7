"""Which tree a folder belongs to: the git work tree around it, else the folder itself."""

from __future__ import annotations

from pathlib import Path


def tree_of(folder: str) -> str:
    """Return the real path of the git work tree around ``folder``, or of ``folder`` when there is none.

    Found by looking for ``.git`` upwards, a folder or the file of a linked work tree, without starting git.
    """
    start = Path(folder).resolve()
    for place in (start, *start.parents):
        if (place / ".git").exists():
            return str(place)
    return str(start)
