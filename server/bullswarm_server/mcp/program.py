"""The shape of a program.v3: what is wrong with one, in sentences that name the place and the rule.

Pure: a document in, issues out. All of them are found at once, so that one correction is enough.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from bullswarm_core.pools import EFFORTS, LANES
from bullswarm_core.runs.task import PROGRAM_VERSION

_ID = re.compile(r"[a-z0-9][a-z0-9-]*\Z")
_TOP = ("schemaVersion", "defaults", "steps", "gates", "loops")
_DEFAULTS = ("lane", "effort", "reasoning", "retry", "timeBox")
_STEP = (
    "id", "prompt", "dependsOn", "phase", "label", "lane", "effort", "reasoning", "model", "route", "blindTo", "answer",
    "evidence", "deliverable", "files", "retry", "timeBox",
)  # fmt: skip
_REMOVED = ("purpose", "affects", "evidenceFor", "kind", "role", "inputs", "produces", "ownedFiles")
_REASONING = ("low", "medium", "high", "xhigh", "max", "default")
_GATE = ("id", "dependsOn", "when", "note")
_LOOP = ("id", "steps", "until", "maxRounds")
_PHASE_LENGTH, _LABEL_LENGTH, _NOTE_LENGTH = 80, 200, 1000
_MOST_EVIDENCE, _MOST_ROUNDS, _MOST_MINUTES = 5, 5, 240


def issues_of(program: Any) -> list[str]:
    """Return every issue of a program's shape, in the order of the document; none for a program that is well formed."""
    if not isinstance(program, Mapping):
        return ["program must be a JSON object"]
    check = _Check(program)
    check.everything()
    return list(dict.fromkeys(check.issues))


