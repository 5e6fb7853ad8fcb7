"""Anthropic Messages, which Claude Code speaks."""

import json
from collections.abc import Iterator
from typing import Any

from tests.agents.scripted_model.request import ModelRequest, call_id
from tests.agents.scripted_model.scenario import Answer, HangMidStream, Usage

PATHS = ("/v1/messages",)
MODEL = "claude-sonnet-5"


def messages_of(body: dict[str, Any]) -> list[Any]:
    """Give the conversation of a request."""
    return list(body.get("messages") or ())


def whole(answer: Answer, request: ModelRequest, unique: str) -> dict[str, Any]:
    """Give the answer as one JSON object, for a request that wants no stream."""
    return {
        **_message(request, unique),
        "content": _blocks(answer, request, unique),
        "stop_reason": _stop_reason(answer),
        "usage": {**_input_usage(answer.usage), "output_tokens": answer.usage.output},
    }


def stream(answer: Answer, request: ModelRequest, unique: str) -> Iterator[str]:
    """Give the answer as server-sent events."""
    yield _start(answer.usage, request, unique)
    for index, block in enumerate(_blocks(answer, request, unique)):
        yield from _block_events(index, block)
    yield _event(
        "message_delta",
        delta={"stop_reason": _stop_reason(answer), "stop_sequence": None},
        usage={"output_tokens": answer.usage.output},
    )
    yield _event("message_stop")


def beginning(turn: HangMidStream, request: ModelRequest, unique: str) -> Iterator[str]:
    """Give the first events of an answer that will not end."""
    yield _start(Usage(), request, unique)
    yield _event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    yield _event("content_block_delta", index=0, delta={"type": "text_delta", "text": turn.after})


def _start(usage: Usage, request: ModelRequest, unique: str) -> str:
    message = {**_message(request, unique), "usage": {**_input_usage(usage), "output_tokens": 1}}
    return _event("message_start", message=message)


def _message(request: ModelRequest, unique: str) -> dict[str, Any]:
    return {
        "id": f"msg_{unique}",
        "type": "message",
        "role": "assistant",
        "model": request.body.get("model", MODEL),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _blocks(answer: Answer, request: ModelRequest, unique: str) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": answer.text}] if answer.text else []
    for position, call in enumerate(answer.calls):
        identity = call_id(request.turn, position, unique)
        blocks.append({"type": "tool_use", "id": identity, "name": call.name, "input": dict(call.arguments)})
    return blocks


def _block_events(index: int, block: dict[str, Any]) -> Iterator[str]:
    if block["type"] == "text":
        empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
    else:
        empty = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    yield _event("content_block_start", index=index, content_block=empty)
    yield _event("content_block_delta", index=index, delta=delta)
    yield _event("content_block_stop", index=index)


def _stop_reason(answer: Answer) -> str:
    return "tool_use" if answer.calls else "end_turn"


def _input_usage(usage: Usage) -> dict[str, int]:
    return {
        "input_tokens": usage.input - usage.cached,
        "cache_read_input_tokens": usage.cached,
        "cache_creation_input_tokens": 0,
    }


def _event(kind: str, **fields: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"
