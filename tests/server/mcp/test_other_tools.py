"""`route`, `pools`, `label`, `workflow_goal`, the resources and the prompt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import TextContent, TextResourceContents
from tests.server.mcp.calling import MODES, Caller, Mode, calling
from tests.server.site import ANSWER, SAY, Site, tree

from bullswarm_server.mcp.results import size
from bullswarm_server.mcp.server import FIRST_LINE, TOOLS

MANY = 60


@pytest.mark.parametrize("mode", MODES)
async def test_every_tool_is_listed_with_a_strict_flat_schema_within_the_budget(site: Site, mode: Mode) -> None:
    async with calling(site, mode=mode) as call:
        listed = await call.client.list_tools()
    assert len(listed.model_dump_json(by_alias=True, exclude_none=True).encode()) <= 8 * 1024
    assert [tool.name for tool in listed.tools] == list(TOOLS)
    assert set(TOOLS) == {"route", "run", "pools", "workflow_goal", "label", "runs"}
    for tool in listed.tools:
        assert tool.input_schema["additionalProperties"] is False
        text = json.dumps(tool.input_schema)
        assert '"title"' not in text
        assert "null" not in text
        assert "$ref" not in text
        assert tool.annotations is not None
    run = next(tool for tool in listed.tools if tool.name == "run")
    assert "Not for" in (run.description or "")


async def test_codex_exec_may_run_every_tool_unattended(site: Site) -> None:
    async with calling(site) as call:
        for tool in (await call.client.list_tools()).tools:
            hints = tool.annotations
            assert hints is not None
            reads = hints.read_only_hint is True
            harmless = (hints.read_only_hint, hints.destructive_hint, hints.open_world_hint) == (False, False, False)
            assert reads or harmless
            assert reads == (tool.name in ("route", "pools"))


async def test_the_first_line_of_the_instructions_is_enough_by_itself(site: Site) -> None:
    async with calling(site) as call:
        instructions = call.client.instructions or ""
    assert instructions.splitlines()[0] == FIRST_LINE
    assert len(FIRST_LINE) <= 250
    for word in ("run", "lane", "cwd", "prompt", "run_id", "Not for"):
        assert word in FIRST_LINE


@pytest.mark.parametrize("mode", MODES)
async def test_a_route_shows_the_pick_and_the_left_out_and_writes_nothing(site: Site, mode: Mode) -> None:
    site.worker("alpha", SAY)
    site.worker("beta", SAY, lanes=["analyze"])
    before = tree(site.root)
    async with calling(site, mode=mode) as call:
        said = await call("route", lane="build", cwd=str(site.project))
    assert tree(site.root) == before
    document = said.document
    assert (said.error, document["pool"], document["lane"], document["cwd"]) == (
        False,
        "alpha",
        "build",
        str(site.project),
    )
    assert [row["pool"] for row in document["candidates"]] == ["alpha"]
    assert "beta" in [row["pool"] for row in document["excluded"]]
    assert said.text.startswith("OK [alpha]")


async def test_the_callers_own_pool_is_left_out_and_cannot_be_pinned(site: Site) -> None:
    install(site, "opencode")
    site.worker("alpha", SAY)
    for environ, name in (({}, "opencode"), ({"BULLSWARM_CALLER": "alpha"}, "opencode"), ({}, "other")):
        own = "alpha" if environ else "opencode" if name == "opencode" else None
        async with calling(site, name=name, environ=environ) as call:
            document = (await call("route", lane="analyze")).document
            shown = [row["pool"] for row in document["candidates"]]
            assert own not in shown
            assert (own is None) == (len(shown) == 2)
            if own is None:
                continue
            (left_out,) = [row for row in document["excluded"] if row["pool"] == own]
            assert "caller's own pool" in left_out["reason"]
            for tool in ("route", "run"):
                pinned = await call(tool, lane="analyze", pool=own, cwd=str(site.project), prompt="Explain.")
                assert pinned.error
                assert f"pool {own} is your own" in pinned.text


def install(site: Site, name: str) -> None:
    """Put a binary of a packaged provider's name on PATH."""
    binary = site.root / "bin" / name
    binary.write_text(f"#!/bin/sh\n{SAY}\n")
    binary.chmod(0o755)


