"""What becomes of one file that a worker changed in its own worktree while its original may have changed too. Pure.

The rule is that of every three-way merge: what only one side changed is that side's, what both changed alike stands, and
what both changed differently is merged by lines where both are plain files, else it is a conflict.
"""

from __future__ import annotations

from typing import Literal

from bullswarm_core.values import dataclass

Kind = Literal["missing", "file", "link", "folder", "other"]


@dataclass(frozen=True, slots=True)
class Version:
    """A path at one moment. ``digest`` is git's name of its bytes (a link's: of its target), empty where there are none."""

    kind: Kind = "missing"
    executable: bool = False
    digest: str = ""

    @property
    def can_be_merged(self) -> bool:
        """Whether git could hold it at this path: a file, a link, or nothing."""
        return self.kind in ("missing", "file", "link")


MISSING = Version()


def as_git_sees(version: Version) -> Version:
    """Return what stands at a file's path for git: where a folder is, no file is."""
    return MISSING if version.kind == "folder" else version


@dataclass(frozen=True, slots=True)
class Decision:
    """``keep`` leaves the file alone, ``take`` makes it the worker's, ``blend`` makes it a file of both sides.

    For ``blend``, ``content`` says whose bytes it gets (``both``: merged by lines, which may still conflict) and ``executable``
    its mode. ``why`` explains a ``conflict``.
    """

    action: Literal["keep", "take", "blend", "conflict"]
    content: Literal["ours", "theirs", "both"] = "ours"
    executable: bool = False
    why: str = ""


def decide(base: Version, ours: Version, theirs: Version) -> Decision:
    """Return what is to be done to ``ours``, the person's file, given where both began and what the worker made of it."""
    if theirs in (base, ours):
        return Decision("keep")
    if not theirs.can_be_merged:
        return Decision("conflict", why=f"the worker made a {_word(theirs)} of it")
    if ours == base:
        return Decision("take")
    if ours.kind == theirs.kind == "file":
        return _blended(base, ours, theirs)
    return Decision("conflict", why=f"{_changed('you', base, ours)}, and {_changed('the worker', base, theirs)}")


def _blended(base: Version, ours: Version, theirs: Version) -> Decision:
    mode = theirs.executable if ours.executable == base.executable else ours.executable
    if base.kind != "file":
        mode = ours.executable or theirs.executable
    if ours.digest == theirs.digest or theirs.digest == base.digest:
        return Decision("blend", "ours", mode)
    if base.kind != "file":
        return Decision("conflict", why="you and the worker both made it, not alike")
    return Decision("blend", "theirs" if ours.digest == base.digest else "both", mode)


def _changed(who: str, base: Version, now: Version) -> str:
    if now.kind == "missing":
        return f"{who} deleted it"
    if base.kind == "missing":
        return f"{who} made it ({_word(now)})"
    return f"{who} changed it" if now.kind == base.kind else f"{who} made a {_word(now)} of it"


def _word(version: Version) -> str:
    return {"link": "symbolic link", "other": "special file"}.get(version.kind, version.kind)
