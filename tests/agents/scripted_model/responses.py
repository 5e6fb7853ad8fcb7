"""OpenAI Responses, which Codex speaks."""

import json
from collections.abc import Iterator
from typing import Any

from tests.agents.scripted_model.request import ModelRequest, call_id
from tests.agents.scripted_model.scenario import Answer, HangMidStream, ToolCall, Usage

PATHS = ("/v1/responses",)
# The only argument of a tool that takes no JSON but a text, as the scripts of Codex's newer models.
FREE_TEXT = "free_text"


def messages_of(body: dict[str, Any]) -> list[Any]:
    """Give the conversation of a request."""
    given = body.get("input") or ()
    return [{"role": "user", "content": given}] if isinstance(given, str) else list(given)


def whole(answer: Answer, request: ModelRequest, unique: str) -> dict[str, Any]:
    """Give the answer as one JSON object, for a request that wants no stream."""
    output = _items(answer, request, unique)
    return {**_response(unique, "completed"), "output": output, "usage": _usage(answer.usage)}


def stream(answer: Answer, request: ModelRequest, unique: str) -> Iterator[str]:
    """Give the answer as server-sent events."""
    yield _event("response.created", response=_response(unique, "in_progress"))
    for index, item in enumerate(_items(answer, request, unique)):
        yield _event("response.output_item.added", output_index=index, item=item)
        if item["type"] == "message":
            yield _text_delta(index, item["id"], answer.text)
        yield _event("response.output_item.done", output_index=index, item=item)
    yield _event("response.completed", response=whole(answer, request, unique))


def beginning(turn: HangMidStream, request: ModelRequest, unique: str) -> Iterator[str]:
    """Give the first events of an answer that will not end."""
    item = {**_message("", unique), "status": "in_progress", "content": []}
    yield _event("response.created", response=_response(unique, "in_progress"))
    yield _event("response.output_item.added", output_index=0, item=item)
    yield _text_delta(0, item["id"], turn.after)


def _items(answer: Answer, request: ModelRequest, unique: str) -> list[dict[str, Any]]:
    items = [_message(answer.text, unique)] if answer.text else []
    for position, call in enumerate(answer.calls):
        items.append(_call(call, call_id(request.turn, position, unique)))
    return items


def _call(call: ToolCall, identity: str) -> dict[str, Any]:
    common = {"status": "completed", "call_id": identity}
    if set(call.arguments) == {FREE_TEXT}:
        return {
            **common,
            "id": f"ctc_{identity}",
            "type": "custom_tool_call",
            "name": call.name,
            "input": call.arguments[FREE_TEXT],
        }
    arguments = dict(call.arguments)
    if call.name == "tool_search":
        # The client itself searches; its arguments are an object, not a text.
        return {
            **common,
            "id": f"tsc_{identity}",
            "type": "tool_search_call",
            "execution": "client",
            "arguments": arguments,
        }
    namespace, _, name = call.name.rpartition(".")
    return {
        **common,
        "id": f"fc_{identity}",
        "type": "function_call",
        "name": name,
        **({"namespace": namespace} if namespace else {}),
        "arguments": json.dumps(arguments),
    }


def _message(text: str, unique: str) -> dict[str, Any]:
    return {
        "id": f"msg_{unique}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}],
    }


def _text_delta(index: int, item_id: str, text: str) -> str:
    return _event("response.output_text.delta", output_index=index, content_index=0, item_id=item_id, delta=text)


def _response(unique: str, status: str) -> dict[str, Any]:
    return {"id": f"resp_{unique}", "object": "response", "status": status, "output": []}


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    }


def _event(kind: str, **fields: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"
