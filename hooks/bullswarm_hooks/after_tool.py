"""After a tool ran: the verdict of a ``bullswarm run`` in one line."""

from __future__ import annotations

from bullswarm_hooks import answers
from bullswarm_hooks.before_tool import SHELL_TOOLS, mcp_tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from bullswarm_hooks.call import Call

_WAITING_VERBS = ("wait", "result")


def answer(call: Call) -> dict[str, Any] | None:
    """Return the line as context; None when this was no run of ours, or the mod says it."""
    if not _was_a_run(call) or call.mod_is_loaded():
        return None
    from bullswarm_hooks import verdict

    # A command that exits with 1, as `bullswarm run` does for a bad verdict, is a failure of the tool to Claude Code: it has
    # an event of its own, and the output stands in its `error`.
    where = "error" if call.event == "PostToolUseFailure" else "tool_response"
    found = verdict.find(call.payload.get(where))
    return answers.context(call.event, verdict.line(found)) if found else None


def _was_a_run(call: Call) -> bool:
    if call.tool not in SHELL_TOOLS:
        return mcp_tool(call.tool) == "run"
    command = call.tool_input.get("command")
    if not isinstance(command, str) or "bullswarm" not in command:
        return False
    from bullswarm_hooks.shell import bullswarm_commands

    return any(
        one.verb == "run" or (one.verb in ("runs", "workflow") and one.words[2:3] and one.words[2] in _WAITING_VERBS)
        for one in bullswarm_commands(command)
    )
