"""How a run stands, as one document: what `runs show` prints, and what the MCP server answers with."""

from __future__ import annotations

from typing import Any

from bullswarm_core.home import Home
from bullswarm_core.labels import Labels
from bullswarm_core.runs.folder import RunFolder
from bullswarm_core.runs.liveness import KernelState, kernel_state
from bullswarm_core.runs.services import utc_now
from bullswarm_core.runs.state import RunState
from bullswarm_core.runs.verdict_document import running_document
from bullswarm_core.runs.workflow_result import running_result


def document_of(home: Home, state: RunState) -> dict[str, Any]:
    """Return a run's verdict or result, or how far it is."""
    if state.finished is not None:
        return dict(state.finished.verdict)
    labels = Labels.load(home)
    alive = kernel_state(home, state, now=utc_now()) is not KernelState.GONE
    if not state.is_single:
        folder = RunFolder.of(home, state.created.run_id)
        return running_result(state, kernel_alive=alive, folder=folder, label=labels.shown)
    step = next(iter(state.steps.values()))
    label = labels.shown(step.current.picked.pool) if step.current else None
    return running_document(state, kernel_alive=alive, label=label)
