"""The changes as people see them before they agree: a unified diff with no context and no secrets."""

from __future__ import annotations

import contextlib
import difflib
import json
import re

from bullswarm_server.displays.text import plain
from bullswarm_server.integrate import json_text
from bullswarm_server.integrate.errors import TextError
from bullswarm_server.integrate.person import Person
from bullswarm_server.integrate.workspace import Change

_HIDDEN = "•••"
# Code of ours in a folder of ours: a person looks for it in the file, not in a question.
_LONG_FILE = 60
_NAMED = re.compile(
    r"""(?i)(["']?[\w.-]*(?:key|token|secret|passw|credential|auth|cookie|private|bearer)[\w.-]*["']?\s*[:=]\s*["']?)"""
    r"""([^"'\s,}\]]+)"""
)
# Letters and digits mixed, too long for a word, no path: a key that stands where its name doesn't tell.
_LOOKS_SECRET = re.compile(r"(?<![\w./~:-])(?=[\w+=-]*\d)(?=[\w+=-]*[A-Za-z])[\w+=-]{20,}(?![\w/])")


def difference(change: Change, person: Person) -> list[str]:
    """Return the lines of a unified diff of one change; of the person's own lines only what the edit touches."""
    before, after = change.file.text, change.text
    name = person.shown(change.file.path)
    files = "/dev/null" if before is None else name, "/dev/null" if after is None else name
    whole = _lines(before if after is None else after)
    if change.within is not None and len(whole) > _LONG_FILE:
        return [f"--- {files[0]}", f"+++ {files[1]}", f"({len(whole)} lines of bullswarm's own)"]
    lines = [plain(line) for line in difflib.unified_diff(_lines(before), _lines(after), *files, n=0, lineterm="")]
    # A file that is new or that goes is bullswarm's own from end to end.
    return lines if before is None or after is None else [_without_secrets(line) for line in lines]


def _lines(text: str | None) -> list[str]:
    """Split the text into lines; settings that stand in one line are shown as they would be laid out in many."""
    lines = [] if text is None else text.splitlines()
    if len(lines) == 1:
        with contextlib.suppress(TextError):
            return json.dumps(json_text.parse(lines[0], comments=True).value, indent=2, ensure_ascii=False).splitlines()
    return lines


def _without_secrets(line: str) -> str:
    return _LOOKS_SECRET.sub(_HIDDEN, _NAMED.sub(rf"\g<1>{_HIDDEN}", line))
