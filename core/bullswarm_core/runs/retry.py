"""What follows a failed attempt: one more try, and where, or nothing. A pure rule
(docs/design/runs.md, "The failure rule").

Nothing waits for a pool: a usage limit goes back to the caller at once. A transient rate limit backs off on the same pool,
at most twice. Faults of a process are tried again elsewhere, faults of the work on the same pool with the failure attached,
once for each step unless more was asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.program.model import Step
from bullswarm_core.runs.state import AttemptState

RetryHow = Literal["another-pool", "same-pool", "back-off", "re-pick", "anew"]

# Ended for reasons that another pool may not have.
PROCESS_KINDS = frozenset(
    {"process", "provider", "stalled", "interrupted", "timeout", "denied", "auth", "model-not-in-plan"}
)
# The pool did its part and the work is not right: the same pool gets it back with what was wrong.
GATE_KINDS = frozenset({"not-produced", "failed-evidence", "schema", "semantic"})
# The same pool would only refuse again.
NEVER_THE_SAME_POOL = frozenset({"auth", "model-not-in-plan"})
# Somebody ended the attempt, so that it counts for nothing and the step is still to be done.
NOT_A_FAILURE = frozenset({"paused", "restarted", "superseded"})
BACK_OFFS = (timedelta(seconds=20), timedelta(seconds=60))
LONGEST_BACK_OFF = timedelta(minutes=2)
MOST_RE_PICKS = 3
DEFAULT_RETRIES = 1


@dataclass(frozen=True, slots=True)
class NextTry:
    """One more attempt: ``how``, where, and not before when.

    ``pool`` pins it, ``avoid`` are pools that it is kept from; with ``alone_is_fine`` the avoided ones may take it when no
    other can. ``avoid_group_of`` are pools whose sign-in is shared with those to be avoided.
    """

    how: RetryHow
    pool: str | None = None
    avoid: tuple[str, ...] = ()
    avoid_group_of: tuple[str, ...] = ()
    alone_is_fine: bool = False
    not_before: datetime | None = None


def next_try(step: Step, attempts: Sequence[AttemptState], *, retries: int) -> NextTry | None:
    """Return what follows the last of ``attempts``, those of the step's present generation; None gives it back.

    ``retries`` is how many automatic retries the run allows; the step's own word goes before it.
    """
    last = attempts[-1]
    finished, kind = last.finished, last.finished.failure_kind if last.finished else None
    if finished is None or finished.ok or kind is None:
        return None
    if kind in NOT_A_FAILURE:
        return NextTry("anew")
    if any(may_have_acted(step, each) for each in attempts):
        return None  # acting twice is worse than asking
    if kind == "throttle":
        return _back_off(last, attempts)
    if kind in NEVER_THE_SAME_POOL and _refused_at_start(last) and _count(attempts, "re-pick") < MOST_RE_PICKS:
        return NextTry("re-pick", avoid=_pools(attempts), avoid_group_of=_shared(kind, last))
    allowed = retries if step.retry is None else step.retry
    if _count(attempts, "another-pool") + _count(attempts, "same-pool") >= allowed:
        return None
    if kind in GATE_KINDS:
        return None if _not_the_workers_fault(last) else NextTry("same-pool", pool=last.picked.pool)
    if kind in PROCESS_KINDS:
        return NextTry(
            "another-pool",
            avoid=_pools(attempts),
            avoid_group_of=_shared(kind, last),
            alone_is_fine=kind not in NEVER_THE_SAME_POOL,
        )
    return None


def may_have_acted(step: Step, attempt: AttemptState) -> bool:
    """Tell whether an attempt may have changed something outside of this machine: of an outward step, with a worker started."""
    never = attempt.finished is not None and attempt.finished.meta.end_reason == "never-started"
    return step.deliverable.type == "outward" and attempt.launched is not None and not never


def why_no_retry(attempts: Sequence[AttemptState]) -> str | None:
    """Say in words why a failure of the work was not tried again, where a retry was left and would have been in vain."""
    finished = attempts[-1].finished if attempts else None
    if finished is None or finished.failure_kind not in GATE_KINDS or _count(attempts, "same-pool"):
        return None
    blockers = _outside(attempts[-1])
    return f"retry skipped: the worker reported a blocker outside this step: {blockers[0]}" if blockers else None


def _back_off(last: AttemptState, attempts: Sequence[AttemptState]) -> NextTry | None:
    used = _count(attempts, "back-off")
    if used >= len(BACK_OFFS) or last.finished_at is None or last.finished is None:
        return None
    named = last.finished.judgement.back_at
    wait = BACK_OFFS[used]
    if named is not None:
        wait = max(timedelta(0), named - last.finished_at)
        if wait > LONGEST_BACK_OFF:
            return None
    return NextTry("back-off", pool=last.picked.pool, not_before=last.finished_at + wait)


def _refused_at_start(attempt: AttemptState) -> bool:
    """Whether the pool refused before any work was done: that is no try of the work."""
    return attempt.finished is not None and attempt.finished.meta.worked is False


def _not_the_workers_fault(attempt: AttemptState) -> bool:
    """Whether trying again can't help: the check itself is wrong, or what is missing lies outside of the step."""
    results = attempt.finished.judgement.evidence_results if attempt.finished else None
    faults = [item.fault for item in results or () if item.status == "failed"]
    return "check" in faults or bool(_outside(attempt))


def _outside(attempt: AttemptState) -> tuple[str, ...]:
    return attempt.finished.judgement.outside_blockers if attempt.finished else ()


def _count(attempts: Sequence[AttemptState], how: RetryHow) -> int:
    return sum(attempt.picked.retry_how == how for attempt in attempts)


def _pools(attempts: Sequence[AttemptState]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(attempt.picked.pool for attempt in attempts))


def _shared(kind: str, last: AttemptState) -> tuple[str, ...]:
    """A sign-in that is dead for one pool is dead for every pool that shares it."""
    return (last.picked.pool,) if kind == "auth" else ()
