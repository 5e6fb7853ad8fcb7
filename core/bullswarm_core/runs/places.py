"""Where an attempt works: in the person's tree, or in a worktree of its own. Nothing is looked up but symbolic links."""

from __future__ import annotations

import os
from pathlib import Path

from bullswarm_core.home import Home
from bullswarm_core.runs.folder import RunFolder
from bullswarm_core.runs.state import RunState
from bullswarm_core.workers.tree import tree_of

WORKTREES = "workspaces"


def is_apart(state: RunState, step_id: str) -> bool:
    """Tell whether the step works in a worktree of its own."""
    if state.is_single or state.created.options.get("isolation") != "worktree":
        return False
    return state.program.step(step_id).lane != "analyze"


def tree_written(home: Home, state: RunState, step_id: str, *, ordinal: int) -> str:
    """Return the real path of the tree that an attempt works in: its own worktree, else the one around the run's folder."""
    cwd = state.created.cwd
    if not is_apart(state, step_id):
        return tree_of(cwd)
    folder = RunFolder.of(home, state.created.run_id)
    return os.path.realpath(folder.path / WORKTREES / folder.attempt(step_id, ordinal).id)


def place_in(tree: str, cwd: str) -> str:
    """Return the folder in another tree of the same repository that is what ``cwd`` is in its own."""
    return os.path.normpath(os.path.join(tree, os.path.relpath(os.path.realpath(cwd), tree_of(cwd))))  # noqa: PTH118


def worktree_of_prior(cwd: str, *, tree: str, prior: str) -> str:
    """Return where the attempt before worked, whose tree was ``prior``, given where this one does, in ``tree``."""
    return str(Path(prior, os.path.relpath(cwd, tree))) if prior != tree else cwd
