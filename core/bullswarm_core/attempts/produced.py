"""What an attempt, and the step that it belongs to, left behind in the tree: gathered from the snapshots of its attempts.

A later attempt of the same step that finds work done and unchanged is not blamed. Between two attempts anything may have
happened, since a run may be paused, or the step restarted after days. So only that counts which an attempt is on record
to have made and which is still there, byte for byte.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bullswarm_core._dataclasses import dataclass, field, replace
from bullswarm_core.dispatch.services import Services
from bullswarm_core.errors import StateError, StorageError
from bullswarm_core.judging.expected import NamedFile, Wanted, is_there, missing_files
from bullswarm_core.process.child import run_child
from bullswarm_core.program.model import Step, files_of
from bullswarm_core.runs.run_files import AttemptFiles
from bullswarm_core.runs.state import AttemptState, RunState
from bullswarm_core.store.home import read_json, write_json
from bullswarm_core.trees.fingerprint import FOLDER_FILES, HASHED_BYTES, MISSING, Budget, Entry, Looker
from bullswarm_core.trees.git import GitTree
from bullswarm_core.trees.snapshot import (
    DeliverableFacts,
    TreeSnapshot,
    attribute,
    compare,
    look_again,
    recall,
    showable,
)
from bullswarm_core.trees.touched import with_targets
from bullswarm_core.wire import from_wire, to_wire


@dataclass(frozen=True, slots=True)
class Produced:
    """``own`` is what changed during the attempt, ``judged`` what it is judged by: the same, unless the work was carried.

    ``wanted`` is None for a `run`.
    """

    own: DeliverableFacts | None
    judged: DeliverableFacts | None
    wanted: Wanted | None = None

    def parts(self) -> dict[str, object]:
        """Return what the record of a step's attempt says of its deliverable."""
        if self.wanted is None:
            return {}
        return {"carried": self.wanted.carried, "missing": list(missing_files(self.wanted, self.judged))}


@dataclass(frozen=True, slots=True)
class Tree:
    """The tree that an attempt worked in: who else wrote there since a moment, and which files the worker says it edited."""

    cwd: str
    services: Services
    others_since: Callable[[datetime], bool]
    edits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Looked:
    """The tree at two moments, and what changed in between: None where nobody looked before."""

    facts: DeliverableFacts | None = None
    before: TreeSnapshot | None = None
    after: TreeSnapshot | None = None


def named_files(step: Step | None, cwd: str) -> tuple[str, ...]:
    """Return every file that a step names, and what the links among them lead to."""
    return with_targets(cwd, tuple(files_of(step))) if step is not None else ()


def earlier_attempts(state: RunState, step: str, *, ordinal: int) -> tuple[AttemptState, ...]:
    """Return the attempts before this one that count with it, of before a rerun too, but never those of an earlier round."""
    return tuple(each for each in state.steps[step].of_this_round if each.picked.ordinal < ordinal)


def siblings_wrote(state: RunState, step: str, *, tree: str, since: datetime) -> bool:
    """Tell whether another writing step of the same run was at work in ``tree`` at any time after ``since``."""
    return any(
        attempt.picked.lane != "analyze"
        and attempt.picked.tree == tree
        and (attempt.finished_at is None or attempt.finished_at >= since)
        for name, other in state.steps.items()
        if name != step
        for attempt in other.attempts
    )


def produced(
    tree: Tree,
    files: AttemptFiles,
    *,
    step: Step | None,
    earlier: Sequence[AttemptState],
    started_at: datetime,
) -> Produced:
    """Return what the attempt left behind; what an earlier attempt of the step did counts where this one found it done."""
    own = _since(tree, files, step, started_at, tree.edits)
    if step is None:
        return Produced(own.facts, own.facts)
    wanted = _wanted(step, tree.cwd, own.before)
    if wanted.on_disk:
        _keep(files, own, wanted)
    if not wanted.on_disk or is_there(wanted, own.facts):
        return Produced(own.facts, own.facts, wanted)
    carried = _as_left(tree, files, wanted, earlier, own) if earlier else None
    return carried or Produced(own.facts, own.facts, wanted)


def _keep(files: AttemptFiles, own: _Looked, wanted: Wanted) -> None:
    """Record what the attempt made, for a rerun of its step; a disk that refuses it costs nothing else."""
    if own.facts is None or own.after is None or own.facts.gone:
        return
    with contextlib.suppress(StorageError):
        keep_made(files.made, own.after, own.facts, with_targets(own.after.cwd, wanted.written))


