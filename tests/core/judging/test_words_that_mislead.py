"""Words that were once taken for a fault of the provider, or hid one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.core.judging.cases import ANSWER, CHANGED, GOOD, NOW, verdict

import bullswarm_providers
from bullswarm_core._dataclasses import replace
from bullswarm_core.judging.limits import Reader, classify_notice
from bullswarm_core.pools.connector import Signatures
from bullswarm_core.streams.facts import ExitFacts, ProviderError, StreamFacts

FAILED = Reader(NOW, failed=True)
CONNECTORS = sorted(Path(bullswarm_providers.__file__).parent.glob("*/connector.json"))
LIMITS = [
    "Rate limit exceeded.",
    "429 Too Many Requests",
    "rate_limit_exceeded: slow down",
    "Rate limited (retry in 20s)",
]
SPENT = ["You've hit your usage limit.", "usage_credits_required: buy more", "Credit balance is too low"]


def signatures(connector: Path) -> Signatures:
    lists = json.loads(connector.read_text()).get("signatures", {})
    return Signatures(*(tuple(lists.get(name, ())) for name in ("auth", "quota", "throttle", "modelNotInPlan")))


@pytest.mark.parametrize("connector", CONNECTORS, ids=lambda path: path.parent.name)
def test_no_packaged_list_makes_a_limit_a_sign_in_failure(connector: Path) -> None:
    reader = Reader(NOW, signatures(connector), failed=True)
    for kind, lines in (("throttle", LIMITS), ("quota", SPENT)):
        for line in lines:
            found = classify_notice(line, reader)
            assert found is not None and found.kind == kind, (line, found)


@pytest.mark.parametrize("length", [10_000, 200_000])
def test_a_sentence_behind_an_endless_record_is_found(length: int) -> None:
    record = json.dumps({"type": "error", "message": "x" * length})
    for text in (f"{record}\n{SPENT[0]}", f"{record}\n{record}\n{SPENT[0]}\ngoodbye"):
        found = classify_notice(text, FAILED)
        assert found is not None and (found.kind, found.line) == ("quota", SPENT[0])


@pytest.mark.parametrize(
    "quoted",
    [
        '{"timeout": 30, "retries": 2}',
        "The client gave up with ETIMEDOUT: timeout of 30000 ms exceeded",
        "usage_credits_required",
        "You're out of usage credits · resets 6am",
        "The handler answers 401 Unauthorized where the token is invalid",
    ],
)
@pytest.mark.parametrize("lane", ["analyze", "build"])
def test_a_report_that_quotes_an_error_is_a_report(lane: str, quoted: str) -> None:
    said = f"{ANSWER}\n\n{quoted}\n\n{ANSWER}"
    stream = replace(GOOD, answer=said)
    found = verdict(lane, stream=stream, deliverable=CHANGED if lane == "build" else None)  # type: ignore[arg-type]
    assert (found.ok, found.failure_kind) == (True, None)


def test_a_timeout_is_known_by_its_clock_alone() -> None:
    ended = ExitFacts("exited", exit_code=1, stderr_tail='{"timeout": 30}\nError: timeout', wall_sec=5)
    assert verdict(exit=ended, stream=StreamFacts()).failure_kind == "process"
    failed = StreamFacts(terminal_error=True, errors=(ProviderError("upstream request timeout"),))
    assert verdict(code=1, stream=failed).failure_kind == "provider"
