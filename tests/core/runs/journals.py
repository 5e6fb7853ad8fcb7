"""Journals made by hand: events of a program in order, folded as a kernel would fold them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from bullswarm_core.program.model import PROGRAM_VERSION
from bullswarm_core.runs.attempt_result import JudgementRecord, LaunchRecord, MetaRecord
from bullswarm_core.runs.events import AttemptFinished, AttemptLaunched, AttemptPicked, Event, Payload, RunCreated
from bullswarm_core.runs.fold import apply
from bullswarm_core.runs.state import RunState

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def document(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a program document; a step without a prompt gets one."""
    return {"schemaVersion": PROGRAM_VERSION, "steps": [{"prompt": "Do it.", **step} for step in steps], **more}


class Written:
    """A journal that is written event by event, a second after the other unless time is moved."""

    def __init__(self, program: dict[str, Any], *, kind: str = "workflow", **options: Any) -> None:
        self.now = START
        self.events: list[Event] = []
        self._state: RunState | None = None
        self.write(
            RunCreated(
                run_id="wf-1", short_id="abcdef", kind=kind, goal="g", cwd="/project", program=program, options=options
            )
        )

    @property
    def state(self) -> RunState:
        assert self._state is not None
        return self._state

    def write(self, *payloads: Payload) -> RunState:
        for payload in payloads:
            self.now += timedelta(seconds=1)
            event = Event("wf-1", len(self.events) + 1, self.now, payload.type, payload)
            self.events.append(event)
            self._state = apply(self._state, event)
        return self.state

    def pick(self, step: str, *, pool: str = "codex", retry_how: str | None = None, lane: str = "analyze") -> int:
        """Write the pick and the launch of the step's next attempt; return its ordinal."""
        known = self.state.steps[step]
        ordinal = len(known.attempts) + 1
        picked = AttemptPicked(
            step=step, ordinal=ordinal, pool=pool, provider=pool.partition(":")[0], model=None, reasoning=None, lane=lane,
            effort="medium", reason="because", decision={}, booking=1, tree="/project", generation=known.generation,
            retry_how=retry_how,
        )  # fmt: skip
        self.write(picked, AttemptLaunched(step=step, ordinal=ordinal, keeper={}, launch=LaunchRecord()))
        return ordinal

    def end(
        self, step: str, kind: str | None = None, *, meta: dict[str, Any] | None = None, **judgement: Any
    ) -> RunState:
        """Write the end of the step's running attempt: well, or with a failure kind."""
        running = self.state.steps[step].running
        assert running is not None
        return self.write(
            AttemptFinished(
                step=step, ordinal=running.picked.ordinal, ok=kind is None, why=kind or "done", failure_kind=kind,
                judgement=JudgementRecord.from_wire(judgement), meta=MetaRecord.from_wire(meta or {}),
            )
        )  # fmt: skip

    def run(self, step: str, kind: str | None = None, *, pool: str = "codex", **more: Any) -> RunState:
        """Write a whole attempt."""
        self.pick(step, pool=pool, retry_how=more.pop("retry_how", None))
        return self.end(step, kind, **more)
