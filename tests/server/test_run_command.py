"""`bullswarm run`: what it leaves, what it refuses, and what it never writes."""

from __future__ import annotations

import io
import json
import os
import re
import sqlite3
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.processes import until
from tests.server.site import ANSWER, SAY, WAIT_FOR_GO, Site, tree

from bullswarm_core.pools.labels import set_label
from bullswarm_core.runs.journal import Journal
from bullswarm_core.store.home import write_json
from bullswarm_core.wire import parse_iso, stamp

# reference/runs-and-workflows.md 5, in our words: retryAfter is backAt.
VERDICT_FIELDS = {
    "schemaVersion", "runId", "shortId", "ok", "why", "failureKind", "backAt", "backAtSource", "pick", "outFile", "outBytes",
    "answer", "answerCheck", "taskFile", "attempts", "routeWhy", "reasoning", "forecast", "candidates", "excluded", "notes",
    "changedFiles", "commits", "attribution", "denied", "confinement", "billing", "excerpt", "meta", "startedAt", "finishedAt",
}  # fmt: skip
META_FIELDS = {
    "pool", "model", "exitCode", "signal", "timedOut", "stalled", "cancelled", "wallSec", "outBytes", "usage", "capture",
    "streamFile", "stderrTail", "tokenSource", "sessionId", "endReason",
}  # fmt: skip
WRITE_A_FILE = "cat > /dev/null\necho made > made.txt\necho 'I wrote made.txt, as asked.'"
WRITE_WHEN_TOLD = f"echo made > $$.txt\n{WAIT_FOR_GO}"


def test_the_first_command_of_the_readme_answers_from_echo_and_says_so(site: Site) -> None:
    said = site.run()
    verdict = said.document
    assert (said.code, verdict["ok"], verdict["pick"]["pool"]) == (0, True, "echo")
    assert {row["pool"] for row in verdict["excluded"]} == {"claude-code"}
    assert any("no work is done" in note for note in verdict["launchNotes"])


def test_every_time_that_a_run_stores_has_the_form_that_sorts_as_text(site: Site) -> None:
    site.worker("alpha", SAY)
    assert site.run().code == 0
    with site.database() as connection:
        connection.row_factory = sqlite3.Row
        for table in ("runs", "events", "decisions"):
            for row in connection.execute(f"SELECT * FROM {table}"):
                times = {name: row[name] for name in row.keys() if name == "at" or name.endswith("_at")}  # noqa: SIM118
                assert times
                for name, moment in times.items():
                    assert moment == stamp(parse_iso(moment)), (table, name)


def test_a_good_run_leaves_its_verdict_files_ids_and_one_line_in_the_decision_log(site: Site) -> None:
    site.worker("alpha", SAY)
    said = site.run("--effort", "low")
    verdict = said.document
    assert (said.code, said.err, verdict["ok"], verdict["failureKind"]) == (0, "", True, None)
    assert verdict.keys() >= VERDICT_FIELDS and verdict["meta"].keys() >= META_FIELDS
    assert verdict["schemaVersion"] == "bullswarm.verdict.v1"
    assert verdict["pick"].keys() >= {"pool", "poolLabel", "model", "command", "lane", "effort"}

    folder = site.run_folder()
    assert re.fullmatch(r"wf-[0-9a-z]+-[0-9a-f]{6}", verdict["runId"]) and folder.name == verdict["runId"]
    assert re.fullmatch(r"[2-9a-z]{6}", verdict["shortId"])
    assert verdict["taskFile"] == str(folder / "task-run-attempt-1.md")
    assert verdict["outFile"] == str(folder / "out-run-attempt-1.md")
    assert Path(verdict["outFile"]).read_text() == verdict["excerpt"] == f"{ANSWER}\n"
    assert verdict["meta"]["streamFile"] == str(folder / "stdout-run-attempt-1.log")
    assert (folder / "attempt-run-1.exit.json").exists()
    assert Path(verdict["taskFile"]).read_text().startswith("Explain the parser.\n")

    (row,) = site.decisions()
    assert (row["run"], row["attempt"], row["kind"], row["picked"]) == (verdict["runId"], "run-1", "run", "alpha")
    assert (row["lane"], row["effort"], row["ok"], row["failure_kind"]) == ("analyze", "low", 1, None)
    assert row["reason"] == verdict["routeWhy"] and row["wall_sec"] is not None
    assert site.in_flight() == []


