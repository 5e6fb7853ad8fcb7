"""Texts that no worker could be given: half a surrogate pair, which no journal and no CLI takes, and a prompt out of bounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

# A prompt is kept in the journal and handed over as a file; beyond this somebody has piped in the wrong thing.
MAX_PROMPT_BYTES = 8 * 1024 * 1024


def is_text(value: str) -> bool:
    """Tell whether a text can be written as UTF-8; bytes that are no UTF-8 come in as half a surrogate pair."""
    return value.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in value)


def is_model_name(name: str) -> bool:
    """Tell whether a CLI would take ``name`` for a model: one printable line that no program reads as an option."""
    return name.isprintable() and name.strip() != "" and not name.startswith("-")


def text_issues(document: Mapping[str, Any]) -> Iterator[str]:
    """Name each place of a JSON document whose text, or whose key, can't be written as UTF-8."""
    left: list[tuple[str, Any]] = [("", document)]
    while left:
        at, value = left.pop()
        if isinstance(value, str) and not is_text(value):
            yield f"{at} holds half a surrogate pair, which is no text"
        elif isinstance(value, Mapping):
            if not all(is_text(key) for key in value):
                yield f"{at or 'program'} has a key that holds half a surrogate pair, which is no text"
            left += [
                (f"{at}.{key}" if at else key, item) for key, item in reversed(list(value.items())) if is_text(key)
            ]
        elif isinstance(value, list):
            left += [(f"{at}[{place}]", item) for place, item in reversed(list(enumerate(value)))]


def prompt_issues(at: str, prompt: Any) -> Iterator[str]:
    """Say what is wrong with the prompt at ``at``."""
    if not isinstance(prompt, str) or not prompt.strip():
        yield f"{at} must say the whole task"
        return
    size = len(prompt.encode("utf-8", "surrogatepass"))
    if size > MAX_PROMPT_BYTES:
        yield f"{at} has {size} bytes and may have {MAX_PROMPT_BYTES}; put the material into a file in the folder"
