"""What a person may do at a place of a run: each action with the command that it equals, and the wish that it carries out.

The commands are those of ``core.runs.commands``, the wishes those of ``core.runs.intents``: the dashboard decides nothing.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.errors import BullswarmError
from bullswarm_core.pools.labels import Labels
from bullswarm_core.reports import commands
from bullswarm_core.reports.handback import left_pools
from bullswarm_core.reports.needs_you import needs_you
from bullswarm_core.runs import intents
from bullswarm_core.runs.intents import Wish
from bullswarm_core.runs.run_files import RunFolder
from bullswarm_core.runs.state import RunState, StepState
from bullswarm_core.runs.status import NodeStatus

MORE_ROUNDS = 1
_WHO = "a person"


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do, by one ``key``.

    ``command`` does the same when it is typed; with ``asks`` it lacks the answer to that question. ``avoid`` are pools by id
    that a rerun is kept from. ``single`` says that the run has but one step, which takes no wishes. A ``take-over`` changes
    nothing: ``files`` are what the person goes on from.
    """

    name: str
    key: str
    title: str
    run_id: str
    node: str
    command: str
    asks: str | None = None
    avoid: tuple[str, ...] = ()
    rounds: int | None = None
    files: tuple[str, ...] = ()
    single: bool = False

    def command_with(self, answer: str) -> str:
        """Return the command with what the person answered."""
        if self.name != "accept":
            return self.command
        # An answer that begins like an option is none.
        joint = "=" if answer.startswith("-") else " "
        return self.command.replace(f" {shlex.quote(commands.REASON)}", f"{joint}{shlex.quote(answer)}")

    def wish(self, answer: str) -> Wish | None:
        """Return what is to happen to the run; None where nothing is."""
        if self.name == "rerun":
            return intents.rerun(self.node, avoid=self.avoid, by=_WHO)
        if self.name == "accept":
            return intents.accept(self.node, reason=answer, by=_WHO)
        if self.name == "continue":
            return intents.continue_node(self.node, rounds=self.rounds, by=_WHO)
        return intents.resume(by=_WHO) if self.name == "resume" else None


def actions_at(
    state: RunState, node: str, known: Mapping[str, NodeStatus], *, folder: RunFolder, labels: Labels
) -> list[Action]:
    """Return what may be done about a step, a gate or a loop as it stands."""
    if state.is_single or node not in known:
        return []
    if node in state.steps:
        return _of_step(state, state.steps[node], known[node], folder=folder, labels=labels)
    if known[node] != "waiting":
        return []
    run, rounds = state.created.short_id, MORE_ROUNDS if node in state.loops else None
    title = f"continue {node}" if rounds is None else f"give {node} {rounds} more round"
    command = commands.go_on(run, node, rounds=rounds)
    return [Action("continue", "c", title, state.created.run_id, node, command, rounds=rounds)]


def resume_of(state: RunState, status: str) -> Action | None:
    """Return how a run goes on that stands still, or that is over with something to try again; None where nothing is."""
    again = state.finished is not None and not state.is_single and _has_work(state)
    if status not in ("kernel-gone", "paused") and not again:
        return None
    run = state.created
    command = f"bullswarm runs resume {run.short_id}" if state.is_single else commands.resume(run.short_id)
    return Action("resume", "u", f"resume {run.short_id}", run.run_id, "", command, single=state.is_single)


def _has_work(state: RunState) -> bool:
    try:
        return bool(intents.resume(by=_WHO)(state))
    except BullswarmError:
        return False


def _of_step(
    state: RunState, step: StepState, status: NodeStatus, *, folder: RunFolder, labels: Labels
) -> list[Action]:
    if status not in ("failed", "cancelled"):
        return []
    run, run_id = state.created.short_id, state.created.run_id
    options = needs_you(state, step, folder=folder)["options"]
    # Elsewhere, where some pool was not tried; the document knows.
    avoid = left_pools(step)
    rerun = commands.rerun(run, step.id, avoid=[labels.typed(pool) for pool in avoid])
    title = f"rerun {step.id}" + (" elsewhere" if avoid else "")
    found = [
        Action("rerun", "r", title, run_id, step.id, rerun, avoid=avoid),
        Action(
            "accept", "a", f"accept {step.id}", run_id, step.id, commands.accept(run, step.id), asks=commands.REASON
        ),
    ]
    if "takeOver" in options:
        files = tuple(str(path) for path in options["takeOver"].values() if path)
        command = f"bullswarm runs result {run} --step {step.id}"
        found.append(Action("take-over", "o", f"take over {step.id}", run_id, step.id, command, files=files))
    return found
