"""Evidence, deliverables and sections in whole workflows on scripted workers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.core.runs.journals import document
from tests.processes import until
from tests.server.site import ANSWER, Site
from tests.server.workflows import begin, ended, go_on, result, statuses, wish

from bullswarm_core.dispatch.services import utc_now
from bullswarm_core.runs.events import StopRequested
from bullswarm_core.runs.intents import pause, resume
from bullswarm_core.runs.journal import Journal
from bullswarm_core.runs.run_files import RunFolder
from bullswarm_core.runs.state import RunState

# Does what the prompt's first line says, as shell words; then says what stands in the file `reply`, else an answer.
OBEDIENT = f"""p=$(cat)
cmd=$(printf '%s' "$p" | sed -n '1s/^DO //p')
[ -z "$cmd" ] || eval "$cmd" || exit 3
if [ -e reply ]; then cat reply; else echo '{ANSWER}'; fi"""
# A check that waits for a file that no test makes; it ends by itself all the same.
ENDLESS = "echo $$ >check.pid; n=0; while [ $n -lt 2400 ]; do sleep 0.05; n=$((n+1)); done"


@pytest.fixture
def workers(site: Site) -> Site:
    site.worker("one", OBEDIENT)
    site.worker("two", OBEDIENT)
    return site


def step(do: str = "true", name: str = "a", lane: str = "build", **more: Any) -> dict[str, Any]:
    return {"id": name, "prompt": f"DO {do}", "lane": lane, **more}


def command(cmd: str, **more: Any) -> dict[str, Any]:
    return {"type": "command", "cmd": cmd, **more}


def tries(state: RunState, name: str = "a") -> list[tuple[str | None, str | None, str]]:
    """Return each attempt's failure kind, how it came about, and why it ended so."""
    found = []
    for attempt in state.steps[name].attempts:
        assert attempt.finished is not None
        found.append((attempt.finished.failure_kind, attempt.picked.retry_how, attempt.finished.why))
    return found


def judgement(state: RunState, ordinal: int = 1, name: str = "a") -> dict[str, Any]:
    finished = state.steps[name].attempts[ordinal - 1].finished
    assert finished is not None
    return dict(finished.judgement.document)


def check_pid(site: Site) -> int:
    file = site.project / "check.pid"
    return int(until(lambda: file.read_text().strip() if file.exists() else "", "the check runs"))


def gone(site: Site, pid: int) -> None:
    until(lambda: pid not in site.processes(), f"check {pid} is gone")


def concluded(site: Site, run_id: str) -> Path:
    return RunFolder.of(site.home, run_id).attempt("a", 1).concluded


def test_a_failed_check_is_tried_again_on_the_same_pool_with_what_was_wrong(workers: Site) -> None:
    twice = "wc -l <made.txt; test $(wc -l <made.txt) = 2"
    program = document(step("echo line >>made.txt", evidence=[command("test -e made.txt"), command(twice)]))
    state = ended(workers, begin(workers, program))
    first, second = tries(state)
    assert first[:2] == ("failed-evidence", None) and first[2] == f"{twice} → exit 1"
    assert second[:2] == (None, "same-pool") and statuses(state) == {"a": "succeeded"}
    assert len({attempt.picked.pool for attempt in state.steps["a"].attempts}) == 1
    results = [[(item["status"], item["exit"]) for item in judgement(state, n)["evidenceResults"]] for n in (1, 2)]
    assert results == [[("passed", 0), ("failed", 1)], [("passed", 0), ("passed", 0)]]
    retold = Path(state.created.cwd) / RunFolder.of(workers.home, state.created.run_id).attempt("a", 2).task
    assert "wc -l <made.txt" in retold.read_text()
    assert result(state)["steps"][0]["proof"] == "proven by command"


def test_a_check_that_cannot_work_goes_back_at_once(workers: Site) -> None:
    state = ended(workers, begin(workers, document(step("echo >made", evidence=[command("no-such-tool-xyz --all")]))))
    assert tries(state) == [
        (
            "failed-evidence", None,
            "no-such-tool-xyz --all → could not start: no-such-tool-xyz: command not found",
        )
    ]  # fmt: skip


def test_the_checks_of_work_that_failed_are_not_run(workers: Site) -> None:
    program = document(step("false", evidence=[command("touch checked")], retry=0))
    state = ended(workers, begin(workers, program))
    assert judgement(state)["evidenceResults"] is None and not (workers.project / "checked").exists()


