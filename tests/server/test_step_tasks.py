"""What the workers of a real workflow are handed: each task as it stood on disk when its worker started."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.core.runs.journals import document
from tests.core.trees.snapshots import git
from tests.server.site import Site
from tests.server.workflows import begin, ended

from bullswarm_core.runs.run_files import RunFolder
from bullswarm_core.runs.state import AttemptState, RunState

# Fails its first attempt in the middle of its work and does well in the second, by what its own task tells it.
TWO_TRIES = """p=$(cat)
case "$p" in
  *"## Prior attempt on this step"*) echo done >> made.txt;;
  *"MAKE IT"*) echo half > made.txt; echo 'I wrote the first half'; exit 3;;
esac
echo 'The parser keeps the quotes and every test of it is green now.'"""


def task_of(site: Site, state: RunState, attempt: AttemptState) -> str:
    folder = RunFolder.of(site.home, state.created.run_id)
    return folder.attempt(attempt.picked.step, attempt.picked.ordinal).task.read_text()


@pytest.fixture
def repository(site: Site) -> Path:
    git(site.project, "init", "-q", "-b", "main")
    git(site.project, "commit", "-q", "--allow-empty", "-m", "first")
    return site.project


def test_a_retry_and_what_depends_on_it_are_told_what_was_done(site: Site, repository: Path) -> None:
    site.worker("one", TWO_TRIES)
    program = document(
        {"id": "make", "lane": "build", "prompt": "MAKE IT", "timeBox": 30},
        {"id": "look", "dependsOn": ["make"], "prompt": "Look at it."},
        {"id": "blind", "dependsOn": ["make"], "blindTo": ["make"], "prompt": "Look by yourself."},
    )
    state = ended(site, begin(site, program))
    first, second = state.steps["make"].attempts
    assert first.launched is not None and second.launched is not None and first.finished is not None

    assert (
        first.launched.launch.document["timeBox"]["minutes"] == 30 and first.launched.launch.document["handoff"] is None
    )
    assert "Time box: 30 minutes from " in task_of(site, state, first)
    assert first.finished.judgement.diff_stat == ("made.txt new +1",)

    text = task_of(site, state, second)
    assert text.startswith("MAKE IT\n")
    assert f"  - {repository}/made.txt\n" in text and "> made.txt new +1\n" in text
    assert "> I wrote the first half\n" in text
    diff = Path(str(first.finished.judgement.diff_file))
    assert f"- The whole diff: {diff}\n" in text and "+half\n" in diff.read_text() and "done" not in diff.read_text()
    handed = second.launched.launch.document["handoff"]
    assert handed["from"] == "make-1" and handed["bytes"] > 300

    look, blind = state.steps["look"].attempts[0], state.steps["blind"].attempts[0]
    assert second.finished is not None and look.launched is not None
    assert f"- Output: {second.finished.output_file}" in task_of(site, state, look)
    assert look.launched.launch.document["timeBox"]["source"] == "fallback"
    assert "attempt-2.md" not in task_of(site, state, blind) and "made.txt" not in task_of(site, state, blind)
