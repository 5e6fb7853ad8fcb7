"""The text of a task for a CLI that attaches each file which an at sign in its task names.

A task holds text of others: a project's instructions, another worker's answer. None of them may hand a file to the model.
"""

from __future__ import annotations

import re

# Grok attaches after a space, and after each sign but a letter, a digit and an underscore (measured): a mail address stays.
_SIGN = re.compile(r"(?<![A-Za-z0-9_])@")
# A space behind the at sign doesn't help, Grok passes over it (measured); a full-width one names no file and is as readable.
_INSTEAD = "\uff20"
_NOTE = f"In this text, {_INSTEAD} is written in place of an at sign; write the ordinary sign yourself.\n\n"


def without_attachments(text: str) -> str:
    """Return ``text`` with no at sign that could attach a file, and a line above it that says so where there was one."""
    changed = _SIGN.sub(_INSTEAD, text)
    return text if changed == text else _NOTE + changed
