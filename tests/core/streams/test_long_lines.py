"""Long lines of each CLI's real stream: 64 KiB is no limit of ours, and one bad line ends no reading."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bullswarm_core.process.line_splitter import LINE_CAP_BYTES
from bullswarm_core.streams.reader import StreamReader

ROOT = Path(__file__).parents[3]
TABLES = {"claude-code": "claude_code", "codex": "codex"}


def table(cli: str) -> dict[str, Any]:
    found = json.loads((ROOT / f"providers/bullswarm_providers/{TABLES[cli]}/stream.json").read_text())
    assert isinstance(found, dict)
    return found


def last_words(cli: str, text: str) -> bytes:
    if cli == "claude-code":
        events: list[dict[str, Any]] = [{"type": "result", "subtype": "success", "is_error": False, "result": text}]
    else:
        item = {"id": "item_1", "type": "agent_message", "text": text}
        events = [{"type": "item.completed", "item": item}, {"type": "turn.completed", "usage": {}}]
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


@pytest.mark.parametrize("cli", sorted(TABLES))
@pytest.mark.parametrize("size", [70_000, 95_000, 1_100_000])
def test_a_line_beyond_64_kib_is_an_answer_like_any_other(cli: str, size: int) -> None:
    reader = StreamReader(table(cli))
    whole = last_words(cli, "x" * size)
    for start in range(0, len(whole), 4096):
        reader.feed(whole[start : start + 4096])
    facts = reader.finish()
    assert (facts.terminal, facts.terminal_error, facts.long_lines, facts.bad_lines) == (True, False, 0, 0)
    assert facts.answer.startswith("xxx") and facts.answer.endswith("xxx")


@pytest.mark.parametrize("cli", sorted(TABLES))
def test_after_a_line_that_is_too_long_and_a_megabyte_of_noise_the_last_word_is_still_read(cli: str) -> None:
    reader = StreamReader(table(cli))
    reader.feed(b'{"type":"x","text":"')
    for _ in range(LINE_CAP_BYTES // 65_536 + 2):
        reader.feed(b"y" * 65_536)
    reader.feed(b'"}\n' + b"not json at all\n" * 65_536 + last_words(cli, "The parser is sound."))
    facts = reader.finish()
    assert (facts.answer, facts.terminal, facts.long_lines) == ("The parser is sound.", True, 1)
    assert facts.bad_lines == 65_536
