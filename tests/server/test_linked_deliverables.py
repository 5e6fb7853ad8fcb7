"""A link to somebody else's old file is no deliverable; a link to what the worker made outside is one."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.runs.journals import document
from tests.server.site import Site
from tests.server.test_workflow_evidence import OBEDIENT, judgement, step
from tests.server.workflows import begin, ended, statuses

DATA = {"type": "data", "paths": ["d/out.json"]}
LINK = {"type": "data", "paths": ["out.json"]}


@pytest.mark.parametrize(
    ("do", "more", "status"),
    [
        ("ln -s ../outside d", {"deliverable": DATA}, "failed"),
        ("ln -s ../outside/out.json out.json", {"deliverable": LINK}, "failed"),
        ("ln -s ../outside d", {"files": ["d/out.json"]}, "failed"),
        ("ln -s ../outside d; echo 2 >d/out.json", {"deliverable": DATA}, "succeeded"),
        ("cp -p ../outside/out.json ../new.json; ln -s ../new.json out.json", {"deliverable": LINK}, "succeeded"),
        ("ln -s ../outside/out.json out.json", {"files": ["out.json"]}, "succeeded"),
        ("mkdir d; cp -p ../outside/out.json d", {"deliverable": DATA}, "succeeded"),
    ],
)  # fmt: skip
def test_what_a_link_leads_to_counts_when_it_was_written_in_the_step(
    site: Site, do: str, more: dict[str, Any], status: str
) -> None:
    site.worker("one", OBEDIENT)
    (site.root / "outside").mkdir()
    (site.root / "outside" / "out.json").write_text("1")
    state = ended(site, begin(site, document(step(do, retry=0, **more))))
    assert statuses(state) == {"a": status}, judgement(state)
    if status == "failed":
        assert judgement(state)["failureKind"] == "not-produced"
