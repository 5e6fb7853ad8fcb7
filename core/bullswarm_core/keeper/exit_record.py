"""The exit record of an attempt: how it is made, written on a full disk too, and read back."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import datetime
from typing import Any, get_args

from bullswarm_core._dataclasses import dataclass, fields
from bullswarm_core.process.identity import ProcessIdentity
from bullswarm_core.streams.facts import EndReason, ExitFacts
from bullswarm_core.wire import camel, stamp

SCHEMA = "bullswarm.exit.v1"
# The end of stderr in the record; every byte may become six characters of JSON, and all must fit into RESERVED_BYTES.
STDERR_TAIL_BYTES = 4096
RESERVED_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class ExitRecord:
    """The facts plus who is meant: the attempt, its keeper and worker, and the words of whoever stopped it."""

    attempt: str
    facts: ExitFacts
    keeper: ProcessIdentity
    worker: ProcessIdentity | None
    stop_detail: str = ""

    def to_json(self) -> dict[str, object]:
        """Return the record as the exit file holds it."""
        document: dict[str, object] = {"schemaVersion": SCHEMA, "attempt": self.attempt}
        for entry in fields(self.facts):
            value = getattr(self.facts, entry.name)
            document[camel(entry.name)] = stamp(value) if isinstance(value, datetime) else value
        document["stopDetail"] = self.stop_detail
        document["keeper"] = self.keeper.to_json()
        document["worker"] = None if self.worker is None else self.worker.to_json()
        return document


class ExitFile:
    """The place for the record, with room on the disk taken when the attempt begins."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._part = f"{path}.part"
        self.problem: str | None = None
        try:
            self._reserve()
        except OSError as problem:
            self.problem = f"{self._part}: {problem.strerror}"

    def write(self, document: Mapping[str, object]) -> None:
        """Write the record into the reserved room and give it its name; raises OSError when even that fails."""
        data = json.dumps(document).encode()
        fd = os.open(self._part, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            written = 0
            while written < len(data):
                written += os.pwrite(fd, data[written:], written)
            os.ftruncate(fd, len(data))
            os.fsync(fd)
        finally:
            os.close(fd)
        os.replace(self._part, self.path)

    def _reserve(self) -> None:
        fd = os.open(self._part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            # Blanks, not a hole: what a hole promises a full disk does not hold.
            os.write(fd, b" " * RESERVED_BYTES)
        finally:
            os.close(fd)


def facts_from_json(value: Mapping[str, Any]) -> ExitFacts | None:
    """Read the facts of an exit record; None when its reason is unknown or a field has the wrong kind."""
    if value.get("reason") not in get_args(EndReason):
        return None
    found: dict[str, Any] = {}
    for entry in fields(ExitFacts):
        name = camel(entry.name)
        if name in value:
            found[entry.name] = value[name]
    try:
        for name in ("started_at", "ended_at"):
            if found.get(name) is not None:
                found[name] = datetime.fromisoformat(found[name])
        return ExitFacts(**found)
    except (TypeError, ValueError):
        return None
