"""The kernel: killed at any moment of a run, the next one goes on from the journal and the keeper's files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.processes import until
from tests.server.site import SAY, WAIT_FOR_GO, Said, Site

from bullswarm_core.dispatch.services import utc_now
from bullswarm_core.kernel.liveness import KernelState, kernel_state
from bullswarm_core.store.home import write_json
from bullswarm_server.ops.launch import request_stop

BETWEEN_PICK_AND_LAUNCH = "bullswarm_core.attempts.attempt:LiveAttempt.start"
BEFORE_IT_SAW_ITS_KEEPER = "bullswarm_core.attempts.attempt:LiveAttempt._launched"
BEFORE_THE_JUDGEMENT = "bullswarm_core.attempts.attempt:conclude"
BEFORE_ITS_RECORD = "bullswarm_core.attempts.attempt:record_decision"
BEFORE_THE_VERDICT = "bullswarm_core.kernel.outcome:verdict_of"
WRITE_AND_WAIT = f"echo made > made.txt\n{WAIT_FOR_GO}"


def resume(site: Site, run_id: str) -> Said:
    return site.say("runs", "resume", run_id, "--json")


def kernel(site: Site, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a kernel in the foreground. (`resume` would give a run that is seconds old time to get its first one.)"""
    return subprocess.run(
        [sys.executable, "-m", "bullswarm_server.kernel", *words],
        env={**site.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("moment", "taken_over"),
    [
        (BETWEEN_PICK_AND_LAUNCH, None),
        (BEFORE_IT_SAW_ITS_KEEPER, "harvested"),
        (BEFORE_THE_JUDGEMENT, "harvested"),
        (BEFORE_ITS_RECORD, "harvested"),
        (BEFORE_THE_VERDICT, None),
    ],
)
def test_a_kernel_killed_at_any_moment_costs_nothing(site: Site, moment: str, taken_over: str | None) -> None:
    site.worker("alpha", f"echo once >> {site.root}/starts\n{SAY}")
    run_id = site.create().run_id
    site.kernel_that_dies_at(moment, run_id)
    until(lambda: not site.processes(), "the worker has ended")
    said = resume(site, run_id)
    verdict = said.document
    assert (said.code, verdict["ok"], verdict["takenOver"]) == (0, True, taken_over)
    assert (site.root / "starts").read_text() == "once\n", "the worker was started once"
    assert "alpha-cli" in verdict["pick"]["command"] and verdict["billing"] == "none"
    assert verdict["confinement"] == "none" and verdict["startedAt"]
    assert site.in_flight() == [] and len(site.decisions()) == 1
    for event in ("attempt.picked", "attempt.launched", "attempt.finished", "run.finished"):
        assert site.events(run_id).count(event) == 1


def test_a_keeper_that_its_kernel_never_saw_is_followed_and_its_changes_counted(site: Site) -> None:
    site.worker("alpha", WRITE_AND_WAIT)
    run_id = site.create(lane="build").run_id
    site.kernel_that_dies_at(BEFORE_IT_SAW_ITS_KEEPER, run_id)
    until((site.project / "made.txt").exists, "the worker has written")
    resumed = site.start("runs", "resume", run_id, "--json")
    site.happened("attempt.launched")
    (booking,) = site.in_flight()
    assert booking.worker is not None and booking.worker.pid == site.keeper()
    site.go()
    verdict = json.loads(resumed.communicate(timeout=60)[0])
    assert verdict["ok"] and set(verdict["changedFiles"]) == {"go", "made.txt"}


def test_a_booking_that_was_dropped_meanwhile_is_made_again(site: Site) -> None:
    site.worker("alpha", WAIT_FOR_GO)
    created = site.create(lane="build")
    run_id = created.run_id
    site.kernel_that_dies_at(BETWEEN_PICK_AND_LAUNCH, run_id)
    assert site.in_flight() == [], "nobody holds a place for a dead kernel"
    assert site.run("--timeout", "0.5", "--pool", "alpha").code == 1  # its pick drops the dead entry
    resumed = site.start("runs", "resume", run_id, "--json")
    until(lambda: [booking.worker is not None for booking in site.in_flight()] == [True], "it is in flight again")
    assert site.in_flight()[0].run == run_id
    refused = site.run(lane="build")
    assert refused.code == 1 and f"run {created.short_id} already writes" in refused.err
    site.go()
    assert json.loads(resumed.communicate(timeout=60)[0])["ok"]
    assert site.in_flight() == []


def test_who_comes_late_does_not_write_into_another_runs_work(site: Site) -> None:
    site.worker("alpha", WRITE_AND_WAIT)
    run_id = site.create(lane="build").run_id
    site.kernel_that_dies_at(BETWEEN_PICK_AND_LAUNCH, run_id)
    other = site.start_run(lane="build")
    until((site.project / "made.txt").exists, "another run writes in the tree")
    said = resume(site, run_id)
    assert (said.code, said.document["failureKind"]) == (1, "ownership-conflict")
    short_id = site.say("runs", "show", site.in_flight()[0].run, "--json").document["shortId"]
    assert f"run {short_id} already writes in " in said.document["why"]
    site.go()
    assert json.loads(other.communicate(timeout=60)[0])["attribution"] == "own"


@pytest.mark.parametrize("picked", [False, True])
def test_a_stop_that_nobody_was_there_to_hear_keeps_the_worker_from_starting(site: Site, picked: bool) -> None:
    site.worker("alpha", f"touch {site.root}/started\n{SAY}")
    run_id = site.create().run_id
    if picked:
        site.kernel_that_dies_at(BETWEEN_PICK_AND_LAUNCH, run_id)
    with site.database() as connection:
        request_stop(site.home, connection, site.state_of(run_id), by="a test", now=utc_now())
    assert kernel(site, run_id).returncode == 0
    said = site.say("runs", "show", run_id, "--json")
    assert (said.code, said.document["failureKind"]) == (1, "cancelled")
    assert not (site.root / "started").exists()


# --- secrets are never stored


def test_a_secret_that_is_gone_is_named_and_only_missed_by_a_worker_not_yet_started(site: Site) -> None:
    site.worker("alpha", f'test "$VENDOR_API_KEY" = sesame || exit 9\n{WAIT_FOR_GO}')
    secret = {"VENDOR_API_KEY": "sesame"}
    run_id = site.create(environ=secret).run_id
    assert b"sesame" not in b"".join(path.read_bytes() for path in site.home.root.rglob("*") if path.is_file())
    assert kernel(site, run_id).returncode == 0
    refused = site.say("runs", "show", run_id, "--json")
    assert (refused.code, refused.document["failureKind"]) == (1, "process")
    assert "VENDOR_API_KEY" in refused.document["why"] and site.in_flight() == []
    assert "runs resume" not in refused.document["why"], "a run with a verdict can't be resumed"

    process = site.start_run(environ=secret)
    until(lambda: site.in_flight() and site.in_flight()[0].worker, "the worker runs")
    site.kill_launcher(process)
    site.kill(site.kernel())
    resumed = site.start("runs", "resume", "last", "--json")
    until(lambda: "attempt.taken-over" in site.newest_events(), "a kernel has taken over")
    site.go()
    verdict = json.loads(resumed.communicate(timeout=60)[0])
    assert (verdict["ok"], verdict["takenOver"]) == (True, "re-attached")
    assert b"sesame" not in b"".join(path.read_bytes() for path in site.home.root.rglob("*") if path.is_file())


def test_a_resume_from_another_shell_works_in_the_environment_of_the_first(site: Site) -> None:
    site.worker("alpha", f'cat > /dev/null\necho "The colour of the day is certainly $COLOUR."\n{SAY}')
    run_id = site.create(environ={"COLOUR": "blue"}).run_id
    assert kernel(site, run_id, COLOUR="red", PATH="/usr/bin:/bin").returncode == 0
    assert "certainly blue." in site.say("runs", "show", run_id, "--json").document["excerpt"]


# --- the process itself


def test_a_wrong_call_of_the_kernel_says_how(site: Site) -> None:
    assert (kernel(site).returncode, kernel(site, "wf-1", "wf-2").returncode) == (2, 2)
    unknown = kernel(site, "wf-1")
    assert unknown.returncode == 2 and 'unknown run "wf-1"' in unknown.stderr


def test_a_second_kernel_leaves_the_run_to_the_first(site: Site) -> None:
    site.worker("alpha", WAIT_FOR_GO)
    process = site.start_run()
    site.happened("attempt.launched")
    second = kernel(site, site.run_folder().name)
    assert second.returncode == 0 and "driven by another kernel" in second.stderr
    site.go()
    assert json.loads(process.communicate(timeout=60)[0])["takenOver"] is None


def test_kernels_that_keep_dying_end_the_wait_with_their_last_words(site: Site) -> None:
    site.worker("alpha", SAY)
    run_id = site.create().run_id
    site.kernel_that_dies_at("bullswarm_core.kernel.engine:pick_pool", run_id)
    write_json(site.home.labels_file, {})
    site.home.state_file.write_text("{ damaged")
    said = resume(site, run_id)
    assert (said.code, said.out) == (1, "")
    assert "state.json" in said.err and "kernel.log" in said.err


def test_a_new_run_is_given_time_to_get_its_kernel(site: Site) -> None:
    created = site.create()
    state = site.state_of(created.run_id)
    assert kernel_state(site.home, state, now=utc_now()) is KernelState.STARTING
    site.worker("alpha", SAY)
    site.kernel_that_dies_at(BETWEEN_PICK_AND_LAUNCH, created.run_id)
    assert kernel_state(site.home, site.state_of(created.run_id), now=utc_now()) is KernelState.GONE
    assert kernel(site, created.run_id).returncode == 0
    assert kernel_state(site.home, site.state_of(created.run_id), now=utc_now()) is KernelState.DONE
    assert Path(site.run_folder() / "kernel.lock").exists()
