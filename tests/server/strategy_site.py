"""A home with two pools for the tests of `bullswarm strategy`: codex, whose CLI answers as it is told, and an absent rest."""

import io
import json
import os
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bullswarm_core.pools.settings import Settings
from bullswarm_core.store.home import Home, read_json
from bullswarm_server.cli import strategy
from bullswarm_server.cli.context import CommandContext

CODEX_MODELS = [
    {"id": "gpt-6-sol", "displayName": "Sol", "description": "everyday", "isDefault": True},
    {"id": "gpt-6-astra", "supportedReasoningEfforts": [{"reasoningEffort": "low"}, {"reasoningEffort": "medium"}]},
    {"id": "gpt-6-luna"},
]
# An app-server that answers `initialize` and `model/list` from a file beside it, or ends at once without that file.
_APP_SERVER = """#!{python}
import json, pathlib, sys
answer = pathlib.Path(__file__).with_name("codex.models")
if not answer.exists():
    sys.exit(1)
pathlib.Path(__file__).with_name("codex.asked").open("a").write("x")
for line in sys.stdin:
    question = json.loads(line)
    if "id" in question:
        data = json.loads(answer.read_text()) if question["method"] == "model/list" else []
        print(json.dumps({{"id": question["id"], "result": {{"data": data}}}}), flush=True)
"""


@dataclass(frozen=True, slots=True)
class StrategySite:
    """Where a test calls verbs; `folder` holds the CLIs."""

    folder: Path
    context: CommandContext

    def __call__(self, *words: str) -> str:
        """Call a verb that must succeed and return what it printed."""
        assert isinstance(self.context.out, io.StringIO) and isinstance(self.context.err, io.StringIO)
        for stream in (self.context.out, self.context.err):
            stream.seek(0)
            stream.truncate()
        assert strategy.run(list(words), self.context) == 0
        return self.context.out.getvalue()

    def document(self, *words: str) -> Any:
        """Call a verb for its document."""
        return json.loads(self(*words, "--json"))

    @property
    def said(self) -> str:
        """What the last verb said on standard error."""
        assert isinstance(self.context.err, io.StringIO)
        return self.context.err.getvalue()

    @property
    def home(self) -> Home:
        return self.context.home

    def state(self) -> dict[str, Any]:
        """The content of state.json; empty while there is none."""
        document: dict[str, Any] = read_json(self.home.state_file, default={})
        return document

    def settings(self) -> Settings:
        """The decisions in force."""
        return Settings.load(self.home)

    def offer(self, models: Any) -> None:
        """Let codex offer these models from now on; None: it fails."""
        answer = self.folder / "codex.models"
        if models is None:
            answer.unlink(missing_ok=True)
        else:
            answer.write_text(json.dumps(models))

    def asked(self) -> int:
        """How often codex was asked for its models."""
        try:
            return len((self.folder / "codex.asked").read_text())
        except FileNotFoundError:
            return 0


def strategy_site(own_home: Path, folder: Path) -> StrategySite:
    """Make the home of a person who has codex, signed in by a subscription."""
    codex = folder / "codex"
    codex.write_text(_APP_SERVER.format(python=sys.executable))
    codex.chmod(codex.stat().st_mode | stat.S_IXUSR)
    sign_in = own_home / ".codex" / "auth.json"
    sign_in.parent.mkdir(parents=True)
    sign_in.write_text(json.dumps({"tokens": {"access_token": "a.b.c"}}))
    environ = {"HOME": str(own_home), "PATH": f"{folder}{os.pathsep}/usr/bin:/bin", "BULLSWARM_METERS": "off"}
    context = CommandContext(Home(own_home / ".bullswarm"), environ, io.StringIO(), io.StringIO())
    return StrategySite(folder, context)
