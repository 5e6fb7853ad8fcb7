"""The verdict over the whole table: how it ended x what the stream said x what was left, and what can never come out."""

import itertools
from dataclasses import replace
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st
from tests.core.judging.cases import (
    ANSWER,
    AUTH,
    BOOM,
    CHANGED,
    COMMITTED,
    DENIED,
    GOOD,
    NOTHING,
    NOW,
    PLAN,
    QUOTA,
    THROTTLE,
    verdict,
)

from bullswarm_core.judging.model import FailureKind, JudgeInput
from bullswarm_core.judging.verdict import Judgement, judge
from bullswarm_core.pools import LANES, Lane
from bullswarm_core.quota.notice import Notice
from bullswarm_core.streams.facts import Denial, EndReason, ExitFacts, ProviderError, StreamFacts
from bullswarm_core.trees.snapshot import DeliverableFacts

REASONS: tuple[EndReason, ...] = get_args(EndReason)
DELIVERABLES = (None, NOTHING, CHANGED, COMMITTED)
ANSWERS = ("", "42", ANSWER, "I'll look at it now.", "Which one?")
ENDS: list[tuple[EndReason, int | None]] = [("exited", code) for code in (0, 1, 143, None)] + [
    (r, c) for r in REASONS[1:] for c in (0, None)
]
LAST_WORDS = ((True, False), (True, True), (False, False))
CELLS = list(
    itertools.product(LANES[:2], ENDS, LAST_WORDS, (None, NOTHING, CHANGED), ("", ANSWER, *ANSWERS[3:]),
                      (None, QUOTA, AUTH), ((), DENIED), ((), (BOOM,)))
)  # fmt: skip


def _invariants(facts: JudgeInput, found: Judgement) -> None:
    stream, ended = facts.stream, facts.exit
    assert found.ok == (found.failure_kind is None)
    assert found.failure_kind is None or found.failure_kind in get_args(FailureKind)
    assert 0 < len(found.why) <= 300 and "\n" not in found.why
    assert (found.back_at is None) == (found.back_at_source is None)
    assert not (found.ok and found.content_usable_despite_exit)
    if found.ok:
        if facts.lane == "analyze":
            assert stream.answer.strip()
        else:
            assert facts.deliverable is not None and facts.deliverable.produced
        assert not stream.terminal_error
        assert ended.reason not in ("stopped", "lost", "never-started")
        assert ended.reason == "exited" or stream.terminal
        assert ended.reason != "exited" or ended.exit_code == 0
        assert found.back_at is None
    if ended.reason == "stopped":
        assert found.failure_kind == "cancelled"
    if ended.reason == "never-started":
        assert found.failure_kind == "process"
    if found.failure_kind == "denied":
        missing = not stream.answer.strip() if facts.lane == "analyze" else not (facts.deliverable or NOTHING).produced
        assert missing and stream.denials
    if found.failure_kind in ("quota", "throttle", "auth", "model-not-in-plan"):
        assert facts.notice is not None
    if found.failure_kind == "timeout":
        assert ended.reason == "wall"
    if found.failure_kind == "stalled":
        assert ended.reason in ("startup", "silence", "no-progress")


def test_every_cell_of_the_table() -> None:
    seen = set()
    for lane, (reason, code), (terminal, error), made, answer, notice, denials, errors in CELLS:
        stream = StreamFacts(
            answer=answer, terminal=terminal, terminal_error=terminal and error, denials=denials, errors=errors
        )
        facts = JudgeInput(lane=lane, exit=ExitFacts(reason, exit_code=code), stream=stream, now=NOW, deliverable=made,
                           notice=notice)  # fmt: skip
        found = judge(facts)
        _invariants(facts, found)
        seen.add(found.failure_kind)
    assert seen == {None, "cancelled", "process", "quota", "auth", "provider", "stalled", "timeout", "interrupted",
                    "denied", "not-produced", "semantic", "needs-input"}  # fmt: skip


def test_a_pool_that_is_paid_by_key_hears_of_its_key_and_not_of_a_sign_in() -> None:
    by_account, by_key = verdict(code=1, notice=AUTH), verdict(code=1, notice=AUTH, by_key=True)
    assert (by_account.failure_kind, by_key.failure_kind) == ("auth", "auth")
    assert by_account.why.startswith("sign-in failed: ") and "sign in with that CLI" in by_account.why
    assert by_key.why.startswith("API key refused: ") and "401" in by_key.why
    assert "sign in" not in by_key.why


@given(
    lane=st.sampled_from(LANES),
    ended=st.builds(
        ExitFacts, reason=st.sampled_from(REASONS), exit_code=st.none() | st.integers(-64, 255),
        signal=st.none() | st.sampled_from(["SIGTERM", "SIGKILL"]), wall_sec=st.floats(0, 1e6),
        stderr_tail=st.text(max_size=80),
    ),
    answer=st.text(max_size=200), worked=st.booleans(), after=st.booleans(), plain=st.booleans(), terminal=st.booleans(),
    error=st.booleans(), stop=st.none() | st.text(max_size=12), made=st.sampled_from(DELIVERABLES),
    notice=st.sampled_from([None, QUOTA, THROTTLE, AUTH, PLAN]), denials=st.sampled_from([(), DENIED]),
    errors=st.lists(st.builds(ProviderError, text=st.text(max_size=80), status=st.none() | st.integers(100, 599),
                              fatal=st.booleans(), warning=st.booleans()), max_size=3),
)  # fmt: skip
def test_any_facts_get_one_verdict(
    lane: Lane, ended: ExitFacts, answer: str, worked: bool, after: bool, plain: bool, terminal: bool, error: bool,
    stop: str | None, made: DeliverableFacts | None, notice: Notice | None, denials: tuple[Denial, ...],
    errors: list[ProviderError],
) -> None:  # fmt: skip
    stream = StreamFacts(answer=answer, worked=worked, answered_after_tools=after, event_stream=not plain,
                         terminal=terminal, terminal_error=error and terminal,
                         stop_reason=stop, denials=denials, errors=tuple(errors))  # fmt: skip
    facts = JudgeInput(lane=lane, exit=ended, stream=stream, now=NOW, deliverable=made, notice=notice)
    found = judge(facts)
    _invariants(facts, found)
    assert found == judge(facts)


@given(
    code=st.integers(1, 128) | st.integers(193, 255),
    answer=st.sampled_from(ANSWERS),
    made=st.sampled_from(DELIVERABLES),
)
def test_a_bad_exit_is_never_ok_and_a_good_one_never_enough(
    code: int, answer: str, made: DeliverableFacts | None
) -> None:
    for lane in LANES:
        stream = replace(GOOD, answer=answer)
        bad = verdict(lane, code=code, stream=stream, deliverable=made)
        assert not bad.ok
        good = verdict(lane, code=0, stream=stream, deliverable=made)
        assert good.ok == bad.content_usable_despite_exit
