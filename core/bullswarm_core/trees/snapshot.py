"""What a worker left behind in its working tree: files created, modified and deleted, and commits made.

Two snapshots are compared, one before and one after. In a git tree a snapshot holds what differs from the commit, what
git ignores and what submodules hold; elsewhere it holds the folder. The one before is also kept on disk, so that a kernel
that takes the attempt over can compare with it.
"""

from __future__ import annotations

import os
import posixpath
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from bullswarm_core._dataclasses import dataclass, field, replace
from bullswarm_core.errors import StateError
from bullswarm_core.process.child import run_child
from bullswarm_core.store.home import Home, read_json, write_json
from bullswarm_core.trees import fingerprint as marks
from bullswarm_core.trees.fingerprint import MISSING, Budget, Entry, Looker
from bullswarm_core.trees.git import GitTree, RunChild
from bullswarm_core.wire import from_wire, to_wire

Attribution = Literal["own", "shared"]
_NS = 1_000_000_000
# Stands for content that nobody read because git said that it was as committed.
_AS_COMMITTED = Entry("file", digest="as committed")


@dataclass(frozen=True, slots=True)
class TreeSnapshot:
    """A working tree at one moment: ``entries`` by path relative to ``cwd``, ``taken_ns`` in Unix nanoseconds.

    In a git tree a path without an entry is as it was committed in ``head``. ``truncated`` says that not everything was
    looked at, and ``unseen`` why, where it is not its size. ``root_id`` are the folder's device and inode, none where there
    is no folder. ``committed`` and ``commits`` tell the way from an earlier snapshot's commit, where there was one.
    """

    cwd: str
    is_git: bool
    head: str | None
    entries: Mapping[str, Entry]
    taken_ns: int
    states: Mapping[str, str] = field(default_factory=dict)
    committed: Mapping[str, str] = field(default_factory=dict)
    commits: tuple[str, ...] = ()
    truncated: bool = False
    unseen: str = ""
    root_id: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class DeliverableFacts:
    """What changed between two snapshots, paths relative to the working folder and fit to be shown.

    ``attribution`` ``shared``: others worked in the tree at the same time, so only what the worker's own edit events or
    declared files name is listed, and ``unattributed`` counts the rest. ``truncated``: not all of the tree was seen, for
    the reason ``unseen`` where it is not its size. ``gone``: the folder is not there any more, or another one is in its
    place; then nothing else is told. ``only_ignored``: git ignores every path that changed.
    """

    created: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()
    head_moved: bool = False
    is_git: bool = False
    truncated: bool = False
    attribution: Attribution = "own"
    unattributed: int = 0
    unseen: str = ""
    gone: bool = False
    only_ignored: bool = False

    @property
    def changed(self) -> tuple[str, ...]:
        """Every path that is not as it was, sorted."""
        return tuple(sorted({*self.created, *self.modified, *self.deleted}))

    @property
    def produced(self) -> bool:
        """True when a file changed or a commit was made."""
        return bool(self.created or self.modified or self.deleted or self.commits)


def take_snapshot(
    cwd: str,
    *,
    run: RunChild,
    environ: Mapping[str, str],
    since: TreeSnapshot | None = None,
    declared: Iterable[str] = (),
    left_out: Sequence[str] = (),
    clock_ns: Callable[[], int] = time.time_ns,
) -> TreeSnapshot:
    """Look at the tree under ``cwd`` without changing or running anything in it.

    ``since`` is the earlier snapshot that this one will be compared with. ``declared`` files (relative or absolute) are
    looked at even where git ignores them. ``left_out`` are absolute paths that are none of the worker's (bullswarm's
    own home, say). Without a git that answers, the folder is walked.
    """
    root = str(Path(cwd).resolve())
    taken_ns = clock_ns()
    tree = GitTree(root, run, environ)
    found = tree.find()
    is_git = found and (since is None or since.is_git)
    known, known_at_ns = (dict(since.entries), since.taken_ns) if since else ({}, 0)
    looker = Looker(root, Budget(marks.FOLDER_FILES), known, known_at_ns, tuple(left_out))
    entries, states = _git_entries(tree, looker) if is_git else ({}, {})
    if is_git and tree.failed:
        is_git = False
    if not is_git:
        looker = replace(looker, budget=Budget(marks.FOLDER_FILES))
        entries = _folder_entries(looker)
        states = _walked_states(entries, looker, tree, since)
    head = tree.head() if found else None
    committed, commits = _way_from(since, head, tree)
    for path in (*_inside(root, declared), *(since.entries if since else ()), *committed):
        if path not in entries:
            entries[path] = looker.entry(path)
    lost = since is not None and since.is_git and not is_git
    return TreeSnapshot(
        root,
        is_git,
        head if is_git else None,
        entries,
        taken_ns,
        states,
        committed,
        commits,
        truncated=looker.budget.spent or tree.cut or lost,
        unseen=(tree.failed or "git does not know the repository any more") if lost else "",
        root_id=_identity(root),
    )


