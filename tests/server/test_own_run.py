"""A worker or a check of a run doesn't decide about that run: its gates, its failures and its end are its starter's."""

from __future__ import annotations

import sys

import pytest
from tests.core.runs.journals import document
from tests.server.mcp.calling import calling
from tests.server.site import ANSWER, Said, Site
from tests.server.workflow_site import actors, goal

from bullswarm_server.ops.launch import ROOT_VARIABLE

PYTHON_COMMAND = f"{sys.executable} -m bullswarm_server.cli.main"
DECISIONS = (
    ("workflow", "continue", "RUN", "g"),
    ("workflow", "step", "accept", "RUN", "b", "--reason", "mine"),
    ("workflow", "step", "rerun", "RUN", "b"),
    ("workflow", "add", "RUN", "--steps", "PART"),
    ("workflow", "pause", "RUN"),
    ("workflow", "cancel", "RUN"),
)
PROGRAM = document(
    {"id": "a"}, {"id": "b", "prompt": "FAIL", "retry": 0}, {"id": "c", "dependsOn": ["g"]},
    gates=[{"id": "g", "dependsOn": ["a"]}],
)  # fmt: skip


def waiting_run(site: Site) -> str:
    actors(site)
    waiting = goal(site, PROGRAM, "--foreground", "--json")
    assert waiting.document["status"] == "waiting"
    return str(waiting.document["runId"])


def of_worker(run_id: str, *, mark: str | None = None) -> dict[str, str]:
    """The environment of a worker of this run, as far as it tells of the run; ``mark`` is what a nested run's worker has."""
    return {"BULLSWARM_DEPTH": "1"} | ({"BULLSWARM_ATTEMPT": mark} if mark else {ROOT_VARIABLE: run_id})


def decide(site: Site, run_id: str, words: tuple[str, ...], environ: dict[str, str]) -> Said:
    part = site.root / "part.json"
    part.write_text('{"steps": [{"id": "d", "prompt": "Do it."}]}')
    names = {"RUN": run_id, "PART": str(part)}
    return site.say(*(names.get(word, word) for word in words), environ=environ)


def test_no_decision_is_taken_by_a_worker_of_the_run(site: Site) -> None:
    run_id = waiting_run(site)
    before = site.events()
    marks = (None, f"{run_id}/a-1", f"{site.run_folder()}/a-attempt-1/evidence")
    for words in DECISIONS:
        for mark in marks:
            said = decide(site, run_id, words, of_worker(run_id, mark=mark))
            assert said.code == 2 and "a worker of run" in said.err, (words, mark, said)
    assert site.events() == before


def test_a_worker_may_leave_a_message_and_steer_what_it_started_itself(site: Site) -> None:
    run_id = waiting_run(site)
    own = of_worker(run_id)
    assert decide(site, run_id, ("workflow", "steer", "RUN", "--message", "look"), own).code == 0
    other = of_worker("wf-00000000-000000")
    assert decide(site, run_id, ("workflow", "continue", "RUN", "g"), other).code == 0
    assert site.say("workflow", "wait", run_id, "--json").document["status"] == "partial"


def test_a_worker_is_told_no_by_what_its_environment_holds(site: Site) -> None:
    site.worker(
        "one",
        f"cat > /dev/null\n{PYTHON_COMMAND} workflow pause $BULLSWARM_ROOT > said 2>&1\n"
        f"echo $? > code\necho '{ANSWER}'",
    )
    ended = goal(site, document({"id": "a"}), "--foreground", "--json")
    assert ended.document["status"] == "completed"
    assert "a worker of run" in (site.project / "said").read_text()
    assert (site.project / "code").read_text() == "2\n"


@pytest.mark.parametrize(
    ("op", "more"), [("continue", {"node": "g"}), ("stop", {}), ("accept", {"node": "b", "reason": "x"})]
)
async def test_an_agent_that_works_for_the_run_is_told_no(site: Site, op: str, more: dict[str, str]) -> None:
    run_id = waiting_run(site)
    before = site.events()
    site.environ |= of_worker(run_id)
    async with calling(site) as call:
        said = await call("runs", op=op, run_id=run_id, **more)
    assert said.error and "a worker of run" in said.text
    assert site.events() == before
