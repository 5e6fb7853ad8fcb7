"""A program against this machine, before anything is started: who calls, which pools there are, what git would ignore."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from bullswarm_core.assemble import current_pools, routing_context
from bullswarm_core.caller import Caller, check_depth, find_caller
from bullswarm_core.connector import PoolProfile
from bullswarm_core.home import Home
from bullswarm_core.labels import Labels
from bullswarm_core.runs.events import RunCreated
from bullswarm_core.runs.prechecks import Machine, precheck
from bullswarm_core.runs.services import Services
from bullswarm_core.runs.state import begun
from bullswarm_core.runs.worktree_obstacles import isolation_issues
from bullswarm_core.settings import Settings
from bullswarm_core.values import dataclass
from bullswarm_server.launch import ROOT_VARIABLE, Origin
from bullswarm_server.machine import services_for, why_no_pool


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
        """Return what keeps a valid program from working here."""
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
        issues = precheck(state, machine)
        if options.get("isolation") == "worktree":
            issues += isolation_issues(state.program, cwd, home=self.home.root, environ=self.environ)
        return issues


def here(home: Home, environ: Mapping[str, str]) -> Here:
    """Look at this machine. Raises StateError when the person's decisions can't be read."""
    services = services_for(home, environ)
    profiles = services.load_profiles()
    return Here(home, environ, services, profiles, Settings.load(home), find_caller(environ, profiles=profiles))