def test_everything_in_the_home_is_for_its_owner_alone(site: Site) -> None:
    site.worker("alpha", SAY)
    site.run()
    modes = {stat.S_IMODE(path.lstat().st_mode) & 0o077 for path in (site.home.root, *site.home.root.rglob("*"))}
    assert modes == {0}, [str(p) for p in site.home.root.rglob("*") if stat.S_IMODE(p.lstat().st_mode) & 0o077]


def test_work_that_fails_ends_with_1(site: Site) -> None:
    site.worker("alpha", "cat > /dev/null\necho 'the model server is gone' >&2\nexit 7")
    said = site.run()
    assert (said.code, said.document["ok"], said.document["failureKind"]) == (1, False, "process")
    assert "exit 7" in said.document["why"] and "the model server is gone" in said.document["why"]
    assert site.decisions()[0]["ok"] == 0 and site.in_flight() == []


def test_a_build_names_the_changed_files(site: Site) -> None:
    site.worker("alpha", WRITE_A_FILE)
    verdict = site.run(lane="build").document
    assert (verdict["ok"], verdict["changedFiles"], verdict["attribution"]) == (True, ["made.txt"], "own")


def test_no_pool_for_the_task_ends_with_1_and_says_why_of_each(site: Site) -> None:
    site.worker("alpha", SAY, lanes=["analyze"])
    said = site.run("--pool", "alpha", lane="build")
    assert (said.code, said.document["failureKind"], said.document["pick"]) == (1, "unavailable", None)
    assert {row["pool"] for row in said.document["excluded"]} >= {"alpha", "echo"}


# --- the call was wrong: exit 2, nothing written

WRONG_CALLS: dict[str, tuple[list[str], str]] = {
    "an unknown flag": (["--lane", "analyze", "--speed", "Explain."], "--speed"),
    "a shortened flag": (["--lan", "analyze", "Explain."], "--lan"),
    "no lane": (["Explain."], "--lane"),
    "a bad lane": (["--lane", "think", "Explain."], "'think'"),
    "a bad effort": (["--lane", "analyze", "--effort", "huge", "Explain."], "'huge'"),
    "no task": (["--lane", "analyze"], "the task is empty"),
    "two tasks": (["--lane", "analyze", "--prompt", "A", "B"], "given twice"),
    "no such task file": (["--lane", "analyze", "--task-file", "nowhere.md"], "nowhere.md"),
    "no such folder": (["--lane", "analyze", "--add-dir", "/nowhere", "Explain."], "/nowhere"),
    "a file for a folder": (["--lane", "analyze", "--add-dir", "/etc/passwd", "Explain."], "is not a folder"),
    "an unknown pool": (["--lane", "analyze", "--pool", "gamma", "Explain."], "gamma"),
    "an unknown pool to avoid": (["--lane", "analyze", "--avoid-pool", "gamma", "Explain."], "gamma"),
    "an unknown provider": (["--lane", "analyze", "--use-provider", "gamma", "Explain."], "gamma"),
    "an unknown earlier run": (["--lane", "analyze", "--independent-of", "gamma", "Explain."], "gamma"),
    "no number": (["--lane", "analyze", "--timeout", "soon", "Explain."], '"soon"'),
    "no time at all": (["--lane", "analyze", "--timeout", "0", "Explain."], '"0" is not a number of seconds above 0'),
    "not a number": (["--lane", "analyze", "--timeout", "nan", "Explain."], '"nan"'),
    "a negative heartbeat": (["--lane", "analyze", "--heartbeat", "-1", "Explain."], "-1"),
    "a supposed meter for a real run": (["--lane", "analyze", "--meter", "alpha:5h=10", "Explain."], "--dry-run"),
    "a value that is missing": (["--lane", "analyze", "Explain.", "--pool"], "--pool"),
}


