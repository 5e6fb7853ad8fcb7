"""Tasks that outlast a client's patience: `running`, a call that waits on, a verdict; and clients that die in the wait."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.agents.callers import (
    ANSWER,
    CLAUDE_CALLER,
    CODEX_CALLER,
    CODEX_SCRIPTING,
    OPENCODE_CALLER,
    SECOND_ACCOUNT,
    WORKER_PROMPT,
    Caller,
    answers,
    prepare,
    script,
    session,
    short_id,
    start,
    unfinished,
)
from tests.agents.conftest import MachineMaker
from tests.agents.machine import Machine
from tests.agents.scripted_model.scenario import Turn, later, say
from tests.agents.setups import CLAUDE
from tests.processes import until

pytestmark = pytest.mark.real_cli

CLIENTS = {"claude": CLAUDE_CALLER, "codex": CODEX_CALLER, "opencode": OPENCODE_CALLER}


@pytest.fixture(params=CLIENTS)
def caller(request: pytest.FixtureRequest) -> Caller:
    """Each client in turn."""
    return CLIENTS[request.param]


def slow(
    machine: Machine,
    caller: Caller,
    *,
    first: Mapping[str, Any] | None = None,
    worker: Turn | None = None,
    after: int = 1,
) -> dict[str, Any]:
    """Set up a client whose model starts one task and waits on; its worker is done after so many answers."""
    prepare(machine, caller)
    pool = caller.worker.name if caller.worker is not CLAUDE else SECOND_ACCOUNT
    task = {"lane": "analyze", "cwd": str(machine.project), "prompt": WORKER_PROMPT, "pool": pool, **(first or {})}
    script(machine, caller, [("run", task)], worker=worker, worker_after=after)
    return task


def verdict_of(machine: Machine, told: list[str]) -> str:
    """Check that the last answer is the verdict of the one run, and that every earlier one was about it, too."""
    (row,) = machine.runs()
    assert row["ok"] is True
    *earlier, last = told
    assert ANSWER in last and short_id(last) == row["shortId"]
    assert all(map(unfinished, earlier))
    return last


def test_a_short_wait_ends_in_running_and_the_next_call_in_the_verdict(
    make_machine: MachineMaker, caller: Caller
) -> None:
    machine = make_machine(caller.setup, [])
    slow(machine, caller, first={"wait_s": 0.5})
    running, verdict = session(machine, caller)
    verdict_of(machine, [running, verdict])
    assert "waits on" in running and f'"run_id":"{short_id(running)}"' in running.replace("\\", "")


def test_claude_code_states_its_limit_and_no_call_outlasts_it(make_machine: MachineMaker) -> None:
    machine = make_machine(CLAUDE, [])
    slow(machine, CLAUDE_CALLER)
    machine.environ["MCP_TOOL_TIMEOUT"] = "8000"
    running, verdict = session(machine, CLAUDE_CALLER)
    verdict_of(machine, [running, verdict])
    assert '"state":"running"' in running
    (waited,) = re.findall(r'"effectiveWaitSec":([\d.]+)', running)
    assert 2 < float(waited) < 6


def test_a_call_that_claude_code_cut_off_is_waited_on_by_the_name_last(make_machine: MachineMaker) -> None:
    machine = make_machine(CLAUDE, [])
    slow(machine, CLAUDE_CALLER)
    settings = machine.home / ".claude.json"
    document = json.loads(settings.read_text(encoding="utf-8"))
    document["mcpServers"]["bullswarm"]["timeout"] = 6000
    settings.write_text(json.dumps(document), encoding="utf-8")
    cut_off, verdict = session(machine, CLAUDE_CALLER)
    verdict_of(machine, [cut_off, verdict])
    assert "timed out after 6s" in cut_off


def test_a_call_that_codex_cut_off_is_waited_on_by_the_name_last(make_machine: MachineMaker) -> None:
    caller = replace(CODEX_CALLER, worker=CLAUDE)
    machine = make_machine(caller.setup, [])
    slow(machine, caller)
    cut_off, verdict = session(machine, caller, "-c", "mcp_servers.bullswarm.tool_timeout_sec=6")
    verdict_of(machine, [cut_off, verdict])
    assert "timed out awaiting tools/call after 6s" in cut_off


def test_codex_in_code_mode_hears_before_its_script_would_hand_back(make_machine: MachineMaker) -> None:
    caller = replace(CODEX_SCRIPTING, worker=CLAUDE)
    machine = make_machine(caller.setup, [])
    slow(machine, caller)
    running, verdict = session(machine, caller)
    verdict_of(machine, [running, verdict])
    assert "Script completed" in running and '"effectiveWaitSec":2' in running
    assert "yield_time_ms" in running


def test_progress_keeps_opencode_waiting_beyond_its_limit(make_machine: MachineMaker) -> None:
    machine = make_machine(OPENCODE_CALLER.setup, [])
    slow(machine, OPENCODE_CALLER, worker=later(10, say(ANSWER)), after=0)
    settings = machine.home / ".config/opencode/opencode.json"
    document = json.loads(settings.read_text(encoding="utf-8"))
    document["mcp"]["bullswarm"]["timeout"] = 8000
    settings.write_text(json.dumps(document), encoding="utf-8")
    (verdict,) = session(machine, OPENCODE_CALLER)
    verdict_of(machine, [verdict])


def test_work_outlives_a_killed_client_and_its_key_finds_it_again(make_machine: MachineMaker, caller: Caller) -> None:
    machine = make_machine(caller.setup, [])
    task = slow(machine, caller, first={"idempotency_key": "the-parser"}, worker=later(3, say(ANSWER)), after=0)
    process = start(machine, caller)
    until(lambda: [found for found in machine.model.prompts() if WORKER_PROMPT in found.prompt], "the worker asks")
    assert answers(machine, caller) == []
    process.kill()
    process.wait()
    (before,) = machine.runs()
    assert before.get("finishedAt") is None
    waited = machine.bullswarm("runs", "wait", before["shortId"], "--json")
    assert waited.returncode == 0, waited.stdout + waited.stderr
    shown = json.loads(machine.bullswarm("runs", "show", before["shortId"], "--json").stdout)
    assert shown["ok"] is True and Path(shown["outFile"]).read_text(encoding="utf-8").strip() == ANSWER

    script(machine, caller, [("run", task)])
    (again,) = session(machine, caller)
    verdict_of(machine, [again])
    assert len([found for found in machine.model.prompts() if WORKER_PROMPT in found.prompt]) == 1
