"""A home with agents in it, and an installed bullswarm whose commands are only names."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path

import pytest
from tests.server.site import Said, tree

from bullswarm_server.cli.main import dispatch
from bullswarm_server.integrate import sources

COMMANDS = {"bullswarm": "/opt/bullswarm/bin/bullswarm", "bullswarm-hook": "/opt/bullswarm/bin/bullswarm-hook"}
BINARIES = ("claude", "codex", "opencode", "grok")


class PersonsHome:
    """A home; `say` calls `bullswarm integrate` in it."""

    def __init__(self, root: Path) -> None:
        self.root = root / "home"
        self.root.mkdir()
        self.binaries = root / "bin"
        self.binaries.mkdir()
        self.environ = {"HOME": str(self.root), "PATH": str(self.binaries), "BULLSWARM_HOME": str(root / "state")}
        self.with_agents(BINARIES)

    def with_agents(self, names: Iterable[str]) -> None:
        """Have these agents' CLIs on PATH and no others."""
        for name in BINARIES:
            (self.binaries / name).unlink(missing_ok=True)
        for name in names:
            (self.binaries / name).write_text("#!/bin/sh\n", encoding="utf-8")
            (self.binaries / name).chmod(0o755)

    def write(self, name: str, text: str | bytes, *, mode: int = 0o600) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        path.chmod(mode)
        return path

    def read(self, name: str) -> str:
        return (self.root / name).read_bytes().decode()

    def say(self, *words: str, **environ: str) -> Said:
        out, err = io.StringIO(), io.StringIO()
        code = dispatch(["integrate", *words], environ={**self.environ, **environ}, out=out, err=err)
        return Said(code, out.getvalue(), err.getvalue())

    def install(self, *words: str, **environ: str) -> Said:
        return self.say("install", "--yes", *words, **environ)

    def remove(self, *words: str, **environ: str) -> Said:
        return self.say("remove", "--yes", *words, **environ)

    def tree(self) -> dict[str, tuple[int, bytes]]:
        """Everything in the home, but the backups."""
        return {name: found for name, found in tree(self.root).items() if "bullswarm-backup" not in name}

    def backups(self) -> list[Path]:
        return sorted(self.root.rglob("*bullswarm-backup*"))


@pytest.fixture
def persons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PersonsHome:
    monkeypatch.setattr(sources, "installed_command", lambda name, environ: COMMANDS[name])
    monkeypatch.setattr("sys.stdin", io.StringIO())
    return PersonsHome(tmp_path)
