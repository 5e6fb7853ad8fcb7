"""Confinement of a worker: it may read and run everything, write only beneath the paths it was given, signal only its own.

Linux: Landlock, through the package ``landlockpy``. macOS: ``sandbox-exec`` with a profile. Where neither is to be had
the worker runs unconfined, and that is reported with its reason, never passed over.

What Landlock cannot stop: changing the mode, owner or times of a file (no such right exists), truncation by path before
kernel 6.2, signals to processes outside (its keeper, other runs) before kernel 6.12, commands to devices
before 6.10, and asking another process to write (a socket of a container daemon, say). The macOS profile leaves signals free.
A filter of system calls keeps a worker on Linux from the limits of other processes, but not from the priority, scheduling
and processor set of those of the same user.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

from bullswarm_core._dataclasses import dataclass

# Writing to these changes nothing that lasts, and hardly a shell or a terminal tool works without them.
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx")
# First kernel interface (6.2) that can refuse truncate(2) by path.
TRUNCATE_ABI = 3
# First kernel interface (6.12) that can refuse signals to processes outside.
SIGNAL_ABI = 6
SANDBOX_EXEC = "/usr/bin/sandbox-exec"
# Terminals of macOS, which has no /dev/pts.
SEATBELT_TERMINALS = '(regex #"^/dev/(tty|pty)[a-z0-9]+$")'


@dataclass(frozen=True, slots=True)
class Prepared:
    """A confinement made ready for one start: ``restrict`` runs in the child, ``prefix`` goes before its argv."""

    kind: Literal["bullswarm", "none"]
    why: str = ""
    restrict: Callable[[], None] | None = None
    prefix: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def can_confine() -> bool:
    """Say whether this machine has something with which a keeper could confine a worker."""
    return problem() == ""


def problem() -> str:
    """Return why a worker can't be confined here, or nothing when it can."""
    if sys.platform == "darwin":
        return "" if os.access(SANDBOX_EXEC, os.X_OK) else f"{SANDBOX_EXEC} is missing"
    if sys.platform != "linux":
        return f"no confinement is known for {sys.platform}"
    try:
        import landlockpy
    except ImportError as error:
        return f"the package landlockpy cannot be imported: {error}"
    return "" if landlockpy.supported() else "this kernel has no Landlock"


def weakness() -> str:
    """Return what a confinement on this machine can't stop, or nothing where it stops all that it can (or is none)."""
    if sys.platform != "linux" or problem():
        return ""
    import landlockpy

    from bullswarm_core.process import private_mounts, syscall_filter

    return _lacking(landlockpy.abi_version(), private=private_mounts.possible(), unfiltered=syscall_filter.problem())


def library_folder() -> str | None:
    """Return the folder that holds landlockpy in this Python, or None where it is not installed."""
    from importlib.util import find_spec

    found = find_spec("landlockpy")
    return None if found is None or found.origin is None else str(Path(found.origin).parent.parent)


def prepare(
    writable: Iterable[str], *, library: str | None = None, guard: Callable[[], None] | None = None
) -> Prepared:
    """Make a confinement ready; raises OSError when a folder can't be made or the kernel refuses a rule.

    ``writable`` are absolute paths of folders (with all below them) or of single files. One that does not exist is made
    as a folder if it is written with a slash at its end, and left out otherwise. ``library`` is the folder from which a
    process without site-packages, as the keeper is, imports landlockpy. ``guard`` runs in the child, after its private mounts
    and before the rules (Linux).
    """
    # At the end of the path, so that nothing there can stand in for a module of the standard library.
    if library is not None and library not in sys.path:
        sys.path.append(library)
    paths, left_out = existing(writable)
    why = problem()
    if why:
        return Prepared(kind="none", why=why, left_out=left_out)
    if sys.platform == "darwin":
        profile = seatbelt_profile((*paths, *DEVICES))
        return Prepared(kind="bullswarm", prefix=(SANDBOX_EXEC, "-p", profile), left_out=left_out)
    return _landlock((*paths, *DEVICES), left_out, guard)


