"""The official MCP Inspector's command line, a client that we did not write, lists and calls the tools over stdio."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.agents.install import NODE

pytestmark = pytest.mark.real_cli

INSPECTOR = NODE.parents[2] / "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
TOOLS = {"label", "pools", "route", "run", "runs", "workflow_goal"}


@pytest.fixture
def project(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A folder to work in; skips where the Inspector is missing, and fails where it was promised."""
    if not INSPECTOR.is_file():
        assert not request.config.getoption("--require-real-clis"), f"no {INSPECTOR}: python3 tests/agents/install.py"
        pytest.skip("the MCP Inspector is not installed: python3 tests/agents/install.py")
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def inspect(project: Path, *words: str, code: int = 0) -> dict[str, Any]:
    home = project.parent
    environ = {
        "HOME": str(home),
        "BULLSWARM_HOME": str(home / "bullswarm"),
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    server = [sys.executable, "-m", "bullswarm_server.cli.main", "mcp"]
    passed_on = [word for name in ("BULLSWARM_HOME", "PYTHONPATH") for word in ("-e", f"{name}={environ[name]}")]
    done = subprocess.run(
        [NODE, INSPECTOR, "--cli", *passed_on, *server, *words], cwd=project, env=environ, text=True,
        stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def call(project: Path, tool: str, code: int = 0, **arguments: str) -> dict[str, Any]:
    given = [f"{name}={value}" for name, value in arguments.items()]
    return inspect(
        project, "--method", "tools/call", "--tool-name", tool, *(("--tool-arg", *given) if given else ()), code=code
    )


def test_every_tool_is_listed_with_a_schema_that_other_clients_can_use(project: Path) -> None:
    # --strict fails on a schema that some client could not take.
    listed = inspect(project, "--method", "tools/list", "--strict")["tools"]
    assert {tool["name"] for tool in listed} == TOOLS
    assert all(tool["inputSchema"]["type"] == "object" and tool["annotations"] for tool in listed)


def test_the_tools_answer_and_a_wrong_call_is_an_error(project: Path) -> None:
    pools = call(project, "pools")
    assert [pool["pool"] for pool in pools["structuredContent"]["pools"]]
    verdict = call(project, "run", lane="analyze", cwd=str(project), prompt="Look.", pool="echo")
    assert verdict["structuredContent"]["ok"] is True and verdict["content"][0]["text"].startswith("OK [echo]")
    shown = call(project, "runs", op="show", run_id="last")
    assert shown["structuredContent"]["runId"] == verdict["structuredContent"]["runId"]
    wrong = call(project, "route", lane="paint", code=5)
    assert wrong["isError"] is True and "lane is 'paint'" in wrong["content"][0]["text"]


def test_resources_and_the_prompt_are_served(project: Path) -> None:
    uris = {resource["uri"] for resource in inspect(project, "--method", "resources/list")["resources"]}
    assert uris == {"bullswarm://pools", "bullswarm://program-contract"}
    (content,) = inspect(project, "--method", "resources/read", "--uri", "bullswarm://pools")["contents"]
    assert json.loads(content["text"])["pools"]
    prompt = inspect(project, "--method", "prompts/get", "--prompt-name", "delegate", "--prompt-args", "task=Review it")
    assert "Review it" in json.dumps(prompt["messages"])
