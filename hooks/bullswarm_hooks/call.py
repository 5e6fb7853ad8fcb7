"""One event of a calling agent, with what can be known about who calls."""

from __future__ import annotations

import time

from bullswarm_core.fast import hook_state
from bullswarm_hooks import AGENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from bullswarm_core.fast.hook_state import HookState, Pool


class Call:
    """An event as it came in. The payload is the agent's: every value in it may be missing or of another type."""

    __slots__ = ("_state", "agent", "environ", "event", "now", "payload")

    def __init__(self, agent: str, event: str, payload: dict[str, Any], environ: Mapping[str, str]) -> None:
        self.agent, self.event, self.payload, self.environ = agent, event, payload, environ
        self.now = time.time()
        self._state: HookState | bool | None = False

    @property
    def provider(self) -> str:
        """The provider whose CLI calls."""
        return AGENTS[self.agent]

    @property
    def state(self) -> HookState | None:
        """The pools as they were last written down, read at most once."""
        if self._state is False:
            self._state = hook_state.load(self.environ)
        return self._state if isinstance(self._state, hook_state.HookState) else None

    @property
    def own_pool(self) -> Pool | None:
        """The pool that is the caller's own account."""
        return self.state.own_pool(self.provider, self.environ) if self.state else None

    @property
    def session(self) -> str:
        """The agent's session id, or an empty text."""
        return self.text("session_id")

    @property
    def tool(self) -> str:
        """The name of the tool, or an empty text."""
        return self.text("tool_name")

    @property
    def tool_input(self) -> dict[str, Any]:
        """The tool's arguments."""
        given = self.payload.get("tool_input")
        return given if isinstance(given, dict) else {}

    def text(self, key: str) -> str:
        """Return a text of the payload, or an empty one."""
        value = self.payload.get(key)
        return value if isinstance(value, str) else ""

    def mod_is_loaded(self) -> bool:
        """Tell whether our function hooks run in this Claude Code session, which do the same and more (design: claude-mod).

        The mod says so in the environment of its own process: by that one's pid, since a session within it inherits this.
        """
        said = self.environ.get("BULLSWARM_MOD", "")
        return self.agent == "claude" and bool(said) and said in ("1", self.environ.get("CLAUDE_PID"))