def test_the_answer_of_an_analysis_is_checked_as_data(workers: Site) -> None:
    (workers.project / "reply").write_text('Here:\n```json\n{"n": 1}\n```\n')
    asked = {"type": "object", "required": ["n"]}
    program = document(step(lane="analyze", evidence=[{"type": "schema", "file": "$output", "schema": asked}]))
    state = ended(workers, begin(workers, program))
    assert statuses(state) == {"a": "succeeded"} and judgement(state)["evidenceResults"][0]["status"] == "passed"


def test_in_a_loop_until_its_evidence_a_failed_check_is_another_round(workers: Site) -> None:
    program = document(
        step("echo line >>made.txt", evidence=[command("test $(wc -l <made.txt) = 2")]),
        loops=[{"id": "l", "steps": ["a"], "until": {"step": "a", "evidence": "passed"}, "maxRounds": 3}],
    )
    state = ended(workers, begin(workers, program))
    first, second = tries(state)
    assert first[:2] == (None, None) and "checked, not passed: test" in first[2] and second[0] is None
    assert result(state)["loops"][0]["round"] == 2 and result(state)["status"] == "completed"


def test_in_a_loop_until_its_evidence_a_check_that_cannot_work_still_fails(workers: Site) -> None:
    program = document(
        step("echo line >>made.txt", evidence=[command("no-such-tool-xyz")]),
        loops=[{"id": "l", "steps": ["a"], "until": {"step": "a", "evidence": "passed"}, "maxRounds": 3}],
    )
    state = ended(workers, begin(workers, program))
    assert [kind for kind, _, _ in tries(state)] == ["failed-evidence"]


def test_a_kernel_that_dies_during_the_checks_costs_no_work(workers: Site) -> None:
    cmd = f"if [ -e go ]; then exit 0; fi; {ENDLESS}"
    run_id = begin(
        workers, document(step("echo >made", evidence=[command("echo >>rounds"), command(cmd, timeoutSec=600)]))
    )
    check = check_pid(workers)
    assert json.loads(concluded(workers, run_id).read_text())["judgement"]["ok"] is True
    workers.kill(workers.kernel())
    workers.go()
    (workers.project / "later.txt").write_text("somebody else's")
    state = ended(workers, run_id)
    gone(workers, check)
    assert len(tries(state)) == 1 and statuses(state) == {"a": "succeeded"}
    assert judgement(state)["changedFiles"] == ["made"], "what came after the worker's end is not its work"
    assert [item["status"] for item in judgement(state)["evidenceResults"]] == ["passed", "passed"]
    assert (workers.project / "rounds").read_text() == "\n\n" and not concluded(workers, run_id).exists()
    assert state.steps["a"].attempts[0].taken_over == "harvested" and workers.in_flight() == []


def test_a_stop_ends_the_checks(workers: Site) -> None:
    run_id = begin(
        workers, document(step("echo >made", evidence=[command(ENDLESS, timeoutSec=600), command("touch never")]))
    )
    check = check_pid(workers)
    with workers.database() as connection:
        Journal(connection).append(run_id, [StopRequested(by="me")], at=utc_now())
    state = ended(workers, run_id)
    gone(workers, check)
    assert tries(state) == [("cancelled", None, "cancelled: its checks were stopped on request")]
    assert [item["why"] for item in judgement(state)["evidenceResults"]] == ["stopped", "stopped"]
    assert not (workers.project / "never").exists()


def test_a_pause_at_once_stops_the_checks_and_a_resume_finds_the_work_done(workers: Site) -> None:
    cmd = f"if [ -e go ]; then exit 0; fi; {ENDLESS}"
    program = document(step("[ -e made ] || echo >made", evidence=[command(cmd, timeoutSec=600)]))
    run_id = begin(workers, program)
    check = check_pid(workers)
    wish(workers, run_id, pause(at_once=True, by="me"))
    paused = ended(workers, run_id)
    gone(workers, check)
    assert paused.parked is not None and tries(paused)[0][0] == "paused"
    workers.go()
    state = go_on(workers, run_id, resume(by="me"))
    assert statuses(state) == {"a": "succeeded"} and judgement(state, 2)["carried"] is True


def test_a_check_that_changes_the_deliverable_fails(workers: Site) -> None:
    evidence = [command("echo more >>made.txt"), command("true")]
    program = document(step("echo line >made.txt", files=["made.txt"], evidence=evidence, retry=0))
    state = ended(workers, begin(workers, program))
    assert tries(state)[0][2] == "echo more >>made.txt → changed the deliverable: made.txt"
    assert judgement(state)["evidenceResults"][1]["status"] == "not-run"


