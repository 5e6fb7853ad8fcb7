"""What a workflow hands back: each step that is not done, and when its pool is back, in the words of every document."""

from __future__ import annotations

from typing import Any

from tests.core.runs.journals import Written, document

from bullswarm_core.reports.handback import handback
from bullswarm_core.runs.status import statuses

BACK_AT = "2026-03-01T18:00:00Z"


def unfinished(written: Written) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = handback(written.state, statuses(written.state), over=True)["unfinished"]
    return found


def test_an_unfinished_step_says_when_its_pool_is_back() -> None:
    written = Written(document({"id": "a"}, {"id": "b", "dependsOn": ["a"]}, {"id": "c"}))
    written.run("a", "quota", backAt=BACK_AT)
    written.run("c")
    quota, blocked = unfinished(written)
    assert (quota["id"], quota["status"], quota["failureKind"], quota["backAt"]) == ("a", "failed", "quota", BACK_AT)
    assert (blocked["id"], blocked["status"], blocked["backAt"]) == ("b", "blocked", None)
