"""The pages leave nothing out: every verb, option, variable, key and kind stands on one, and links lead somewhere."""

from __future__ import annotations

import argparse
import importlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from tests.server.documents import PAGES, ROOT

from bullswarm_core.judging.model import FailureKind, NoteKind
from bullswarm_core.pools.connector_schema import ConnectorPart, LaunchPart, SignInPart
from bullswarm_core.pools.settings import Settings
from bullswarm_core.program.json_schema import json_schema
from bullswarm_core.routing.policies import POLICY_NAMES
from bullswarm_server.cli.main import VERBS
from bullswarm_server.cli.workflow_arguments import MOST_CONCURRENCY, MOST_RETRIES
from bullswarm_server.dashboard.view_help import KEYS
from bullswarm_server.mcp.front import catalogue_file

SECURITY = "SECURITY.md"
TEXTS = {page: (ROOT / page).read_text(encoding="utf-8") for page in (*PAGES, SECURITY)}
EVERYTHING = "\n".join(TEXTS.values())
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_VARIABLE = re.compile(r"\bBULLSWARM_[A-Z][A-Z_]*[A-Z]\b")
_SOURCES = ("core", "providers", "server", "hooks", "claude-mod")


def parsers() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every verb and every operation below one, with its parser."""
    for verb, (module, _) in VERBS.items():
        if verb == "mcp":
            continue
        yield from _below(verb, importlib.import_module(f"bullswarm_server.cli.{module}")._parser())
    for word in ("history", "resume"):
        yield f"pools {word}", importlib.import_module(f"bullswarm_server.cli.pools_{word}")._parser()


def _below(name: str, parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    yield name, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, below in action.choices.items():
                yield from _below(f"{name} {word}", below)


OPTIONS = sorted(
    {
        (name, option)
        for name, parser in parsers()
        for action in parser._actions
        if action.help != argparse.SUPPRESS and action.dest != "help"
        for option in action.option_strings
    }
)


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_every_verb_stands_on_a_page(verb: str) -> None:
    assert re.search(rf"bullswarm {verb}\b", EVERYTHING)


def test_every_operation_stands_on_a_page() -> None:
    operations = {name for name, _ in parsers() if " " in name}
    # `runs` and `workflow` take the same operations; a page shows each with one of the two.
    missing = [
        name for name in sorted(operations)
        if not any(spoken(each) for each in (name, _twin(name)))
    ]  # fmt: skip
    assert missing == []


def _twin(name: str) -> str:
    first, _, rest = name.partition(" ")
    return f"{ {'runs': 'workflow', 'workflow': 'runs'}.get(first, first) } {rest}"


def spoken(name: str) -> bool:
    """Whether an operation is named: with its verb before it, or in a row of operations of the same verb."""
    return bool(re.search(rf"`?(bullswarm )?{re.escape(name)}\b", EVERYTHING)) or bool(
        re.search(rf"`{re.escape(name.rpartition(' ')[2])}[ `]", EVERYTHING)
    )


def test_every_option_stands_on_a_page() -> None:
    missing = [f"{name} {option}" for name, option in OPTIONS if not re.search(rf"{option}(?![\w-])", EVERYTHING)]
    assert missing == []


def test_options_of_the_verbs_with_a_table_stand_in_it() -> None:
    tables = {"run": "docs/start.md", "workflow goal": "docs/workflows.md", "workflow watch": "docs/workflows.md"}
    tables["integrate install"] = "docs/mcp.md"
    for name, page in tables.items():
        wanted = {option for verb, option in OPTIONS if verb == name}
        assert [option for option in sorted(wanted) if f"`{option}" not in TEXTS[page]] == [], name


def test_no_page_shows_an_option_that_nobody_takes() -> None:
    known = {option for _, option in OPTIONS} | {"--version", "--help"}
    shown = {
        word
        for line in EVERYTHING.splitlines()
        for command in re.findall(r"bullswarm ([^`]*)", line)
        for word in re.findall(r"(?<=\s)--[a-z][a-z-]*", re.split(r"[|<]| · ", command)[0])
    }
    assert shown - known == set()


def variables() -> set[str]:
    """Every variable of ours that a source file names; a name that another one begins with is a prefix of it."""
    found: set[str] = set()
    for folder in _SOURCES:
        for file in (ROOT / folder).rglob("*"):
            if file.suffix in (".py", ".ts", ".tsx", ".js") and "node_modules" not in file.parts:
                found |= set(_VARIABLE.findall(file.read_text(encoding="utf-8")))
    return found


def test_every_variable_stands_in_the_configuration() -> None:
    known = variables()
    assert len(known) > 20
    assert [name for name in sorted(known) if f"`{name}`" not in TEXTS["docs/configuration.md"]] == []
    assert set(_VARIABLE.findall(EVERYTHING)) - known == set()


def test_every_key_of_the_settings_stands_in_the_configuration() -> None:
    page = TEXTS["docs/configuration.md"]
    source = (ROOT / "core/bullswarm_core/pools/settings.py").read_text(encoding="utf-8")
    reader = (ROOT / "core/bullswarm_core/pools/settings.py").read_text(encoding="utf-8")
    keys = set(re.findall(r"\.get\(\"(\w+)\"", source + reader))
    assert len(keys) > 20
    assert [key for key in sorted(keys) if not re.search(rf"\b{key}\b", page)] == []
    for field in ("depth_limit", "total_limit", "inflight_penalty_pct", "routing_policy"):
        default = getattr(Settings(), field)
        key = re.sub(r"_(\w)", lambda match: match[1].upper(), field)
        shown = f"{default:g}" if isinstance(default, float) else str(default)
        assert re.search(rf"`config\.{key}` \| `?{shown}`? \|", page), key


def test_every_key_that_can_be_configured_at_once_stands_in_the_configuration() -> None:
    schema = json.loads((ROOT / "server/bullswarm_server/cli/strategy.schema.json").read_text(encoding="utf-8"))
    keys = {name for part in (schema, *schema["$defs"].values()) for name in part.get("properties", {})}
    assert [key for key in sorted(keys) if not re.search(rf"\b{key}\b", TEXTS["docs/configuration.md"])] == []


def test_every_field_of_a_program_stands_on_its_page() -> None:
    def names(part: object) -> Iterator[str]:
        if isinstance(part, dict):
            yield from part.get("properties", {})
            for item in part.values():
                yield from names(item)
        elif isinstance(part, list):
            for item in part:
                yield from names(item)

    page = TEXTS["docs/workflows.md"]
    assert [name for name in sorted(set(names(json_schema()))) if not re.search(rf"[`\"]{name}[`\"]", page)] == []


def test_every_field_of_a_connector_stands_on_its_page() -> None:
    page = TEXTS["docs/providers.md"]
    wanted = [
        field.alias or name for part in (ConnectorPart, LaunchPart, SignInPart) for name, field in part.model_fields.items()
    ]  # fmt: skip
    assert [name for name in wanted if f"`{name}`" not in page] == []


def test_every_tool_and_argument_of_mcp_stands_on_its_page() -> None:
    page = TEXTS["docs/mcp.md"]
    catalogue = json.loads(Path(catalogue_file()).read_bytes())
    (tools, *_) = [result["tools"] for result in catalogue["results"] if "tools" in result]
    arguments = {(tool["name"], name) for tool in tools for name in tool["inputSchema"]["properties"]}
    assert [tool["name"] for tool in tools if f"| `{tool['name']}` |" not in page] == []
    assert [each for each in sorted(arguments) if f"`{each[1]}`" not in page] == []
    (operations,) = [tool["inputSchema"]["properties"]["op"]["enum"] for tool in tools if tool["name"] == "runs"]
    assert [name for name in operations if f"`{name}`" not in page] == []
    (goal,) = [tool["inputSchema"]["properties"] for tool in tools if tool["name"] == "workflow_goal"]
    # What a command takes, a call takes.
    assert goal["concurrency"]["maximum"] == MOST_CONCURRENCY
    assert goal["retry_attempts"]["maximum"] == MOST_RETRIES


@pytest.mark.parametrize("kind", get_args(FailureKind))
def test_every_failure_kind_is_explained(kind: str) -> None:
    row = re.compile(rf"^\| [^|]*`{kind}`[^|]* \| [^|]+ \| [^|]+ \|$", re.M)
    assert row.search(TEXTS["docs/troubleshooting.md"])


@pytest.mark.parametrize("kind", get_args(NoteKind))
def test_every_note_is_explained(kind: str) -> None:
    assert re.search(rf"^\| [^|]*`{kind}`[^|]* \| [^|]+ \|$", TEXTS["docs/troubleshooting.md"], re.M)


@pytest.mark.parametrize("policy", POLICY_NAMES)
def test_every_policy_is_told_of(policy: str) -> None:
    assert f"`{policy}`" in TEXTS["docs/policies.md"]


def test_every_key_of_the_dashboard_stands_in_its_table() -> None:
    page = TEXTS["docs/start.md"]
    keys = {key for _, rows in KEYS for names, _ in rows for key in names.split()}
    assert len(keys) > 15
    assert [key for key in sorted(keys) if f"`{key}`" not in page] == []


def test_every_word_of_the_mod_stands_in_its_table() -> None:
    source = (ROOT / "claude-mod/hooks/commands.ts").read_text(encoding="utf-8")
    words = set(re.findall(r"^    case '(\w+)':", source, re.M))
    assert len(words) > 7
    page = TEXTS["docs/hooks-and-mod.md"]
    assert [word for word in sorted(words) if f"/bullswarm {word}" not in page] == []


def anchor(title: str) -> str:
    """The anchor that a heading gets."""
    kept = re.sub(r"[^\w\- ]", "", title.strip().lower().replace("`", ""))
    return kept.replace(" ", "-")


def anchors(page: str) -> set[str]:
    text = re.sub(r"^```.*?^```", "", TEXTS[page], flags=re.M | re.S)
    return {anchor(title) for title in re.findall(r"^#+ (.+)$", text, re.M)}


@pytest.mark.parametrize("page", sorted(TEXTS))
def test_links_lead_somewhere(page: str) -> None:
    for target in _LINK.findall(TEXTS[page]):
        if "://" in target:
            continue
        path, _, place = target.partition("#")
        file = ((ROOT / page).parent / path).resolve() if path else ROOT / page
        assert file.exists(), f"{page} leads to {target}"
        name = str(file.relative_to(ROOT))
        if place:
            assert place in anchors(name), f"{page} leads to {target}"


@pytest.mark.parametrize("page", PAGES)
def test_every_page_is_reached_from_the_readme(page: str) -> None:
    reached, left = set[str](), ["README.md"]
    while left:
        current = left.pop()
        if current in reached or current not in TEXTS:
            continue
        reached.add(current)
        for target in _LINK.findall(TEXTS[current]):
            path = target.partition("#")[0]
            if path and "://" not in path:
                left.append(str(((ROOT / current).parent / path).resolve().relative_to(ROOT)))
    assert page in reached or page == "docs/README.md"


def test_the_promises_name_tests_that_exist() -> None:
    named = set(re.findall(r"`(tests/[\w/.-]+\.py)(?:::(\w+))?`", TEXTS[SECURITY]))
    assert len(named) > 15
    for file, test in named:
        path = ROOT / file
        assert path.is_file(), file
        assert not test or f"def {test}(" in path.read_text(encoding="utf-8"), f"{file}::{test}"


def test_every_promise_names_a_test() -> None:
    promises = TEXTS[SECURITY].split("## What is promised")[1].split("## What is not promised")[0]
    rows = [
        line for line in promises.splitlines() if line.startswith("| ") and not line.startswith(("| promise", "|--"))
    ]
    assert len(rows) > 15
    assert [row for row in rows if "`tests/" not in row] == []
