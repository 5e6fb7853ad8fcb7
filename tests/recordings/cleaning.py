"""Make a recording fit to keep: no path of the machine it was made on, no secret of a session, no endless list."""

import json
from collections.abc import Mapping
from typing import Any

# The model's catalogue of skills and commands is most of a start event and says nothing about a run.
_LONGEST_LIST = 6
_LONGEST_FILE = 20_000
_LONGEST_TEXT = 600

_SECRET_FIELDS = {"messaging_socket_path": "/tmp/cc-socks/1.sock"}


def clean(printed: str, places: Mapping[str, str]) -> str:
    """Give the printed text with the machine's places replaced; a longer recording also has its lists cut."""
    for real, shown in sorted(places.items(), key=lambda place: -len(place[0])):
        printed = printed.replace(real, shown)
    return "".join(_clean_line(line, cut=len(printed) > _LONGEST_FILE) for line in printed.splitlines(keepends=True))


def _clean_line(line: str, *, cut: bool) -> str:
    try:
        event = json.loads(line)
    except ValueError:
        return line
    if not isinstance(event, dict):
        return line
    cleaned = _cleaned(event, cut=cut or len(line) > 3_000)
    # A line that needs no change stays as it was printed, to the byte (Codex repeats a key in some of its events).
    return line if cleaned == event else json.dumps(cleaned, ensure_ascii=False, separators=(",", ":")) + "\n"


def _cleaned(value: Any, *, cut: bool) -> Any:
    if isinstance(value, dict):
        kept = {key: _SECRET_FIELDS.get(key, _cleaned(inner, cut=cut)) for key, inner in value.items()}
        return dict(list(kept.items())[:40]) if cut and len(kept) > 40 else kept
    if isinstance(value, list):
        return [_cleaned(inner, cut=cut) for inner in (value[:_LONGEST_LIST] if cut else value)]
    if isinstance(value, str) and cut and len(value) > _LONGEST_TEXT:
        return value[:_LONGEST_TEXT] + "…"
    return value
