"""`bullswarm workflow plan`, and what a launch refuses on this machine before anything is started."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.core.runs.journals import document
from tests.server.site import Site, tree
from tests.server.workflow_site import GATED, LOOPING, actors, assert_taken, goal, printed_commands, program_file

from bullswarm_core.pools.settings import settings_from

CHECKED = document(
    {"id": "w", "lane": "build", "prompt": "WRITE made.txt", "files": ["made.txt"], "evidence": [
        {"type": "command", "cmd": "test -e made.txt"},
        {"type": "command", "cmd": 'grep -q x "$BULLSWARM_STEP_OUTPUT"'},
        {"type": "command", "cmd": "exit 7"},
    ]},
)  # fmt: skip


def validate(site: Site, program: Any, *words: str) -> Any:
    file = program_file(site, program)
    return site.say("workflow", "plan", "validate", "--program", str(file), "--cwd", str(site.project), *words)


def test_a_valid_program_is_described_and_nothing_is_started_or_written(site: Site) -> None:
    before = tree(site.home.root)
    said = validate(site, {**GATED, "loops": []})
    assert said.code == 0
    assert said.out.splitlines()[0] == "✓ program v3 valid: 2 steps, 1 gate, 0 loops (nothing launched)"
    assert "  gate g after a · waits for you · look" in said.out
    found = validate(site, LOOPING, "--json").document
    assert found["valid"] and found["loops"] == ["l"] and found["evidenceCommands"]["commands"] == []
    for command in printed_commands(said.out, json.dumps(found)):
        assert_taken(command)
    assert tree(site.home.root) == before


def test_evidence_commands_are_said_to_run_as_the_person(site: Site) -> None:
    said = validate(site, CHECKED)
    assert f"3 evidence commands run as you, unconfined, in {site.project}:" in said.out
    assert "  w: exit 7" in said.out and not (site.project / "made.txt").exists()
    found = validate(site, CHECKED, "--json").document["evidenceCommands"]
    assert (found["confinement"], found["runAs"], len(found["commands"])) == ("none", "you", 3)


def test_the_help_says_so_too(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in ((("goal",), "run as you, unconfined"), (("plan", "validate"), "as you, unconfined")):
        assert site.say("workflow", *words, "--help").code == 0
        assert said in " ".join(capsys.readouterr().out.split())


def test_checks_are_tried_once_where_they_can_be(site: Site) -> None:
    said = validate(site, CHECKED, "--try-checks", "--json")
    assert said.code == 1
    tried = {each["cmd"]: each for each in said.document["triedChecks"]}
    assert tried["exit 7"]["status"] == "failed" and tried["exit 7"]["exit"] == 7
    assert tried["test -e made.txt"]["status"] == "failed"
    assert "a check may fail before the work is there" in said.err
    assert tried['grep -q x "$BULLSWARM_STEP_OUTPUT"']["status"] == "not-run"
    (site.project / "made.txt").touch()
    fine = document({"id": "a", "evidence": [{"type": "command", "cmd": "test -e made.txt"}]})
    told = validate(site, fine, "--try-checks")
    assert told.code == 0 and "✓ a: test -e made.txt" in told.out and told.err == ""


def test_an_advisory_refuses_nothing(site: Site) -> None:
    program = document(*({"id": name, "lane": "build", "effort": "high"} for name in "abc"))
    said = validate(site, program)
    assert said.code == 0 and "advisory: all-writers-high" in said.err
    assert validate(site, program, "--json").document["advisories"][0]["code"] == "all-writers-high"


def test_the_contract_and_the_schema_are_printed(site: Site) -> None:
    assert "bullswarm.workflow.program.v3" in site.say("workflow", "plan", "contract").out
    assert site.say("workflow", "plan", "schema").document["required"] == ["schemaVersion", "steps"]


def test_the_program_in_the_readme_and_the_settings_on_the_page_are_valid(site: Site) -> None:
    (program,) = [block for block in _json_blocks("README.md") if "steps" in block]
    said = validate(site, program)
    assert said.code == 0 and "1 evidence command runs as you, unconfined" in said.out
    (decisions,) = [block for block in _json_blocks("docs/workflows.md") if "notify" in block.get("config", {})]
    assert settings_from(decisions, file=site.home.state_file).notify[0] == "sh"


def _json_blocks(page: str) -> list[dict[str, Any]]:
    text = (Path(__file__).parents[2] / page).read_text(encoding="utf-8")
    return [json.loads(block) for block in re.findall(r"^```json[^\n]*\n(.*?)^```", text, re.M | re.S)]


def test_an_older_program_is_refused_with_its_replacement(site: Site) -> None:
    said = validate(site, {"schemaVersion": "bullswarm.workflow.program.v2", "actions": []})
    assert said.code == 2 and "bullswarm.workflow.program.v2 is no longer accepted" in said.err


def issues(site: Site, program: Any, *words: str) -> list[str]:
    """What keeps a valid program from being started here; nothing is recorded."""
    said = goal(site, program, "--json", *words)
    assert said.code == 2, said
    assert not site.home.database_file.exists()
    found: list[str] = said.document["issues"]
    return found


def test_a_pinned_pool_that_cannot_run_a_step_is_refused_by_its_label(site: Site) -> None:
    actors(site)
    site.worker("reader", "cat", lanes=["analyze"])
    site.say("label", "reader", "glasses")
    program = document({"id": "a"}, {"id": "b", "lane": "build"})
    assert issues(site, program, "--worker-pool", "glasses") == [
        "step b: the pinned pool glasses cannot run it: it does not take build work"
    ]
    site.say("strategy", "set-provider", "one", "off", "--yes")
    assert "is disabled" in issues(site, document({"id": "a"}), "--worker-pool", "one")[0]


def test_a_model_that_nobody_runs_is_refused(site: Site) -> None:
    site.worker("one", "cat", tiers={"high": {"model": "m1"}, "medium": {"model": "m1"}, "low": {"model": "m1"}})
    (told,) = issues(site, document({"id": "a", "model": "m2"}))
    assert told.startswith("step a: no enabled pool can run the model m2: ") and "one cannot run m2" in told


def test_names_that_no_pool_has_are_refused(site: Site) -> None:
    actors(site)
    site.say("label", "one", "first")
    program = document(
        {"id": "a", "route": {"pools": {"use": ["first"], "avoid": ["zzz"]}, "providers": {"use": ["acme"]}}}
    )
    label, pool, provider = issues(site, program)
    assert 'names "first", which is the label of one; a program names pools by id' in label
    assert 'names "zzz", which is no pool (pools: ' in pool and 'names "acme", of which there is no pool' in provider


def test_an_independent_review_needs_two_providers(site: Site) -> None:
    actors(site, "one")
    program = document({"id": "w"}, {"id": "r", "dependsOn": ["w"], "route": {"independentOf": ["w"]}})
    (told,) = issues(site, program)
    assert told.endswith("only one can take either of them; enable a pool of another provider or drop independentOf")
    site.worker("two", "cat > /dev/null; echo 'The parser splits each line at its commas.'")
    assert goal(site, program, "--foreground").code == 0


def test_isolation_needs_a_repository_and_files_that_git_keeps(site: Site) -> None:
    actors(site)
    (site.project / ".gitignore").write_text("*.log\n")
    program = document(
        {"id": "a", "lane": "build", "files": ["x.log", "y.txt"]},
        {"id": "b", "lane": "chore", "effort": "low"},
        {"id": "c"},
    )
    ignored, undeclared = issues(site, program, "--isolation", "worktree")
    assert ignored.startswith("step a declares x.log, which git ignores")
    assert undeclared.startswith("step b writes and declares no files")
    (site.project / "link").symlink_to(".git")
    (behind,) = issues(site, document({"id": "a", "lane": "build", "files": ["link/x"]}), "--isolation", "worktree")
    assert behind.startswith("link/x lies behind the symbolic link link")
    plain = site.root / "plain"
    plain.mkdir()
    said = goal(site, document({"id": "a"}), "--isolation", "worktree", cwd=plain)
    assert said.code == 2 and "needs a git working tree" in said.err


def test_a_home_in_reach_of_a_writer_is_refused(site: Site) -> None:
    actors(site)
    said = goal(site, document({"id": "a", "lane": "build"}), cwd=site.root)
    assert said.code == 2 and "could change bullswarm's own state" in said.err


@pytest.mark.parametrize("depth", ["2", "9"])
def test_a_worker_that_is_too_deep_starts_nothing(site: Site, depth: str) -> None:
    actors(site)
    file = program_file(site, document({"id": "a"}))
    said = site.say("workflow", "goal", "g", "--program", str(file), environ={"BULLSWARM_DEPTH": depth})
    assert said.code == 2 and "not deeper" in said.err
