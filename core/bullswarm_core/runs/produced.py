"""What an attempt, and the step that it belongs to, left behind in the tree: gathered from the snapshots of its attempts."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path

from bullswarm_core.judging.deliverable import DeliverableFacts, TreeSnapshot, attribute
from bullswarm_core.judging.fingerprint import FOLDER_FILES, HASHED_BYTES, MISSING, Budget, Looker
from bullswarm_core.judging.wanted import NamedFile, Wanted, is_there, missing_files
from bullswarm_core.program.model import Step, files_of
from bullswarm_core.runs.checked_tree import with_targets
from bullswarm_core.runs.folder import AttemptFiles
from bullswarm_core.runs.services import Services
from bullswarm_core.runs.snapshots import changes_from, recall
from bullswarm_core.runs.state import AttemptState, RunState
from bullswarm_core.values import dataclass, replace


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


def named_files(step: Step | None, cwd: str) -> tuple[str, ...]:
    """Return every file that a step names, and what the links among them lead to."""
    return with_targets(cwd, tuple(files_of(step))) if step is not None else ()


def earlier_attempts(state: RunState, step: str, *, ordinal: int, generation: int) -> tuple[AttemptState, ...]:
    """Return the attempts before this one that count with it: never those of an earlier round or of before a rerun."""
    known = state.steps[step].attempts
    return tuple(each for each in known if each.picked.generation == generation and each.picked.ordinal < ordinal)


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
    earlier: Sequence[AttemptState] = (),
    started_at: datetime,
) -> Produced:
    """Return what the attempt left behind; what an earlier attempt of the step did counts where this one found it done."""
    own = _since(tree, files, step, started_at, tree.edits)
    if step is None:
        return Produced(own[0], own[0])
    wanted = _wanted(step, tree.cwd, own[1])
    if not wanted.on_disk or not earlier or is_there(wanted, own[0]):
        return Produced(own[0], own[0], wanted)
    first = earlier[0]
    edits = (*tree.edits, *(name for each in earlier for name in _changed_by(each)))
    before = AttemptFiles(files.folder, files.step, first.picked.ordinal)
    whole = _since(tree, before, step, first.launched_at or first.picked_at, edits)
    over_all = replace(_wanted(step, tree.cwd, whole[1]), carried=True)
    if not is_there(over_all, whole[0]):
        return Produced(own[0], own[0], wanted)
    return Produced(own[0], whole[0], over_all)


def _since(
    tree: Tree, files: AttemptFiles, step: Step | None, began: datetime, edits: Iterable[str]
) -> tuple[DeliverableFacts | None, TreeSnapshot | None]:
    before = recall(files.before)
    if before is None:
        return None, None
    declared = (*edits, *named_files(step, tree.cwd))
    environ, home = dict(tree.services.environ), tree.services.home
    facts = changes_from(before, tree.cwd, home=home, environ=environ, declared=declared)
    named = files_of(step) if step is not None else ()
    overlapped = tree.others_since(began)
    return attribute(facts, cwd=tree.cwd, overlapped=overlapped, edits=edits, declared=named), before


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


def _changed_by(attempt: AttemptState) -> tuple[str, ...]:
    """Return the files that an attempt was found to have changed."""
    names = attempt.finished.judgement.get("changedFiles") if attempt.finished else None
    return tuple(str(name) for name in names or ())
