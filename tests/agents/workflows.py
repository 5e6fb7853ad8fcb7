"""Programs of many steps for three real CLIs on one scripted model: what the steps are, and what the model says to each."""

from __future__ import annotations

import json
import shlex
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.agents.install import BIN_FOLDER
from tests.agents.machine import Machine
from tests.agents.scripted_model.request import ModelRequest
from tests.agents.scripted_model.scenario import Fail, Turn, call_tool, say
from tests.agents.setups import CLAUDE, CODEX, OPENCODE, Setup
from tests.processes import until

# The model's protocol tells which CLI asks.
BY_PATH = {"/v1/messages": CLAUDE, "/v1/responses": CODEX, "/v1/chat/completions": OPENCODE}
GOAL = "Words of the caller that no worker is to see."
BLIND_WORDS = "The notes say that the quotes are never taken off."
OK_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}, "remark": {"type": "string"}},
    "required": ["ok", "remark"],
    "additionalProperties": False,
}
TYPES_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"types": {"type": "array", "items": {"type": "string"}, "minItems": 2}},
    "required": ["types"],
    "additionalProperties": False,
}
CHECK = "grep -q final lexer.txt || { echo 'lexer.txt is a draft'; exit 3; }"
RESET_AFTER = timedelta(hours=2)
# Three CLIs, and their steps of one phase: none of them is answered before all have asked, so that they are at work at once.
AT_ONCE = frozenset({"parser", "lexer", "notes"})


def step(name: str, what: str, **fields: Any) -> dict[str, Any]:
    """A step whose prompt says which it is, so that the model knows whose request it has before it."""
    return {"id": name, "prompt": f"Task {name}. {what}", **fields}


def on(*pools: str) -> dict[str, Any]:
    """Leave a step these pools alone."""
    return {"pools": {"use": list(pools)}}


def twelve_steps() -> dict[str, Any]:
    """A parallel phase, an integrator, a blind review by another provider, a loop, a gate, and a step that meets a limit."""
    build, first = {"lane": "build"}, ["survey"]
    docs_on = {"providers": {"use": ["codex", "opencode"]}}
    steps = [
        step("survey", "Say what is there.", route=on("codex")),
        step("parser", "Write parser.txt.", dependsOn=first, files=["parser.txt"], route=on("codex"), **build),
        step(
            "lexer", "Write lexer.txt.", dependsOn=first, files=["lexer.txt"], route=on("claude-code"),
            evidence=[{"type": "command", "cmd": CHECK}], **build,
        ),
        step("notes", "Take notes.", dependsOn=first, route=on("opencode")),
        step("types", "Name the types.", dependsOn=first, answer=TYPES_SCHEMA, route=on("codex")),
        step("audit", "Audit what is there.", dependsOn=first),
        step(
            "integrate", "Put it together in whole.txt.", dependsOn=["parser", "lexer", "notes", "types", "audit"],
            files=["whole.txt"], route={"providers": {"use": ["claude-code"]}}, **build,
        ),
        step(
            "review", "Review whole.txt.", dependsOn=["integrate", "notes"], blindTo=["notes"], answer=OK_SCHEMA,
            route={"independentOf": ["integrate"]},
        ),
        step("fix", "Mend whole.txt.", dependsOn=["review"], files=["whole.txt"], route=on("codex"), **build),
        step("check", "Check whole.txt.", dependsOn=["fix"], answer=OK_SCHEMA, route=on("claude-code")),
        step("docs", "Write docs.txt.", dependsOn=["polish"], files=["docs.txt"], route=docs_on, **build),
        step("publish", "Say that it is out.", dependsOn=["docs", "release"], route=on("claude-code")),
    ]  # fmt: skip
    for entry in steps[1:6]:
        entry["phase"] = "At once"
    return {
        "schemaVersion": "bullswarm.workflow.program.v3",
        "steps": steps,
        "gates": [{"id": "release", "dependsOn": ["polish", "review"], "note": "Look at whole.txt."}],
        "loops": [
            {"id": "polish", "steps": ["fix", "check"], "until": {"step": "check", "field": "ok"}, "maxRounds": 3}
        ],
    }


def four_steps() -> dict[str, Any]:
    """A step, one that fails its check and is accepted, a gate, and one that needs both."""
    return {
        "schemaVersion": "bullswarm.workflow.program.v3",
        "steps": [
            step("look", "Look around."),
            step("broken", "Say something.", evidence=[{"type": "command", "cmd": "false"}]),
            step("after", "Go on.", dependsOn=["gate"]),
            step("last", "Sum up.", dependsOn=["after", "broken"]),
        ],
        "gates": [{"id": "gate", "dependsOn": ["look"], "note": "Look first."}],
    }


