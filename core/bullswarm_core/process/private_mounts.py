"""Terminals and shared memory of a worker's own (Linux), and no power of root over what isn't its business.

Pseudo-terminals, shared memory, semaphores and message queues belong to everybody who runs as the same user: a worker that
may write there writes to the person's terminals and into other programs' memory. In namespaces of its own it gets all of
them empty. Root makes that by itself; anybody else in a user namespace, where a system allows those.

Everything here but `possible` runs in the forked child that becomes the worker.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from pathlib import Path

from bullswarm_core._dataclasses import dataclass

TERMINALS = "/dev/pts"
SHARED_MEMORY = "/dev/shm"
MESSAGE_QUEUES = "/dev/mqueue"
# Screens, lines and keyboards: who reads one takes what the person types there, or sees what it shows.
READ_BY_OTHERS = ("vcs*", "tty?*", "hvc*", "console", "input/event*", "hidraw*")
# ssh refuses included files that seem to be nobody's, and in a user namespace all of root's do.
_SSH_INCLUDES = "/etc/ssh/ssh_config.d"
_NEW_MOUNTS, _NEW_IPC, _NEW_USER = 0x00020000, 0x08000000, 0x10000000
_NO_SUID, _NO_DEV, _NO_EXEC, _BIND, _RECURSIVE, _SLAVE = 2, 4, 8, 0x1000, 0x4000, 1 << 19
_DROP_BOUND, _AMBIENT, _CLEAR_ALL = 24, 47, 4
_SYS_ADMIN = 21
# What work with files, packages and servers inside of a container takes: chown, dac_override, fowner, fsetid, kill, setgid,
# setuid, setpcap, net_bind_service, sys_chroot, audit_write. Not mount, modules, raw devices, the clock, the network's set-up
# and its raw packets, other processes' memory, and no powers for a file that somebody runs later.
_KEPT = (0, 1, 3, 4, 5, 6, 7, 8, 10, 18, 29)
_KEPT_MASK = sum(1 << number for number in _KEPT)
_CAPABILITIES_V3 = 0x20080522


@dataclass(frozen=True, slots=True)
class _Capabilities:
    effective: int
    permitted: int


def possible() -> bool:
    """Say whether a child of this process gets mounts of its own: tried in one, since no setting tells it for sure."""
    child = os.fork()
    if child == 0:
        try:
            enter()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def enter() -> None:
    """Give the calling process terminals, shared memory and queues of its own; raises OSError where the system refuses."""
    libc = ctypes.CDLL(None, use_errno=True)
    user, group, root = os.getuid(), os.getgid(), os.geteuid() == 0
    if root and not _capabilities(libc).effective & (1 << _SYS_ADMIN):
        raise PermissionError(1, "root without the right to mount")
    own = _NEW_MOUNTS | _NEW_IPC
    _checked(libc.unshare(own if root else own | _NEW_USER))
    if not root:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
    # What the person mounts later is seen by the worker, and nothing the other way round.
    _mount(libc, "none", "/", None, _RECURSIVE | _SLAVE, None)
    _mount(libc, "devpts", TERMINALS, "devpts", _NO_SUID | _NO_EXEC, "newinstance,ptmxmode=0666,mode=0620")
    if Path(SHARED_MEMORY).is_dir():
        _mount(libc, "tmpfs", SHARED_MEMORY, "tmpfs", _NO_SUID | _NO_DEV, "mode=1777")
    # To open a queue by its path for reading is enough to take its messages.
    if Path(MESSAGE_QUEUES).is_dir():
        _mount(libc, "mqueue", MESSAGE_QUEUES, "mqueue", _NO_SUID | _NO_DEV | _NO_EXEC, None)
    for device in _readable_devices():
        # One that was pulled out meanwhile needs no cover.
        with suppress(FileNotFoundError):
            _mount(libc, "/dev/null", device, None, _BIND, None)
    if not root and Path(_SSH_INCLUDES).is_dir() and any(Path(_SSH_INCLUDES).iterdir()):
        _mount(libc, "tmpfs", _SSH_INCLUDES, "tmpfs", _NO_SUID | _NO_DEV, "mode=755")


def _readable_devices() -> list[str]:
    found = {str(path) for pattern in READ_BY_OTHERS for path in Path("/dev").glob(pattern)}
    return sorted(path for path in found if os.access(path, os.R_OK))


def drop_powers() -> None:
    """Take from root, for good, what reaches beyond files, packages and servers; from anybody else nothing."""
    if os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/sys/kernel/cap_last_cap", encoding="ascii") as file:
        last = int(file.read())
    for number in range(last + 1):
        if not _KEPT_MASK >> number & 1:
            libc.prctl(_DROP_BOUND, number, 0, 0, 0)
    libc.prctl(_AMBIENT, _CLEAR_ALL, 0, 0, 0)
    now = _capabilities(libc)
    effective, permitted = now.effective & _KEPT_MASK, now.permitted & _KEPT_MASK
    low = 0xFFFFFFFF
    words = (effective & low, permitted & low, 0, effective >> 32, permitted >> 32, 0)
    _checked(libc.capset((ctypes.c_uint32 * 2)(_CAPABILITIES_V3, 0), (ctypes.c_uint32 * 6)(*words)))


def _capabilities(libc: ctypes.CDLL) -> _Capabilities:
    words = (ctypes.c_uint32 * 6)()
    _checked(libc.capget((ctypes.c_uint32 * 2)(_CAPABILITIES_V3, 0), words))
    return _Capabilities(effective=words[0] | words[3] << 32, permitted=words[1] | words[4] << 32)


def _mount(libc: ctypes.CDLL, source: str, target: str, kind: str | None, flags: int, data: str | None) -> None:
    coded = [None if word is None else word.encode() for word in (source, target, kind, data)]
    _checked(libc.mount(coded[0], coded[1], coded[2], ctypes.c_ulong(flags), coded[3]), target)


def _checked(result: int, what: str = "") -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
