"""A home in which somebody else may write is refused, since what it holds is started as you; a readable one is warned of."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.server.mcp.stdio import Server
from tests.server.site import SAY, Site

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="gives a folder to another user")


@pytest.fixture
def kept(site: Site) -> Path:
    """The home of a site that has one."""
    root = site.home.ensure().root
    site.home.providers_dir.mkdir(mode=0o700)
    site.home.state_file.write_text("{}", encoding="utf-8")
    site.home.state_file.chmod(0o600)
    return root


@pytest.mark.parametrize("words", [("pools", "--json"), ("run", "--lane", "analyze", "Explain."), ("strategy",)])
@pytest.mark.parametrize(
    ("name", "mode", "shown", "fix"),
    [
        ("", 0o777, "0777", "chmod 700"),
        ("", 0o770, "0770", "chmod 700"),
        ("providers", 0o720, "0720", "chmod 700"),
        ("state.json", 0o622, "0622", "chmod 600"),
    ],
)
def test_what_others_may_write_is_refused(
    site: Site, kept: Path, name: str, mode: int, shown: str, fix: str, words: tuple[str, ...]
) -> None:
    path = kept / name
    path.chmod(mode)
    refused = site.say(*words)
    assert (refused.code, refused.out) == (2, "")
    assert f"{path} can be written by others (mode {shown})" in refused.err
    assert f"{fix} {path}" in refused.err
    assert "set BULLSWARM_HOME" in refused.err


@root_only
@pytest.mark.parametrize("name", ["", "providers", "state.json"])
def test_what_belongs_to_another_user_is_refused(site: Site, kept: Path, name: str) -> None:
    os.chown(kept / name, 1234, 1234)
    refused = site.say("pools")
    assert (refused.code, refused.out) == (2, "")
    assert f"{kept / name} belongs to user 1234, and you are user 0" in refused.err
    assert "sudo -H" in refused.err


def test_a_home_that_others_can_read_is_used_with_one_warning_aside_from_the_answer(site: Site, kept: Path) -> None:
    site.worker("alpha", SAY)
    assert "can be read" not in site.say("pools").err
    kept.chmod(0o755)
    pools = site.say("pools", "--json")
    assert pools.code == 0
    assert pools.document
    assert pools.err.count(f"{kept} can be read by others (mode 0755) · chmod 700 {kept}") == 1


def test_doctor_names_it_and_the_status_line_stays_silent(site: Site, kept: Path) -> None:
    kept.chmod(0o777)
    checks = {check["id"]: check for check in site.say("doctor", "--json").document["checks"]}
    assert checks["home"]["status"] == "failed"
    assert checks["home"]["message"] == f"{kept} can be written by others (mode 0777)"
    assert f"chmod 700 {kept}" in checks["home"]["fix"]
    assert site.say("statusline").err == ""


def test_the_mcp_server_answers_its_calls_with_the_reason(site: Site, kept: Path) -> None:
    kept.chmod(0o777)
    server = Server(site)
    try:
        assert server.introduce()["result"]["serverInfo"]["name"] == "bullswarm"
        answer = server.ask("tools/call", 1, {"name": "bullswarm_pools", "arguments": {}})
        assert f"{kept} can be written by others (mode 0777)" in answer["error"]["message"]
    finally:
        server.close()
