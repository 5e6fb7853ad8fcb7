"""What a keeper is told, how it is started, and what it leaves behind: the kernel's side of an attempt's process."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bullswarm_core._dataclasses import dataclass, field
from bullswarm_core.keeper.clocks import Clocks
from bullswarm_core.process.identity import ProcessIdentity
from bullswarm_core.streams.terminal import matches_from_json

SCHEMA = "bullswarm.keeper.v1"
# Every process of an attempt carries this in its environment, so that it is found even after its keeper was killed.
MARKER = "BULLSWARM_ATTEMPT"
# The keeper is ready in some 100 ms; a machine that needs longer than this is not able to run a worker.
READY_SEC = 30.0
MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class CaptureLimits:
    """How much output is kept, in bytes: the head and the newest ``segments`` of stdout; head and tail of stderr."""

    head_bytes: int = 16 * MEBIBYTE
    segment_bytes: int = 8 * MEBIBYTE
    segments: int = 4
    stderr_bytes: int = MEBIBYTE

    @classmethod
    def from_json(cls, value: Mapping[str, object]) -> CaptureLimits:
        """Read the ``capture`` of a spec; raises ValueError for a limit that is not a positive whole number."""

        def number(name: str, default: int) -> int:
            found = value.get(name, default)
            if not isinstance(found, int) or isinstance(found, bool) or found <= 0:
                raise ValueError(f"capture.{name} must be a positive whole number, not {found!r}")
            return found

        return cls(
            head_bytes=number("headBytes", cls().head_bytes),
            segment_bytes=number("segmentBytes", cls().segment_bytes),
            segments=number("segments", cls().segments),
            stderr_bytes=number("stderrBytes", cls().stderr_bytes),
        )


@dataclass(frozen=True, slots=True)
class KeeperSpec:
    """Everything a keeper is told. ``attempt`` is ``<run>/<attempt>``; all paths are absolute.

    The worker's environment is not in it: it is handed over as the keeper's own and never written to disk. ``writable``
    None leaves the worker unconfined; a path in it that does not exist is made as a folder if it ends with a slash, and
    left out otherwise. ``library`` is the folder of landlockpy, which ``start_keeper`` fills in.
    """

    attempt: str
    argv: tuple[str, ...]
    cwd: str
    stdout_file: str
    stderr_file: str
    keeper_file: str
    exit_file: str
    stop_file: str
    lock_file: str
    stdin_file: str | None = None
    capture: CaptureLimits = field(default_factory=CaptureLimits)
    clocks: Clocks = field(default_factory=Clocks)
    terminal: tuple[Mapping[str, object], ...] = ()
    watch_tree: str | None = None
    writable: tuple[str, ...] | None = None
    library: str | None = None

    def to_json(self) -> dict[str, object]:
        """Return the spec as the keeper reads it."""
        capture, clocks = self.capture, self.clocks
        confinement = None
        if self.writable is not None:
            confinement = {"writable": list(self.writable), "library": self.library}
        return {
            "schemaVersion": SCHEMA,
            "attempt": self.attempt,
            "argv": list(self.argv),
            "cwd": self.cwd,
            "stdinFile": self.stdin_file,
            "stdoutFile": self.stdout_file,
            "stderrFile": self.stderr_file,
            "keeperFile": self.keeper_file,
            "exitFile": self.exit_file,
            "stopFile": self.stop_file,
            "lockFile": self.lock_file,
            "capture": {
                "headBytes": capture.head_bytes,
                "segmentBytes": capture.segment_bytes,
                "segments": capture.segments,
                "stderrBytes": capture.stderr_bytes,
            },
            "clocks": {
                "startupSec": clocks.startup_sec,
                "silenceSec": clocks.silence_sec,
                "noProgressSec": clocks.no_progress_sec,
                "wallSec": clocks.wall_sec,
                "terminalGraceSec": clocks.terminal_grace_sec,
                "termGraceSec": clocks.term_grace_sec,
            },
            "terminal": [dict(entry) for entry in self.terminal],
            "watchTree": self.watch_tree,
            "confinement": confinement,
        }

    @classmethod
    def from_json(cls, value: object) -> KeeperSpec:
        """Read a spec; raises ValueError that names the field and its value."""
        if not isinstance(value, Mapping) or value.get("schemaVersion") != SCHEMA:
            raise ValueError(f"not a keeper's spec: schemaVersion must be {SCHEMA}")

        def text(name: str) -> str:
            found = value.get(name)
            if not isinstance(found, str) or not found:
                raise ValueError(f"{name} must be a text, not {found!r}")
            return found

        def optional(name: str) -> str | None:
            return None if value.get(name) is None else text(name)

        def table(name: str) -> Mapping[str, object]:
            found = value.get(name) or {}
            if not isinstance(found, Mapping):
                raise ValueError(f"{name} must be an object, not {found!r}")
            return found

        argv = value.get("argv")
        if not isinstance(argv, list) or not argv or not all(isinstance(word, str) for word in argv):
            raise ValueError(f"argv must be a list of texts, not {argv!r}")
        terminal = value.get("terminal") or []
        matches_from_json(terminal)
        confined = value.get("confinement") is not None
        return cls(
            attempt=text("attempt"),
            argv=tuple(argv),
            cwd=text("cwd"),
            stdin_file=optional("stdinFile"),
            stdout_file=text("stdoutFile"),
            stderr_file=text("stderrFile"),
            keeper_file=text("keeperFile"),
            exit_file=text("exitFile"),
            stop_file=text("stopFile"),
            lock_file=text("lockFile"),
            capture=CaptureLimits.from_json(table("capture")),
            clocks=Clocks.from_json(table("clocks")),
            terminal=tuple(terminal),
            watch_tree=optional("watchTree"),
            writable=_paths(table("confinement").get("writable")) if confined else None,
            library=str(table("confinement").get("library") or "") or None,
        )

    def write(self, path: str | Path) -> None:
        """Write the spec as JSON, readable by its owner only."""
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            json.dump(self.to_json(), file)

    @classmethod
    def read(cls, path: str | Path) -> KeeperSpec:
        """Read a spec from its file; raises OSError or ValueError."""
        with open(path, encoding="utf-8") as file:
            return cls.from_json(json.load(file))


@dataclass(frozen=True, slots=True)
class KeeperRecord:
    """The keeper's own file: who keeps the attempt, which process is its worker, since when."""

    attempt: str
    keeper: ProcessIdentity
    worker: ProcessIdentity | None
    started_at: str


def write_atomic(path: str | Path, value: Mapping[str, object]) -> None:
    """Write a small JSON object by temporary file, fsync and rename; raises OSError."""
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            json.dump(value, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise


def _paths(paths: object) -> tuple[str, ...]:
    if not isinstance(paths, list) or not all(isinstance(path, str) and path.startswith("/") for path in paths):
        raise ValueError(f"confinement.writable must be a list of absolute paths, not {paths!r}")
    return tuple(paths)


def _read_object(path: str | Path) -> Mapping[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _last_line(path: str | Path) -> str:
    try:
        lines = Path(path).read_text("utf-8", "replace").split("\n")
    except OSError:
        return "its log cannot be read"
    return next((line.strip()[:500] for line in reversed(lines) if line.strip()), "it said nothing")
