"""Who writes the hooks' cache, when, and that nobody is hurt when it can't be written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.site import SAY, Site, make_site

from bullswarm_core.fast import hook_state as fast
from bullswarm_server import hook_state


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A machine in small with one worker."""
    root = tmp_path / "site"
    root.mkdir()
    built = make_site(root)
    built.worker("talker", SAY)
    yield built
    built.close()


def state(site: Site) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(hook_state.state_file(site.home).read_text())
    return found


def row(site: Site, pool: str = "talker") -> dict[str, Any]:
    return next(entry for entry in state(site)["pools"] if entry["pool"] == pool)


def test_labels_and_decisions_are_in_it_at_once(site: Site) -> None:
    site.say("pools")
    assert (row(site)["poolLabel"], row(site)["enabled"], row(site)["state"]) == ("talker", True, "ready")
    site.say("label", "talker", "tk")
    assert row(site)["poolLabel"] == "tk"
    site.say("strategy", "set-provider", "tk", "off", "--yes")
    assert (row(site)["enabled"], row(site)["state"]) == (False, "disabled")
    site.say("label", "talker", "--clear")
    assert row(site)["poolLabel"] == "talker"


def test_what_the_server_writes_the_hooks_can_read(site: Site) -> None:
    hook_state.refresh(site.home, site.environ)
    read = fast.load(site.environ)
    assert read is not None and {pool.id for pool in read.pools} >= {"talker", "claude-code"}
    own = read.own_pool("claude-code", site.environ)
    assert own is not None and own.id == "claude-code"
    assert read.own_pool("claude-code", {**site.environ, "CLAUDE_CONFIG_DIR": "/elsewhere"}) is None
    assert read.delegation is False and read.runs == []


def test_dry_runs_never_write_it(site: Site) -> None:
    assert site.say("run", "--dry-run", "--lane", "analyze", "--add-dir", str(site.project), "x").code == 0
    assert site.say("route", "--lane", "analyze", "--add-dir", str(site.project)).code == 0
    assert not hook_state.state_file(site.home).exists()


def test_a_run_leaves_it_as_things_are_after_the_run(site: Site) -> None:
    assert site.run().code == 0
    assert state(site)["runs"] == [] and row(site)["state"] == "ready"


def test_a_kernel_that_finds_less_takes_nothing_away(site: Site) -> None:
    site.say("pools")
    poor = {**site.environ, "PATH": "/usr/bin:/bin"}
    assert hook_state.refresh(site.home, poor, keep_unseen=True)
    assert row(site)["state"] == "ready"
    assert hook_state.refresh(site.home, poor)
    assert "talker" not in [entry["pool"] for entry in state(site)["pools"]]
    for damage in ("{", "[]", '{"schemaVersion": "bullswarm.hook-state.v1", "pools": 3, "accounts": 4}'):
        hook_state.state_file(site.home).write_text(damage)
        assert hook_state.refresh(site.home, poor, keep_unseen=True)
        assert state(site)["pools"]


def test_when_it_cannot_be_written_the_verb_does_its_work_all_the_same(site: Site) -> None:
    site.home.cache_dir.parent.mkdir(parents=True, exist_ok=True)
    hook_state.state_file(site.home).mkdir(parents=True)
    assert hook_state.refresh(site.home, site.environ) is False
    assert site.say("label", "talker", "tk").code == 0
    assert site.run().code == 0


def test_settings_that_cannot_be_read_leave_the_state_alone(site: Site) -> None:
    site.say("pools")
    before = state(site)
    site.home.state_file.write_text("{")
    assert hook_state.refresh(site.home, site.environ) is False
    assert state(site) == before


def test_the_switch_keeps_the_rest_of_the_file_and_refuses_a_damaged_one(site: Site) -> None:
    site.home.state_file.parent.mkdir(parents=True, exist_ok=True)
    site.home.state_file.write_text('{"version": 1, "theirs": {"a": 1}, "config": {"depthLimit": 3}}')
    assert site.say("delegation", "on").code == 0
    kept = json.loads(site.home.state_file.read_text())
    assert kept == {"version": 1, "theirs": {"a": 1}, "config": {"depthLimit": 3, "delegation": True}}
    site.home.state_file.write_text("{")
    said = site.say("delegation", "off")
    assert said.code == 2 and "state.json line 1" in said.err
    assert site.home.state_file.read_text() == "{"
