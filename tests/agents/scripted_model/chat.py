"""OpenAI Chat Completions, which OpenCode, Grok and Command Code speak."""

import json
import time
from collections.abc import Iterator
from typing import Any

from tests.agents.scripted_model.request import ModelRequest, call_id
from tests.agents.scripted_model.scenario import Answer, HangMidStream, Usage

PATHS = ("/v1/chat/completions",)


def messages_of(body: dict[str, Any]) -> list[Any]:
    """Give the conversation of a request."""
    return list(body.get("messages") or ())


def whole(answer: Answer, request: ModelRequest, unique: str) -> dict[str, Any]:
    """Give the answer as one JSON object, for a request that wants no stream."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
    if answer.calls:
        message["tool_calls"] = _calls(answer, request, unique)
    choice = {"index": 0, "message": message, "finish_reason": _finish_reason(answer)}
    return {**_frame(request, unique, "chat.completion"), "choices": [choice], "usage": _usage(answer.usage)}


def stream(answer: Answer, request: ModelRequest, unique: str) -> Iterator[str]:
    """Give the answer as server-sent events."""
    yield _chunk(request, unique, {"role": "assistant", "content": answer.text})
    if answer.calls:
        calls = [{"index": index, **call} for index, call in enumerate(_calls(answer, request, unique))]
        yield _chunk(request, unique, {"tool_calls": calls})
    yield _chunk(request, unique, {}, finish_reason=_finish_reason(answer), usage=_usage(answer.usage))
    yield "data: [DONE]\n\n"


def beginning(turn: HangMidStream, request: ModelRequest, unique: str) -> Iterator[str]:
    """Give the first events of an answer that will not end."""
    yield _chunk(request, unique, {"role": "assistant", "content": turn.after})


def _calls(answer: Answer, request: ModelRequest, unique: str) -> list[dict[str, Any]]:
    return [
        {
            "id": call_id(request.turn, position, unique),
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(dict(call.arguments))},
        }
        for position, call in enumerate(answer.calls)
    ]


def _chunk(
    request: ModelRequest,
    unique: str,
    delta: dict[str, Any],
    *,
    finish_reason: str | None = None,
    usage: dict[str, Any] | None = None,
) -> str:
    chunk = _frame(request, unique, "chat.completion.chunk")
    chunk["choices"] = [{"index": 0, "delta": delta, "finish_reason": finish_reason}]
    if usage is not None:
        chunk["usage"] = usage
    return f"data: {json.dumps(chunk)}\n\n"


def _frame(request: ModelRequest, unique: str, kind: str) -> dict[str, Any]:
    model = request.body.get("model", "stub-model")
    return {"id": f"chatcmpl-{unique}", "object": kind, "created": int(time.time()), "model": model}


def _finish_reason(answer: Answer) -> str:
    return "tool_calls" if answer.calls else "stop"


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }
