"""The diff of what an attempt left, as it stood when the attempt ended: written once, so that no later edit of somebody else is
taken for its work.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from bullswarm_core.errors import StateError
from bullswarm_core.home import read_json, write_bytes_atomic
from bullswarm_core.judging.deliverable import DeliverableFacts
from bullswarm_core.judging.git_tree import GitTree, RunChild
from bullswarm_core.runs.folder import AttemptFiles
from bullswarm_core.values import dataclass

# A diff that somebody still reads; the files themselves stay where they are.
_MOST_FILES = 200
_MOST_PATCH_BYTES = 1024 * 1024
_MOST_NEW_FILE_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class DiffSnapshot:
    """``stat`` is one line for each file (``src/a.py +12 -3``); ``file`` holds the diff, None where there is none to show."""

    stat: tuple[str, ...] = ()
    file: str | None = None


def freeze_diff(
    files: AttemptFiles, facts: DeliverableFacts, *, cwd: str, run: RunChild, environ: Mapping[str, str]
) -> DiffSnapshot:
    """Write the attempt's diff against the commit from before it, and return what it comes to.

    Files that git doesn't know are shown whole where the attempt made them; of others only the name is told. Raises
    StorageError when the disk refuses the diff.
    """
    names = facts.changed[:_MOST_FILES]
    if not names:
        return DiffSnapshot()
    known, patch = _of_git(files, names, cwd=cwd, run=run, environ=environ)
    pieces, stat_lines = [patch], []
    for name in names:
        if name in known:
            stat_lines.append(f"{name} {known[name]}")
            continue
        text = _text_of(Path(cwd, name)) if name in facts.created else None
        what = "deleted" if name in facts.deleted else "new" if name in facts.created else "changed"
        stat_lines.append(f"{name} {what}" if text is None else f"{name} new +{len(text.splitlines())}")
        pieces.append(b"" if text is None else _as_new(name, text))
    whole = b"".join(pieces)[:_MOST_PATCH_BYTES]
    if not whole:
        return DiffSnapshot(tuple(stat_lines))
    write_bytes_atomic(files.diff, whole)
    return DiffSnapshot(tuple(stat_lines), str(files.diff))


def _of_git(
    files: AttemptFiles, names: Sequence[str], *, cwd: str, run: RunChild, environ: Mapping[str, str]
) -> tuple[dict[str, str], bytes]:
    """Return what git tells of each file that it knows, and its patch; nothing outside of git or before a first commit."""
    try:
        before = read_json(files.before, default={})
    except StateError:
        return {}, b""
    head = before.get("head")
    if not before.get("isGit") or not isinstance(head, str):
        return {}, b""
    tree = GitTree(cwd, run, environ)
    return tree.lines_changed(head, names), tree.patch(head, names)


def _text_of(path: Path) -> str | None:
    """Return the text of a small regular file; None for anything else. Nothing is opened that could be waited for."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                return None
            data = file.read(_MOST_NEW_FILE_BYTES + 1)
            return None if len(data) > _MOST_NEW_FILE_BYTES or b"\0" in data else data.decode("utf-8")
        except (OSError, UnicodeDecodeError):
            return None


def _as_new(name: str, text: str) -> bytes:
    lines = text.splitlines()
    head = f"diff --git a/{name} b/{name}\nnew file mode 100644\n--- /dev/null\n+++ b/{name}\n"
    hunk = f"@@ -0,0 +1,{len(lines)} @@\n" + "".join(f"+{line}\n" for line in lines) if lines else ""
    return (head + hunk).encode("utf-8", "surrogateescape")