def furnish(machine: Machine, *setups: Setup) -> None:
    """Put these CLIs beside the machine's own one, with the sign-ins that they need; a key is allowed where it is one."""
    for setup in setups:
        (machine.root / "bin" / setup.binary).symlink_to(BIN_FOLDER / setup.binary)
        machine.environ |= setup.prepare(machine.home, machine.model.url)
    allowed = {"version": 1, "pools": {setup.name: {"allowBilling": True} for setup in setups if setup.by_key}}
    (machine.state / "state.json").write_text(json.dumps(allowed), encoding="utf-8")
    # Somebody's own project has a first state; without one there is nothing to freeze a diff against.
    machine.environ["PWD"] = str(machine.project)


class Workers:
    """What the model says to the workers of a program: turns by step, in the vocabulary of whichever CLI asks.

    ``limited`` is the pool whose request for ``docs`` met the usage limit: the first that asked, and it only.
    """

    def __init__(self, machine: Machine, program: Mapping[str, Any]) -> None:
        self.machine = machine
        self.names: list[str] = [entry["id"] for entry in program["steps"]]
        self.limited: str | None = None
        self.reset = datetime.now(UTC).replace(microsecond=0) + RESET_AFTER
        self._lock = threading.Lock()

    def turns(self, *, most: int = 8) -> list[Callable[[ModelRequest], Turn]]:
        """The script of the model: each turn of a worker is chosen by the step that its prompt names."""

        def turn(number: int) -> Callable[[ModelRequest], Turn]:
            return lambda request: self.choose(request, number)

        return [turn(number) for number in range(most)]

    def choose(self, request: ModelRequest, number: int) -> Turn:
        """Return what the model says to a worker's request, in its turn ``number``."""
        name, setup = self.step_of(request), BY_PATH[request.path]
        if number == 0 and name in AT_ONCE:
            until(lambda: set(self.asked()) >= AT_ONCE, "all three CLIs are at work at once")
        if name == "docs" and (limit := self._limit(setup)) is not None:
            return limit
        said = self._script(name, request, setup)
        return said[min(number, len(said) - 1)]

    def step_of(self, request: ModelRequest) -> str:
        """The step that a worker's prompt is of."""
        (name,) = (name for name in self.names if f"Task {name}." in request.prompt)
        return name

    def asked(self) -> dict[str, list[ModelRequest]]:
        """The first request of each attempt, by step, in the order in which they came; a CLI may ask twice."""
        found: dict[str, list[ModelRequest]] = {}
        for request in self.machine.model.prompts():
            if request.turn == 0 and any(f"Task {name}." in request.prompt for name in self.names):
                entries = found.setdefault(self.step_of(request), [])
                if not entries or (entries[-1].path, entries[-1].prompt) != (request.path, request.prompt):
                    entries.append(request)
        return found

    def _limit(self, setup: Setup) -> Fail | None:
        with self._lock:
            self.limited = self.limited or setup.name
        return setup.usage_limit(self.reset) if setup.name == self.limited else None

    def _script(self, name: str, request: ModelRequest, setup: Setup) -> Sequence[Turn]:
        again, second_round = "## Prior attempt on this step" in request.prompt, "now round 2 of 3" in request.prompt
        if name == "lexer":
            return self._writes(setup, "lexer.txt", "final" if again else "draft")
        if name == "fix":
            return self._writes(setup, "whole.txt", "mended twice" if second_round else "mended once")
        if name in ("parser", "docs"):
            return self._writes(setup, f"{name}.txt", f"The {name}.")
        if name == "integrate":
            return self._writes(setup, "whole.txt", "whole")
        if name == "types":
            return [_typed(setup, {"types": ["Field", "Line"]})]
        if name == "review":
            return [_typed(setup, {"ok": True, "remark": "The whole is sound."})]
        if name == "check":
            return [_typed(setup, {"ok": second_round, "remark": "The quotes are wrong." if not second_round else ""})]
        return [say(BLIND_WORDS if name == "notes" else f"All that there is to say of {name} is said in this answer.")]

    def _writes(self, setup: Setup, name: str, text: str) -> Sequence[Turn]:
        # By the shell: some CLIs' own tools want a file read before they write it anew.
        path = shlex.quote(str(self.machine.project / name))
        return [
            setup.run_shell(f"printf '%s\\n' {shlex.quote(text)} > {path}"),
            say(f"The file {name} is written now."),
        ]


def _typed(setup: Setup, value: Mapping[str, Any]) -> Turn:
    return call_tool("StructuredOutput", **value) if setup is CLAUDE else say(json.dumps(value))
