"""The documents that the agents understand, per event; what an event can't carry is not said."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# What each event's ``hookSpecificOutput`` may hold; Claude Code and Codex share the format (measured in both).
FIELDS = {
    "SessionStart": frozenset({"additionalContext"}),
    "PreToolUse": frozenset({"additionalContext", "permissionDecision", "permissionDecisionReason", "updatedInput"}),
    "PostToolUse": frozenset({"additionalContext"}),
    "PostToolUseFailure": frozenset({"additionalContext"}),
}


def context(event: str, text: str) -> dict[str, Any] | None:
    """Tell the model something; nothing to say is silence."""
    return _document(event, additionalContext=text) if text.strip() else None


def deny(event: str, reason: str) -> dict[str, Any] | None:
    """Keep a tool from running; the model reads the reason as the tool's result."""
    return _document(event, permissionDecision="deny", permissionDecisionReason=reason)


def rewrite(event: str, tool_input: dict[str, Any], *, agent: str) -> dict[str, Any] | None:
    """Run the tool with this input instead.

    Claude Code takes a new input without a decision and then asks its own permissions as ever; "allow" would wave through
    what the person never allowed. Codex takes a new input only with "allow", which grants nothing there.
    """
    if agent == "codex":
        return _document(event, permissionDecision="allow", updatedInput=tool_input)
    return _document(event, updatedInput=tool_input)


def _document(event: str, **fields: Any) -> dict[str, Any] | None:
    if not FIELDS.get(event, frozenset()).issuperset(fields):
        return None
    return {"hookSpecificOutput": {"hookEventName": event, **fields}}
