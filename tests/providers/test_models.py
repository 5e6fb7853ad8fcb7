"""Each provider's list of models, read from what its CLI printed (recorded) and from odd answers."""

import json
from typing import Any

import pytest

from bullswarm_core.errors import ModelListError
from bullswarm_core.pools.model_catalog import ModelEntry
from bullswarm_providers.claude_code.models import models_of
from bullswarm_providers.codex.models import page_of
from bullswarm_providers.printed_models import from_bullets, from_columns, from_lines


def control_response(models: Any) -> str:
    return json.dumps({"type": "control_response", "response": {"subtype": "success", "response": {"models": models}}})


CLAUDE = [
    {
        "value": "default",
        "resolvedModel": "claude-opus-5-5",
        "displayName": "Default (recommended)",
        "supportedEffortLevels": ["low", "max"],
    },
    {
        "value": "opus",
        "resolvedModel": "claude-opus-5-5",
        "displayName": "Opus",
        "description": "Opus 5.5 · Best for everyday, complex tasks",
        "supportedEffortLevels": ["low", "max"],
    },
    {"value": "haiku", "resolvedModel": "claude-haiku-5-5", "displayName": "Haiku", "description": "Fastest"},
]


def test_claude_code_names_its_aliases_and_the_default_among_them() -> None:
    output = "\n".join(['{"type":"system"}', "no json", "[1]", control_response(CLAUDE)])
    assert models_of(output) == (
        ModelEntry("opus", "claude-opus-5-5", "Opus 5.5 · Best for everyday, complex tasks", True, ("low", "max")),
        ModelEntry("haiku", "claude-haiku-5-5", "Fastest"),
    )


@pytest.mark.parametrize(
    "output",
    [
        "",
        "{}",
        '{"type":"control_response"}',
        '{"type":"control_response","response":{"subtype":"error","error":"no"}}',
        '{"type":"control_response","response":{"response":{"models":{}}}}',
        "[" * 100_000,
    ],
)
def test_claude_code_without_a_list(output: str) -> None:
    with pytest.raises(ModelListError, match="without a list"):
        models_of(output)


def test_entries_that_are_none_are_passed_by() -> None:
    assert models_of(control_response([3, None, {}, {"value": "m", "supportedEffortLevels": 4}])) == (ModelEntry("m"),)


def test_codex_tells_a_page_and_the_next_cursor() -> None:
    page = {
        "data": [
            {
                "id": "gpt-6.2-sol",
                "displayName": "GPT-6.2-Sol",
                "description": "Fast, go-to model",
                "hidden": False,
                "supportedReasoningEfforts": [{"reasoningEffort": "low", "description": "x"}, {"odd": 1}, 3],
                "isDefault": True,
            },
            {"id": "gpt-secret", "hidden": True},
            {"id": 5},
            "text",
        ],
        "nextCursor": "more",
    }
    assert page_of(page) == ([ModelEntry("gpt-6.2-sol", "GPT-6.2-Sol", "Fast, go-to model", True, ("low",))], "more")
    assert page_of({"data": [], "nextCursor": None}) == ([], None)


@pytest.mark.parametrize("result", [None, [], {}, {"data": {}}, "text"])
def test_codex_without_a_list(result: Any) -> None:
    with pytest.raises(ModelListError, match="without a list"):
        page_of(result)


def test_grok_prints_bullets() -> None:
    output = "You are not authenticated.\n\nDefault model: grok-4.6\n\nAvailable models:\n"
    output += "  * grok-4.6 (default)\n  - grok-4.5\n"
    assert from_bullets(output) == (ModelEntry("grok-4.6", default=True), ModelEntry("grok-4.5"))
    assert from_bullets("nothing\n- two words\n") == ()


def test_command_code_prints_columns_and_then_models_that_take_no_task() -> None:
    output = (
        "Available models  ·  80 models\n\nOpen Source\n\n"
        "deepseek/deepseek-v4-pro               hybrid-attention long-context reasoning\n"
        "\x1b[32mdeepseek/deepseek-v4-flash\x1b[0m             fast reasoning (default)\n"
        "\nOpenAI\n\ngpt-5.5                                latest model\n\n"
        'Pass the full id, or just the short name after the last "/":\ncmd --model kimi-k2.5\n'
        "Docs:  https://example.invalid\ntypesafe/jev  typed questions in\n"
    )
    assert from_columns(output, until="Pass the full id") == (
        ModelEntry("deepseek/deepseek-v4-pro", note="hybrid-attention long-context reasoning"),
        ModelEntry("deepseek/deepseek-v4-flash", note="fast reasoning", default=True),
        ModelEntry("gpt-5.5", note="latest model"),
    )


def test_opencode_prints_names() -> None:
    output = "opencode/big-pickle\nINFO models loaded\nlm/owner/model:free\n\n"
    assert from_lines(output) == (ModelEntry("opencode/big-pickle"), ModelEntry("lm/owner/model:free"))
