"""What every tool works with: the home, the environment, who calls, and the kernels that this server has started."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bullswarm_core.dispatch.services import Services, utc_now
from bullswarm_core.errors import UsageError
from bullswarm_core.reports.verdict import Document
from bullswarm_core.runs.intents import Wish
from bullswarm_core.runs.journal import Journal
from bullswarm_core.runs.state import RunState
from bullswarm_core.store.home import Home
from bullswarm_server.mcp.waits import Client
from bullswarm_server.ops.context import Context
from bullswarm_server.ops.launch import start_kernel
from bullswarm_server.ops.runs import act, document_of, find_run


@dataclass(frozen=True, slots=True)
class Machine:
    """The server's surroundings, the same for every call."""

    home: Home
    environ: Mapping[str, str]
    kernels: set[int] = field(default_factory=set)

    def start(self, run_id: str) -> None:
        """Start a kernel for a run; it outlives this server, which only takes its exit status off the system."""
        self.reap()
        self.kernels.add(start_kernel(self.home, run_id, environ=self.environ))

    def reap(self) -> None:
        """Take ended kernels off the system's list: a server that lives for days would leave a zombie for each run."""
        for pid in tuple(self.kernels):
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(pid, os.WNOHANG)[0] == 0:
                    continue
            self.kernels.discard(pid)


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool: the surroundings, the client that sent it, and when it came (monotonic seconds)."""

    machine: Machine
    client: Client
    came: float = field(default_factory=time.monotonic)

    @property
    def ops(self) -> Context:
        """Where the use cases work that this call asks for."""
        return Context(self.machine.home, self.machine.environ, client_name=self.client.name)

    @property
    def home(self) -> Home:
        """The home of this bullswarm."""
        return self.machine.home

    def services(self, *, write_cache: bool) -> Services:
        """Return the engine's services; a call that only reads passes ``write_cache`` False and leaves no trace."""
        return self.ops.services(write_cache=write_cache)

    def state_of(self, name: str) -> RunState:
        """Return the state of a run by id, short id or ``last`` (the newest of this caller). Raises UnknownNameError."""
        return find_run(self.ops, name)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Journal | None]:
        """Open the journal for reading; None while nothing was ever run here."""
        with self.ops.reading() as connection:
            yield Journal(connection) if connection else None

    def document_of(self, state: RunState) -> Document:
        """Return a run's verdict, or what can be said of it before."""
        return document_of(self.home, state)

    def carry_out(self, state: RunState, wish: Wish) -> RunState:
        """Do what was asked of a workflow, and see that a kernel goes on with it. Raises UsageError for what makes no sense."""
        machine = self.machine
        return act(self.home, state.created.run_id, wish, environ=machine.environ, now=utc_now(), start=machine.start)


def absolute_file(name: str, what: str) -> Path:
    """Return the path of a file that an agent named. Raises UsageError for a relative one: our folder is not the agent's."""
    if not Path(name).is_absolute() or "\0" in name:
        raise UsageError(f'{what} "{name}" is not absolute', hint="give the whole path, from /")
    return Path(name)
