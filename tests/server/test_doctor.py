"""`bullswarm doctor`: a line per check with its fix, exit 1 when one fails, and nothing is changed."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from bullswarm_core._dataclasses import replace
from bullswarm_core.pools.settings import update_settings
from bullswarm_core.store.home import Home
from bullswarm_providers import registry
from bullswarm_server.cli import doctor
from bullswarm_server.cli.context import CommandContext


@pytest.fixture
def context(own_home: Path, tmp_path: Path) -> CommandContext:
    for name in ("opencode", "git"):
        executable(tmp_path / name)
    return CommandContext(Home(), {"HOME": str(own_home), "PATH": str(tmp_path)}, io.StringIO(), io.StringIO())


CLAUDE = "npm install -g @anthropic-ai/claude-code, then run claude and type /login"


def executable(file: Path) -> None:
    file.write_text("#!/bin/sh\n", encoding="utf-8")
    file.chmod(0o755)


def checks(context: CommandContext, *, code: int) -> dict[str, dict[str, Any]]:
    assert isinstance(context.out, io.StringIO)
    assert doctor.run(["--json"], context) == code
    document = json.loads(context.out.getvalue())
    assert document["schemaVersion"] == "bullswarm.doctor.v1"
    assert document["ok"] is (code == 0)
    assert set(document) == {"schemaVersion", "version", "configured", "ok", "checks", "nextActions"}
    return {check["id"]: check for check in document["checks"]}


def test_one_usable_pool_is_enough_and_the_others_are_warnings(context: CommandContext, own_home: Path) -> None:
    found = checks(context, code=0)
    assert found["pool opencode"]["status"] == "ok"
    assert found["pool claude-code"]["status"] == "warning"
    assert found["pool claude-code"]["fix"] == CLAUDE
    assert "Codex (npm install -g @openai/codex, then run codex login)" in found["not installed"]["message"]
    assert [entry.name for entry in own_home.rglob("*") if entry.is_file()] == ["entry-points.json"]


def test_without_any_usable_pool_it_fails(context: CommandContext, tmp_path: Path) -> None:
    (tmp_path / "opencode").unlink()
    found = checks(context, code=1)
    assert found["pools"]["status"] == "failed"
    assert found["pools"]["fix"]


def test_a_key_that_nobody_allowed_is_one_command_away(context: CommandContext, tmp_path: Path) -> None:
    (tmp_path / "opencode").unlink()
    executable(tmp_path / "codex")
    context = replace(context, environ={**context.environ, "CODEX_API_KEY": "k"})
    command = "bullswarm strategy set-provider codex --allow-billing on"
    found = checks(context, code=1)
    assert (found["pool codex"]["status"], found["pool codex"]["fix"]) == ("warning", command)
    assert (found["pools"]["status"], found["pools"]["fix"]) == ("failed", command)
    update_settings(context.home, lambda state: state.update(pools={"codex": {"allowBilling": True}}))
    allowed = checks(replace(context, out=io.StringIO()), code=0)
    assert (allowed["pool codex"]["status"], "pools" in allowed) == ("ok", False)


def test_a_pool_that_the_person_asked_for_and_that_cannot_work_is_a_failure(
    context: CommandContext, tmp_path: Path
) -> None:
    executable(tmp_path / "codex")
    context.home.ensure()
    context.home.state_file.write_text('{"version": 1, "pools": {"codex": {"enabled": true}}}', encoding="utf-8")
    found = checks(context, code=1)
    assert (found["pool codex"]["status"], found["pool codex"]["fix"]) == ("failed", "run codex login")
    assert found["pool codex"]["message"] == "not signed in (a failure, since you turned this pool on)"
    assert "turned" not in found["pool claude-code"]["message"]


def test_every_packaged_cli_says_how_it_is_installed_and_signed_in_to() -> None:
    connectors = [loaded.connector for loaded in registry.load(Home(), {"PATH": "/nowhere"}).providers]
    real = [connector for connector in connectors if not connector.last_resort]
    assert len(real) == 5
    for connector in real:
        assert doctor.how_to_start(connector) == f"{connector.install}, then {connector.sign_in.hint}"
        assert connector.install.startswith("npm install -g ") and connector.sign_in.hint.startswith("run ")


def test_a_damaged_settings_file_is_named_and_the_rest_is_still_checked(context: CommandContext) -> None:
    context.home.ensure()
    context.home.state_file.write_text("{", encoding="utf-8")
    found = checks(context, code=1)
    assert found["settings"]["status"] == "failed"
    assert str(context.home.state_file) in found["settings"]["message"]
    assert found["pool opencode"]["status"] == "ok"


def test_a_damaged_database_is_named(context: CommandContext) -> None:
    context.home.ensure()
    context.home.database_file.write_bytes(b"no database at all" * 100)
    assert checks(context, code=1)["database"]["status"] == "failed"


def test_a_broken_local_provider_is_named_with_its_field(context: CommandContext) -> None:
    folder = context.home.providers_dir / "mine"
    folder.mkdir(parents=True)
    (folder / "connector.json").write_text('{"name": 1}', encoding="utf-8")
    found = checks(context, code=1)
    assert "connector.json: name: 1 is not allowed" in found["provider mine"]["message"]


def test_a_home_that_others_can_read_and_one_that_cannot_be_made(context: CommandContext, tmp_path: Path) -> None:
    context.home.ensure().root.chmod(0o755)
    assert checks(context, code=0)["home"]["fix"] == f"chmod 700 {context.home.root}"
    (tmp_path / "file").write_text("", encoding="utf-8")
    other = CommandContext(Home(tmp_path / "file" / "home"), context.environ, io.StringIO(), io.StringIO())
    assert checks(other, code=1)["home"]["status"] == "failed"


def test_a_person_sees_one_line_per_check_with_its_fix(context: CommandContext) -> None:
    assert isinstance(context.out, io.StringIO)
    assert doctor.run([], context) == 0
    lines = context.out.getvalue().splitlines()
    assert any(line.startswith("warning  pool claude-code") and f"· {CLAUDE}" in line for line in lines)
    assert "\x1b" not in context.out.getvalue()


def test_a_weaker_confinement_is_a_warning(context: CommandContext, monkeypatch: pytest.MonkeyPatch) -> None:
    from bullswarm_core.process import confinement

    monkeypatch.setattr(confinement, "problem", lambda: "")
    monkeypatch.setattr(confinement, "weakness", lambda: "this kernel (Landlock 5) cannot stop a thing")
    found = checks(context, code=0)["confinement"]
    assert found["status"] == "warning" and "this kernel (Landlock 5) cannot stop a thing" in found["message"]
