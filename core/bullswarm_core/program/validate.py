"""What is wrong with a program.v3 document: every issue at once, each with its place and the rule.

Pure: a document in, sentences out. A document without issues can be read by ``program.model.program_from``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bullswarm_core.program.model import PROGRAM_VERSION
from bullswarm_core.program.plan import Graph, graph_of, objects, texts
from bullswarm_core.program.step_checks import Shape, StepIssues, is_id, is_whole, text_issues

OLDER_VERSION = "bullswarm.workflow.program.v2"
V2_REFUSED = (
    f"{OLDER_VERSION} is no longer accepted for a new run; write a program.v3 (bullswarm workflow plan contract) and check it"
    " (bullswarm workflow plan validate --program <file.json>)"
)
TOP_FIELDS = ("schemaVersion", "defaults", "steps", "gates", "loops")
DEFAULT_FIELDS = ("lane", "effort", "reasoning", "retry", "timeBox")
GATE_FIELDS = ("id", "dependsOn", "when", "note")
LOOP_FIELDS = ("id", "steps", "until", "maxRounds")
NOTE_LENGTH = 1000
MOST_ROUNDS = 5


def issues_of(program: Any) -> list[str]:
    """Return every issue of a program, in the order of the document; none for a program that is well formed."""
    if not isinstance(program, Mapping):
        return ["program must be a JSON object"]
    if program.get("schemaVersion") == OLDER_VERSION:
        return [V2_REFUSED]
    return _Check(program).everything()


class _Check:
    def __init__(self, program: Mapping[str, Any]) -> None:
        self.program = program
        self.shape = Shape()
        self.steps = objects(program.get("steps"))
        self.gates = objects(program.get("gates"))
        self.loops = objects(program.get("loops"))
        self.graph: Graph = graph_of(program)

    def everything(self) -> list[str]:
        self._top()
        steps = StepIssues(self.shape, self.program.get("defaults"), self.graph)
        for place, step in enumerate(self.steps):
            steps.check(f"steps[{place}]", step)
        for place, gate in enumerate(self.gates):
            self._gate(f"gates[{place}]", gate)
        for place, loop in enumerate(self.loops):
            self._loop(f"loops[{place}]", loop)
        self._ids()
        self._dependencies()
        self.shape.issues += text_issues(self.program)
        return list(dict.fromkeys(self.shape.issues))

    def _top(self) -> None:
        say = self.shape.say
        for key in self.program:
            say(
                key in TOP_FIELDS,
                f"program.{key} is not allowed; a v3 program has schemaVersion, defaults, steps, gates and loops",
            )
        say(self.program.get("schemaVersion") == PROGRAM_VERSION, f'schemaVersion must be "{PROGRAM_VERSION}"')
        for key in ("steps", "gates", "loops"):
            value = self.program.get(key, [] if key != "steps" else None)
            empty = key == "steps" and not value
            whole = isinstance(value, list) and all(isinstance(item, Mapping) for item in value)
            say(whole and not empty, f"{key} must be {'a non-empty' if key == 'steps' else 'an'} array of objects")
        defaults = self.program.get("defaults", {})
        if not isinstance(defaults, Mapping):
            self.shape.issues.append("program.defaults must be an object")
            return
        for key in defaults:
            say(
                key in DEFAULT_FIELDS,
                f"program.defaults.{key} is not allowed; defaults take lane, effort, reasoning, retry and timeBox",
            )
        self.shape.no_nulls("program.defaults", defaults)
        self.shape.choices("program.defaults", defaults)

    def _gate(self, at: str, gate: Mapping[str, Any]) -> None:
        for key in gate:
            self.shape.say(key in GATE_FIELDS, f"{at}.{key} is not allowed; a gate has id, dependsOn, when and note")
        self.shape.no_nulls(at, gate)
        self.shape.ids(f"{at}.dependsOn", gate.get("dependsOn"), filled=True)
        self.shape.line(f"{at}.note", gate.get("note"), NOTE_LENGTH)
        if "when" not in gate or not self._condition_form(f"{at}.when", gate["when"]):
            return
        step, name = gate["when"]["step"], gate.get("id")
        known = any(item.get("id") == step for item in self.steps)
        self.shape.say(known, f'{at}.when.step "{step}" is not a step')
        if known and isinstance(name, str):
            self.shape.say(
                step in self.graph.ancestors(name),
                f"{at}.when.step must run before gate {name}; {step} is not one of its dependencies",
            )
            self._condition(f"{at}.when", gate["when"])

    def _loop(self, at: str, loop: Mapping[str, Any]) -> None:
        for key in loop:
            self.shape.say(key in LOOP_FIELDS, f"{at}.{key} is not allowed; a loop has id, steps, until and maxRounds")
        self.shape.no_nulls(at, loop)
        names = self.shape.ids(f"{at}.steps", loop.get("steps"), filled=True)
        known = [step.get("id") for step in self.steps]
        for name in names:
            self.shape.say(name in known, f'{at}.steps names "{name}", which is not a step')
        self.shape.say(
            is_whole(loop.get("maxRounds"), 1, MOST_ROUNDS),
            f"{at}.maxRounds must be a whole number from 1 to {MOST_ROUNDS}",
        )
        if not self._condition_form(f"{at}.until", loop.get("until")):
            return
        step = loop["until"]["step"]
        inside = step in names
        self.shape.say(inside, f"{at}.until.step must be one of the loop's steps ({', '.join(names)})")
        if inside:
            self._condition(f"{at}.until", loop["until"])

    def _condition_form(self, at: str, condition: Any) -> bool:
        """Say whether a condition has one of its two forms; there are no expressions."""
        form = f'{at} must be {{step, field, equals?}} or {{step, evidence: "passed"}}'
        whole = isinstance(condition, Mapping) and isinstance(condition.get("step"), str)
        if whole and "evidence" in condition:
            whole = set(condition) == {"step", "evidence"} and condition["evidence"] == "passed"
        elif whole:
            whole = set(condition) <= {"step", "field", "equals"} and isinstance(condition.get("field"), str)
            whole = whole and isinstance(condition.get("equals", True), bool)
        self.shape.say(whole, form)
        return whole

    def _condition(self, at: str, condition: Mapping[str, Any]) -> None:
        name = condition["step"]
        step = next((item for item in self.steps if item.get("id") == name), {})
        if "evidence" in condition:
            self.shape.say(step.get("evidence"), f"{at}: step {name} declares no evidence")
            return
        field, schema = condition["field"], step.get("answer")
        properties = schema.get("properties") if isinstance(schema, Mapping) and _is_object(schema) else None
        kind = properties.get(field) if isinstance(properties, Mapping) else None
        boolean = isinstance(kind, Mapping) and kind.get("type") == "boolean"
        self.shape.say(boolean, f'{at}.field "{field}" must be a boolean in the answer schema of step {name}')
        if boolean and isinstance(schema, Mapping):
            self.shape.say(
                field in texts(schema.get("required")),
                f'{at}.field "{field}" must be listed in the required fields of step {name}\'s answer schema',
            )

    def _ids(self) -> None:
        seen: set[str] = set()
        for kind, items in (("steps", self.steps), ("gates", self.gates), ("loops", self.loops)):
            for place, item in enumerate(items):
                name = item.get("id")
                if not is_id(name):
                    self.shape.issues.append(f"{kind}[{place}].id must be a kebab-case id")
                    continue
                self.shape.say(
                    name not in seen, f'id "{name}" is used twice; steps, gates and loops share one id space'
                )
                seen.add(str(name))
        owners: dict[str, str] = {}
        for loop in self.loops:
            for name in texts(loop.get("steps")):
                first = owners.setdefault(name, str(loop.get("id")))
                self.shape.say(
                    first == str(loop.get("id")),
                    f"step {name} is in two loops ({first} and {loop.get('id')}); a step belongs to at most one loop",
                )

    def _dependencies(self) -> None:
        known = {item.get("id") for item in (*self.steps, *self.gates, *self.loops) if isinstance(item.get("id"), str)}
        for item in (*self.steps, *self.gates):
            name = item.get("id")
            if isinstance(name, str):
                self._dependencies_of(name, texts(item.get("dependsOn")), known)
        self.shape.say(
            not self.graph.is_cyclic(), "the dependency graph contains a cycle (through steps, gates and loops)"
        )

    def _dependencies_of(self, name: str, others: Iterable[str], known: set[Any]) -> None:
        owner = self.graph.owner
        for other in others:
            loop = owner.get(other)
            if other == name:
                self.shape.issues.append(f"{name} cannot depend on itself (a cycle)")
            elif other not in known:
                self.shape.issues.append(f'{name}.dependsOn references unknown step, gate or loop "{other}"')
            elif loop is not None and owner.get(name) != loop:
                self.shape.issues.append(
                    f"{name} depends on {other} inside loop {loop}; depend on the loop {loop} instead"
                )


def _is_object(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "object"
