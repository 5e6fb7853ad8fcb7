"""What the Claude Mod is given to draw: one file, as things are, by label; and one step from close by."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.processes import until
from tests.server.site import ANSWER, SAY, WAIT_FOR_GO, Site, make_site

from bullswarm_core.pools import Pool, Window
from bullswarm_core.routing.overview import overview
from bullswarm_core.store.home import write_json
from bullswarm_server import mod_state

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
PROGRAM = {
    "schemaVersion": "bullswarm.workflow.program.v3",
    "steps": [
        {"id": "explain", "lane": "analyze", "prompt": "Explain the parser."},
        {"id": "check", "lane": "analyze", "prompt": "Check the explanation.", "dependsOn": ["explain"]},
    ],
}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A machine in small with one worker that waits until it may end."""
    root = tmp_path / "site"
    root.mkdir()
    built = make_site(root)
    built.worker("talker", WAIT_FOR_GO)
    yield built
    built.go()
    built.close()


def state(site: Site) -> dict[str, Any]:
    file = mod_state.state_file(site.home)
    found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return found


def test_it_follows_a_run_from_its_start_to_its_verdict(site: Site) -> None:
    site.say("label", "talker", "tk")
    started = site.start_run()
    (run,) = until(lambda: state(site).get("runs"), "the run is in the state")
    assert (run["kind"], run["state"], run["step"], run["pool"], run["poolLabel"]) == (
        "run",
        "running",
        "run",
        "talker",
        "tk",
    )
    assert (run["done"], run["all"], run["running"], run["lane"]) == (0, 1, 1, "analyze")
    assert run["goal"] == "Explain the parser." and run["startedAt"] and run["waitingFor"] == []
    assert [row["inflight"] for row in state(site)["pools"] if row["pool"] == "talker"] == [1]
    site.go()
    assert started.wait(60) == 0
    until(lambda: not state(site)["runs"], "the run has left the state")
    (verdict,) = state(site)["verdicts"]
    assert (verdict["shortId"], verdict["ok"], verdict["poolLabel"]) == (run["shortId"], True, "tk")
    assert Path(verdict["outFile"]).read_text().strip().endswith(ANSWER)
    assert stat.S_IMODE(mod_state.state_file(site.home).stat().st_mode) == 0o600


def test_a_workflow_names_the_step_it_is_at_and_every_step(site: Site) -> None:
    write_json(site.root / "program.json", PROGRAM)
    words = ("--program", str(site.root / "program.json"), "--cwd", str(site.project), "--foreground")
    started = site.start("workflow", "goal", "Explain it, then check it", *words)
    found = until(lambda: next((run for run in state(site).get("runs", []) if run["running"]), None), "a step runs")
    assert (found["kind"], found["step"], found["done"], found["all"]) == ("workflow", "explain", 0, 2)
    assert [(step["id"], step["status"]) for step in found["steps"]] == [("explain", "running"), ("check", "pending")]
    site.go()
    started.wait(60)
    until(lambda: state(site)["verdicts"], "the workflow has its verdict")
    assert state(site)["verdicts"][0]["ok"] is True


def test_a_step_is_shown_from_close_by_while_it_runs_and_when_it_is_over(site: Site) -> None:
    started = site.start_run()
    run = until(lambda: state(site).get("runs"), "the run is in the state")[0]
    close = ("mod-state", "--run", run["shortId"])
    until(lambda: "Looking at the parser." in site.say(*close).document["excerpt"], "what the worker wrote so far")
    step = site.say(*close, "--step", "run").document
    assert (step["schemaVersion"], step["status"], step["pool"]) == ("bullswarm.mod-step.v1", "running", "talker")
    assert step["task"] == "Explain the parser." and step["activity"]["quietSec"] >= 0
    site.go()
    started.wait(60)
    step = site.say(*close).document
    assert step["status"] == "succeeded" and step["activity"] is None and ANSWER in step["excerpt"]
    said = site.say(*close, "--step", "other")
    assert said.code == 2 and '"other" is no step' in said.err and "steps: run" in said.err
    assert site.say("mod-state", "--run", "zzzz").code == 2


def test_the_verb_writes_it_anew_and_prints_what_it_wrote(site: Site) -> None:
    printed = site.say("mod-state").document
    assert printed == state(site) and printed["schemaVersion"] == mod_state.SCHEMA_VERSION
    assert {"talker", "claude-code"} <= {row["pool"] for row in printed["pools"]}
    mod_state.state_file(site.home).unlink()
    mod_state.state_file(site.home).mkdir()
    said = site.say("mod-state")
    assert said.code == 2 and "can't be written" in said.err


def test_a_run_whose_kernel_died_is_told_as_that(site: Site) -> None:
    created = site.create()
    site.kernel_that_dies_at("bullswarm_core.attempts.pick:decide", created.run_id)
    found = site.say("mod-state").document["runs"]
    assert [(run["runId"], run["state"]) for run in found] == [(created.run_id, "kernel-gone")]


def test_labels_and_the_switch_are_in_it_at_once(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    site.worker("talker", SAY)
    site.say("label", "talker", "tk")
    assert next(row["poolLabel"] for row in state(site)["pools"] if row["pool"] == "talker") == "tk"
    site.say("delegation", "on")
    assert state(site)["delegation"] is True


def pool(*windows: Window, **changes: Any) -> Pool:
    return Pool(id="p", provider="p", windows=windows, metered=True, **changes)


def window(kind: Any, used: float, *, left: timedelta, length: timedelta) -> Window:
    return Window(kind=kind, used_pct=used, resets_at=NOW + left, length=length, captured_at=NOW)


def test_a_pool_shows_every_window_with_its_elapsed_mark() -> None:
    week, five = timedelta(days=7), timedelta(hours=5)
    row = overview(
        pool(window("weekly", 20.0, left=week / 2, length=week), window("5h", 40.0, left=five / 4, length=five)),
        now=NOW,
    )
    (shown,) = mod_state.document([row], [], [], label=str, delegation=False, now=NOW)["pools"]
    assert (shown["weekly"]["usedPct"], shown["weekly"]["elapsedPct"]) == (20.0, 50.0)
    assert (shown["fiveHour"]["usedPct"], shown["fiveHour"]["elapsedPct"]) == (40.0, 75.0)
    assert len(shown["windows"]) == 2 and shown["bucket"] == "spare" and shown["surplus"] == 30.0


@given(used=st.floats(0, 130), left=st.floats(0.01, 0.99), enabled=st.booleans())
def test_a_bucket_is_one_of_eight_and_never_open_for_a_closed_pool(used: float, left: float, enabled: bool) -> None:
    week = timedelta(days=7)
    row = overview(pool(window("weekly", used, left=week * left, length=week), enabled=enabled), now=NOW)
    found = mod_state.bucket(row)
    assert found in {"closed", "full", "behind", "level", "ahead", "spare", "expiring"}
    assert (found == "closed") == (not enabled)
    if enabled and used >= 100:
        assert found == "full"
    if found in ("level", "ahead", "spare"):
        assert row.row.effective_surplus >= 0
