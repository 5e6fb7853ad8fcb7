"""A writing step's own worktree in the life of its attempt: made before the start, merged back after the end.

Rule: docs/design/runs.md, "Isolation"; every other step works in the person's tree.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from bullswarm_core._dataclasses import dataclass, field, replace
from bullswarm_core.attempts.conclusion import Conclusion
from bullswarm_core.attempts.preflight import obstacles
from bullswarm_core.errors import BullswarmError, WorkerStartError
from bullswarm_core.judging.model import Note
from bullswarm_core.program.model import Step, files_of
from bullswarm_core.runs.events import AttemptPicked
from bullswarm_core.runs.run_files import RunFolder
from bullswarm_core.runs.state import RunState
from bullswarm_core.runs.task import is_apart, place_in
from bullswarm_core.runs.workspace import Workspace, replaced, workspace_of
from bullswarm_core.store.home import Home
from bullswarm_core.trees.worktree import Merged, Worktree, merged_to_json, remove_spent

_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Apart:
    """The worktree of one attempt of ``step``; ``cwd`` is the folder that it works in, ``origin`` what that is made of."""

    worktree: Worktree
    step: Step
    cwd: str
    origin: str
    home: Home
    environ: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, home: Home, environ: Mapping[str, str], state: RunState, picked: AttemptPicked) -> Apart | None:
        """Return the worktree of an attempt, whether or not it is there yet; None for one that needs none."""
        if not is_apart(state, picked.step):
            return None
        folder = RunFolder.of(home, state.created.run_id)
        worktree = Worktree(folder.path, folder.attempt(picked.step, picked.ordinal).id, environ)
        cwd = place_in(os.path.realpath(worktree.path), state.created.cwd)
        return cls(worktree, state.program.step(picked.step), cwd, state.created.cwd, home, environ)

    def make(self, state: RunState) -> None:
        """Make the worktree, and clear away what a kernel that was killed left of spent ones.

        Raises WorkerStartError when it can't be made, StorageError for a full disk.
        """
        remove_spent(self.worktree.run_folder, self.environ, only=_over(state))
        files = tuple(files_of(self.step))
        if not files and self.step.deliverable.type != "outward":
            raise WorkerStartError(
                f"step {self.step.id} declares no files, and only declared files come back from its worktree",
                hint="declare them, or run it without --isolation worktree",
            )
        if not self.worktree.is_ready:
            for obstacle in obstacles(self.origin, files, home=self.home.root, environ=self.environ):
                raise WorkerStartError(obstacle)
        self.worktree.make(self.origin)

    def settle(self, conclusion: Conclusion, launched: Workspace | None) -> Conclusion:
        """Merge what a good attempt made, and tell where the work of another stays; it may be called again after a kill.

        ``launched`` is the person's folder as it was when the attempt was launched: nothing is merged into another one.
        """
        if not os.path.lexists(self.worktree.path):
            return conclusion
        now = workspace_of(self.origin)
        if launched is not None and now is not None and conclusion.judgement.ok:
            conclusion = _unless(replaced([launched], now, writer_at_work=False), conclusion, self)
        try:
            if conclusion.judgement.ok:
                return _after(conclusion, self.worktree.merge_back(tuple(files_of(self.step))))
        except BullswarmError as error:
            why = f"its files could not be merged: {error} · they stay in {self.worktree.path}"
            failed = replace(conclusion.judgement, ok=False, failure_kind="runtime", why=why)
            return replace(conclusion, judgement=replace(failed, content_usable_despite_exit=True))
        return _after(conclusion, Merged(str(self.worktree.path), left=self.worktree.left()))

    def clear(self) -> None:
        """Remove the worktree if nothing in it would be lost; a later start of the run's tries again what fails."""
        self.worktree.remove_if_spent()


def _unless(why: str | None, conclusion: Conclusion, apart: Apart) -> Conclusion:
    """Return the conclusion, failed where ``why`` says that the folder to merge into is another by now."""
    if why is None:
        return conclusion
    failed = replace(
        conclusion.judgement,
        ok=False,
        failure_kind="ownership-conflict",
        why=f"nothing was merged: {apart.origin} is not what it was when the work began: {why}",
        content_usable_despite_exit=True,
    )
    return replace(conclusion, judgement=failed)


def _over(state: RunState) -> frozenset[str]:
    """Name the attempts that are surely over: a state that was read a moment ago lacks only newer ones."""
    attempts = [each for step in state.steps.values() for each in step.attempts if each.finished is not None]
    return frozenset(f"{each.picked.step}-{each.picked.ordinal}" for each in attempts)


def _after(conclusion: Conclusion, merged: Merged) -> Conclusion:
    parts = {**conclusion.parts, "worktree": merged_to_json(merged)}
    judgement = conclusion.judgement
    if merged.conflicts:
        judgement = replace(
            judgement,
            ok=False,
            failure_kind="ownership-conflict",
            why=_conflict(merged),
            content_usable_despite_exit=True,
        )
    elif merged.left:
        judgement = replace(judgement, notes=(*judgement.notes, Note("worktree-kept", _kept(merged))))
    return replace(conclusion, judgement=judgement, parts=parts)


def _conflict(merged: Merged) -> str:
    first, why = next(iter(merged.conflicts.items()))
    more = len(merged.conflicts) - 1
    also = f" (and {more} more)" if more else ""
    return f"nothing was merged: {first}: {why}{also} · the work stays in {merged.path}"


def _kept(merged: Merged) -> str:
    named = ", ".join(path.encode("utf-8", "backslashreplace").decode() for path in merged.left[:_MOST_NAMED])
    more = len(merged.left) - _MOST_NAMED
    return f"not merged, and kept in {merged.path}: {named}" + (f" and {more} more" if more > 0 else "")
