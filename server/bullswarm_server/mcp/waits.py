"""How long a call may wait: longer than a client's patience, and its answer is thrown away.

Measured on the real clients: OpenCode ends a call after 60 s, each progress notification starts those anew; Codex after
300 s, whatever the progress; Claude Code after about 28 h, or MCP_TOOL_TIMEOUT, which it hands to its servers, and after
30 min without progress; Grok after 6000 s; Command Code after 80 s, or MCP_TOOL_TIMEOUT. An unknown client gets 45 s, which
every known one outlasts (docs/design/surfaces.md, "Waits").
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

UNKNOWN_SEC = 45.0
PROGRESS_EVERY_SEC = 3.0
_LONG_SEC = 1500.0
_CODEX_SEC = 280.0
# Codex's newer models call tools from a script that hands control back after 30 s.
_CODE_MODE_SEC = 25.0
_COMMAND_CODE_SEC = 70.0
_GROK_SEC = 5400.0
_GEMINI_SEC = 550.0
# A limit that the client states is met with this much to spare: the answer has to be made and to travel, too, which took up
# to 1 s on a busy machine.
_SPARE_SHARE = 0.15
_SPARE_SEC = 2.0
# Of a limit of a few seconds something has to be left; a call that it cuts off is waited on by the name `last`.
_LEAST_SHARE = 0.4
_LIMIT_VARIABLE = "MCP_TOOL_TIMEOUT"
_OLDEST_PATIENT_CODEX = (0, 171)
# Every model of Codex's catalogue from 5.6 on calls tools in code mode; an unknown name does not.
_CODE_MODE_MODEL = re.compile(r"^gpt-(?:5\.(?:[6-9]|\d\d)|[6-9]|\d\d)(?:\D|$)")


@dataclass(frozen=True, slots=True)
class Client:
    """What a request tells of the program that sent it."""

    name: str = ""
    version: str = ""
    takes_progress: bool = False
    model: str | None = None

    @property
    def code_mode(self) -> bool:
        """Whether the model calls tools from a script that hands control back after half a minute."""
        return self.name.startswith("codex") and bool(_CODE_MODE_MODEL.match(self.model or ""))


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds to wait when nothing is asked, and the most that may be asked."""

    usual_sec: float
    most_sec: float

    def seconds(self, asked: float | None, *, spent_sec: float = 0.0) -> float:
        """Return the wait that is applied, in tenths of a second; ``spent_sec`` of the patience are gone already."""
        wanted = self.usual_sec - spent_sec if asked is None else min(asked, self.most_sec - spent_sec)
        return max(0.0, math.floor(wanted * 10) / 10)


def patience_of(client: Client, environ: Mapping[str, str]) -> Patience:
    """Return how long a call of this client may wait."""
    name = client.name.strip().lower()
    if name == "claude-code":
        return _both(_within(_LONG_SEC, _stated_limit(environ)))
    if name == "opencode":
        return _both(_LONG_SEC if client.takes_progress else UNKNOWN_SEC)
    if name in ("codex-mcp-client", "codex"):
        most = _CODEX_SEC if _version(client.version) >= _OLDEST_PATIENT_CODEX else UNKNOWN_SEC
        return Patience(min(_CODE_MODE_SEC, most) if client.code_mode else most, most)
    if name == "commandcode":
        stated = _stated_limit(environ)
        return _both(_within(_LONG_SEC, stated) if stated is not None else _COMMAND_CODE_SEC)
    if name.startswith("grok-shell-"):
        return _both(_GROK_SEC)
    if name == "gemini-cli-mcp-client":
        return _both(_GEMINI_SEC)
    return _both(UNKNOWN_SEC)


def _both(seconds: float) -> Patience:
    return Patience(seconds, seconds)


def _within(seconds: float, limit: float | None) -> float:
    if limit is None:
        return seconds
    spare = max(limit * _SPARE_SHARE, _SPARE_SEC)
    return min(seconds, max(limit - spare, limit * _LEAST_SHARE))


def _stated_limit(environ: Mapping[str, str]) -> float | None:
    """The limit that the person gave the client, in milliseconds there; both clients pass their environment on."""
    try:
        seconds = float(environ.get(_LIMIT_VARIABLE, "")) / 1000
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 1 else None


def _version(text: str) -> tuple[int, int]:
    found = re.match(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)
