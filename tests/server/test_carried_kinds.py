"""A step that is begun anew: every kind of work that an attempt may have left counts, and that of an earlier round never."""

from __future__ import annotations

import pytest
from tests.core.runs.journals import document
from tests.server.site import Site
from tests.server.test_step_reruns import CHECK, ONCE, again
from tests.server.test_workflow_evidence import OBEDIENT, judgement, step, tries
from tests.server.workflows import TYPED, begin, ended, go_on

from bullswarm_core.runs.intents import rerun


@pytest.fixture
def workers(site: Site) -> Site:
    site.worker("one", OBEDIENT)
    return site


@pytest.mark.parametrize(
    "do",
    [
        "ln -s old made",
        "mkdir made; echo >made/file",
        "mkdir ignored; echo >ignored/made",
        "echo >$(printf 'a\\377b')",
        "chmod +x old",
        "rm old",
    ],
)
def test_work_of_every_kind_is_carried(workers: Site, do: str) -> None:
    (workers.project / "old").write_text("old\n")
    (workers.project / ".gitignore").write_text("ignored/\n")
    said = again(workers, step(f"[ -e .git/did ] || {{ touch .git/did; {do}; }}", evidence=[CHECK]))
    assert (said["status"], said["carried"], said["changedFiles"]) == ("succeeded", True, [])


def test_a_rerun_within_a_round_of_a_loop_has_no_part_in_the_work_of_the_round_before(workers: Site) -> None:
    (workers.project / "reply").write_text('{"done": false}')
    asked = {**step(name="r", lane="analyze", dependsOn=["a"]), "answer": TYPED}
    loop = {"id": "l", "steps": ["a", "r"], "until": {"step": "r", "field": "done"}, "maxRounds": 3}
    run_id = begin(workers, document(step(ONCE, files=["made.txt"], retry=0), asked, loops=[loop]))
    assert [kind for kind, _, _ in tries(ended(workers, run_id))] == [None, "not-produced"]
    state = go_on(workers, run_id, rerun("a", by="me"))
    assert (tries(state)[-1][0], judgement(state, 3)["carried"]) == ("not-produced", False)
