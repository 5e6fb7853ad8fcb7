"""`bullswarm runs`: whoever dies in the middle of a run, nothing is lost, and the next command says what happened."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.processes import until
from tests.server.site import SAY, WAIT_FOR_GO, WITH_GRANDCHILD, Said, Site, tree

from bullswarm_core.store.database import open_database

PARTIAL = "Looking at the parser.\n"


def verdict_of(process: subprocess.Popen[str]) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(process.communicate(timeout=60)[0])
    return value


def begin(site: Site, script: str = WAIT_FOR_GO, **options: Any) -> subprocess.Popen[str]:
    """Start a run and return once its worker has said its first line."""
    site.worker("alpha", script)
    process = site.start_run(**options)
    site.happened("attempt.launched")
    log = site.run_folder() / "stdout-run-attempt-1.log"
    until(lambda: log.exists() and log.read_text() == PARTIAL, "the worker has said its first line")
    return process


def assert_kept_and_gone(site: Site, verdict: dict[str, Any]) -> None:
    """What the worker had written is there, and nothing of it runs any more."""
    assert Path(verdict["meta"]["streamFile"]).read_text() == PARTIAL
    until(lambda: not site.processes(), "everything of the run has ended", seconds=15)
    assert site.in_flight() == [] and len(site.decisions()) == 1


# --- the kernel is killed


def test_a_launcher_that_lives_starts_another_kernel(site: Site) -> None:
    process = begin(site)
    site.kill(site.kernel())
    site.happened("attempt.taken-over")
    site.go()
    verdict = verdict_of(process)
    assert (verdict["ok"], verdict["takenOver"], verdict["attempts"]) == (True, "re-attached", 1)


def test_without_a_kernel_reading_says_so_and_writes_nothing_and_resume_attaches_again(site: Site) -> None:
    process = begin(site)
    site.kill_launcher(process)
    site.kill(site.kernel())
    before = tree(site.root)
    listed, row = site.say("runs", "list"), site.say("runs", "list", "--json").document["runs"][0]
    shown, document = site.say("runs", "show", "last"), site.say("runs", "show", "last", "--json").document
    advice = f"kernel gone · next: bullswarm runs resume {row['shortId']}"
    assert advice in listed.out and advice in shown.out and document["why"] == row["why"] == advice
    assert (document["state"], document["ok"], shown.code) == ("kernel-gone", None, 0)
    assert site.say("runs", "result", "last").code == 2
    assert tree(site.root) == before

    resumed = site.start("runs", "resume", row["shortId"], "--json")
    site.happened("attempt.taken-over")
    site.go()
    verdict = verdict_of(resumed)
    assert (verdict["ok"], verdict["takenOver"], resumed.returncode) == (True, "re-attached", 0)
    assert site.in_flight() == [] and len(site.decisions()) == 1


def test_a_worker_that_ended_while_no_kernel_was_there_is_harvested(site: Site) -> None:
    process = begin(site)
    site.kill_launcher(process)
    site.kill(site.kernel())
    assert [booking.pool for booking in site.in_flight()] == ["alpha"], "the keeper still works"
    site.go()
    until(lambda: not site.processes(), "the keeper has ended")
    said = site.say("runs", "resume", "last", "--json")
    assert (said.code, said.document["ok"], said.document["takenOver"]) == (0, True, "harvested")
    again = site.say("runs", "resume", "last", "--json")
    assert again.document == said.document and "nothing to resume" in again.err


def test_two_that_resume_at_once_get_one_kernel_and_the_same_verdict(site: Site) -> None:
    process = begin(site)
    site.kill_launcher(process)
    site.kill(site.kernel())
    both = [site.start("runs", "resume", "last", "--json") for _ in range(2)]
    site.kernel()
    until(lambda: site.events().count("kernel.started") == 2, "a second kernel has begun")
    site.go()
    first, second = (verdict_of(process) for process in both)
    assert first == second and first["ok"]
    assert site.events().count("kernel.started") == 2
    assert site.events().count("attempt.finished") == site.events().count("run.finished") == 1


def test_a_terminals_signals_do_not_reach_the_kernel(site: Site) -> None:
    process = begin(site)
    for number in (signal.SIGHUP, signal.SIGINT):
        site.kill(site.kernel(), number)
    site.kill(process.pid, signal.SIGHUP)
    process.communicate(timeout=20)
    assert site.kernel() and site.worker_pid() in site.processes()
    site.go()
    assert site.say("runs", "wait", "last", "--json").document["takenOver"] is None


# --- the keeper or the worker is killed


def test_with_its_keeper_killed_the_whole_tree_is_ended_and_the_output_kept(site: Site) -> None:
    process = begin(site, WITH_GRANDCHILD)
    site.kill(site.keeper())
    verdict = verdict_of(process)
    assert (process.returncode, verdict["failureKind"]) == (1, "interrupted")
    assert "no exit record" in verdict["why"]
    assert verdict["meta"]["wallSec"] is None and verdict["meta"]["startedAt"]
    assert_kept_and_gone(site, verdict)


def test_with_kernel_and_keeper_killed_resume_says_what_is_lost(site: Site) -> None:
    process = begin(site, WITH_GRANDCHILD)
    site.kill_launcher(process)
    site.kill(site.kernel())
    site.kill(site.keeper())
    assert any("tail -f /dev/null" in line for line in site.processes().values()), "its grandchild outlives a worker"
    said = site.say("runs", "resume", "last", "--json")
    assert (said.code, said.document["failureKind"], said.document["takenOver"]) == (1, "interrupted", "lost")
    assert said.document["meta"]["leftoversKilled"] >= 1
    assert_kept_and_gone(site, said.document)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_worker_is_interrupted_and_leaves_nothing_running(site: Site, number: signal.Signals) -> None:
    process = begin(site, WITH_GRANDCHILD)
    site.kill(site.worker_pid(), number)
    verdict = verdict_of(process)
    assert (verdict["failureKind"], verdict["meta"]["signal"]) == ("interrupted", number.name)
    assert number.name in verdict["why"]
    assert_kept_and_gone(site, verdict)


# --- somebody wants it to end


def test_ctrl_c_stops_the_work(site: Site) -> None:
    process = begin(site, WITH_GRANDCHILD)
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    verdict = json.loads(out)
    assert (process.returncode, verdict["failureKind"], verdict["meta"]["cancelled"]) == (1, "cancelled", True)
    assert "Ctrl-C again leaves at once" in err
    assert_kept_and_gone(site, verdict)


def test_a_second_ctrl_c_leaves_and_the_stop_goes_on(site: Site) -> None:
    deaf = "trap '' TERM INT\n" + WAIT_FOR_GO
    process = begin(site, deaf)
    os.kill(process.pid, signal.SIGINT)
    assert process.stderr is not None
    assert "Ctrl-C again" in process.stderr.readline()
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (130, "") and "left to itself" in err
    verdict = site.say("runs", "wait", "last", "--json").document
    assert verdict["failureKind"] == "cancelled"
    assert_kept_and_gone(site, verdict)


@pytest.mark.parametrize("kernel_lives", [True, False])
def test_stop_ends_the_work_whether_or_not_a_kernel_is_there(site: Site, kernel_lives: bool) -> None:
    process = begin(site, WITH_GRANDCHILD)
    site.kill_launcher(process)
    if not kernel_lives:
        site.kill(site.kernel())
    said = site.say("runs", "stop", "last", "--json")
    assert (said.code, said.document["failureKind"]) == (0, "cancelled")
    assert_kept_and_gone(site, said.document)
    again = site.say("runs", "stop", "last", "--json")
    assert (again.code, again.document) == (0, said.document)


def test_a_worker_that_holds_the_database_is_stopped_all_the_same(site: Site) -> None:
    """A file that it may only read is enough to keep every writer out."""
    code = (
        "import fcntl, os, sys, time\n"
        "fcntl.lockf(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_SH, 8, 120)\n"
        "print('Looking at the parser.', flush=True)\n"
        "time.sleep(30)\n"
    )
    place = site.root / "holds.py"
    place.write_text(code)
    shared = site.home.database_file.with_name(site.home.database_file.name + "-shm")
    begin(site, f"cat > /dev/null\nexec '{sys.executable}' -I -S '{place}' '{shared}'")
    begun = time.monotonic()
    said = site.say("runs", "stop", "last", "--json")
    assert time.monotonic() - begun < 15, "it does not wait for the worker to end by itself"
    assert (said.code, said.document["failureKind"], said.document["meta"]["cancelled"]) == (0, "cancelled", True)
    assert_kept_and_gone(site, said.document)


def test_wait_gives_up_at_its_limit_and_the_work_goes_on(site: Site) -> None:
    process = begin(site)
    waited = site.say("runs", "wait", "last", "--timeout", "0.3", "--json")
    assert (waited.code, waited.document["state"], waited.document["ok"]) == (2, "running", None)
    site.go()
    done = site.say("workflow", "wait", "last", "--timeout", "30", "--json")
    assert (done.code, done.document) == (0, verdict_of(process))


# --- reading


def test_a_result_is_read_in_pieces_and_a_run_has_several_names(site: Site) -> None:
    site.worker("alpha", f"{SAY}\nyes 'a long answer' | head -c 100000")
    verdict = site.run().document
    names = [verdict["runId"], verdict["shortId"], verdict["shortId"][:5], "last"]
    assert {site.say("runs", "show", name, "--json").document["runId"] for name in names} == {verdict["runId"]}
    text, cursor = "", 0
    while cursor is not None:
        piece = site.say("runs", "result", "last", "--json", "--cursor", str(cursor)).document
        text, cursor = text + piece["text"], piece["cursor"]
    assert text == Path(verdict["outFile"]).read_text() and len(text) == verdict["outBytes"]
    assert len(verdict["excerpt"]) <= 2000


def test_a_result_in_text_is_the_whole_output_without_control_sequences(site: Site) -> None:
    site.worker("alpha", SAY)
    verdict = site.run().document
    long_line = "é" * 40_000
    Path(verdict["outFile"]).write_text(f"{long_line}\n\n{long_line}\x1b[31m red\x1b[0m\n\n\n", encoding="utf-8")
    assert site.say("runs", "result", "last").out == f"{long_line}\n\n{long_line} red\n"
    assert site.say("runs", "result", "last", "--cursor", "80002").out == f"{long_line} red\n"
    text, cursor = "", 0
    while cursor is not None:
        piece = site.say("runs", "result", "last", "--json", "--cursor", str(cursor)).document
        text, cursor = text + piece["text"], piece["cursor"]
    assert text == Path(verdict["outFile"]).read_text(encoding="utf-8")
    shown = site.say("runs", "result", "last", "--cursor", "900000")
    assert shown.out == "" and "nothing from byte 900000 on" in shown.err


def test_what_is_shown_of_a_long_answer_never_claims_to_count_it(site: Site) -> None:
    site.worker("alpha", f"{SAY}\nyes 'a long answer' | head -c 100000")
    ran = site.say("run", "--lane", "analyze", "--add-dir", str(site.project), "Explain.")
    for said in (ran, site.say("runs", "show", "last")):
        assert "this is the beginning; all of it is in the output file" in said.out and "more lines" not in said.out


@pytest.mark.parametrize("payload", ["{}", "[]", "{", '{"outcome": "completed", "verdict": 3}', "null"])
def test_a_damaged_event_spoils_its_own_row_only(site: Site, payload: str) -> None:
    site.worker("alpha", SAY)
    bad, good = site.run().document, site.run().document
    connection = open_database(site.home)
    assert connection is not None
    connection.execute("UPDATE events SET payload = ? WHERE run = ? AND type = 'run.finished'", (payload, bad["runId"]))
    connection.commit()
    connection.close()
    rows = site.say("runs", "list", "--json").document["runs"]
    assert [(row["runId"], row["ok"]) for row in rows] == [(good["runId"], True), (bad["runId"], None)]
    assert rows[1]["state"] == "damaged" and "runs list" not in rows[1]["why"] and bad["runId"] in rows[1]["why"]
    listed = site.say("runs", "list")
    assert listed.code == 0 and rows[1]["why"] in listed.out
    shown = site.say("runs", "show", bad["runId"])
    assert (shown.code, shown.out) == (2, "") and "is damaged" in shown.err


@pytest.mark.parametrize(
    "words",
    [
        ["show", "zzzzzz"],
        ["wait", "%"],
        ["resume", "last"],
        ["list", "--limit", "nope"],
        ["list", "--limit", "0"],
        ["--limit", "00"],
        ["show"],
        ["show", "last", "--x"],
    ],
)
def test_a_wrong_name_or_flag_ends_with_2_and_makes_no_home(site: Site, words: list[str]) -> None:
    said: Said = site.say("runs", *words)
    assert (said.code, said.out) == (2, "") and said.err
    assert not site.home.root.exists()