async def test_without_another_pool_it_says_what_to_enable_and_starts_nothing(site: Site) -> None:
    site.worker("alpha", SAY)
    assert site.say("strategy", "set-provider", "alpha", "off", "--yes").code == 0
    async with calling(site, name="opencode") as call:
        said = await call("run", lane="analyze", cwd=str(site.project), prompt="Explain the parser.")
        assert said.error
        assert (said.document["state"], said.document["ok"], said.document["pool"]) == ("refused", False, None)
        for form in (said.text, said.document["next"]):
            assert "no delegate pool" in form
            assert "bullswarm strategy set-provider alpha on" in form
        assert "nothing was started" in said.text
        named = await call("run", lane="analyze", cwd=str(site.project), prompt="Explain.", pool="echo")
        assert named.document["ok"] is True


async def test_a_worker_too_deep_is_refused(site: Site) -> None:
    site.worker("alpha", SAY)
    async with calling(site, environ={"BULLSWARM_DEPTH": "2"}) as call:
        said = await call("run", lane="analyze", cwd=str(site.project), prompt="Explain the parser.")
    assert said.error
    assert "nest 2 deep" in said.text


@pytest.mark.parametrize("mode", MODES)
async def test_pools_are_the_rows_of_the_command(site: Site, mode: Mode) -> None:
    site.worker("alpha", SAY)
    async with calling(site, mode=mode) as call:
        document = (await call("pools")).document
        (one,) = (await call("pools", pool="alpha")).document["pools"]
        unknown = await call("pools", pool="nobody")
    command = site.say("pools", "--json").document
    assert [row["pool"] for row in document["pools"]] == [row["pool"] for row in command["pools"]]
    (whole,) = [row for row in command["pools"] if row["pool"] == "alpha"]
    assert one.keys() <= whole.keys()
    assert all(one[key] == whole[key] for key in ("pool", "state", "lanes", "tiers", "costRank"))
    assert unknown.error
    assert 'unknown pool "nobody"' in unknown.text


async def test_lists_of_many_stay_within_the_promise_and_say_what_is_left_out(site: Site) -> None:
    for number in range(MANY):
        site.worker(f"worker-with-a-rather-long-name-{number:02}", SAY)
    async with calling(site) as call:
        pools, route, labels = await call("pools"), await call("route", lane="analyze"), await call("label")
    assert 5 < len(pools.document["pools"]) < MANY
    assert pools.document["omittedPools"] + len(pools.document["pools"]) == MANY + 2
    assert "more pools" in pools.text
    assert route.document["omittedRows"] > 0
    assert labels.document["labels"] == []


async def test_a_label_is_set_shown_and_cleared(site: Site) -> None:
    site.worker("alpha", SAY)
    async with calling(site) as call:
        assert (await call("label", pool="alpha", label="work")).document["labels"] == [
            {"pool": "alpha", "poolLabel": "work"}
        ]
        assert (await call("label")).document["labels"] == [{"pool": "alpha", "poolLabel": "work"}]
        assert "alpha is shown as work" in (await call("label", pool="work")).text
        picked = await call("route", lane="analyze", pool="work")
        assert (picked.document["pool"], picked.document["poolLabel"]) == ("alpha", "work")
        assert (await call("label", pool="work", clear=True)).document["labels"] == [
            {"pool": "alpha", "poolLabel": None}
        ]
        for wrong in (
            {"label": "x"},
            {"pool": "alpha", "label": "two words"},
            {"pool": "alpha", "label": "x", "clear": True},
            {"pool": "nobody", "label": "x"},
        ):
            assert (await call("label", **wrong)).error


