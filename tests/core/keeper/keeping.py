"""Real keepers over real children for tests: started, waited for, and looked after until nothing is left of them."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bullswarm_core.keeper.client import read_exit, read_keeper, start_keeper
from bullswarm_core.keeper.clocks import Clocks
from bullswarm_core.keeper.spec import MARKER, KeeperRecord, KeeperSpec
from bullswarm_core.process import identity
from bullswarm_core.process.child import marked
from bullswarm_core.process.descendants import parents
from bullswarm_core.streams.facts import ExitFacts

PATIENCE_SEC = 20.0
# Every worker of a test is bounded, so that a keeper that fails at its work leaves nothing behind for long.
LONG = "import time; time.sleep(60)"


def wait_for(condition: Callable[[], Any], *, seconds: float = PATIENCE_SEC) -> Any:
    """Wait until the condition gives something, and return it."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"nothing came of it within {seconds} s"
        time.sleep(0.01)
    return value


@dataclass(frozen=True)
class Kept:
    """An attempt under a keeper, as its files show it."""

    spec: KeeperSpec
    keeper: identity.ProcessIdentity

    def end(self) -> ExitFacts:
        """Wait for the exit record and for the keeper to be gone."""
        facts: ExitFacts = wait_for(lambda: read_exit(self.spec.exit_file))
        wait_for(lambda: not identity.is_alive(self.keeper))
        return facts

    def document(self) -> dict[str, Any]:
        """Return the exit record as it stands in its file."""
        value: dict[str, Any] = json.loads(Path(self.spec.exit_file).read_text())
        return value

    def record(self) -> KeeperRecord:
        """Return the keeper's file once it names the worker."""
        found: KeeperRecord = wait_for(lambda: (r := read_keeper(self.spec.keeper_file)) and r.worker and r)
        return found

    def stdout(self) -> bytes:
        """Return the head of stdout, nothing before it is there."""
        path = Path(self.spec.stdout_file)
        return path.read_bytes() if path.exists() else b""

    def survivors(self) -> set[int]:
        """Return every process that still carries this attempt's mark."""
        return marked(f"{MARKER}={self.spec.attempt}", parents())


class Keeping:
    """Makes attempts in a folder; ``close`` ends whatever of them still runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kept: list[Kept] = []

    def spec(self, code: str = "", **options: Any) -> KeeperSpec:
        """Return a spec for a Python worker; ``options`` are the spec's own fields."""
        name = f"a-{len(self.kept) + 1}"
        place = self.folder / name
        place.mkdir(exist_ok=True)
        words = ("stdout", "stderr", "stop", "lock")
        files: dict[str, Any] = {f"{word}_file": str(place / f"{word}.out") for word in words}
        spec = KeeperSpec(
            attempt=f"{self.folder}/{name}",
            argv=(sys.executable, "-I", "-S", "-c", code),
            cwd=str(place),
            keeper_file=str(place / "keeper.json"),
            exit_file=str(place / "exit.json"),
            **files,
        )
        return replace(spec, **options)

    def start(self, code: str = "", *, environment: dict[str, str] | None = None, **options: Any) -> Kept:
        """Start a keeper for a Python worker."""
        spec = self.spec(code, **options)
        kept = Kept(spec=spec, keeper=start_keeper(spec, {**os.environ, **(environment or {})}))
        self.kept.append(kept)
        return kept

    def run(self, code: str = "", **options: Any) -> ExitFacts:
        """Start a keeper, wait for the end, and see that nothing is left."""
        kept = self.start(code, **options)
        facts = kept.end()
        assert kept.survivors() == set()
        return facts

    def close(self) -> None:
        """Kill what is left, and fail the test that left it."""
        left = set().union(*(kept.survivors() for kept in self.kept)) if self.kept else set()
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        assert left == set(), "a test left processes behind"


def clocks(**seconds: float) -> Clocks:
    """Return clocks with short graces, all else off."""
    return Clocks(**{"terminal_grace_sec": 0.3, "term_grace_sec": 0.5, **seconds})