def _as_left(
    tree: Tree, files: AttemptFiles, wanted: Wanted, earlier: Sequence[AttemptState], own: _Looked
) -> Produced | None:
    """Judge by what earlier attempts are on record to have made and what of it still stands."""
    if own.facts is None or own.facts.gone:
        return None
    before = [AttemptFiles(files.folder, files.step, each.picked.ordinal) for each in earlier]
    made = still_standing(recall_made(each.made for each in before), tree.cwd, tree.services.environ)
    undone = _as_before(tree, before, tuple(made.changed))
    changed = {name: entry for name, entry in made.changed.items() if showable(name) not in undone}
    there = tuple(showable(name) for name, entry in changed.items() if entry.kind != "missing")
    gone = tuple(showable(name) for name, entry in changed.items() if entry.kind == "missing")
    judged = replace(
        own.facts,
        modified=tuple(sorted({*own.facts.modified, *there})),
        deleted=tuple(sorted({*own.facts.deleted, *gone})),
        # A commit of which another attempt undid a part is no whole work any more.
        commits=own.facts.commits if undone else (*own.facts.commits, *made.commits),
    )

    def named(file: NamedFile) -> NamedFile:
        paths = with_targets(tree.cwd, (posixpath.normpath(file.path),))
        stands = [changed.get(path) for path in paths]
        again = [entry for entry in (*stands, *map(made.written.get, paths)) if entry and entry.kind == "file"]
        return replace(file, changed=file.changed or any(stands), written=file.written or bool(again))

    over_all = replace(wanted, files=tuple(named(file) for file in wanted.files), carried=True)
    return Produced(own.facts, judged, over_all) if is_there(over_all, judged) else None


def _as_before(tree: Tree, attempts: Sequence[AttemptFiles], paths: tuple[str, ...]) -> frozenset[str]:
    """Return which of ``paths``, fit to be shown, are as they were before the first attempt: one undid another's work.

    That is told by the content alone, since an attempt in a worktree of its own began in another folder. An attempt that was
    refused before it began looked at nothing, so the first that did look counts; where none did, nothing can be told.
    """
    looked = (recall(each.before) for each in attempts)
    first = next((before for before in looked if before is not None), None)
    if first is None:
        return frozenset()
    before = replace(first, root_id=())
    after = look_again(before, tree.cwd, home=tree.services.home, environ=dict(tree.services.environ), declared=paths)
    facts = compare(before, after)
    return frozenset() if facts.gone else frozenset(map(showable, paths)) - frozenset(facts.changed)


def _since(tree: Tree, files: AttemptFiles, step: Step | None, began: datetime, edits: Iterable[str]) -> _Looked:
    before = recall(files.before)
    if before is None:
        return _Looked()
    declared = (*edits, *named_files(step, tree.cwd))
    environ, home = dict(tree.services.environ), tree.services.home
    after = look_again(before, tree.cwd, home=home, environ=environ, declared=declared)
    named = files_of(step) if step is not None else ()
    # What another step did while this one's worker was yet to start is a change since the first look, too.
    overlapped = tree.others_since(min(began, datetime.fromtimestamp(before.taken_ns / 1e9, UTC)))
    facts = attribute(compare(before, after), cwd=tree.cwd, overlapped=overlapped, edits=edits, declared=named)
    return _Looked(facts, before, after)


def _wanted(step: Step, cwd: str, before: TreeSnapshot | None) -> Wanted:
    deliverable = step.deliverable
    names = deliverable.paths or (step.files if deliverable.type == "files" else ())
    return Wanted(deliverable.type, tuple(_named(name, cwd, before) for name in names))


def _named(name: str, cwd: str, before: TreeSnapshot | None) -> NamedFile:
    """Look at a file as it is now and as it was; one that nobody looked at before proves nothing."""
    root = str(Path(cwd).resolve())
    if before is None:
        return NamedFile(name, exists=os.path.isfile(f"{root}/{name}"))  # noqa: PTH113 - of a name that no system takes it says no
    looker = Looker(root, Budget(FOLDER_FILES, HASHED_BYTES), dict(before.entries), before.taken_ns)
    changed = written = False
    for path in with_targets(cwd, (posixpath.normpath(name),)):
        old, new = before.entries.get(path), looker.entry(path, largest=HASHED_BYTES)
        if old is not None:
            changed = changed or not old.same_as(new)
            written = written or (new != MISSING and not old.same_stat(new))
    if _leads_to_older(root, name, before.taken_ns):
        # The link is the worker's work, as far as it is the named file itself; what it leads to is nobody's of this step.
        changed, written = changed and Path(root, name).is_symlink(), False
    return NamedFile(name, os.path.isfile(f"{root}/{name}"), changed, written)  # noqa: PTH113


def _leads_to_older(root: str, name: str, taken_ns: int) -> bool:
    """Tell whether a name leads out of the folder, to a file that nobody has touched since the step began.

    By the file's ctime: what unpacks or copies keeps an old mtime.
    """
    try:
        real = Path(root, name).resolve()
        return not real.is_relative_to(root) and real.stat().st_ctime_ns < taken_ns
    except (OSError, RuntimeError, ValueError):
        return False


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
