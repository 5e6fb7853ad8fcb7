"""`bullswarm workflow`: programs started, steered and read with the command line, on scripted workers."""

from __future__ import annotations

import argparse
import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from tests.core.runs.journals import document
from tests.processes import until
from tests.server.site import SAY, Site, tree
from tests.server.workflow_site import (
    GATED,
    LOOPING,
    actors,
    assert_taken,
    goal,
    printed_commands,
    program_file,
)

from bullswarm_core.reports.summary import MOST_BYTES
from bullswarm_server.cli import runs, workflow


@pytest.fixture(autouse=True)
def two_pools(site: Site) -> None:
    actors(site)


def steps_of(document: dict[str, Any]) -> dict[str, str]:
    return {step["id"]: step["status"] for step in document["steps"]}


def no_kernel(site: Site) -> None:
    until(lambda: not any("bullswarm_server.kernel" in line for line in site.processes().values()), "no kernel")


def operations(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Every operation that some words of a parser choose."""
    if (own := parser.get_default("operation")) is not None:
        yield own
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from operations(below)


def test_every_operation_that_can_be_chosen_is_there() -> None:
    chosen = {*operations(runs._parser()), *operations(workflow._parser())}
    assert len(chosen) == 20 and all(callable(runs.operation_of(name)) for name in chosen)


# --- starting


def test_a_program_is_started_detached_and_waited_for(site: Site) -> None:
    program = document({"id": "a"}, {"id": "b", "dependsOn": ["a"]})
    started = goal(site, program, "--json")
    assert started.code == 0 and started.document["status"] == "running"
    assert started.document["stopsForYou"] == [] and set(started.document["next"]) >= {"watch", "wait", "cancel"}
    waited = site.say("workflow", "wait", started.document["shortId"], "--json")
    assert (waited.code, waited.document["status"]) == (0, "completed")
    assert steps_of(waited.document) == {"a": "succeeded", "b": "succeeded"}
    row = site.say("runs", "list", "--json").document["runs"][0]
    assert (row["kind"], row["steps"], row["ok"]) == ("workflow", {"done": 2, "all": 2}, True)
    assert "[2/2 steps]" in site.say("workflow", "runs").out


def test_in_the_foreground_the_result_is_the_answer(site: Site) -> None:
    done = goal(site, document({"id": "a"}, {"id": "b", "prompt": "FAIL"}), "--foreground", "--retry-attempts", "0")
    assert done.code == 1
    lines = done.out.splitlines()
    assert lines[0] == "outcome: partial"
    assert lines[1] == "reason: 1 of 2 steps did not succeed: b failed (process)"
    assert "proof: 1 finished · unproven" in lines and any(
        line.startswith("  ✗ b failed (process) [") for line in lines
    )
    for command in printed_commands(done.out, done.err):
        assert_taken(command)


def test_labels_are_what_people_read(site: Site) -> None:
    site.say("label", "one", "first")
    site.say("label", "two", "second")
    done = goal(site, document({"id": "a", "prompt": "FAIL"}), "--foreground", "--worker-pool", "first")
    assert "[first]" in done.out and "[one]" not in done.out
    result = site.say("runs", "result", "last", "--json").document
    assert (result["steps"][0]["pool"], result["steps"][0]["poolLabel"]) == ("one", "first")


def test_ctrl_c_stops_the_work_of_a_workflow_in_the_foreground(site: Site) -> None:
    file = program_file(site, document({"id": "a", "prompt": "WAIT"}, {"id": "b", "dependsOn": ["a"]}))
    process = site.start("workflow", "goal", "g", "--program", str(file), "--foreground", "--json")
    site.happened("attempt.launched")
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1 and "stopping the worker" in err
    assert json.loads(out)["status"] == "cancelled"


def test_a_program_may_come_from_standard_input(site: Site) -> None:
    import subprocess
    import sys

    words = [
        sys.executable,
        "-m",
        "bullswarm_server.cli.main",
        "workflow",
        "goal",
        "g",
        "--program",
        "-",
        "--foreground",
    ]
    done = subprocess.run(
        words, input=json.dumps(document({"id": "a"})), env=site.environ, cwd=site.project, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout.startswith("outcome: completed\n"), done


def test_the_same_goal_in_the_same_folder_is_started_once(site: Site) -> None:
    program = document({"id": "a", "prompt": "WAIT"})
    first = goal(site, program, "--json").document
    again = goal(site, program, "--json")
    assert again.code == 2 and again.document["error"] == "duplicate-goal"
    assert again.document["shortId"] == first["shortId"] and set(again.document["next"]) == {"watch", "again"}
    told = goal(site, program)
    assert told.code == 2 and told.out == "" and f"run {first['shortId']}" in told.err
    for command in printed_commands(again.out, told.err):
        assert_taken(command)
    assert again.document["next"]["again"].endswith("--json --again")
    other = site.root / "other"
    other.mkdir()
    elsewhere = [goal(site, program, "--json", cwd=other), goal(site, program, "--json", text="another goal")]
    assert [said.code for said in elsewhere] == [0, 0] and goal(site, program, "--again").code == 0
    site.go()
    (other / "go").touch()
    assert site.say("workflow", "wait", first["shortId"]).code == 0
    assert goal(site, program, "--json", "--foreground", text="the goal").code in (0, 2)
    for row in site.say("runs", "list", "--json").document["runs"]:
        site.say("workflow", "wait", row["shortId"])


def test_a_goal_without_a_program_is_told_how(site: Site) -> None:
    said = site.say("workflow", "goal", "make it quick", "--json")
    assert (said.code, said.document["error"]) == (2, "program-required")
    told = site.say("workflow", "goal", "it's quick")
    assert told.code == 2 and "needs a program" in told.err
    for command in printed_commands(said.out, told.err):
        assert_taken(command)
    assert not site.home.database_file.exists()


# --- waiting for somebody


def test_a_gate_waits_until_it_is_continued(site: Site) -> None:
    waiting = goal(site, GATED, "--foreground")
    assert waiting.code == 1 and waiting.out.startswith("outcome: waiting\nreason: waiting for you at g\n")
    short = site.say("runs", "show", "last", "--json").document["shortId"]
    assert f"⧖ gate g waiting · look · continue: bullswarm workflow continue {short} g" in waiting.out
    assert "next: " not in waiting.out, "to wait on leads nowhere"
    assert site.say("runs", "show", "last").code == 0
    no_kernel(site)
    before = tree(site.root)
    for verb in ("list", "show", "result"):
        site.say("runs", verb, *([] if verb == "list" else [short]))
    assert tree(site.root) == before
    continued = site.say("workflow", "continue", short, "g", "--json")
    assert (continued.code, continued.document["status"]) == (0, "running")
    assert site.say("workflow", "wait", short).code == 0


def test_a_loop_that_is_out_of_rounds_gets_more_or_is_left_unmet(site: Site) -> None:
    waiting = goal(site, LOOPING, "--foreground")
    assert waiting.code == 1 and "⧖ loop l out-of-rounds · round 1 of 1 · continue: " in waiting.out
    assert "--rounds 1" in waiting.out
    assert site.say("workflow", "continue", "last", "l", "--rounds", "1").code == 0
    until(lambda: site.newest_events().count("loop.out-of-rounds") == 2, "out of rounds again")
    no_kernel(site)
    assert site.say("workflow", "continue", "last", "l", "--rounds", "9").code == 2
    assert site.say("workflow", "continue", "last", "l").code == 0
    done = site.say("workflow", "wait", "last", "--json")
    assert done.code == 0 and done.document["loops"][0]["outcome"] == "continued-unmet"
    assert done.document["loops"][0]["status"] == "continued-unmet"
    unmet = "loop l continued by the caller after 2 of 2 rounds (condition not met)"
    assert done.document["reason"] == f"1 of 1 steps succeeded · {unmet}"
    shown = site.say("runs", "show", "last").out
    assert unmet in shown and "→ loop l continued-unmet" in shown and "✓ loop" not in shown


def test_a_pause_is_lifted_by_resume(site: Site) -> None:
    goal(site, document({"id": "a", "prompt": "WAIT"}, {"id": "b", "dependsOn": ["a"]}))
    site.happened("attempt.launched")
    assert site.say("workflow", "pause", "last").code == 0
    again = site.say("workflow", "pause", "last")
    assert again.code == 2 and "paused already" in again.err
    assert site.say("workflow", "steer", "last", "--message", "be quick").code == 0
    site.go()
    paused = site.say("workflow", "wait", "last", "--json")
    assert (paused.code, paused.document["status"]) == (1, "paused")
    shown = site.say("runs", "show", "last").out
    assert f"bullswarm workflow resume {paused.document['shortId']}" in shown.partition("your call:")[2]
    assert paused.document["unreadSteering"] == ["be quick"]
    resumed = site.say("workflow", "resume", "last", "--foreground", "--json")
    assert (resumed.code, steps_of(resumed.document)) == (0, {"a": "succeeded", "b": "succeeded"})


def test_a_wish_on_a_run_without_a_kernel_starts_one(site: Site) -> None:
    goal(site, document({"id": "a", "prompt": "WAIT"}))
    site.happened("attempt.launched")
    site.kill(site.kernel())
    shown = site.say("runs", "show", "last")
    assert "kernel gone · next: bullswarm runs resume" in shown.out
    # Nobody waits for what no process drives.
    assert f"next: bullswarm workflow resume {shown.out.partition('run: ')[2][:6]}\n" in shown.out
    assert "workflow wait" not in shown.out
    assert site.say("workflow", "steer", "last", "--message", "go on").code == 0
    site.happened("attempt.taken-over")
    site.go()
    assert site.say("workflow", "wait", "last").code == 0


def test_cancel_ends_a_run_that_waits_and_once_more_changes_nothing(site: Site) -> None:
    goal(site, GATED, "--foreground")
    cancelled = site.say("workflow", "cancel", "last", "--json")
    assert (cancelled.code, cancelled.document["status"]) == (0, "cancelled")
    again = site.say("runs", "stop", "last", "--json")
    assert again.document == cancelled.document and "nothing to stop" in again.err


# --- steps


def test_a_failed_step_is_begun_anew_elsewhere_or_accepted(site: Site) -> None:
    goal(site, document({"id": "a", "prompt": "FAIL"}, {"id": "b", "dependsOn": ["a"]}), "--foreground")
    site.say("label", "one", "first")
    assert site.say("workflow", "step", "rerun", "last", "a", "--avoid", "first, two").code == 0
    nobody = site.say("workflow", "wait", "last", "--json").document
    assert nobody["steps"][0]["failureKind"] == "unavailable" and nobody["handback"]["unfinished"][0]["noPool"] is True
    accepted = site.say("workflow", "step", "accept", "last", "a", "--reason", "good enough")
    assert accepted.code == 0 and "accepted by choice" in accepted.out
    done = site.say("workflow", "wait", "last", "--json")
    assert (done.code, done.document["steps"][0]["proof"]) == (0, "accepted by choice")


def test_resume_tries_again_what_may_end_otherwise_and_says_when_nothing_may(site: Site) -> None:
    goal(site, document({"id": "a", "prompt": "FAIL"}), "--foreground")
    (site.project / "mended").touch()
    shown = site.say("runs", "show", "last")
    assert (
        f"try again        bullswarm workflow resume {site.say('runs', 'show', 'last', '--json').document['shortId']}"
        in (shown.out)
    )
    assert site.say("runs", "resume", "last", "--foreground").code == 0
    nothing = site.say("workflow", "resume", "last")
    assert nothing.code == 1 and "nothing to retry" in nothing.err


def test_a_run_is_watched_from_its_start_and_from_its_resumption(site: Site) -> None:
    watched = goal(site, document({"id": "a", "prompt": "FAIL"}), "--watch", "--retry-attempts", "0")
    assert watched.code == 1 and "outcome: partial" in watched.out
    (site.project / "mended").touch()
    again = site.say("workflow", "resume", "last", "--watch", "--json")
    assert again.code == 0 and json.loads(again.out.splitlines()[-1])["sequence"] > 0
    for command in printed_commands(watched.out, *again.out.splitlines()):
        assert_taken(command)


def test_a_running_step_is_restarted_on_another_pool(site: Site) -> None:
    goal(site, document({"id": "a", "prompt": "WAIT"}), "--worker-pool", "one")
    site.happened("attempt.launched")
    assert site.say("workflow", "step", "restart", "last", "a", "--pool", "two").code == 0
    until(lambda: site.newest_events().count("attempt.launched") == 2, "the second attempt is launched")
    site.go()
    done = site.say("workflow", "wait", "last", "--json").document
    assert (done["steps"][0]["pool"], done["steps"][0]["attempts"]) == ("two", 2)


def test_steps_are_added_from_a_file_and_from_an_answer(site: Site) -> None:
    answer = {"type": "object", "properties": {"steps": {"type": "array"}}, "required": ["steps"]}
    goal(site, document({"id": "a", "prompt": "PART", "answer": answer}), "--foreground")
    part = program_file(site, {"steps": [{"id": "c", "prompt": "Do it.", "dependsOn": ["a"]}]}, "part.json")
    assert site.say("workflow", "add", "last", "--steps", str(part)).code == 0
    assert site.say("workflow", "wait", "last").code == 0
    twice = site.say("workflow", "add", "last", "--steps", str(part))
    assert twice.code == 2 and "used twice" in twice.err
    added = site.say("workflow", "add", "last", "--from-answer", "a")
    assert added.code == 0 and "added late" in added.out, added
    done = site.say("workflow", "wait", "last", "late", "--json")
    assert done.code == 0 and [step["id"] for step in done.document["steps"]] == ["late"]
    assert site.say("workflow", "add", "last", "--from-answer", "c").code == 2


def test_a_step_that_this_machine_can_never_do_is_not_added(site: Site) -> None:
    goal(site, document({"id": "a"}), "--foreground")
    ghost = {"id": "c", "prompt": "Do it.", "route": {"pools": {"use": ["ghost"]}}}
    part = program_file(site, {"steps": [ghost]}, "part.json")
    refused = site.say("workflow", "add", "last", "--steps", str(part))
    assert refused.code == 2 and 'route.pools.use names "ghost", which is no pool' in refused.err
    assert "steps.added" not in site.newest_events()


def test_some_steps_are_waited_for(site: Site) -> None:
    program = document({"id": "a"}, {"id": "b", "prompt": "WAIT"}, {"id": "c", "prompt": "FAIL"})
    goal(site, program, "--retry-attempts", "0")
    early = site.say("workflow", "wait", "last", "a", "--json")
    assert (early.code, early.document["settled"], steps_of(early.document)) == (0, True, {"a": "succeeded"})
    assert site.say("workflow", "wait", "last", "a", "c").code == 1
    assert site.say("workflow", "wait", "last", "b", "--timeout", "0.2").code == 2
    unknown = site.say("workflow", "wait", "last", "zzz")
    assert unknown.code == 2 and "a, b, c" in unknown.err
    site.go()
    assert site.say("workflow", "wait", "last", "b").code == 0
    site.say("workflow", "wait", "last")


# --- results


def test_a_result_its_summary_and_the_output_of_a_step(site: Site) -> None:
    goal(site, document({"id": "a"}, {"id": "b", "prompt": "FAIL"}), "--foreground")
    whole = site.say("runs", "result", "last", "--json").document
    summary = site.say("runs", "result", "last", "--summary")
    assert summary.code == 1 and summary.out.count("\n") == 1 and len(summary.out.encode()) <= MOST_BYTES
    assert summary.document["status"] == "partial" and summary.document["counts"] == {"succeeded": 1, "failed": 1}
    assert set(summary.document["handback"]["options"]) >= {"rerun", "accept", "retry", "add"}
    for command in printed_commands(summary.out, json.dumps(whole)):
        assert_taken(command)
    output = site.say("runs", "result", "last", "--step", "a", "--json").document
    assert (
        output["text"]
        in (site.home.workflows_dir / whole["runId"] / summary.document["steps"][0]["output"]).read_text()
    )
    for words in (("--step", "zzz"), ("--cursor", "3")):
        assert site.say("runs", "result", "last", *words).code == 2


def test_a_single_run_has_no_summary_and_nothing_to_steer(site: Site) -> None:
    site.run()
    for words in (
        ("runs", "result", "last", "--summary"),
        ("workflow", "pause", "last"),
        ("workflow", "steer", "last", "--message", "x"),
        ("workflow", "step", "rerun", "last", "run"),
    ):
        said = site.say(*words)
        assert (said.code, said.out) == (2, "") and said.err, words


def test_a_loop_of_one_round_is_told_in_the_singular(site: Site) -> None:
    actors(site)
    said = goal(site, LOOPING)
    assert "stops for you at loop l when its only round is spent" in said.out
    site.say("workflow", "wait", "last")


def test_run_ids_are_taken_in_every_form(site: Site) -> None:
    site.worker("one", SAY)
    done = goal(site, document({"id": "a"}), "--foreground", "--json").document
    for name in (done["runId"], done["shortId"], done["shortId"][:5], "last"):
        assert site.say("workflow", "show", name, "--json").document["runId"] == done["runId"]


def test_of_two_same_goals_at_once_one_is_started(site: Site) -> None:
    file = program_file(site, document({"id": "a", "prompt": "WAIT"}))
    words = ("workflow", "goal", "the goal", "--program", str(file), "--json")
    both = [site.start(*words) for _ in range(2)]
    said = [process.communicate(timeout=60)[0] for process in both]
    assert sorted(process.returncode for process in both) == [0, 2], said
    refused, started = sorted((json.loads(text) for text in said), key=lambda each: "error" not in each)
    assert (refused["error"], refused["shortId"]) == ("duplicate-goal", started["shortId"])
    site.go()
    assert site.say("workflow", "wait", started["shortId"]).code == 0
