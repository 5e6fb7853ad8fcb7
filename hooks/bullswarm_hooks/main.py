"""``bullswarm-hook AGENT EVENT``: the event's JSON on standard input, one JSON document or nothing on standard output.

It exits 0 whatever happens. A hook that fails, waits or babbles harms the agent that it should help: broken input, missing
state and every error of its own end in silence, and a deadline of its own ends the rest.
"""

from __future__ import annotations

import os
import sys

from bullswarm_hooks import AGENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from bullswarm_hooks.call import Call

# An agent hands over a whole tool output; reading more would cost more than a line about it is worth.
LARGEST_INPUT_BYTES = 4 << 20
# The agents wait 5 s (templates); a hook that isn't done by then has met a dead disk, and nobody needs its answer.
DEADLINE_SEC = 3.0
# Every shell command of a session comes by here: one that can't concern us is let through before it is even parsed.
_CONCERNS_US = {
    "PreToolUse": (b"bullswarm", b'"Agent"', b'"Task"', b'"task"', b"spawn_agent"),
    "PostToolUse": (b"bullswarm",),
    "PostToolUseFailure": (b"bullswarm",),
}


def main() -> int:
    """Answer one event; always 0."""
    try:
        _set_deadline()
        document = _answered(sys.argv[1:], os.environ)
        if document:
            _write(document)
    except BaseException:
        # Not even a Ctrl-C or a full pipe may become the agent's problem.
        return 0
    return 0


def _answered(words: list[str], environ: Mapping[str, str]) -> dict[str, Any] | None:
    if len(words) != 2 or words[0] not in AGENTS or _is_no_caller(environ):
        return None
    agent, event = words
    data = _read()
    if data is None or not any(mark in data for mark in _CONCERNS_US.get(event, (b"",))):
        return None
    import json

    payload = json.loads(data)
    if not isinstance(payload, dict) or payload.get("hook_event_name", event) != event:
        return None
    from bullswarm_hooks.call import Call

    return answer(Call(agent, event, payload, environ))


def answer(call: Call) -> dict[str, Any] | None:
    """Return the answer to an event; None for silence."""
    if call.event == "SessionStart":
        from bullswarm_hooks import session_start

        return session_start.answer(call)
    if call.event == "PreToolUse":
        from bullswarm_hooks import before_tool

        return before_tool.answer(call)
    if call.event in ("PostToolUse", "PostToolUseFailure"):
        from bullswarm_hooks import after_tool

        return after_tool.answer(call)
    return None


def _is_no_caller(environ: Mapping[str, str]) -> bool:
    """A worker of ours delegates by no hook; and Grok runs Claude's hooks too, where nothing of this would be true."""
    return environ.get("BULLSWARM_DEPTH", "").strip() not in ("", "0") or bool(environ.get("GROK_HOOK_EVENT"))


def _set_deadline() -> None:
    # Not `signal`, which makes enums of its numbers: 8 ms on every shell command of a session.
    try:
        import _signal as signal  # type: ignore[import-not-found]
    except ImportError:  # only CPython has it
        import signal

    signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
    signal.setitimer(signal.ITIMER_REAL, DEADLINE_SEC)


def _read() -> bytes | None:
    """Return standard input; None when it is empty or too large (the rest is read and dropped, not to break the pipe)."""
    chunks: list[bytes] = []
    size = 0
    while chunk := os.read(0, 1 << 16):
        size += len(chunk)
        if size <= LARGEST_INPUT_BYTES:
            chunks.append(chunk)
    return b"".join(chunks) if 0 < size <= LARGEST_INPUT_BYTES else None


def _write(document: dict[str, Any]) -> None:
    import json

    data = json.dumps(document).encode("ascii") + b"\n"
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    sys.exit(main())
