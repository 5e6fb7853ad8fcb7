"""Which folder a run works in: not its name, which anything may be moved to, but the folder itself and its repository.

A run may wait for days between two steps. Whatever stands in its place by then is not what the next step is about.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.errors import RunConflictError
from bullswarm_core.process.identity import boot_id
from bullswarm_core.runs.events import Document
from bullswarm_core.runs.state import AttemptState, RunState
from bullswarm_core.store.database import on_network_file_system
from bullswarm_core.wire import from_wire


@dataclass(frozen=True, slots=True)
class Workspace:
    """A folder at one moment: device and inode of it and of the ``.git`` of the repository around it, empty without one.

    Numbers of devices hold within one ``boot``. Where inodes don't hold at all (network file systems), and of a linked work
    tree, whose ``.git`` is a file that git may write anew, they are zero.
    """

    folder: tuple[int, ...]
    repository: tuple[int, ...] = ()
    boot: str = ""


def workspace_of(cwd: str) -> Workspace | None:
    """Return which folder ``cwd`` is now; None where there is none."""
    found = _stat_of(Path(os.path.realpath(cwd)))
    if found is None:
        return None
    held = not on_network_file_system(Path(cwd, "."))
    return Workspace(_numbers(found) if held else (0, 0), _repository(cwd, held=held), boot_id())


def replaced(known: Sequence[Workspace], now: Workspace, *, writer_at_work: bool) -> str | None:
    """Say in what ``now`` is none of the ``known`` workspaces; None where it is one of them, or none is known.

    With ``writer_at_work`` a repository may come and go: making one is work.
    """
    same = [each for each in known if _same(each.folder, now.folder, each, now)]
    if known and not same:
        return "another folder is in its place"
    if not same or writer_at_work or any(_same(each.repository, now.repository, each, now) for each in same):
        return None
    if not now.repository:
        return "it is no git repository any more"
    return "another git repository is in it" if any(each.repository for each in same) else "it became a git repository"


def refuse_another(state: RunState, step_id: str, now: Workspace | None) -> None:
    """Raise RunConflictError where ``now`` is not the folder that the run began in, or that a step of it left.

    A person who begins a step anew after such a refusal means the folder that it named.
    """
    if now is None:
        return
    attempts = [(name, each) for name, step in state.steps.items() for each in step.attempts]
    seen = [state.created.workspace, *(document for _, each in attempts for document in _seen(each))]
    busy = any(each.running and each.launched and each.picked.lane != "analyze" for _, each in attempts)
    why = replaced(_known(seen), now, writer_at_work=busy)
    if why is not None:
        rerun = f"bullswarm workflow step rerun {state.created.short_id} {step_id}"
        again = "start the work again" if state.is_single else f"begin the step anew: {rerun}"
        raise RunConflictError(
            f"{state.created.cwd} is not what it was when the run last worked there: {why}",
            hint=f"put back what was there, or, if this is the folder that you mean, {again}",
        )


def left_in(launched: Workspace | None, now: Workspace | None) -> Workspace | None:
    """Return what an attempt leaves as its workspace: nothing where it ended in another folder than it was launched in."""
    if launched is None or now is None or not _same(launched.folder, now.folder, launched, now):
        return None
    return now


def read_workspace(document: Document | None) -> Workspace | None:
    """Read a workspace as an event holds it; None for none, and for one that can't be read."""
    try:
        return None if document is None else from_wire(Workspace, dict(document))
    except (ValueError, TypeError):
        return None


def _seen(attempt: AttemptState) -> Iterable[Document | None]:
    yield attempt.launched.launch.workspace if attempt.launched else None
    yield attempt.finished.workspace if attempt.finished else None


def _known(documents: Iterable[Document | None]) -> list[Workspace]:
    return [known for document in documents if (known := read_workspace(document)) is not None]


def _same(one: tuple[int, ...], other: tuple[int, ...], of_one: Workspace, of_other: Workspace) -> bool:
    if not one or not other:
        return one == other
    return one[1] == other[1] and (of_one.boot != of_other.boot or one[0] == other[0])


def _repository(cwd: str, *, held: bool) -> tuple[int, ...]:
    """Look for the repository around a folder as git does, which takes no ``.git`` without a HEAD for one."""
    start = Path(cwd).resolve()
    for place in (start, *start.parents):
        found = _stat_of(place / ".git")
        if found is None or (stat.S_ISDIR(found.st_mode) and _stat_of(place / ".git/HEAD") is None):
            continue
        return _numbers(found) if held and stat.S_ISDIR(found.st_mode) else (0, 0)
    return ()


def _stat_of(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except OSError:
        return None


def _numbers(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino
