"""Before a tool runs: hand over who calls, refuse a pin on the caller's own pool, offer a subagent's work to another pool."""

from __future__ import annotations

from bullswarm_core.fast.pool_text import shown
from bullswarm_hooks import answers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from bullswarm_core.fast.hook_state import Pool
    from bullswarm_hooks.call import Call

CALLER_VARIABLE = "BULLSWARM_CALLER"
SHELL_TOOLS = ("Bash", "bash")
# The tools in which `pool` names the pool that shall work; in `label` and `pools` it may well be the caller's own.
_PINNING_TOOLS = ("run", "route", "workflow_goal")
# With one of these beside Claude Code's own marker, a child can't tell for certain which of them is nearest.
_OTHER_AGENTS = (
    "CODEX_THREAD_ID", "CODEX_SESSION_ID", "GROK_AGENT", "GROK_SESSION_ID", "OPENCODE", "OPENCODE_PID",
    "COMMANDCODE_SESSION_ID", "COMMANDCODE_SCRATCHPAD",
)  # fmt: skip


def answer(call: Call) -> dict[str, Any] | None:
    """Return what to do with the tool call; None lets it run as it is."""
    if call.tool in SHELL_TOOLS:
        return _shell(call)
    if mcp_tool(call.tool) in _PINNING_TOOLS:
        pool = call.tool_input.get("pool")
        return _refusal(call, pool) if isinstance(pool, str) else None
    from bullswarm_hooks import delegation

    return delegation.answer(call)


def mcp_tool(name: str) -> str | None:
    """Return which of our MCP server's tools this is, under whichever name the agent gives it.

    ``mcp__bullswarm__run`` (Claude Code, Codex), ``mcp__plugin_bullswarm_bullswarm__run`` (as a plugin), ``bullswarm_run``
    (OpenCode).
    """
    if name.startswith("mcp__"):
        server, _, tool = name[len("mcp__") :].partition("__")
        return tool if tool and (server == "bullswarm" or server.endswith("_bullswarm")) else None
    return name[len("bullswarm_") :] if name.startswith("bullswarm_") else None


def _shell(call: Call) -> dict[str, Any] | None:
    command = call.tool_input.get("command")
    if not isinstance(command, str) or "bullswarm" not in command:
        return None
    from bullswarm_hooks.shell import bullswarm_commands, with_variable

    found = bullswarm_commands(command)
    for one in found:
        pin = one.option("--pool")
        if pin is not None and one.verb in ("run", "route", "workflow") and (refused := _refusal(call, pin)):
            return refused
    own = call.own_pool
    silent = [one for one in found if CALLER_VARIABLE not in one.assigned]
    if own is None or not silent or not _needs_telling(call, own):
        return None
    told = with_variable(command, silent, CALLER_VARIABLE, own.id)
    return answers.rewrite(call.event, {**call.tool_input, "command": told}, agent=call.agent)


def _needs_telling(call: Call, own: Pool) -> bool:
    """Whether ``bullswarm`` could take the caller for somebody else.

    In Claude Code's shell its marker and account are always there, and a changed command no longer matches a permission
    rule such as ``Bash(bullswarm run:*)`` (measured): so there only where another agent's traces are, too. A Codex shell
    may be set to inherit next to nothing, not even CODEX_HOME.
    """
    inherited = call.environ.get(CALLER_VARIABLE, "").strip()
    if inherited in ("none", own.id):
        return False
    return call.agent != "claude" or bool(inherited) or any(call.environ.get(name) for name in _OTHER_AGENTS)


def _refusal(call: Call, name: str) -> dict[str, Any] | None:
    state, own = call.state, call.own_pool
    if state is None or own is None or call.environ.get(CALLER_VARIABLE, "").strip() == "none":
        return None
    named = state.named(name)
    if named is None or named.id != own.id:
        return None
    others = ", ".join(shown(pool.label) for pool in state.pools if pool.ready and pool.id != own.id)
    way_out = f"leave the pin out, or name another pool: {others}" if others else (
        "no other pool is ready; `bullswarm pools` says why"
    )  # fmt: skip
    return answers.deny(
        call.event,
        f"bullswarm: {shown(own.label)} is the caller's own pool (this session runs on it), so it can't take the work: "
        f"{way_out}",
    )
