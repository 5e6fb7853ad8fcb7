"""Every field of the documents that programs read stands on the page about them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.documents import ROOT, Command
from tests.server.documents_machine import make_machine

PAGE = "docs/json.md"
PROGRAM = {
    "schemaVersion": "bullswarm.workflow.program.v3",
    "steps": [
        {
            "id": "parser", "lane": "build", "prompt": "Make parse() in src/parser.py linear.",
            "evidence": [{"type": "command", "cmd": "false"}],
        }
    ],
    "gates": [{"id": "ship", "dependsOn": ["parser"]}],
}  # fmt: skip
COMMANDS = (
    "run --lane analyze --json x", "route --lane analyze --json", "pools --json", "pools history codex --json",
    "workflow plan validate --program program.json --json",
    "workflow goal g --program program.json --foreground --json", "runs show last --json", "runs list --json",
    "workflow watch last --once --after 0 --jsonl", "runs result last --summary", "assignments --json",
    "label --list --json", "strategy show --json", "strategy routes --json", "strategy rungs --json",
    "strategy recommend --json", "doctor --json", "setup --yes --json", "provider list --json",
    "provider validate codex --json", "health --json", "home status --json", "home prune --dry-run --json",
    "delegation --json", "integrate status --json", "simulate --json", "workflow step accept last parser --reason ok --json",
)  # fmt: skip
# What stands under these is named by whoever made the program, or by the machine.
NAMED_BY_OTHERS = {"byPool", "statuses", "counts", "numbers", "tasksLeftOut"}
# Fields that are explained where the documents are edited or set up.
ELSEWHERE = ("docs/configuration.md", "docs/providers.md")


def fields(value: Any) -> Iterator[str]:
    """Every name of a field, however deep."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield name
            if name not in NAMED_BY_OTHERS:
                yield from fields(item)
    elif isinstance(value, list):
        for item in value:
            yield from fields(item)


def test_every_field_stands_on_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = make_machine(tmp_path / "m")
    monkeypatch.chdir(machine.project)
    (machine.project / "program.json").write_text(json.dumps(PROGRAM), encoding="utf-8")
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    others = "".join((ROOT / name).read_text(encoding="utf-8") for name in ELSEWHERE)
    missing: dict[str, list[str]] = {}
    try:
        for words in COMMANDS:
            said = machine.call(Command(PAGE, f"bullswarm {words}", None))
            lines = said.out.splitlines() if words.endswith(("--jsonl", "--summary")) else [said.out]
            for document in map(json.loads, lines):
                assert document["schemaVersion"] in page, words
                unknown = [
                    name for name in dict.fromkeys(fields(document)) if not re.search(rf"[`.]{name}`", page + others)
                ]
                if unknown:
                    missing[words] = unknown
    finally:
        machine.close()
    assert missing == {}


def test_every_field_of_a_replay_stands_on_the_page() -> None:
    # A replay with scores needs days of history; its document is built from these words alone.
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    source = (ROOT / "server/bullswarm_server/cli/simulate.py").read_text(encoding="utf-8")
    names = set(re.findall(r'^ +\{?"(\w+)": ', source, re.M))
    assert len(names) > 30
    assert [name for name in sorted(names) if f"`{name}`" not in page] == []


def test_every_version_on_the_page_is_one_that_the_program_writes() -> None:
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    sources = "".join(
        file.read_text(encoding="utf-8")
        for folder in ("core", "providers", "server", "hooks")
        for file in (ROOT / folder).rglob("*.py")
    )
    versions = set(re.findall(r"bullswarm\.[\w.-]+\.v\d", page))
    assert len(versions) > 15
    assert [version for version in sorted(versions) if f'"{version}"' not in sources] == []