class _Check:
    def __init__(self, program: Mapping[str, Any]) -> None:
        self.program = program
        self.issues: list[str] = []
        self.steps = _objects(program.get("steps"))
        self.gates = _objects(program.get("gates"))
        self.loops = _objects(program.get("loops"))
        self.step_ids = [step.get("id") for step in self.steps]
        self.owner = {name: loop.get("id") for loop in self.loops for name in _texts(loop.get("steps"))}

    def everything(self) -> None:
        self._top()
        for place, step in enumerate(self.steps):
            self._step(f"steps[{place}]", step)
        for place, gate in enumerate(self.gates):
            self._gate(f"gates[{place}]", gate)
        for place, loop in enumerate(self.loops):
            self._loop(f"loops[{place}]", loop)
        self._ids()
        self._dependencies()

    def say(self, holds: object, issue: str) -> None:
        if not holds:
            self.issues.append(issue)

    def _top(self) -> None:
        for key in self.program:
            self.say(
                key in _TOP,
                f"program.{key} is not allowed; a v3 program has schemaVersion, defaults, steps, gates and loops",
            )
        self.say(self.program.get("schemaVersion") == PROGRAM_VERSION, f'schemaVersion must be "{PROGRAM_VERSION}"')
        for key in ("steps", "gates", "loops"):
            value = self.program.get(key, [] if key != "steps" else None)
            empty = key == "steps" and not value
            whole = isinstance(value, list) and all(isinstance(item, Mapping) for item in value)
            self.say(whole and not empty, f"{key} must be {'a non-empty' if key == 'steps' else 'an'} array of objects")
        defaults = self.program.get("defaults", {})
        if not isinstance(defaults, Mapping):
            self.issues.append("program.defaults must be an object")
            return
        for key in defaults:
            self.say(
                key in _DEFAULTS,
                f"program.defaults.{key} is not allowed; defaults take lane, effort, reasoning, retry and timeBox",
            )
        self._choices("program.defaults", defaults)

    def _step(self, at: str, step: Mapping[str, Any]) -> None:
        for key in step:
            what = "is not a v3 field" if key in _REMOVED else "is not allowed"
            self.say(key in _STEP, f"{at}.{key} {what}")
        prompt = step.get("prompt")
        self.say(isinstance(prompt, str) and prompt.strip(), f"{at}.prompt must say the whole task")
        self._line(f"{at}.phase", step.get("phase"), _PHASE_LENGTH)
        self._line(f"{at}.label", step.get("label"), _LABEL_LENGTH)
        self._choices(at, step)
        self._names(f"{at}.dependsOn", step.get("dependsOn", []))
        self._names(f"{at}.blindTo", step.get("blindTo", []))
        evidence = step.get("evidence", [])
        self.say(
            isinstance(evidence, list) and len(evidence) <= _MOST_EVIDENCE,
            f"{at}.evidence must be an array of at most {_MOST_EVIDENCE} items",
        )
        if "answer" in step:
            self.say(isinstance(step["answer"], Mapping), f"{at}.answer must be a JSON schema object")
        for place, file in enumerate(_texts(step.get("files"))):
            exact = file and not file.endswith("/") and not file.startswith("/") and not set(file) & set("*?[")
            self.say(exact, f'{at}.files[{place}] must name one exact file, not a directory or glob ("{file}")')
        lane = step.get("lane") or self._default("lane") or "analyze"
        effort = step.get("effort") or self._default("effort")
        self.say(lane != "chore" or effort in (None, "low"), f"{at}: a chore step must be low effort")
        self.say(lane != "analyze" or not step.get("files"), f"{at}: an analyze step writes no files")
        self._route(at, step.get("route"))

    def _default(self, name: str) -> Any:
        defaults = self.program.get("defaults")
        return defaults.get(name) if isinstance(defaults, Mapping) else None

    def _choices(self, at: str, given: Mapping[str, Any]) -> None:
        for key, allowed in (("lane", LANES), ("effort", EFFORTS), ("reasoning", _REASONING)):
            if key in given:
                self.say(given[key] in allowed, f"{at}.{key} must be one of {', '.join(allowed)}")
        if "retry" in given:
            self.say(_whole(given["retry"], 0, 1), f"{at}.retry must be 0 or 1")
        if "timeBox" in given:
            self.say(
                _whole(given["timeBox"], 0, _MOST_MINUTES),
                f"{at}.timeBox must be whole minutes from 0 to {_MOST_MINUTES}",
            )

    def _route(self, at: str, route: Any) -> None:
        if route is None:
            return
        if not isinstance(route, Mapping):
            self.issues.append(f"{at}.route must be an object")
            return
        for key, value in route.items():
            if key == "independentOf":
                self._names(f"{at}.route.independentOf", value)
                continue
            if key not in ("pools", "providers") or not isinstance(value, Mapping):
                self.issues.append(f"{at}.route.{key} is not allowed; a route has pools, providers and independentOf")
                continue
            for side in value:
                self.say(side in ("use", "avoid"), f"{at}.route.{key}.{side} is not allowed; it takes use and avoid")
            for name in sorted(set(_texts(value.get("use"))) & set(_texts(value.get("avoid")))):
                self.issues.append(f'{at}.route.{key} names "{name}" in use and in avoid')

    def _gate(self, at: str, gate: Mapping[str, Any]) -> None:
        for key in gate:
            self.say(key in _GATE, f"{at}.{key} is not allowed; a gate has id, dependsOn, when and note")
        self._names(f"{at}.dependsOn", gate.get("dependsOn"), filled=True)
        self._line(f"{at}.note", gate.get("note"), _NOTE_LENGTH)
        if "when" in gate:
            self._condition(f"{at}.when", gate["when"], self.step_ids)

    def _loop(self, at: str, loop: Mapping[str, Any]) -> None:
        for key in loop:
            self.say(key in _LOOP, f"{at}.{key} is not allowed; a loop has id, steps, until and maxRounds")
        names = self._names(f"{at}.steps", loop.get("steps"), filled=True)
        for name in names:
            self.say(name in self.step_ids, f'{at}.steps names "{name}", which is not a step')
        rounds = loop.get("maxRounds")
        self.say(_whole(rounds, 1, _MOST_ROUNDS), f"{at}.maxRounds must be a whole number from 1 to {_MOST_ROUNDS}")
        self._condition(f"{at}.until", loop.get("until"), names)

    def _condition(self, at: str, condition: Any, among: Iterable[Any]) -> None:
        form = f'{at} must be {{step, field, equals?}} or {{step, evidence: "passed"}}'
        if not isinstance(condition, Mapping) or not set(condition) <= {"step", "field", "equals", "evidence"}:
            self.issues.append(form)
            return
        name = condition.get("step")
        if name not in among:
            self.issues.append(f'{at}.step "{name}" must be one of its steps ({", ".join(map(str, among))})')
            return
        step = next((item for item in self.steps if item.get("id") == name), {})
        if "evidence" in condition:
            self.say(condition["evidence"] == "passed" and "field" not in condition, form)
            self.say(step.get("evidence"), f"{at}: step {name} declares no evidence")
            return
        self._boolean_field(at, step, condition.get("field"))

    def _boolean_field(self, at: str, step: Mapping[str, Any], field: Any) -> None:
        schema = step.get("answer") if isinstance(step.get("answer"), Mapping) else {}
        assert isinstance(schema, Mapping)
        properties = schema.get("properties")
        kind = properties.get(field) if isinstance(properties, Mapping) and isinstance(field, str) else None
        boolean = isinstance(kind, Mapping) and kind.get("type") == "boolean"
        self.say(boolean, f'{at}.field "{field}" must be a boolean in the answer schema of step {step.get("id")}')
        if boolean:
            self.say(
                field in _texts(schema.get("required")),
                f'{at}.field "{field}" must be listed in the required fields of step {step.get("id")}\'s answer schema',
            )

    def _ids(self) -> None:
        seen: set[str] = set()
        for kind, items in (("steps", self.steps), ("gates", self.gates), ("loops", self.loops)):
            for place, item in enumerate(items):
                name = item.get("id")
                if not isinstance(name, str) or not _ID.match(name):
                    self.issues.append(f"{kind}[{place}].id must be a kebab-case id")
                    continue
                self.say(name not in seen, f'id "{name}" is used twice; steps, gates and loops share one id space')
                seen.add(name)
        owners: dict[str, str] = {}
        for loop in self.loops:
            for name in _texts(loop.get("steps")):
                first = owners.setdefault(name, str(loop.get("id")))
                self.say(
                    first == str(loop.get("id")),
                    f"step {name} is in two loops ({first} and {loop.get('id')}); a step belongs to at most one loop",
                )

    def _dependencies(self) -> None:
        graph: dict[str, set[str]] = {}
        known = [item.get("id") for item in (*self.steps, *self.gates, *self.loops)]
        for item in (*self.steps, *self.gates):
            name = item.get("id")
            if not isinstance(name, str):
                continue
            for other in _texts(item.get("dependsOn")):
                if other == name:
                    self.issues.append(f"{name} cannot depend on itself (a cycle)")
                elif other not in known:
                    self.issues.append(f'{name}.dependsOn references unknown step, gate or loop "{other}"')
                elif (loop := self.owner.get(other)) and self.owner.get(name) != loop:
                    self.issues.append(
                        f"{name} depends on {other} inside loop {loop}; depend on the loop {loop} instead"
                    )
                else:
                    graph.setdefault(self._unit(name), set()).add(self._unit(other))
                    graph.setdefault(name, set()).add(other)
        self.say(not _cyclic(graph), "the dependency graph contains a cycle (through steps, gates and loops)")

    def _unit(self, name: str) -> str:
        """A step of a loop waits, and is waited for, as its loop."""
        return str(self.owner.get(name) or name)

    def _names(self, at: str, value: Any, *, filled: bool = False) -> list[str]:
        if not isinstance(value, list) or (filled and not value):
            self.issues.append(f"{at} must be {'a non-empty' if filled else 'an'} array of ids")
            return []
        for place, name in enumerate(value):
            self.say(isinstance(name, str) and _ID.match(name), f"{at}[{place}] must be a kebab-case id")
        for name in dict.fromkeys(_texts(value)):
            self.say(value.count(name) == 1, f'{at} names "{name}" twice')
        return _texts(value)

    def _line(self, at: str, value: Any, most: int) -> None:
        if value is not None:
            whole = isinstance(value, str) and 0 < len(value) <= most and "\n" not in value
            self.say(whole, f"{at} must be one line of 1 to {most} characters")


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _texts(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _whole(value: Any, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _cyclic(graph: Mapping[str, set[str]]) -> bool:
    """Take away what waits for nothing until nothing is left, or a cycle is."""
    waiting = {name: {other for other in others if other != name} for name, others in graph.items()}
    while True:
        free = {name for name, others in waiting.items() if not others & waiting.keys()}
        if not free:
            return bool(waiting)
        waiting = {name: others for name, others in waiting.items() if name not in free}
