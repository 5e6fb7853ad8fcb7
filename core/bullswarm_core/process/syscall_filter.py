"""A filter of system calls that keeps a worker from lowering the limits of other processes (Linux, seccomp).

A process of the same user may set the limits of any process: a bound of no processor time ends it, one of no open files
cripples it, and Landlock has no rule for that. So ``prlimit`` may set limits only of the caller itself, by the pid 0 that
every C library and language runtime passes. The filter can't distinguish its own processes from others, so a process
that names a pid, even its own or its child's, gets EPERM; to read limits stays free.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Callable

from bullswarm_core._dataclasses import dataclass

_SET_FILTER, _IS_ACTION_KNOWN = 1, 2
# Without it kernels before 5.16 make all that runs under a filter slower, against an attack that isn't this filter's matter.
_KEEP_SPEED = 4
_NO_NEW_PRIVILEGES = 38
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
# Offsets into what the kernel hands the filter; both words of an argument count, the lower first.
_NUMBER, _ARCHITECTURE, _PID, _NEW_LIMIT = 0, 4, 16, 32
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
# Calls of the x32 interface carry this bit; their numbers are others, and hardly a system has them.
_X32 = 0x40000000


@dataclass(frozen=True, slots=True)
class _Machine:
    """The number of seccomp(2), and of prlimit64 for each kind of program that runs here, by its AUDIT_ARCH."""

    seccomp: int
    prlimit: dict[int, int]
    has_x32: bool = False


_MACHINES = {
    "x86_64": _Machine(seccomp=317, prlimit={0xC000003E: 302, 0x40000003: 340}, has_x32=True),
    "aarch64": _Machine(seccomp=277, prlimit={0xC00000B7: 261, 0x40000028: 369}),
}


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def problem() -> str:
    """Return why no filter can be set here, or nothing when one can."""
    machine = _machine()
    if machine is None:
        kind = os.uname().machine if sys.maxsize > 2**32 else "32-bit programs"
        return f"bullswarm knows no system calls of {kind}"
    action = ctypes.c_uint32(_ERROR)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(machine.seccomp, _IS_ACTION_KNOWN, 0, ctypes.byref(action)) != 0:
        return f"this system has no seccomp filters ({os.strerror(ctypes.get_errno())})"
    return ""


def prepare() -> Callable[[], None] | None:
    """Make the filter ready: what is returned sets it for the calling process for good; None where `problem` says why."""
    machine = _machine()
    if machine is None or problem():
        return None
    program, seccomp = build(machine.prlimit, has_x32=machine.has_x32), machine.seccomp
    whole = _Program(len(program) // 8, program)
    libc = ctypes.CDLL(None, use_errno=True)

    def restrict() -> None:
        if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0 or libc.syscall(
            seccomp, _SET_FILTER, _KEEP_SPEED, ctypes.byref(whole)
        ):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), "seccomp")

    return restrict


def build(prlimit: dict[int, int], *, has_x32: bool) -> bytes:
    """Return the filter's program (8 bytes an instruction) for the number of prlimit64 of each AUDIT_ARCH."""
    forbidden = _ERROR | errno.EPERM
    steps = [_step(_LOAD, _ARCHITECTURE)]
    for architecture, number in prlimit.items():
        x32 = [_step(_AT_LEAST, _X32, no=1), _step(_RETURN, _ERROR | errno.ENOSYS)] if has_x32 else []
        body = [
            _step(_LOAD, _NUMBER),
            *x32,
            _step(_EQUAL, number, yes=1),
            _step(_RETURN, _ALLOW),
            # The kernel takes a pid of 32 bits and ignores the rest.
            _step(_LOAD, _PID),
            _step(_EQUAL, 0, no=1),
            _step(_RETURN, _ALLOW),
            _step(_LOAD, _NEW_LIMIT),
            _step(_EQUAL, 0, no=2),
            _step(_LOAD, _NEW_LIMIT + 4),
            _step(_EQUAL, 0, yes=1),
            _step(_RETURN, forbidden),
            _step(_RETURN, _ALLOW),
        ]
        steps += [_step(_EQUAL, architecture, no=len(body)), *body]
    # A program of a kind that isn't known to run here could call by numbers that aren't known.
    return b"".join([*steps, _step(_RETURN, _ERROR | errno.ENOSYS)])


def _step(code: int, value: int, *, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value)


def _machine() -> _Machine | None:
    # A 32-bit Python calls by other numbers than its kernel's name says.
    return _MACHINES.get(os.uname().machine) if sys.maxsize > 2**32 else None
