"""A process next to a confined worker that ends all the worker started with one call, at its keeper's word or end (Linux).

It waits in a Landlock domain of its own, out of which no signal gets, and in which the worker's stricter domain lies: so a
signal to everybody hits the worker and all that descends from it, in one step in which nobody forks, and nothing else. The
worker itself can't signal it.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress

# First Landlock interface (Linux 6.12) that keeps signals inside of a domain.
_SIGNAL_ABI = 6


class Guard:
    """Made in the keeper, which holds the pipe at whose end the guard acts; started in the child that becomes the worker."""

    def __init__(self) -> None:
        self._keeper = os.getpid()
        self._wait, self._hold = os.pipe()
        self._answer, self._report = os.pipe()
        self.pid: int | None = None

    def start(self) -> None:
        """Enter the domain and leave a guard in it, as a child of the keeper's; without one where the system has no such.

        After the private mounts, since a domain forbids mounts, and before the worker's own rules.
        """
        if not self._enclosed():
            return
        # By two forks: the worker must not find a child that it didn't make.
        between = os.fork()
        if between == 0:
            guard = os.fork()
            if guard == 0:
                self._watch()
            os.write(self._report, str(guard).encode())
            os._exit(0)
        os.waitpid(between, 0)

    def started(self) -> None:
        """Learn, in the keeper, which process the guard is, once the worker runs or could not be started."""
        os.close(self._report)
        os.close(self._wait)
        with os.fdopen(self._answer, "rb") as file:
            os.set_blocking(file.fileno(), False)
            pid = file.read()
        self.pid = int(pid) if pid else None

    def act(self) -> None:
        """Let the guard kill all, but not itself, and end."""
        if self._hold >= 0:
            os.close(self._hold)
            self._hold = -1

    def _enclosed(self) -> bool:
        import landlockpy

        if landlockpy.abi_version() < _SIGNAL_ABI:
            return False
        # Each domain forbids moves between folders that it doesn't allow.
        moves = landlockpy.AccessFS.REFER
        os.kill(self._keeper, 0)
        with landlockpy.Ruleset(
            handled_fs=moves, handled_net=landlockpy.AccessNet.NONE, scoped=landlockpy.Scope.SIGNAL
        ) as ruleset:
            ruleset.allow_path("/", moves)
            ruleset.restrict()
        # A signal to everybody would end the person's whole session if the domain did not hold: so it is tried.
        try:
            os.kill(self._keeper, 0)
        except PermissionError:
            return True
        return False

    def _watch(self) -> None:
        """Wait for the end of the keeper's pipe, then KILL everybody in the domain. Never returns."""
        try:
            os.setsid()
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
                signal.signal(number, signal.SIG_IGN)
            os.chdir("/")
            os.closerange(0, self._wait)
            os.closerange(self._wait + 1, os.sysconf("SC_OPEN_MAX"))
            os.read(self._wait, 1)
            with suppress(ProcessLookupError, PermissionError):
                os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