PROGRAM: dict[str, Any] = {
    "schemaVersion": "bullswarm.workflow.program.v3",
    "steps": [{"id": "explain", "prompt": "Explain the parser.", "lane": "analyze"}],
}


async def goal(call: Caller, site: Site, program: Any, **more: Any) -> Any:
    return await call(
        "workflow_goal", **{"goal": "Know the parser", "cwd": str(site.project), "program": program, **more}
    )


async def test_a_program_that_is_wrong_lists_its_issues(site: Site) -> None:
    async with calling(site) as call:
        said = await goal(call, site, {"steps": [{"id": "A", "colour": 1} for _ in range(200)]})
        assert (said.error, said.document["valid"]) == (True, False)
        assert said.document["omittedIssues"] > 100
        for program, why in (
            ("program.json", "is not absolute"),
            ("/no/such/program.json", "cannot read program"),
            ("{", "is not JSON"),
            ({}, "steps must be a non-empty array"),
            (3, "program is 3"),
        ):
            wrong = await goal(call, site, program)
            assert wrong.error
            assert why in wrong.text
        assert "no project" in (await goal(call, site, PROGRAM, cwd="/")).text


@pytest.mark.parametrize("mode", MODES)
async def test_resources_and_the_prompt(site: Site, mode: Mode) -> None:
    site.worker("alpha", SAY)
    async with calling(site, mode=mode) as call:
        client = call.client
        verdict = (await call("run", lane="analyze", cwd=str(site.project), prompt="Explain the parser.")).document
        assert {str(item.uri) for item in (await client.list_resources()).resources} == {
            "bullswarm://pools",
            "bullswarm://program-contract",
        }
        templates = (await client.list_resource_templates()).resource_templates
        assert {item.uri_template for item in templates} == {"bullswarm://runs/{id}", "bullswarm://runs/{id}/output"}
        assert json.loads(await read(call, "bullswarm://pools"))["schemaVersion"] == "bullswarm.pools.v1"
        run = json.loads(await read(call, f"bullswarm://runs/{verdict['shortId']}"))
        assert (run["runId"], run["ok"]) == (verdict["runId"], True)
        assert ANSWER in await read(call, "bullswarm://runs/last/output")
        assert "program.v3" in await read(call, "bullswarm://program-contract")
        for wrong in ("bullswarm://nothing", "bullswarm://runs/zzzzzz", "file:///etc/passwd"):
            with pytest.raises(MCPError, match="unknown"):
                await read(call, wrong)
        (message,) = (await client.get_prompt("delegate", {"task": "Explain the parser."})).messages
        assert isinstance(message.content, TextContent)
        assert "Explain the parser." in message.content.text
        for name, given in (("delegate", {}), ("other", {"task": "x"})):
            with pytest.raises(MCPError):
                await client.get_prompt(name, given)


async def read(call: Caller, uri: str) -> str:
    (content,) = (await call.client.read_resource(uri)).contents
    assert isinstance(content, TextResourceContents)
    return content.text


async def test_a_fault_of_our_own_is_said_and_ends_nothing(
    site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr("bullswarm_server.mcp.tools.pools.pools_now", broken)
    async with calling(site) as call:
        said = await call("pools")
        assert said.error
        assert "ZeroDivisionError" in said.text
        assert not (await call("label")).error
    assert "by zero" in capsys.readouterr().err


async def test_an_unknown_tool_is_named(site: Site) -> None:
    async with calling(site) as call:
        said = await call("delete")
    assert said.error
    assert 'unknown tool "delete" · there are run, runs' in said.text


async def test_a_damaged_home_is_an_error_of_the_call(site: Site) -> None:
    site.home.ensure()
    Path(site.home.database_file).write_bytes(b"no database at all" * 100)
    async with calling(site) as call:
        said = await call("runs", op="list")
        assert said.error
        assert "bullswarm.db" in said.text
        assert size(said.result) < 2000