@pytest.mark.parametrize("case", WRONG_CALLS)
def test_a_wrong_call_ends_with_2_and_nothing_is_written(site: Site, case: str) -> None:
    site.worker("alpha", SAY)
    site.say("pools")  # reading fills the cache, which is no part of a run
    before = tree(site.root)
    words, named = WRONG_CALLS[case]
    said = site.say("run", *words)
    assert (said.code, said.out) == (2, ""), said
    assert named in said.err
    assert tree(site.root) == before


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("state.json", b'{"version": 1, "config": '),
        ("pool-labels.json", b"[[["),
        ("bullswarm.db", b"no database" * 200),
    ],
)
def test_damaged_state_is_named_and_left_as_it_is(site: Site, name: str, content: bytes) -> None:
    site.worker("alpha", SAY)
    (site.home.root / name).write_bytes(content)
    said = site.run()
    assert (said.code, said.out) == (2, ""), said
    assert name in said.err and "Traceback" not in said.err
    assert (site.home.root / name).read_bytes() == content
    assert not site.home.workflows_dir.exists()


def test_a_worker_at_the_depth_limit_starts_no_other(site: Site) -> None:
    site.worker("alpha", SAY)
    said = site.run(environ={"BULLSWARM_DEPTH": "2"})
    assert (said.code, said.out) == (2, "") and "config.depthLimit" in said.err
    assert not site.home.database_file.exists()


def test_the_total_of_a_root_task_counts_what_its_workers_start(site: Site) -> None:
    write_json(site.home.state_file, {"version": 1, "config": {"totalLimit": 2}})
    site.worker("alpha", SAY)
    first = (
        f'{sys.executable} -m bullswarm_server.cli.main run --lane analyze --pool alpha --json "Go on." > inner.json'
    )
    site.worker("beta", f"cat > /dev/null\n{first}\necho 'The other worker has answered the question.'")
    assert site.run("--pool", "beta").code == 0
    inner = json.loads((site.project / "inner.json").read_text())
    assert inner["ok"], inner
    with site.database() as connection:
        journal = Journal(connection)
        roots = {journal.state(row.run_id).created.root for row in journal.rows()}
        outer = journal.rows()[-1].run_id
    assert roots == {None, outer}, "the inner run belongs to the root task of the outer one"
    third = site.run("--pool", "alpha", environ={"BULLSWARM_ROOT": outer})
    assert (third.code, third.document["failureKind"]) == (1, "runtime")
    assert "config.totalLimit is 2" in third.document["why"]


# --- where the task and the names come from


def test_a_task_comes_from_a_file_or_from_standard_input(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.worker("alpha", "cat > got.txt\necho 'I have read the whole task that you sent me.'")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("Erklär's: “x” ✓\n".encode())))
    base = ("run", "--lane", "analyze", "--add-dir", str(site.project), "--json")
    assert site.say(*base, "--task-file", "-").code == 0
    assert (site.project / "got.txt").read_text().startswith("Erklär's: “x” ✓\n")
    task = site.root / "task.md"
    task.write_bytes(b"\xff\xfe not text")
    refused = site.say(*base, "--task-file", str(task))
    assert refused.code == 2 and "is not UTF-8" in refused.err


