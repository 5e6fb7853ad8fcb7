"""What is wrong with a line that is no message: every request gets an answer, also one that can't be read (JSON-RPC 2.0)."""

from __future__ import annotations

import json
from typing import Any

PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS = -32700, -32600, -32602

# As many as Python reads; no number that a tool takes has more than ten.
_MOST_DIGITS = 4_300
_TOKEN = r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}:,]|[^\s"\[\]{}:,]+'

Message = dict[str, Any]


class _TooLargeError(ValueError):
    """The line may be JSON, and holds more than is read."""


def error(identity: Any, code: int, text: str) -> Message:
    """Return the error message of JSON-RPC for the request ``identity``; None where no id can be trusted."""
    return {"jsonrpc": "2.0", "id": identity, "error": {"code": code, "message": text}}


def parsed(line: bytes) -> tuple[Message | None, Message | None]:
    """Return the message of a line, and the answer that its sender gets because it is none.

    A well-formed message comes with no answer; an answer to a request that we never sent, or a malformed notification, is
    neither: it is passed over.
    """
    try:
        value = json.loads(line.decode("utf-8"), parse_int=_whole)
    except (_TooLargeError, RecursionError) as problem:
        # Its sender waits for an answer to its request, so the id is found without the rest.
        what = "it is nested too deeply" if isinstance(problem, RecursionError) else str(problem)
        return None, error(_shallow_identity(line.decode("utf-8")), PARSE_ERROR, f"the message can't be read: {what}")
    except ValueError as problem:
        return None, error(None, PARSE_ERROR, f"the line is not JSON in UTF-8: {problem}")
    if not isinstance(value, dict):
        return None, error(None, INVALID_REQUEST, f"a message is one object, not {type(value).__name__} (no batches)")
    if "method" not in value and ("result" in value or "error" in value):
        return None, None
    return _checked(value)


def identity_of(message: Message) -> str | int | None:
    """Return the id that an answer can carry; None where there is none of that kind."""
    value = message.get("id")
    return value if (type(value) is str and _is_text(value)) or type(value) is int else None


def _whole(digits: str) -> int:
    if (count := len(digits.lstrip("-"))) > _MOST_DIGITS:
        raise _TooLargeError(f"a number has {count} digits")
    return int(digits)


def _shallow_identity(text: str) -> str | int | None:
    """Return the id of a message that is one object, of any depth; None where there is none that can be trusted."""
    import re

    closing: list[str] = []
    found: str | None = None
    before: tuple[str, ...] = ()
    over = False
    for token in re.findall(_TOKEN, text, re.DOTALL):
        if over or not (closing or token == "{"):
            return None
        if len(closing) == 1 and closing[0] == "}" and before[-2:] == ('"id"', ":"):
            found = token
        if token in "{[":
            closing.append("}" if token == "{" else "]")
        elif token in "}]":
            if closing.pop() != token:
                return None
            over = not closing
        before = (*before[-1:], token) if len(closing) == 1 else ()
    if not over or found is None:
        return None
    try:
        return identity_of({"id": json.loads(found, parse_int=_whole)})
    except (ValueError, RecursionError):
        return None


def _checked(message: Message) -> tuple[Message | None, Message | None]:
    identity, method, params = identity_of(message), message.get("method"), message.get("params")
    if not isinstance(method, str):
        return None, error(identity, INVALID_REQUEST, "method is missing or not a string")
    if "id" not in message or (message["id"] is None and method.startswith("notifications/")):
        return (message, None) if _is_sound(message) else (None, None)
    if identity is None:
        return None, error(None, INVALID_REQUEST, "id is neither a string nor an integer")
    if message.get("jsonrpc") != "2.0":
        return None, error(identity, INVALID_REQUEST, 'jsonrpc is not "2.0"')
    if params is not None and not isinstance(params, dict):
        return None, error(identity, INVALID_PARAMS, f"params is an object, not {type(params).__name__}")
    if not _is_text(message):
        return None, error(
            identity, INVALID_PARAMS, "the message holds half of a surrogate pair, which is no character"
        )
    return message, None


def _is_sound(notification: Message) -> bool:
    params = notification.get("params")
    return (
        notification.get("jsonrpc") == "2.0" and (params is None or isinstance(params, dict)) and _is_text(notification)
    )


def _is_text(value: Any) -> bool:
    r"""Say whether every text in ``value`` can be written as UTF-8: JSON's ``\ud800`` alone can't."""
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except (UnicodeEncodeError, RecursionError):
        return False
    return True
