"""A connector that breaks the schema is told file, field, value and what is allowed."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bullswarm_providers
from bullswarm_core.errors import ConnectorError
from bullswarm_core.pools.connector import connector_from_json
from bullswarm_core.pools.connector_schema import json_schema, validate_connector
from bullswarm_providers import registry

PACKAGED = sorted(Path(bullswarm_providers.__file__).parent.glob("*/connector.json"))
GOOD: dict[str, Any] = json.loads((PACKAGED[0]).read_text(encoding="utf-8"))
Change = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize("file", PACKAGED, ids=lambda file: file.parent.name)
def test_every_packaged_connector_is_valid(file: Path) -> None:
    data = json.loads(file.read_text(encoding="utf-8"))
    assert validate_connector(data, file=str(file)) is data
    assert connector_from_json(data).name == file.parent.name.replace("_", "-")


def test_every_folder_with_a_connector_is_one_that_the_registry_knows() -> None:
    names = [file.parent.name for file in PACKAGED]
    assert names == sorted([*registry.PACKAGED, *registry.OPTIONAL])
    assert set(registry.PACKAGED) == {"claude_code", "codex", "command_code", "echo", "grok", "opencode"}
    assert set(registry.OPTIONAL) == {"copilot", "gemini", "glm", "kimi", "qwen"}


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda d: d.pop("name"), "c.json: name: is missing: it is required"),
        (lambda d: d.update(name="My CLI"), 'c.json: name: "My CLI" is not allowed: string should match pattern'),
        (lambda d: d.update(colour="red"), 'c.json: colour: "red" is not allowed: there is no field of this name'),
        (lambda d: d.update(costRank="4"), 'c.json: costRank: "4" is not allowed: input should be a valid integer'),
        (lambda d: d.update(costRank=-1), "c.json: costRank: -1 is not allowed: input should be greater than"),
        (lambda d: d.update(lanes=["analyse"]), "c.json: lanes.0: \"analyse\" is not allowed: use 'analyze', 'build' or"),
        (lambda d: d.update(lanes=[]), "c.json: lanes: [] is not allowed: "),
        (lambda d: d.update(schemaVersion="v0"), "c.json: schemaVersion: \"v0\" is not allowed: use 'bullswarm.connector"),
        (lambda d: d["launch"].update(arguments=["{task}"]), 'c.json: launch.arguments.0: "{task}" is not allowed: use'),
        (lambda d: d["launch"]["lanes"].pop("build"), "c.json: launch.lanes: 'build' is missing: lanes says"),
        (lambda d: d["launch"]["lanes"]["build"].pop("workspace"), "c.json: launch.lanes.build: ['full'] lacks workspace"),
        (lambda d: d["launch"].update(prompt={"way": "file"}), "c.json: launch.prompt.arguments: [] must name"),
        (lambda d: d.update(modelProfiles=[{"match": "("}]), 'c.json: modelProfiles.0.match: "(" is not allowed: use a'),
        (lambda d: d.update(signIn={"apiKeys": ["A B"]}), 'c.json: signIn.apiKeys.0: "A B" is not allowed'),
        (lambda d: d.update(meter={"type": "reader", "windows": ["hourly"]}), 'c.json: meter.windows.0: "hourly" is not'),
    ],
)  # fmt: skip
def test_a_fault_is_named_with_file_field_and_value(change: Change, line: str) -> None:
    data = copy.deepcopy(GOOD)
    change(data)
    with pytest.raises(ConnectorError) as caught:
        validate_connector(data, file="c.json")
    assert caught.value.message.startswith(line)
    assert caught.value.exit_code == 2


def test_every_fault_gets_a_line_and_a_list_is_not_blamed_for_its_entry() -> None:
    data = copy.deepcopy(GOOD) | {"costRank": "x", "lanes": ["analyse"]}
    del data["binary"]
    with pytest.raises(ConnectorError) as caught:
        validate_connector(data, file="c.json")
    fields = sorted(line.split(": ")[1] for line in caught.value.message.splitlines())
    assert fields == ["binary", "costRank", "lanes.0"]


@pytest.mark.parametrize("value", [[], "text", 3, None, {"name": {1, 2}}])
def test_what_is_no_connector_at_all_is_a_connector_error(value: object) -> None:
    with pytest.raises(ConnectorError, match=r"^c\.json: "):
        validate_connector(value, file="c.json")


def test_a_long_value_is_cut_in_the_message() -> None:
    with pytest.raises(ConnectorError) as caught:
        validate_connector(GOOD | {"binary": ["x" * 5000]}, file="c.json")
    assert len(caught.value.message) < 300


def test_the_json_schema_for_editors_speaks_camel_case() -> None:
    assert "costRank" in json_schema()["properties"]