def data(name: str) -> dict[str, Any]:
    return {"files": [name], "deliverable": {"type": "data", "paths": [name]}}


@pytest.mark.parametrize(
    ("do", "more", "why"),
    [
        ("echo >other", {"files": ["made.txt"]}, "not produced: made.txt did not change"),
        ("echo >other", data("d.json"), "not produced: d.json is missing"),
        ("mkdir -p dist; echo >dist/app.js", {"files": ["dist/app.js"]}, None),
        ("touch old.json", data("old.json"), None),
        (
            "echo >other", data("old.json"),
            "not produced: old.json was there already and not written during the step",
        ),
    ],
)  # fmt: skip
def test_the_deliverable_of_a_step(workers: Site, do: str, more: dict[str, Any], why: str | None) -> None:
    (workers.project / ".gitignore").write_text("dist/\n*.json\n")
    (workers.project / "old.json").write_text("1")
    state = ended(workers, begin(workers, document(step(do, retry=0, **more))))
    kind, _, said = tries(state)[0]
    assert (kind, said) == ("not-produced", why) if why else kind is None
    assert judgement(state)["missing"] == ([more["files"][0]] if why else []) and judgement(state)["carried"] is False


def test_a_retry_that_finds_the_work_done_passes(workers: Site) -> None:
    program = document(step("if [ -e made.txt ]; then true; else echo >made.txt; false; fi", files=["made.txt"]))
    state = ended(workers, begin(workers, program))
    assert [kind for kind, _, _ in tries(state)] == ["process", None]
    assert tries(state)[1][2] == "1 file changed, done by an earlier attempt of the step"
    assert judgement(state, 2)["carried"] is True and judgement(state, 2)["changedFiles"] == []


def test_the_work_of_an_earlier_round_is_not_this_rounds(workers: Site) -> None:
    program = document(
        step("[ -e made.txt ] || echo >made.txt", evidence=[command("false")], retry=0),
        loops=[{"id": "l", "steps": ["a"], "until": {"step": "a", "evidence": "passed"}, "maxRounds": 2}],
    )
    state = ended(workers, begin(workers, program))
    assert [kind for kind, _, _ in tries(state)] == [None, "not-produced"]


def test_writers_at_the_same_time_own_the_files_that_they_name(workers: Site) -> None:
    def write(name: str, other: str) -> dict[str, Any]:
        wait = f"n=0; while [ ! -e {other} ] && [ $n -lt 600 ]; do sleep 0.05; n=$((n+1)); done"
        return step(f"echo >{name}; {wait}", name=name, files=[name])

    state = ended(workers, begin(workers, document(write("x", "y"), write("y", "x"))))
    assert statuses(state) == {"x": "succeeded", "y": "succeeded"}
    assert [judgement(state, name=name)["changedFiles"] for name in "xy"] == [["x"], ["y"]]


def test_what_a_good_worker_left_undone_is_told(workers: Site) -> None:
    (workers.project / "reply").write_text("## Done\n- a\n\n## Not done\n- the docs\n- outside: no key\n")
    state = ended(workers, begin(workers, document(step("echo >made"))))
    assert judgement(state)["returnedEarly"] == {"count": 2, "items": ["the docs", "outside: no key"]}
    assert "outsideBlockers" not in judgement(state)


def test_a_blocker_outside_of_the_step_skips_the_retry(workers: Site) -> None:
    (workers.project / "reply").write_text("## Not done\n- **outside:** the registry is down\n- the docs\n")
    state = ended(workers, begin(workers, document(step("echo >made", evidence=[command("false")]))))
    assert [kind for kind, _, _ in tries(state)] == ["failed-evidence"]
    assert judgement(state)["outsideBlockers"] == ["the registry is down"] and "returnedEarly" not in judgement(state)


def test_a_single_run_is_judged_as_ever(workers: Site) -> None:
    (workers.project / "reply").write_text("## Not done\n- outside: x\n")
    said = workers.run()
    with workers.database() as connection:
        state = Journal(connection).state(said.document["runId"])
    finished = state.steps["run"].attempts[0].finished
    assert finished is not None and finished.ok
    assert (
        not {"carried", "missing", "evidenceResults", "returnedEarly", "outsideBlockers"}
        & finished.judgement.document.keys()
    )
