"""What an attempt made, told by the bytes: a later attempt of the same step that finds it done and unchanged is not blamed.

An attempt of the same generation follows at once and is judged by one comparison over both. Between a step and its rerun
anything may have happened, so there only that counts which an attempt is on record to have made and which still stands.
Rule: reference runs-and-workflows 6.3 ("during the step" covers all attempts of it, a resume's too).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bullswarm_core.errors import StateError
from bullswarm_core.home import read_json, write_json
from bullswarm_core.judging.deliverable import DeliverableFacts, TreeSnapshot, showable
from bullswarm_core.judging.fingerprint import FOLDER_FILES, HASHED_BYTES, Budget, Entry, Looker
from bullswarm_core.judging.git_tree import GitTree
from bullswarm_core.values import dataclass, field
from bullswarm_core.wire import from_wire, to_wire
from bullswarm_core.workers.spawn import run_child


@dataclass(frozen=True, slots=True)
class Made:
    """What stood when an attempt ended: ``changed`` by it, and named files ``written`` again, whatever is in them.

    Both by path relative to the folder of work; an entry ``missing`` is a file that it deleted. ``commits`` are its commits.
    """

    changed: Mapping[str, Entry] = field(default_factory=dict)
    written: Mapping[str, Entry] = field(default_factory=dict)
    commits: tuple[str, ...] = ()


def keep_made(path: Path, after: TreeSnapshot, facts: DeliverableFacts, written: Iterable[str]) -> None:
    """Record in ``path`` what ``facts`` say that an attempt changed, as ``after`` saw it. Raises StorageError."""
    changed = frozenset(facts.changed)
    looker = _looker(after.cwd)
    made = Made(
        {name: _read(looker, name, entry) for name, entry in after.entries.items() if showable(name) in changed},
        {name: looker.entry(name, largest=HASHED_BYTES) for name in written},
        facts.commits,
    )
    write_json(path, to_wire(made))


def recall_made(paths: Iterable[Path]) -> Made:
    """Return what all these attempts made, oldest first: of a file, what the last of them left."""
    changed: dict[str, Entry] = {}
    written: dict[str, Entry] = {}
    commits: dict[str, None] = {}
    for path in paths:
        document = _document(path)
        changed |= _entries(document.get("changed"))
        written |= _entries(document.get("written"))
        commits |= dict.fromkeys(document.get("commits") or ())
    return Made(changed, written, tuple(commits))


def still_standing(made: Made, cwd: str, environ: Mapping[str, str]) -> Made:
    """Return what of it is in ``cwd`` as it was left; of the commits, those that what is checked out there contains."""
    looker = _looker(str(Path(cwd).resolve()))
    tree = GitTree(looker.root, run_child, environ)

    def standing(known: Mapping[str, Entry]) -> dict[str, Entry]:
        return {name: entry for name, entry in known.items() if entry.same_as(looker.entry(name, largest=HASHED_BYTES))}

    commits = tuple(commit for commit in made.commits if tree.contains(commit))
    return Made(standing(made.changed), standing(made.written), commits)


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
    return {name: from_wire(Entry, entry) for name, entry in (document or {}).items()}
