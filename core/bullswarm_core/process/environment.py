"""The environment of a worker: what the caller's own session left in it goes, all else passes.

Pure functions of an environment that is passed in, as is the one that makes a connector's paths absolute with it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

from bullswarm_core.errors import UsageError

DEPTH_VARIABLE = "BULLSWARM_DEPTH"
CALLER_VARIABLE = "BULLSWARM_CALLER"

# What a calling agent's session puts into its children. A nested CLI that sees them refuses to start, ends with no
# output, or talks to the wrong session; CLAUDE_CODE_MESSAGING_TOKEN is a secret of that session.
_SESSION_VARIABLES = frozenset({
    "CLAUDECODE", "AI_AGENT", "CLAUDE_PID", "CLAUDE_EFFORT", "BULLSWARM_MOD",
    "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_SESSION_ATTENDED",
    "CLAUDE_CODE_EXECPATH", "CLAUDE_CODE_CHILD_NOTES_DIR",
    "CODEX_THREAD_ID", "CODEX_SESSION_ID", "CODEX_TOOL_CALL_ID", "CODEX_CI",
    "OPENCODE", "OPENCODE_PID", "GROK_AGENT", "GROK_SESSION_ID",
})  # fmt: skip
_SESSION_PREFIXES = ("CLAUDE_CODE_MESSAGING_",)

# Variables by which git finds another repository than the one around the working directory; GIT_CONFIG_* pass.
GIT_LOCATORS = frozenset({
    "GIT_DIR", "GIT_WORK_TREE", "GIT_IMPLICIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_GRAFT_FILE", "GIT_SHALLOW_FILE",
    "GIT_REPLACE_REF_BASE", "GIT_INTERNAL_SUPER_PREFIX", "GIT_QUARANTINE_PATH",
})  # fmt: skip


def is_session_variable(name: str) -> bool:
    """Tell whether ``name`` belongs to the caller's own session and must not reach a child."""
    return name in _SESSION_VARIABLES or name.startswith(_SESSION_PREFIXES)


def read_depth(environ: Mapping[str, str]) -> int:
    """Give how many bullswarm workers stand above this process; UsageError when the variable is no number."""
    text = environ.get(DEPTH_VARIABLE, "").strip()
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) <= 6):
        raise UsageError(
            f"{DEPTH_VARIABLE} is {text!r}, which is no number of 0 or more", hint=f"unset {DEPTH_VARIABLE}"
        )
    return int(text)


def child_environment(
    environ: Mapping[str, str],
    *,
    cwd: str,
    private_tmp: str,
    pool_id: str,
    remove: Iterable[str] = (),
    add: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Make a worker's complete environment from the caller's.

    ``remove`` are the API keys of a subscription, ``add`` what the connector and the account set, which
    wins. The worker's own caller is the pool that runs it. Raises UsageError when the recursion depth can't be read.
    """
    unwanted = frozenset(remove)
    child = {
        name: value
        for name, value in environ.items()
        if name not in unwanted and name not in GIT_LOCATORS and not is_session_variable(name)
    }
    for name in ("TMP", "TEMP"):
        if name in child:
            child[name] = private_tmp
    child |= {
        "PWD": cwd,
        "TMPDIR": private_tmp,
        DEPTH_VARIABLE: str(read_depth(environ) + 1),
        CALLER_VARIABLE: pool_id,
    }
    return child | dict(add or {})


def expand_path(text: str, environ: Mapping[str, str]) -> str | None:
    """Expand ``${NAME:-default}`` and a leading ``~`` with the given environment; None for what is no absolute path."""

    def variable(match: re.Match[str]) -> str:
        return environ.get(match[1]) or match[2]

    path = re.sub(r"\$\{([A-Z_]+):-([^}]*)\}", variable, text)
    if path == "~" or path.startswith("~/"):
        path = environ.get("HOME", "") + path[1:]
    if not path.startswith("/"):
        return None
    # A slash at the end says "a folder, to be made when it is missing"; normpath would take it away.
    return os.path.normpath(path) + ("/" if path.endswith("/") and len(path) > 1 else "")
