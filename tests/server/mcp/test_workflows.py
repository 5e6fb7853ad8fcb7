"""Workflows over MCP: started by `workflow_goal`, waited on by `run`, acted on by `runs`, each answer small and complete."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.core.runs.journals import document
from tests.processes import until
from tests.server.mcp.calling import MODES, Caller, Mode, calling
from tests.server.site import ANSWER, Site
from tests.server.workflows import ACTOR, TYPED


@pytest.fixture
def actors(site: Site) -> Site:
    """Two pools that do as they are told."""
    site.worker("one", ACTOR)
    site.worker("two", ACTOR)
    return site


async def goal(call: Caller, site: Site, program: Any, **more: Any) -> Any:
    return await call("workflow_goal", **{"goal": "Know it", "cwd": str(site.project), "program": program, **more})


def steps(answer: Any) -> dict[str, str]:
    return {step["id"]: step["status"] for step in answer.document["steps"]}


@pytest.mark.parametrize("mode", MODES)
async def test_a_program_runs_to_its_end_and_the_same_key_is_the_same_run(actors: Site, mode: Mode) -> None:
    program = document({"id": "a"}, {"id": "b", "dependsOn": ["a"], "lane": "build", "prompt": "WRITE made.txt"})
    file = actors.root / "program.json"
    file.write_text(json.dumps(program))
    async with calling(actors, mode=mode) as call:
        answers = [
            await goal(call, actors, given, idempotency_key="k") for given in (program, str(file), json.dumps(program))
        ]
        assert len({answer.document["runId"] for answer in answers}) == 1
        assert [answer.document.get("repeated") for answer in answers] == [None, True, True]
        done = await call("run", run_id="last")
    assert (done.document["state"], done.document["ok"], steps(done)) == (
        "completed", True, {"a": "succeeded", "b": "succeeded"},
    )  # fmt: skip
    assert "2 of 2 steps succeeded" in done.text and "COMPLETED" in done.text


async def test_a_wait_of_nothing_answers_at_once_with_what_to_call(actors: Site) -> None:
    async with calling(actors) as call:
        started = await goal(call, actors, document({"id": "a", "prompt": "WAIT"}), wait_s=0)
        assert (started.document["state"], started.document["ok"]) == ("running", None)
        assert f'run {{"run_id":"{started.document["shortId"]}"}}' in started.document["next"]
        actors.go()
        assert (await call("run", run_id="last")).document["ok"] is True


async def test_what_needs_the_person_comes_as_options_that_can_be_called_as_they_are(actors: Site) -> None:
    program = document({"id": "a", "prompt": "FAIL"}, {"id": "b", "dependsOn": ["a"]})
    async with calling(actors) as call:
        failed = await goal(call, actors, program, retry_attempts=0)
        assert (failed.document["state"], steps(failed)) == ("partial", {"a": "failed", "b": "blocked"})
        (need,) = failed.document["needsYou"]
        assert (need["id"], need["failureKind"]) == ("a", "process") and "boom" in failed.document["steps"][0]["why"]
        tool, _, arguments = need["options"]["rerunElsewhere"].partition(" ")
        again = await call(tool, **json.loads(arguments), wait_s=30)
        assert again.document["state"] == "partial" and again.document["steps"][0]["attempts"] == 2
        tool, _, arguments = need["options"]["accept"].partition(" ")
        accepted = await call(tool, **json.loads(arguments), wait_s=30)
        assert (accepted.document["state"], steps(accepted)) == ("completed", {"a": "succeeded", "b": "succeeded"})


async def test_a_gate_is_told_and_continued(actors: Site) -> None:
    program = document(
        {"id": "a"}, {"id": "b", "dependsOn": ["g"]}, gates=[{"id": "g", "dependsOn": ["a"], "note": "Look."}]
    )
    async with calling(actors) as call:
        waiting = await goal(call, actors, program)
        assert waiting.document["state"] == "waiting" and waiting.document["gates"][0]["note"] == "Look."
        (need,) = waiting.document["needsYou"]
        tool, _, arguments = need["options"]["continue"].partition(" ")
        done = await call(tool, **json.loads(arguments), wait_s=30)
        assert steps(done) == {"a": "succeeded", "b": "succeeded"}


async def test_a_loop_out_of_rounds_offers_more_or_to_leave_it(actors: Site) -> None:
    program = document(
        {"id": "r", "prompt": "MORE", "answer": TYPED},
        loops=[{"id": "l", "steps": ["r"], "until": {"step": "r", "field": "done"}, "maxRounds": 1}],
    )
    async with calling(actors) as call:
        waiting = await goal(call, actors, program)
        options = waiting.document["needsYou"][0]["options"]
        assert set(options) == {"moreRounds", "leaveUnmet"}
        tool, _, arguments = options["moreRounds"].partition(" ")
        done = await call(tool, **json.loads(arguments), wait_s=30)
        assert done.document["loops"][0]["outcome"] == "passed"


async def test_pause_resume_steer_add_and_stop(actors: Site) -> None:
    async with calling(actors) as call:
        await goal(call, actors, document({"id": "a", "prompt": "WAIT"}), wait_s=0)
        until(lambda: "attempt.launched" in actors.newest_events(), "the worker runs")
        assert (await call("runs", op="steer", run_id="last", message="Mind the tests.", wait_s=0)).document[
            "ok"
        ] is None
        paused = await call("runs", op="pause", run_id="last", at_once=True, wait_s=30)
        assert paused.document["state"] == "paused" and '"op":"resume"' in paused.document["next"]
        await call("runs", op="resume", run_id="last", wait_s=0)
        more = {"steps": [{"id": "b", "prompt": "Do it.", "dependsOn": ["a"]}]}
        grown = await call("runs", op="add", run_id="last", steps=more, wait_s=0)
        assert set(steps(grown)) == {"a", "b"}
        stopped = await call("runs", op="stop", run_id="last")
        assert (stopped.document["state"], stopped.document["ok"]) == ("cancelled", False)
        listed = await call("runs", op="list")
        assert listed.document["runs"][0]["state"] == "cancelled"


async def test_a_wish_that_makes_no_sense_changes_nothing(actors: Site) -> None:
    async with calling(actors) as call:
        await goal(call, actors, document({"id": "a"}))
        for given, why in (
            ({"op": "rerun"}, "node is missing for rerun"),
            ({"op": "rerun", "node": "z"}, '"z" is no step'),
            ({"op": "accept", "node": "a", "reason": "x"}, "only what failed is accepted"),
            ({"op": "continue", "node": "a"}, "is over"),
            ({"op": "pause"}, "is over"),
            ({"op": "resume"}, "nothing to retry"),
            ({"op": "restart", "node": "a"}, "is over"),
            ({"op": "rerun", "node": "a", "avoid": ["nobody"]}, "nobody"),
            ({"op": "add", "steps": {"steps": []}}, "there is nothing to add"),
            ({"op": "add", "steps": {"steps": [{"id": "a", "prompt": "x"}]}}, "is used twice"),
        ):
            wrong = await call("runs", run_id="last", **given)
            assert wrong.error and why in wrong.text, wrong.text
        before = actors.newest_events()
        await call("run", lane="analyze", cwd=str(actors.project), prompt="Explain it.")
        single = await call("runs", op="pause", run_id="last")
        assert single.error and "is a single run" in single.text
    assert before.count("run.finished") == 1


async def test_a_program_of_many_steps_still_fits(actors: Site) -> None:
    long = "x" * 150
    program = document(*({"id": f"step-{number}-{long}", "prompt": "FAIL"} for number in range(80)))
    async with calling(actors) as call:
        stopped = await goal(call, actors, program, wait_s=0)
        assert stopped.document["omittedSteps"] > 10
        ended = await call("runs", op="stop", run_id="last")
    assert ended.document["state"] == "cancelled" and sum(ended.document["counts"].values()) == 80


async def test_output_of_a_worker_is_fenced(actors: Site) -> None:
    async with calling(actors) as call:
        done = await goal(call, actors, document({"id": "a", "prompt": "DONE", "answer": TYPED}))
    (row,) = done.document["steps"]
    assert row["answer"].startswith("<<<worker-output ") and '{"done": true}' in row["answer"]
    assert ANSWER not in done.text


async def test_what_this_machine_can_never_do_is_refused_at_once_and_starts_nothing(actors: Site) -> None:
    nobody = document({"id": "a", "route": {"pools": {"use": ["ghost"]}}})
    async with calling(actors) as call:
        refused = await goal(call, actors, nobody)
    assert refused.error and "cannot run here, nothing was started" in refused.text
    assert refused.document["issues"] == [
        'step a: route.pools.use names "ghost", which is no pool (pools: claude-code, echo, one, two)'
    ]
    assert not actors.home.database_file.exists()


async def test_a_step_that_this_machine_can_never_do_is_not_added(actors: Site) -> None:
    part = {"steps": [{"id": "c", "prompt": "More.", "lane": "analyze", "route": {"pools": {"use": ["ghost"]}}}]}
    async with calling(actors) as call:
        await goal(call, actors, document({"id": "a"}))
        refused = await call("runs", op="add", run_id="last", steps=part)
        assert refused.error and "which is no pool (pools: claude-code, echo, one, two)" in refused.text
        assert (await call("run", run_id="last")).document["counts"] == {"succeeded": 1}


async def test_elsewhere_is_offered_only_where_another_pool_could_take_it(actors: Site) -> None:
    async with calling(actors) as call:
        failed = await goal(
            call,
            actors,
            document({"id": "a", "prompt": "FAIL", "route": {"pools": {"use": ["one"]}}}),
            retry_attempts=0,
        )
        (need,) = failed.document["needsYou"]
        assert set(need["options"]) == {"rerun", "accept"}