def test_only_a_regular_file_of_a_tasks_size_is_read(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe, huge = site.root / "pipe", site.root / "huge"
    os.mkfifo(pipe)
    with huge.open("wb") as file:
        file.truncate(1 << 33)
    base = ("run", "--lane", "analyze", "--add-dir", str(site.project), "--task-file")
    for name, why in ((pipe, "no regular file"), ("/dev/zero", "no regular file"), (huge, "more than 8388608 bytes")):
        said = site.say(*base, str(name))
        assert said.code == 2 and why in said.err
    with open("/dev/zero", encoding="latin-1") as endless:
        monkeypatch.setattr(sys, "stdin", endless)
        said = site.say(*base, "-")
    assert said.code == 2 and "more than 8388608 bytes" in said.err


def test_a_label_is_as_good_as_the_id_and_people_see_the_label(site: Site) -> None:
    site.worker("alpha", SAY)
    site.worker("beta", SAY)
    set_label(site.home, "beta", "work-account", pool_ids=["alpha", "beta"])
    verdict = site.run("--pool", "work-account").document
    assert (verdict["pick"]["pool"], verdict["pick"]["poolLabel"]) == ("beta", "work-account")
    shown = site.say("runs", "show", verdict["shortId"])
    assert shown.out.startswith("OK [work-account] ")
    for said in (shown, site.say("run", "--lane", "analyze", "--pool", "beta", "Explain the parser.")):
        assert "route: pinned to work-account (--pool)" in said.out
    assert verdict["routeWhy"].startswith("pinned to beta (--pool)")


def test_independent_of_leaves_out_who_did_the_earlier_work(site: Site) -> None:
    site.worker("alpha", SAY)
    site.worker("beta", SAY)
    first = site.run().document
    for reference in (first["shortId"], first["outFile"]):
        other = site.run("--independent-of", reference).document
        assert other["pick"]["pool"] != first["pick"]["pool"]


# --- a dry run


@pytest.mark.parametrize("used", [False, True])
def test_a_dry_run_shows_the_pick_and_the_command_and_writes_nothing_anywhere(site: Site, used: bool) -> None:
    site.worker("alpha", SAY)
    if used:
        assert site.run().code == 0
        until(lambda: not site.processes(), "the kernel of the first run has closed its files")
    before = tree(site.root)
    said = site.run("--dry-run", "--meter", "alpha:5h=20", lane="build")
    document = said.document
    assert (said.code, document["dryRun"], document["pick"]["pool"]) == (0, True, "alpha")
    assert "alpha-cli" in document["pick"]["command"] and document["forecast"] and document["candidates"]
    text = site.say("run", "--dry-run", "--lane", "analyze", "Explain.")
    assert "command: " in text.out and "alpha-cli" in text.out
    assert tree(site.root) == before


def test_what_another_program_keeps_in_workflows_is_listed_and_never_touched(site: Site) -> None:
    site.worker("alpha", SAY)
    foreign = site.home.workflows_dir / "wf-other-000000"
    foreign.mkdir(parents=True)
    (foreign / "run.json").write_text('{"status": "running"}')
    before = tree(foreign)
    run_id = site.run().document["runId"]
    listed = site.say("runs", "list", "--json").document
    assert listed["viewOnly"] == ["wf-other-000000"] and [row["runId"] for row in listed["runs"]] == [run_id]
    assert site.say("runs", "stop", "wf-other-000000").code == 2
    assert tree(foreign) == before


# --- several at once


def test_ten_runs_at_once_spread_over_two_equal_pools(site: Site) -> None:
    site.worker("alpha", WAIT_FOR_GO)
    site.worker("beta", WAIT_FOR_GO)
    started = [site.start_run() for _ in range(10)]
    until(lambda: len(site.in_flight()) == 10, "ten are in flight", seconds=90)
    pools = sorted(booking.pool for booking in site.in_flight())
    assert pools == ["alpha"] * 5 + ["beta"] * 5
    site.go()
    verdicts = [json.loads(process.communicate(timeout=60)[0]) for process in started]
    assert all(verdict["ok"] for verdict in verdicts), verdicts
    assert len({verdict["runId"] for verdict in verdicts}) == 10
    assert site.in_flight() == [] and len(site.decisions()) == 10


def test_a_second_writer_in_one_tree_is_refused_unless_the_tree_is_shared(site: Site) -> None:
    site.worker("alpha", WRITE_WHEN_TOLD)
    first = site.start_run(lane="build")
    site.happened("attempt.launched")
    (folder,) = site.home.workflows_dir.iterdir()
    (site.project / "below").mkdir()
    short_id = site.say("runs", "show", folder.name, "--json").document["shortId"]
    for where in (site.project, site.project / "below"):
        refused = site.run("--add-dir", str(where), lane="chore")
        assert refused.code == 1 and f"run {short_id} already writes in " in refused.err, refused
        assert f"(bullswarm runs wait {short_id})" in refused.err and "--shared-tree" in refused.err, refused
    assert list(site.home.workflows_dir.iterdir()) == [folder]

    assert site.start_run().poll() is None  # an analysis beside it is welcome
    second = site.start_run("--shared-tree", lane="build")
    until(lambda: sum(booking.worker is not None for booking in site.in_flight()) == 3, "all three are at work")
    site.go()
    verdicts = [_verdict(process) for process in (first, second)]
    assert [verdict["attribution"] for verdict in verdicts] == ["shared", "shared"]
    assert _verdict(site.started[1])["ok"]


def _verdict(process: Any) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(process.communicate(timeout=60)[0])
    return value


@pytest.mark.parametrize("option", ["--pool", "--use-pool", "--avoid-pool", "--use-provider", "--avoid-provider"])
def test_a_cli_that_is_not_installed_is_named_as_such(site: Site, option: str) -> None:
    said = site.run(option, "codex")
    assert said.code == 2 and said.err.strip().endswith(" · codex was not found on PATH")
