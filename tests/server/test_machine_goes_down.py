"""The machine goes down: TERM reaches kernel and keeper, nobody has asked for an end, and nothing may be told as cancelled."""

from __future__ import annotations

import signal

from tests.core.runs.journals import document
from tests.processes import until
from tests.server.site import ANSWER, WAIT_FOR_GO, Site
from tests.server.workflows import begin, ended, statuses

from bullswarm_server.ops.launch import start_kernel

# The first start of the worker waits for ever, the second one answers.
ONCE_SLOW = f"""cat > /dev/null
if [ -e started ]; then echo '{ANSWER}'; exit 0; fi
touch started
n=0; while [ $n -lt 600 ]; do sleep 0.05; n=$((n+1)); done"""


def take_down(site: Site, keeper: int | None) -> None:
    """End the kernel as a shutdown does, then the keeper."""
    kernel = site.kernel()
    site.kill(kernel, signal.SIGTERM)
    until(lambda: kernel not in site.processes(), "the kernel is gone")
    if keeper is not None:
        site.kill(keeper, signal.SIGTERM)
    until(lambda: keeper is None or not site.processes(), "the worker has ended")


def test_a_kernel_that_is_told_to_end_leaves_its_run_to_the_next_one(site: Site) -> None:
    site.worker("alpha", WAIT_FOR_GO)
    process = site.start_run()
    worker = site.worker_pid()
    site.kill_launcher(process)
    take_down(site, None)
    assert "run.finished" not in site.newest_events() and worker in site.processes()
    site.go()
    verdict = site.say("runs", "wait", "last", "--json").document
    assert (verdict["ok"], verdict["attempts"]) == (True, 1)


def test_a_run_whose_keeper_was_told_to_end_was_interrupted(site: Site) -> None:
    site.worker("alpha", WAIT_FOR_GO)
    process = site.start_run()
    site.worker_pid()
    site.kill_launcher(process)
    take_down(site, site.keeper())
    said = site.say("runs", "wait", "last", "--json")
    verdict = said.document
    assert (said.code, verdict["ok"], verdict["failureKind"]) == (1, False, "interrupted")
    assert "nobody had asked for it" in verdict["why"] and not verdict["meta"]["cancelled"]
    assert [row["failure_kind"] for row in site.decisions()] == ["interrupted"]


def test_a_step_whose_keeper_was_told_to_end_is_tried_again(site: Site) -> None:
    site.worker("one", ONCE_SLOW)
    run_id = begin(site, document({"id": "a"}))
    started = site.project / "started"
    until(started.exists, "the worker is at work")
    (keeper,) = (pid for pid, line in site.processes().items() if "keeper/main.py" in line)
    take_down(site, keeper)
    start_kernel(site.home, run_id, environ=site.environ)
    state = ended(site, run_id)
    kinds = [attempt.finished.failure_kind for attempt in state.steps["a"].attempts if attempt.finished]
    assert statuses(state) == {"a": "succeeded"} and kinds == ["interrupted", None]


def test_what_was_asked_for_while_the_machine_went_down_is_cancelled_all_the_same(site: Site) -> None:
    site.worker("alpha", WAIT_FOR_GO)
    process = site.start_run()
    keeper = site.keeper()
    site.kill_launcher(process)
    kernel = site.kernel()
    site.kill(kernel, signal.SIGTERM)
    until(lambda: kernel not in site.processes(), "the kernel is gone")
    site.kill(keeper, signal.SIGSTOP)
    stopping = site.start("runs", "stop", "last", "--json")
    until(lambda: "run.stop-requested" in site.newest_events(), "the wish is in the journal")
    site.kill(keeper, signal.SIGTERM)
    site.kill(keeper, signal.SIGCONT)
    stopping.communicate(timeout=30)
    verdict = site.say("runs", "wait", "last", "--json").document
    assert verdict["failureKind"] == "cancelled" and "on request" in verdict["why"]