def compare(before: TreeSnapshot, after: TreeSnapshot) -> DeliverableFacts:
    """Return what changed from ``before`` to ``after``, which was taken with ``since=before``.

    A file that was dirty before and is the same now did not change, even if it was committed in between.
    """
    if not after.root_id or (before.root_id and before.root_id != after.root_id):
        return DeliverableFacts(is_git=before.is_git, gone=True)
    created: set[str] = set()
    modified: set[str] = set()
    deleted: set[str] = set()
    only_ignored = True
    for path in {*before.entries, *after.entries}:
        old, new = before.entries.get(path), after.entries.get(path, MISSING)
        if old is None:
            old = _unseen(path, before, after)
        ignored = "!!" in (before.states.get(path), after.states.get(path))
        if old.same_as(new) or (ignored and old.same_size(new)):
            continue
        only_ignored = only_ignored and ignored
        group = deleted if new.kind == "missing" else created if old.kind == "missing" else modified
        group.add(path)
    return DeliverableFacts(
        created=_shown(created),
        modified=_shown(modified),
        deleted=_shown(deleted),
        commits=after.commits,
        head_moved=before.head != after.head and after.is_git,
        is_git=after.is_git,
        truncated=before.truncated or after.truncated,
        unseen=after.unseen,
        only_ignored=only_ignored and bool(created or modified or deleted) and not after.commits,
    )


