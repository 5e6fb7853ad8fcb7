"""Every test lives in a home of its own and never sees the developer's."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# Started in the background or by nohup, Python inherits ignored signals, and so would every command that a test starts; one
# that is handled here is at its default there.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda number, frame: None)

settings.register_profile("bullswarm", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("bullswarm")

# What a shell that was itself started by an agent, or by a person with keys, would leak into a test.
_LEAKING_PREFIXES = (
    "ANTHROPIC_", "AI_AGENT", "BULLSWARM_", "CLAUDE", "CODEX_", "COMMANDCODE_", "COMMAND_CODE_", "GIT_", "GROK_",
    "OPENAI_", "OPENCODE", "XAI_", "XDG_",
)  # fmt: skip


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give the test a HOME and a BULLSWARM_HOME that nobody else uses."""
    home = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        if name.startswith(_LEAKING_PREFIXES):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("BULLSWARM_HOME", str(home / ".bullswarm"))
    # No test asks a vendor, nor starts a process that might: those that mean to point the endpoints at 127.0.0.1 first.
    monkeypatch.setenv("BULLSWARM_METERS", "off")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    yield home


def pytest_addoption(parser: pytest.Parser) -> None:
    """CI promises the real CLIs: a missing one is then a failure, not a skip."""
    parser.addoption("--require-real-clis", action="store_true", help="fail where a real agent CLI is missing")
