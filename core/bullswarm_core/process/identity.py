"""Which process is meant: its pid, when it started and in which boot of the machine.

A pid alone is recycled, and after a reboot every number means somebody else. A signal is never sent, and work never
counted as in flight, on the strength of a pid whose start time or boot differs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import cache

from bullswarm_core._dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process for all time. ``started`` is opaque (clock ticks on Linux), comparable only within one ``boot``."""

    pid: int
    started: str
    boot: str

    def to_json(self) -> dict[str, object]:
        """Return the identity as a JSON object."""
        return {"pid": self.pid, "started": self.started, "boot": self.boot}

    @classmethod
    def from_json(cls, value: object) -> ProcessIdentity | None:
        """Read an identity written by ``to_json``; anything else is None, never an error."""
        if not isinstance(value, Mapping):
            return None
        pid, started, boot = value.get("pid"), value.get("started"), value.get("boot")
        if not isinstance(pid, int) or isinstance(pid, bool) or pid <= 0:
            return None
        if not isinstance(started, str) or not isinstance(boot, str):
            return None
        return cls(pid=pid, started=started, boot=boot)


def current() -> ProcessIdentity:
    """Return the identity of the process that asks."""
    found = of(os.getpid())
    if found is None:
        return ProcessIdentity(pid=os.getpid(), started="unknown", boot=boot_id())
    return found


def of(pid: int) -> ProcessIdentity | None:
    """Return the identity of a living process, or None when there is none (a zombie is none)."""
    if pid <= 0:
        return None
    started = _linux_start(pid) if sys.platform == "linux" else _ps_start(pid)
    return None if started is None else ProcessIdentity(pid=pid, started=started, boot=boot_id())


def is_alive(identity: ProcessIdentity) -> bool:
    """Say whether that very process still runs.

    A zombie is dead; a recycled pid and an identity of another boot or host are dead. A process that may not be looked
    at (another user's, with a hardened ``/proc``) is alive: what cannot be disproved keeps its booking.
    """
    if identity.boot != boot_id():
        return False
    found = of(identity.pid)
    return found == identity if found is not None else _hidden(identity.pid)


@cache
def boot_id() -> str:
    """Return a text that no other boot and no other machine has."""
    if sys.platform != "linux":
        return "boottime " + run_command("/usr/sbin/sysctl", "-n", "kern.boottime").split("}")[0]
    for path in ("/proc/sys/kernel/random/boot_id", "/proc/stat"):
        try:
            with open(path, encoding="ascii", errors="replace") as file:
                lines = file.read().splitlines()
        except OSError:
            continue
        # Some container runtimes hide boot_id; the boot time in whole seconds then stands for the boot.
        for line in lines:
            if path.endswith("boot_id") or line.startswith("btime "):
                return line.strip()
    return "unknown"


def linux_stat(pid: int) -> list[str] | None:
    """Return the fields of ``/proc/PID/stat`` from the state letter on, or None when the process is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read().decode("ascii", "replace")
    except OSError:
        return None
    # The command name stands in brackets and may itself hold brackets and blanks: cut at the last bracket.
    fields = text.rpartition(")")[2].split()
    return fields if len(fields) > 19 else None


def _hidden(pid: int) -> bool:
    if sys.platform == "linux" and linux_stat(pid) is not None:
        return False
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def _linux_start(pid: int) -> str | None:
    fields = linux_stat(pid)
    if fields is None or fields[0] in "ZXx":
        return None
    return fields[19]


def _ps_start(pid: int) -> str | None:
    words = run_command("/bin/ps", "-o", "stat=,lstart=", "-p", str(pid)).split()
    if len(words) < 2 or words[0].startswith("Z"):
        return None
    return " ".join(words[1:])


def run_command(*argv: str) -> str:
    """Return what a small system tool prints, or nothing when it fails; locale and zone are fixed."""
    import subprocess

    # lstart is printed in the local zone and language: fixed here, or a journey would kill every identity.
    environment = {"PATH": "/usr/bin:/bin:/usr/sbin", "LC_ALL": "C", "TZ": "UTC"}
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment, timeout=10, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
