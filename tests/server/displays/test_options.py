"""The ways on from a workflow: each command does what its name says, wherever it is printed."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.runs.journals import Written, document

from bullswarm_core.pools.labels import Labels
from bullswarm_core.reports.needs_you import needs_you
from bullswarm_core.reports.workflow_result import running_result
from bullswarm_core.runs.run_files import RunFolder
from bullswarm_server.dashboard.actions import actions_at
from bullswarm_server.displays.options import option_name, your_call
from bullswarm_server.displays.workflow import result_lines
from bullswarm_server.displays.workflow_watch import outcome_lines

POOLS = ("codex", "grok", "claude-code:acme")
FOLDER = RunFolder(Path("/home/runs/abcdef"))
LABELS = Labels({"codex": "my box"})


def failed(tried: list[str], eligible: list[str]) -> Written:
    """A step that failed on these pools, while decisions held those for eligible."""
    written = Written(document({"id": "mend"}), retryAttempts=0)
    for number, pool in enumerate(tried):
        written.pick("mend", pool=pool, retry_how="another-pool" if number else None)
        payload = written.events[-2].payload
        payload.decision["candidates"] = [{"pool": each} for each in eligible]  # type: ignore[union-attr]
        written.end("mend", "process")
    return written


pools = st.lists(st.sampled_from(POOLS), min_size=1, unique=True)


@given(pools, pools)
def test_every_page_offers_the_same_rerun_and_elsewhere_keeps_it_from_where_it_was(
    tried: list[str], eligible: list[str]
) -> None:
    state = failed(tried, eligible).state
    elsewhere = set(eligible) - set(tried)
    result = running_result(state, kernel_alive=True, folder=FOLDER, label=LABELS.shown)
    command = result["handback"]["options"]["rerun"]
    words = shlex.split(command)
    assert words[:5] == ["bullswarm", "workflow", "step", "rerun", "abcdef"]
    assert words[5:] == (["mend", "--avoid", ",".join(tried)] if elsewhere else ["mend"])
    name = "rerun elsewhere" if elsewhere else "rerun"
    line = f"  {name:<17}{command}"
    assert line in your_call(result)
    assert line in result_lines(result, labels=LABELS) and line in outcome_lines(result, labels=LABELS)
    options = needs_you(state, state.steps["mend"], folder=FOLDER)["options"]
    assert options["rerun" if elsewhere else "retry"] == command
    (action,) = [
        each
        for each in actions_at(state, "mend", {"mend": "failed"}, folder=FOLDER, labels=LABELS)
        if each.name == "rerun"
    ]
    assert action.avoid == (tuple(tried) if elsewhere else ())
    typed = shlex.split(action.command)
    assert [LABELS.resolve(each, POOLS) for each in typed[-1].split(",")] == tried if elsewhere else typed == words


@pytest.mark.parametrize(
    ("option", "command", "name"),
    [
        ("rerun", "bullswarm workflow step rerun a b --avoid codex", "rerun elsewhere"),
        ("rerun", "bullswarm workflow step rerun a b", "rerun"),
        ("retry", "bullswarm workflow resume a", "try again"),
        ("resume", "bullswarm workflow resume a", "end the pause"),
        ("something-new", "bullswarm x", "something-new"),
    ],
)
def test_a_way_on_is_called_by_what_its_command_does(option: str, command: str, name: str) -> None:
    assert option_name(option, command) == name


def test_nothing_to_choose_is_no_line() -> None:
    assert your_call({"handback": {"options": {}}}) == [] and your_call({}) == []
