"""Who is calling: which agent CLI, and which account of it, so that its own pool never works for it.

Rule: docs/design/routing.md, "The caller".
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.errors import UsageError
from bullswarm_core.pools.connector import PoolProfile
from bullswarm_core.process.environment import CALLER_VARIABLE, DEPTH_VARIABLE, expand_path, read_depth

DEFAULT_DEPTH_LIMIT = 2
# "none" lets a person say that nobody is calling, whatever the environment holds.
NOBODY = "none"

# Names with which the clients introduce themselves over MCP (measured); a name ending in "-" is a prefix.
_CLIENTS: tuple[tuple[str, str], ...] = (
    ("claude-code", "claude-code"),
    ("codex-mcp-client", "codex"),
    ("codex", "codex"),
    ("opencode", "opencode"),
    ("grok-shell-", "grok"),
    ("commandcode", "command-code"),
)
# What each CLI sets in the shells and servers that it starts (measured), and the name of its process.
_MARKERS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("codex", ("CODEX_THREAD_ID", "CODEX_SESSION_ID"), ("codex",)),
    ("grok", ("GROK_AGENT", "GROK_SESSION_ID"), ("grok", "grok-native")),
    ("opencode", ("OPENCODE", "OPENCODE_PID"), ("opencode",)),
    ("command-code", ("COMMANDCODE_SESSION_ID", "COMMANDCODE_SCRATCHPAD"), ("command-code", "commandcode", "cmd")),
    ("claude-code", ("CLAUDECODE",), ("claude",)),
)
# Deep enough for agent -> shell -> bullswarm -> kernel nested a few times; each step is one small file.
_ANCESTORS_READ = 32


@dataclass(frozen=True, slots=True)
class Caller:
    """The calling agent. ``pool_id`` None: its account is no pool, or can't be told; ``why`` says how we know."""

    provider: str | None = None
    pool_id: str | None = None
    why: str = "no calling agent was found"


def find_caller(
    environ: Mapping[str, str],
    *,
    client_name: str | None = None,
    profiles: Sequence[PoolProfile] = (),
    ancestors: Callable[[], Sequence[str]] | None = None,
) -> Caller:
    """Work out who calls, from an explicit BULLSWARM_CALLER, the MCP client's name, then the environment's markers.

    ``client_name`` is what an MCP client calls itself, perhaps nothing at all; None where no MCP client calls.
    ``ancestors`` names the processes above this one, nearest first. It is asked when markers of several CLIs are set, and
    for an MCP client that neither its name nor a marker tells: Codex gives its servers an environment without any.
    """
    explicit = environ.get(CALLER_VARIABLE, "").strip()
    if explicit == NOBODY:
        return Caller(why=f"{CALLER_VARIABLE}={NOBODY}")
    if explicit:
        return _explicit(explicit, environ, profiles)
    if client_name and (provider := provider_of_client(client_name)):
        return Caller(provider, _account(provider, environ, profiles), f"MCP client {client_name!r}")
    above = ancestors or process_names_above
    found = _from_markers(environ, profiles, above)
    if found.provider is None and client_name is not None:
        return _from_ancestors(above(), environ, profiles)
    return found


def provider_of_client(client_name: str) -> str | None:
    """Give the provider whose CLI introduces itself over MCP as ``client_name``."""
    name = client_name.strip().lower()
    for known, provider in _CLIENTS:
        if name == known or (known.endswith("-") and name.startswith(known)):
            return provider
    return None


def check_depth(environ: Mapping[str, str], *, limit: int = DEFAULT_DEPTH_LIMIT) -> int:
    """Give the depth of this process; UsageError when a worker started from here would be deeper than ``limit``."""
    depth = read_depth(environ)
    if depth >= limit:
        raise UsageError(
            f"{DEPTH_VARIABLE}={depth}: bullswarm workers may nest {limit} deep (config.depthLimit), not deeper",
            hint="do this part of the work yourself instead of delegating it again",
        )
    return depth


def process_names_above() -> tuple[str, ...]:
    """Name the processes above this one, nearest first; empty where the system has no /proc."""
    names: list[str] = []
    pid = os.getppid()
    for _ in range(_ANCESTORS_READ):
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            break
        # The name stands in parentheses and may hold some itself; the parent's pid is the second field after it.
        names.append(stat[stat.index("(") + 1 : stat.rindex(")")])
        pid = int(stat[stat.rindex(")") + 2 :].split()[1])
        if pid <= 1:
            break
    return tuple(names)


def _explicit(name: str, environ: Mapping[str, str], profiles: Sequence[PoolProfile]) -> Caller:
    provider, _, suffix = name.partition(":")
    known = {profile.id for profile in profiles}
    pool_id = name if suffix or name in known else _account(provider, environ, profiles)
    return Caller(provider, pool_id, f"{CALLER_VARIABLE}={name}")


def _from_markers(
    environ: Mapping[str, str], profiles: Sequence[PoolProfile], ancestors: Callable[[], Sequence[str]]
) -> Caller:
    found = [
        (provider, next(name for name in markers if environ.get(name)), processes)
        for provider, markers, processes in _MARKERS
        if any(environ.get(name) for name in markers)
    ]
    if not found:
        return Caller()
    provider, marker, _ = found[0]
    if len(found) > 1:
        provider, marker, _ = _nearest(found, ancestors())
    return Caller(provider, _account(provider, environ, profiles), f"{marker} is set")


def _from_ancestors(above: Sequence[str], environ: Mapping[str, str], profiles: Sequence[PoolProfile]) -> Caller:
    for name in above:
        for provider, _, processes in _MARKERS:
            if name in processes:
                return Caller(provider, _account(provider, environ, profiles), f"started by the process {name}")
    return Caller()


def _nearest(found: list[tuple[str, str, tuple[str, ...]]], above: Sequence[str]) -> tuple[str, str, tuple[str, ...]]:
    """Markers are inherited, so an agent inside another one shows both: the nearest living process decides."""
    for name in above:
        for candidate in found:
            if name in candidate[2]:
                return candidate
    return found[0]


def _account(provider: str, environ: Mapping[str, str], profiles: Sequence[PoolProfile]) -> str | None:
    """Tell which pool of ``provider`` has the account of the configuration folder that the caller's environment names."""
    own = [profile for profile in profiles if profile.connector.name == provider]
    for profile in own:
        folders = (profile.config_dir, *profile.other_folders)
        if _folder_of(profile, environ) in {os.path.realpath(folder) for folder in folders if folder is not None}:
            return profile.id
    return own[0].id if len(own) == 1 and own[0].config_dir is None else None


def _folder_of(profile: PoolProfile, environ: Mapping[str, str]) -> str | None:
    folder = profile.connector.config_folder
    named = environ.get(folder.variable) if folder.variable else None
    path = expand_path(named or folder.default or "", environ)
    return os.path.realpath(path) if path else None
