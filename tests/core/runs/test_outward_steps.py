"""An outward step acts beyond this machine: it is tried again only where its worker surely never started."""

from typing import Any

import pytest
from tests.core.runs.journals import Written, document

from bullswarm_core.runs.intents import may_be_tried_again
from bullswarm_core.runs.retry import NextTry
from bullswarm_core.runs.status import retry_of, statuses


def ended(meta: dict[str, Any], **options: Any) -> Written:
    written = Written(document({"id": "a", "deliverable": "outward"}), **options)
    written.run("a", "process", meta=meta)
    return written


def owed(written: Written) -> NextTry | None:
    return retry_of(written.state, written.state.steps["a"])


def test_a_worker_that_never_started_has_done_nothing() -> None:
    written = ended({"endReason": "never-started"})
    assert owed(written) == NextTry("another-pool", avoid=("codex",), alone_is_fine=True)
    # The second one started, and nobody knows what it did.
    written.run("a", "process", pool="grok", retry_how="another-pool", meta={"endReason": "exited"})
    assert owed(written) is None
    assert not may_be_tried_again(written.state, "a", statuses(written.state)["a"])


@pytest.mark.parametrize("reason", ["exited", "lost", "silence", "stopped", "after-terminal", None])
def test_any_other_end_may_have_acted(reason: str | None) -> None:
    written = ended({"endReason": reason} if reason else {})
    assert owed(written) is None
    assert not may_be_tried_again(written.state, "a", statuses(written.state)["a"])


def test_a_resume_tries_again_what_never_started() -> None:
    written = ended({"endReason": "never-started"}, retryAttempts=0)
    assert owed(written) is None and may_be_tried_again(written.state, "a", statuses(written.state)["a"])
