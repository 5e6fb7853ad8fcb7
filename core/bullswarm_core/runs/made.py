"""What an attempt made, told by the bytes: a later attempt of the same step that finds it done and unchanged is not blamed.

Between two attempts anything may have happened, since a run may be paused, or the step begun anew after days. So only that
counts which an attempt is on record to have made and which still stands.
"During the step" covers all attempts of it, a resume's too (docs/design/judging.md, "Deliverables").
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bullswarm_core.errors import StateError
from bullswarm_core.home import read_json, write_json
from bullswarm_core.judging.deliverable import DeliverableFacts, TreeSnapshot, showable
from bullswarm_core.judging.fingerprint import FOLDER_FILES, HASHED_BYTES, Budget, Entry, Looker
from bullswarm_core.judging.git_tree import GitTree
from bullswarm_core.values import dataclass, field, replace
from bullswarm_core.wire import from_wire, to_wire
from bullswarm_core.workers.spawn import run_child

_HASH = re.compile("[0-9a-f]{40,64}")


@dataclass(frozen=True, slots=True)
class Made:
    """What stood when an attempt ended: ``changed`` by it, and named files ``written`` again, whatever is in them.

    By path relative to the folder of work; an entry ``missing`` is a file that it deleted. ``commits`` are its commits, and
    ``committed`` what was in the paths that they touched.
    """

    changed: Mapping[str, Entry] = field(default_factory=dict)
    written: Mapping[str, Entry] = field(default_factory=dict)
    committed: Mapping[str, Entry] = field(default_factory=dict)
    commits: tuple[str, ...] = ()


def keep_made(path: Path, after: TreeSnapshot, facts: DeliverableFacts, written: Iterable[str]) -> None:
    """Record in ``path`` what ``facts`` say that an attempt changed, as ``after`` saw it. Raises StorageError."""
    changed = frozenset(facts.changed)
    looker = _looker(after.cwd)
    made = Made(
        {name: _read(looker, name, entry) for name, entry in after.entries.items() if showable(name) in changed},
        {name: looker.entry(name, largest=HASHED_BYTES) for name in written},
        {name: _read(looker, name, after.entries[name]) for name in after.committed} if facts.commits else {},
        facts.commits,
    )
    write_json(path, to_wire(made))


def recall_made(paths: Iterable[Path]) -> Made:
    """Return what all these attempts made, oldest first: of a file, what the last of them left."""
    changed: dict[str, Entry] = {}
    written: dict[str, Entry] = {}
    committed: dict[str, Entry] = {}
    commits: dict[str, None] = {}
    for path in paths:
        document = _document(path)
        changed |= _entries(document.get("changed"))
        written |= _entries(document.get("written"))
        committed |= _entries(document.get("committed"))
        # What was committed and changed later is as the later attempt left it.
        committed |= {name: entry for name, entry in changed.items() if name in committed}
        commits |= dict.fromkeys(_hashes(document.get("commits")))
    return Made(changed, written, committed, tuple(commits))


def still_standing(made: Made, cwd: str, environ: Mapping[str, str]) -> Made:
    """Return what of it is in ``cwd`` as it was left.

    Commits stand where what is checked out contains them and all the work stands: one that was reverted is still in there.
    """
    looker = _looker(str(Path(cwd).resolve()))
    tree = GitTree(looker.root, run_child, environ)

    def standing(known: Mapping[str, Entry]) -> dict[str, Entry]:
        return {name: entry for name, entry in known.items() if entry.same_as(looker.entry(name, largest=HASHED_BYTES))}

    found = Made(standing(made.changed), standing(made.written), standing(made.committed))
    whole = (len(found.changed), len(found.committed)) == (len(made.changed), len(made.committed))
    return replace(found, commits=tuple(commit for commit in made.commits if whole and tree.contains(commit)))


def _looker(root: str) -> Looker:
    return Looker(root, Budget(FOLDER_FILES, HASHED_BYTES))


def _read(looker: Looker, name: str, entry: Entry) -> Entry:
    """Read the bytes of a large file, too, unless somebody is writing it at this moment."""
    if entry.kind != "file" or entry.digest is not None:
        return entry
    found = looker.entry(name, largest=HASHED_BYTES)
    return found if found.same_stat(entry) else entry


def _document(path: Path) -> dict[str, Any]:
    try:
        document = read_json(path, default={})
    except StateError:
        return {}
    return document if isinstance(document, dict) else {}


def _entries(document: Any) -> dict[str, Entry]:
    """Read the entries of a record; one that somebody spoiled proves nothing."""
    if not isinstance(document, dict):
        return {}
    found = {}
    for name, entry in document.items():
        with contextlib.suppress(ValueError):
            found[name] = from_wire(Entry, entry)
    return found


def _hashes(document: Any) -> list[str]:
    known = document if isinstance(document, list) else []
    return [commit for commit in known if isinstance(commit, str) and _HASH.fullmatch(commit)]