def attribute(
    facts: DeliverableFacts, *, cwd: str, overlapped: bool, edits: Iterable[str] = (), declared: Iterable[str] = ()
) -> DeliverableFacts:
    """Leave only the worker's own changes where other work overlapped with it in the same tree.

    ``edits`` are the paths of the worker's own edit events, ``declared`` the files that its task names. A commit in an
    overlapped tree is nobody's in particular and doesn't count.
    """
    if not overlapped:
        return facts
    own = {showable(path) for path in _inside(str(Path(cwd).resolve()), (*edits, *declared))}

    def mine(paths: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(path for path in paths if path in own)

    kept = replace(
        facts, created=mine(facts.created), modified=mine(facts.modified), deleted=mine(facts.deleted), commits=()
    )
    rest = len(facts.changed) - len(kept.changed) + len(facts.commits)
    return replace(kept, attribution="shared", unattributed=rest)


def _unseen(path: str, before: TreeSnapshot, after: TreeSnapshot) -> Entry:
    """Return what a path without an earlier entry was: missing, as it was committed, or the same as now."""
    new = after.entries[path]
    older = new.kind != "missing" and new.ctime_ns < before.taken_ns - marks.RACY_NS
    if older and (before.truncated or after.unseen):
        return new
    if not before.is_git:
        return MISSING
    state = after.committed.get(path) or after.states.get(path, "")
    if not state:
        return new
    return MISSING if state in ("??", "!!") or state.startswith("A") else _AS_COMMITTED


def _git_entries(tree: GitTree, looker: Looker) -> tuple[dict[str, Entry], dict[str, str]]:
    entries: dict[str, Entry] = {}
    states: dict[str, str] = {}

    def add(path: str, state: str) -> None:
        largest = {"largest": marks.HASHED_BYTES} if state == "!!" else {}
        entries[path], states[path] = looker.entry(path, **largest), state

    def add_folder(folder: str, state: str, names: frozenset[str], suffixes: tuple[str, ...]) -> None:
        largest = {"largest": marks.HASHED_BYTES} if state == "!!" else {}
        for path, entry in looker.walk(folder.rstrip("/"), names=names, suffixes=suffixes, **largest):
            entries[path], states[path] = entry, state

    for state, path in tree.status():
        if not path.endswith("/"):
            if not _is_cache(path) or state != "??":
                add(path, state)
            if entries.get(path, MISSING).kind == "folder":
                add_folder(path, "??", marks.CACHE_NAMES, marks.CACHE_SUFFIXES)
        elif not _is_cache(path):
            add_folder(path, state, marks.CACHE_NAMES, marks.CACHE_SUFFIXES)
    for path, head in tree.submodules().items():
        add_folder(path, "??", marks.CACHE_NAMES, marks.CACHE_SUFFIXES)
        entries[path], states[path] = Entry("folder", digest=head), "M"
    looker.budget.files = marks.IGNORED_FILES
    names, suffixes = marks.CACHE_NAMES | marks.BUILD_NAMES, marks.CACHE_SUFFIXES + marks.BUILD_SUFFIXES
    for path in tree.ignored():
        if _is_among(path, names, suffixes):
            continue
        if path.endswith("/"):
            add_folder(path, "!!", names, suffixes)
        elif looker.budget.take_file():
            add(path, "!!")
    for path in [
        path for path in entries if f"{looker.root}/{path}".startswith(tuple(f"{p}/" for p in looker.left_out))
    ]:
        del entries[path]
    return entries, states


def _folder_entries(looker: Looker) -> dict[str, Entry]:
    return dict(looker.walk("", names=marks.CACHE_NAMES, suffixes=marks.CACHE_SUFFIXES))


def _walked_states(
    entries: dict[str, Entry], looker: Looker, tree: GitTree, since: TreeSnapshot | None
) -> dict[str, str]:
    """Return what the earlier commit knew of the walked files, and add those of it that are gone.

    Only for a tree whose git answered earlier and fails now: its index may be spoiled while its commits are not.
    """
    if since is None or not since.is_git or not tree.failed:
        return {}
    committed = {path for _, path in tree.changed_between(None, since.head)} if since.head else set()
    gone = {path: MISSING for path in committed - entries.keys() if looker.entry(path) == MISSING}
    entries.update(gone)
    known = bool(committed) or not since.head
    return {path: "M" if path in committed or not known else "??" for path in entries}


def _identity(root: str) -> tuple[int, ...]:
    try:
        found = Path(root).stat()
    except OSError:
        return ()
    return found.st_dev, found.st_ino


def _way_from(since: TreeSnapshot | None, head: str | None, tree: GitTree) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the paths that differ between the earlier commit and ``head``, with A, M or D, and the commits made."""
    if since is None or head is None or head == since.head:
        return {}, ()
    # A folder that became a repository was walked both times: its files are known without git.
    committed = {path: state for state, path in tree.changed_between(since.head, head)} if since.is_git else {}
    return committed, tree.commits_made(since.head, head, since_sec=since.taken_ns / _NS)


def _is_cache(path: str) -> bool:
    return _is_among(path, marks.CACHE_NAMES, marks.CACHE_SUFFIXES)


def _is_among(path: str, names: frozenset[str], suffixes: tuple[str, ...]) -> bool:
    parts = path.rstrip("/").split("/")
    return any(part in names or part.endswith(suffixes) for part in parts)


def _inside(root: str, paths: Iterable[str]) -> list[str]:
    """Return ``paths`` relative to ``root``, without those that lie elsewhere."""
    found = []
    for path in paths:
        full = posixpath.normpath(path if path.startswith("/") else f"{root}/{path}")
        if full.startswith(f"{root}/") and "\0" not in path:
            found.append(full[len(root) + 1 :])
            continue
        real = str(Path(full).parent.resolve() / posixpath.basename(full)) if "\0" not in path else ""
        if real.startswith(f"{root}/"):
            found.append(real[len(root) + 1 :])
    return found


def _shown(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(showable(path) for path in paths))


def showable(path: str) -> str:
    """Return a file name as text that can be printed and stored: bytes that are no UTF-8 become escapes."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


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
