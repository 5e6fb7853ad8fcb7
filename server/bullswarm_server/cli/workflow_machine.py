"""A program against this machine, before anything is started: who calls, which pools there are, what git would ignore."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from bullswarm_core.assemble import current_pools, routing_context
from bullswarm_core.caller import Caller, check_depth, find_caller
from bullswarm_core.connector import PoolProfile
from bullswarm_core.errors import UsageError
from bullswarm_core.home import Home
from bullswarm_core.labels import Labels
from bullswarm_core.runs.events import RunCreated
from bullswarm_core.runs.prechecks import Machine, declared_files, precheck
from bullswarm_core.runs.services import Services
from bullswarm_core.runs.state import begun
from bullswarm_core.settings import Settings
from bullswarm_core.values import dataclass
from bullswarm_server.launch import ROOT_VARIABLE, Origin
from bullswarm_server.machine import services_for, why_no_pool

# Reading .gitignore files takes milliseconds; a repository on a dead network disk must not hold the call for ever.
_GIT_TIMEOUT_SEC = 20.0


@dataclass(frozen=True, slots=True)
class Here:
    """This machine as a launch sees it."""

    home: Home
    environ: Mapping[str, str]
    services: Services
    profiles: Sequence[PoolProfile]
    settings: Settings
    caller: Caller

    @property
    def labels(self) -> Labels:
        """The labels of pools that there are."""
        return self.services.labels().among([profile.id for profile in self.profiles])

    def pool_named(self, name: str) -> str:
        """Return the id of a pool, given by id or label. Raises UnknownNameError."""
        ids = [profile.id for profile in self.profiles]
        return self.labels.resolve(name, ids, why_no_pool=why_no_pool(self.home, self.environ))

    def origin(self) -> Origin:
        """Return who asks. Raises UsageError for a worker that is too deep in other runs."""
        depth = check_depth(self.environ, limit=self.settings.depth_limit)
        root = self.environ.get(ROOT_VARIABLE)
        return Origin(caller=self.caller.provider, caller_pool=self.caller.pool_id, depth=depth, root=root)

    def issues(self, program: Mapping[str, Any], *, cwd: str, options: Mapping[str, Any], now: datetime) -> list[str]:
        """Return what keeps a valid program from working here. Raises UsageError where isolation has no repository."""
        state = begun(
            RunCreated(
                run_id="-", short_id="-", kind="workflow", goal="-", cwd=cwd, program=program, options=dict(options)
            ),
            at=now,
            seq=1,
        )
        machine = Machine(
            pools=current_pools(self.home, self.profiles, self.settings, now=now, labels=self.labels),
            context=routing_context(self.settings),
            policy=self.settings.routing_policy,
            labels=self.labels,
            now=now,
            caller_pool=self.caller.pool_id,
        )
        apart = options.get("isolation") == "worktree"
        return precheck(
            state, machine, ignored=ignored_by_git(cwd, declared_files(state), self.environ) if apart else ()
        )


def here(home: Home, environ: Mapping[str, str]) -> Here:
    """Look at this machine. Raises StateError when the person's decisions can't be read."""
    services = services_for(home, environ)
    profiles = services.load_profiles()
    return Here(home, environ, services, profiles, Settings.load(home), find_caller(environ, profiles=profiles))


def ignored_by_git(cwd: str, files: Sequence[str], environ: Mapping[str, str]) -> frozenset[str]:
    """Return which of the relative files git ignores. Raises UsageError when ``cwd`` is in no git working tree."""
    import subprocess

    from bullswarm_core.judging.git_tree import git_environment

    try:
        done = subprocess.run(
            ["git", "-C", cwd, "check-ignore", "--stdin", "-z"],
            input="\0".join((*files, "")).encode("utf-8", "surrogateescape"),
            env=git_environment(environ),
            capture_output=True,
            timeout=_GIT_TIMEOUT_SEC,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(
            f"--isolation worktree needs git: {error}", hint="install git, or leave --isolation out"
        ) from error
    if done.returncode not in (0, 1):
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise UsageError(
            f"--isolation worktree needs a git working tree, and {Path(cwd)} is in none ({said[-1] if said else 'git failed'})",
            hint="git init it, or leave --isolation out",
        )
    return frozenset(name for name in done.stdout.decode("utf-8", "surrogateescape").split("\0") if name)
