"""A program against this machine, before anything is started: who calls, which pools there are, what git would ignore."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from bullswarm_core.assemble import current_pools, routing_context
from bullswarm_core.caller import Caller, find_caller
from bullswarm_core.connector import PoolProfile
from bullswarm_core.errors import UsageError
from bullswarm_core.home import Home
from bullswarm_core.labels import Labels
from bullswarm_core.program.issues import issues_of
from bullswarm_core.runs.events import RunCreated
from bullswarm_core.runs.intents import grown
from bullswarm_core.runs.prechecks import Machine, precheck
from bullswarm_core.runs.services import Services
from bullswarm_core.runs.state import RunState, begun
from bullswarm_core.runs.worktree_obstacles import isolation_issues
from bullswarm_core.settings import Settings
from bullswarm_core.values import dataclass
from bullswarm_server.ops.launch import Origin
from bullswarm_server.ops.services import services_for, why_no_pool
from bullswarm_server.ops.tasks import origin_from


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
        return origin_from(self.caller, self.settings, self.environ)

    def issues(
        self,
        program: Mapping[str, Any],
        *,
        cwd: str,
        options: Mapping[str, Any],
        now: datetime,
        only: Collection[str] | None = None,
    ) -> list[str]:
        """Return what keeps a valid program from working here: all of its steps, or the named ones."""
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
        issues = precheck(state, machine, only=only)
        if options.get("isolation") == "worktree":
            issues += isolation_issues(state.program, cwd, home=self.home.root, environ=self.environ)
        return issues

    def refuse_additions(self, state: RunState, fragment: Mapping[str, Any], *, now: datetime) -> None:
        """Raise UsageError for added steps that could never work here; the rules of programs are the wish's own to check."""
        program, added = grown(state, fragment)
        if issues_of(program):
            return
        created = state.created
        issues = self.issues(program, cwd=created.cwd, options=created.options, now=now, only=added)
        if issues:
            raise UsageError(
                f"nothing was added to {created.short_id}, it cannot run here: {'; '.join(issues)}",
                hint="correct it and add it again",
            )


def here(home: Home, environ: Mapping[str, str], *, client: str | None = None) -> Here:
    """Look at this machine; ``client`` is the name of an MCP client that calls.

    Raises StateError when the person's decisions can't be read.
    """
    services = services_for(home, environ)
    profiles = services.load_profiles()
    caller = find_caller(environ, client_name=client, profiles=profiles)
    return Here(home, environ, services, profiles, Settings.load(home), caller)
