"""What an agent asked, read the same way whichever of the three protocols it speaks."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# Text that an agent puts into the user's role by itself; none of it begins a new task.
_NOT_A_PROMPT = (
    "<system-reminder",
    "[Your previous response had no visible output",
    "Please continue your response. Along with thinking",
    "<hook_prompt",
    "<environment_context",
    "<permissions",
    "<user_info",
    "# AGENTS.md instructions",
)
_SCRIPTED_CALL = re.compile(r"call_(\d+)_\d+_")


@dataclass(frozen=True, slots=True)
class Entry:
    """One step of the conversation: who spoke, the text, and the ids of the tools that were called."""

    role: str
    text: str
    call_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request as it came in. Header names are in lower case; `body` is the parsed JSON, or None."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any
    conversation: tuple[Entry, ...] = ()

    @property
    def prompt(self) -> str:
        """The text of the newest user prompt, or an empty text."""
        index = self._prompt_index()
        return "" if index is None else self.conversation[index].text

    @property
    def turn(self) -> int:
        """How many answers the model gave since the newest prompt."""
        index = self._prompt_index()
        turn = 0
        for entry in self.conversation[0 if index is None else index + 1 :]:
            if entry.role == "assistant":
                turn = _turn_of(entry.call_ids, turn) + 1
        return turn

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools that were offered."""
        offered = _offered(self.body) if isinstance(self.body, dict) else []
        return tuple(_tool_name(tool) for tool in offered if isinstance(tool, dict))

    def _prompt_index(self) -> int | None:
        for index in range(len(self.conversation) - 1, -1, -1):
            entry = self.conversation[index]
            if entry.role == "user" and entry.text and not entry.text.startswith(_NOT_A_PROMPT):
                return index
        return None


def call_id(turn: int, position: int, unique: str) -> str:
    """Name a call so that the next request tells which turn it came from."""
    return f"call_{turn}_{position}_{unique}"


def conversation_of(messages: Sequence[Any]) -> tuple[Entry, ...]:
    """Read the messages of any of the three protocols. Items that are not messages or calls are left out."""
    return tuple(_merged(entry for message in messages if isinstance(message, dict) for entry in _entries(message)))


def _entries(message: dict[str, Any]) -> Iterator[Entry]:
    kind = message.get("type", "message")
    if kind in ("function_call", "custom_tool_call", "tool_search_call"):
        yield Entry("assistant", "", (str(message.get("call_id", "")),))
    elif kind in ("function_call_output", "custom_tool_call_output", "tool_search_output"):
        yield Entry("tool", "")
    elif kind == "message":
        yield from _message_entries(message)


def _message_entries(message: dict[str, Any]) -> Iterator[Entry]:
    blocks = _blocks(message.get("content"))
    called = [str(block.get("id", "")) for block in blocks if block.get("type") == "tool_use"]
    called += [str(call.get("id", "")) for call in message.get("tool_calls") or ()]
    role = str(message.get("role", ""))
    if any(block.get("type") == "tool_result" for block in blocks):
        role = "tool"
    yield Entry(role, _prompt_text(blocks), tuple(called))


def _blocks(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content or () if isinstance(block, dict)]


def _prompt_text(blocks: list[dict[str, Any]]) -> str:
    texts = [str(block["text"]) for block in blocks if isinstance(block.get("text"), str)]
    said = [text for text in texts if not text.startswith(_NOT_A_PROMPT)]
    return "\n".join(said or texts)


def _merged(entries: Iterator[Entry]) -> Iterator[Entry]:
    """Join neighbours that are one answer: Codex sends text and each call as items of their own."""
    held: Entry | None = None
    for entry in entries:
        if held is not None and held.role == entry.role == "assistant" and _same_answer(held, entry):
            held = Entry("assistant", held.text + entry.text, held.call_ids + entry.call_ids)
            continue
        if held is not None:
            yield held
        held = entry
    if held is not None:
        yield held


def _same_answer(first: Entry, second: Entry) -> bool:
    if not second.call_ids:
        return False
    return not first.call_ids or _turn_of(first.call_ids, -1) == _turn_of(second.call_ids, -2)


def _turn_of(call_ids: tuple[str, ...], otherwise: int) -> int:
    for identity in call_ids:
        if found := _SCRIPTED_CALL.match(identity):
            return int(found.group(1))
    return otherwise


def _offered(body: dict[str, Any]) -> list[Any]:
    """Codex offers the tools of its newer models in an item of the conversation."""
    items = body.get("input")
    added = [item for item in items or () if isinstance(item, dict) and item.get("type") == "additional_tools"]
    return [*(body.get("tools") or ()), *(tool for item in added for tool in item.get("tools") or ())]


def _tool_name(tool: dict[str, Any]) -> str:
    inner = tool.get("function")
    return str((inner if isinstance(inner, dict) else tool).get("name", ""))