def existing(writable: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Make the folders that are marked by a slash, and split the paths into those there are and those there are not."""
    there: list[str] = []
    missing: list[str] = []
    for path in writable:
        if path.endswith("/"):
            Path(path).mkdir(mode=0o700, parents=True, exist_ok=True)
        (there if Path(path).exists() else missing).append(path)
    return tuple(there), tuple(missing)


def seatbelt_profile(writable: Iterable[str]) -> str:
    """Return the macOS sandbox profile that allows everything but writing outside the given paths.

    Paths are real paths: the kernel compares what symbolic links lead to (``/tmp`` is ``/private/tmp``).
    """
    real = sorted({os.path.realpath(path) for path in writable})
    rules = "\n".join(f"  (literal {_quoted(path)}) (subpath {_quoted(path)})" for path in real)
    return (
        '(version 1)\n(allow default)\n(deny file-write* (subpath "/"))\n'
        f"(allow file-write*\n{rules}\n  {SEATBELT_TERMINALS})\n"
    )


def _quoted(path: str) -> str:
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _landlock(paths: tuple[str, ...], left_out: tuple[str, ...], guard: Callable[[], None] | None) -> Prepared:
    import landlockpy

    from bullswarm_core.process import private_mounts, syscall_filter

    rights = landlockpy.AccessFS
    on_file = rights.WRITE_FILE | rights.TRUNCATE
    on_device = on_file | rights.IOCTL_DEV
    on_folder = (
        on_file | rights.REMOVE_DIR | rights.REMOVE_FILE | rights.MAKE_DIR | rights.MAKE_REG | rights.MAKE_SOCK
        | rights.MAKE_FIFO | rights.MAKE_SYM | rights.REFER
    )  # fmt: skip
    handled = on_folder | rights.MAKE_CHAR | rights.MAKE_BLOCK | rights.IOCTL_DEV
    # A worker that stops or kills its keeper would escape its clocks. Abstract sockets stay: desktop tools talk over them.
    ruleset = landlockpy.Ruleset(
        handled_fs=handled, handled_net=landlockpy.AccessNet.NONE, scoped=landlockpy.Scope.SIGNAL
    )
    private = private_mounts.possible()
    refuse_limits = syscall_filter.prepare()
    for path in paths:
        if Path(path).exists() and not (private and path == private_mounts.SHARED_MEMORY):
            on = on_device if path in DEVICES else on_folder if Path(path).is_dir() else on_file
            ruleset.allow_path(path, on)

    def restrict() -> None:
        if private:
            private_mounts.enter()
            # Only now do these paths lead to the worker's own.
            ruleset.allow_path(private_mounts.TERMINALS, on_device)
            if private_mounts.SHARED_MEMORY in paths:
                ruleset.allow_path(private_mounts.SHARED_MEMORY, on_folder)
        if guard is not None:
            guard()
        private_mounts.drop_powers()
        ruleset.restrict()
        if refuse_limits is not None:
            refuse_limits()

    why = _lacking(ruleset.abi_version, private=private, unfiltered=syscall_filter.problem())
    return Prepared(kind="bullswarm", why=why, restrict=restrict, left_out=left_out)


def _lacking(abi: int, *, private: bool, unfiltered: str) -> str:
    lacks = ["truncate() outside"] if abi < TRUNCATE_ABI else []
    lacks += ["signals to processes outside"] if abi < SIGNAL_ABI else []
    words = [f"this kernel (Landlock {abi}) cannot stop {' and '.join(lacks)}"] if lacks else []
    if not private:
        words.append(
            "no private mounts here: a worker gets no pseudo-terminal and shares /dev/shm and System V memory, semaphores"
            " and queues with other programs"
        )
    if unfiltered:
        words.append(f"{unfiltered}: a worker can lower the limits of other processes")
    return "; ".join(words)
