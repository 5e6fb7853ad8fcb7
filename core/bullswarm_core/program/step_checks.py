"""What is wrong with one step of a program: its fields, texts, route, evidence, and the schema of its answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from bullswarm_core.answers.schema import schema_issues
from bullswarm_core.fast.text import is_text
from bullswarm_core.pools.model import EFFORTS, LANES
from bullswarm_core.program.model import MAX_PROMPT_BYTES, effort_of, lane_of
from bullswarm_core.program.plan import Graph, texts

_ID = re.compile(r"[a-z0-9][a-z0-9-]*\Z")
REASONING = ("low", "medium", "high", "xhigh", "max", "default")
MOST_MINUTES = 240


def is_id(value: Any) -> bool:
    """Tell whether a value is a kebab-case id."""
    return isinstance(value, str) and _ID.match(value) is not None


def is_whole(value: Any, least: int, most: int) -> bool:
    """Tell whether a value is a whole number between the two; true is none."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


class Shape:
    """Collects issues in the order in which they are found."""

    def __init__(self) -> None:
        self.issues: list[str] = []

    def say(self, holds: object, issue: str) -> None:
        """Keep the issue unless something holds."""
        if not holds:
            self.issues.append(issue)

    def no_nulls(self, at: str, given: Mapping[str, Any]) -> None:
        """Refuse null: a field that says nothing is left out."""
        for key, value in given.items():
            self.say(value is not None, f"{at}.{key} is null; leave it out")

    def choices(self, at: str, given: Mapping[str, Any]) -> None:
        """Check the fields that steps and defaults have in common."""
        for key, allowed in (("lane", LANES), ("effort", EFFORTS), ("reasoning", REASONING)):
            if key in given:
                self.say(given[key] in allowed, f"{at}.{key} must be one of {', '.join(allowed)}")
        if "retry" in given:
            self.say(is_whole(given["retry"], 0, 1), f"{at}.retry must be 0 or 1")
        if "timeBox" in given:
            self.say(
                is_whole(given["timeBox"], 0, MOST_MINUTES),
                f"{at}.timeBox must be whole minutes from 0 to {MOST_MINUTES}",
            )

    def ids(self, at: str, value: Any, *, filled: bool = False) -> list[str]:
        """Check a list of ids and return those that are texts."""
        if not isinstance(value, list) or (filled and not value):
            self.issues.append(f"{at} must be {'a non-empty' if filled else 'an'} array of ids")
            return []
        for place, name in enumerate(value):
            self.say(is_id(name), f"{at}[{place}] must be a kebab-case id")
        return self.once(at, value)

    def names(self, at: str, value: Any) -> list[str]:
        """Check a list of names, such as pools, and return those that are texts."""
        whole = isinstance(value, list) and all(isinstance(name, str) and name for name in value)
        self.say(whole, f"{at} must be an array of names")
        return self.once(at, value) if isinstance(value, list) else []

    def once(self, at: str, value: list[Any]) -> list[str]:
        """Say which texts of a list stand in it twice."""
        found = texts(value)
        seen: set[str] = set()
        for name in found:
            self.say(name not in seen, f'{at} names "{name}" twice')
            seen.add(name)
        return found

    def line(self, at: str, value: Any, most: int) -> None:
        """Check an optional text for people: one line that isn't empty."""
        if value is not None:
            whole = isinstance(value, str) and 0 < len(value) <= most and value.isprintable()
            self.say(whole, f"{at} must be one line of 1 to {most} characters")


def text_issues(document: Mapping[str, Any]) -> Iterator[str]:
    """Name each place of a JSON document whose text, or whose key, can't be written as UTF-8."""
    left: list[tuple[str, Any]] = [("", document)]
    while left:
        at, value = left.pop()
        if isinstance(value, str) and not is_text(value):
            yield f"{at} holds half a surrogate pair, which is no text"
        elif isinstance(value, Mapping):
            if not all(is_text(key) for key in value):
                yield f"{at or 'program'} has a key that holds half a surrogate pair, which is no text"
            left += [
                (f"{at}.{key}" if at else key, item) for key, item in reversed(list(value.items())) if is_text(key)
            ]
        elif isinstance(value, list):
            left += [(f"{at}[{place}]", item) for place, item in reversed(list(enumerate(value)))]


def prompt_issues(at: str, prompt: Any) -> Iterator[str]:
    """Say what is wrong with the prompt at ``at``."""
    if not isinstance(prompt, str) or not prompt.strip():
        yield f"{at} must say the whole task"
        return
    size = len(prompt.encode("utf-8", "surrogatepass"))
    if size > MAX_PROMPT_BYTES:
        yield f"{at} has {size} bytes and may have {MAX_PROMPT_BYTES}; put the material into a file in the folder"


MOST_EVIDENCE = 5
MOST_EVIDENCE_SEC = 600
OUTPUT_FILE = "$output"
_FIELDS = {"command": ("type", "cmd", "timeoutSec"), "schema": ("type", "file", "schema", "format", "timeoutSec")}


def answer_issues(at: str, step: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with the answer schema of a step."""
    if "answer" not in step:
        return []
    return _schema_issues(f"{at}.answer", step["answer"])


def evidence_issues(at: str, step: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with the evidence of a step."""
    evidence = step.get("evidence", [])
    if not isinstance(evidence, list) or len(evidence) > MOST_EVIDENCE:
        return [f"{at}.evidence must be an array of at most {MOST_EVIDENCE} items"]
    issues: list[str] = []
    for place, item in enumerate(evidence):
        issues += _item_issues(f"{at}.evidence[{place}]", item)
    return issues


def _item_issues(at: str, item: Any) -> list[str]:
    kind = item.get("type") if isinstance(item, Mapping) else None
    if not isinstance(item, Mapping) or not isinstance(kind, str) or kind not in _FIELDS:
        return [f'{at} must be {{type: "command", cmd}} or {{type: "schema", file, schema}}']
    fields = _FIELDS[kind]
    issues = [f"{at}.{key} is not allowed; it has {', '.join(fields)}" for key in item if key not in fields]
    if "timeoutSec" in item and not is_whole(item["timeoutSec"], 1, MOST_EVIDENCE_SEC):
        issues.append(f"{at}.timeoutSec must be whole seconds from 1 to {MOST_EVIDENCE_SEC}")
    if kind == "command":
        cmd = item.get("cmd")
        if not isinstance(cmd, str) or not cmd.strip() or "\n" in cmd or "\0" in cmd:
            issues.append(f"{at}.cmd must be one line, a command that exits 0 when the work is right")
        return issues
    file = item.get("file")
    if not isinstance(file, str) or (file != OUTPUT_FILE and not _is_inside(file)):
        issues.append(f'{at}.file must be a relative file, or "{OUTPUT_FILE}" for the final reply')
    if item.get("format", "json") not in ("json", "jsonl"):
        issues.append(f"{at}.format must be json or jsonl")
    return issues + _schema_issues(f"{at}.schema", item.get("schema"))


def _is_inside(file: str) -> bool:
    return bool(file) and not file.startswith(("/", "~")) and ".." not in file.split("/") and "\0" not in file


def _schema_issues(at: str, schema: Any) -> list[str]:
    if not isinstance(schema, Mapping):
        return [f"{at} must be a JSON schema object"]
    return [f"{at}: {issue}" for issue in schema_issues(schema)]


STEP_FIELDS = (
    "id", "prompt", "dependsOn", "phase", "label", "lane", "effort", "reasoning", "model", "route", "blindTo", "answer",
    "evidence", "deliverable", "files", "retry", "timeBox",
)  # fmt: skip
# What the fields of earlier formats became.
DERIVED = {
    "kind": "lane and deliverable",
    "role": "lane and deliverable",
    "purpose": "label and prompt",
    "inputs": "dependsOn",
    "produces": "deliverable",
    "ownedFiles": "files",
    "affects": "files",
    "evidenceFor": "dependsOn",
}
PHASE_LENGTH, LABEL_LENGTH = 80, 200
DELIVERABLES = ("files", "report", "data", "media", "outward")
_WRITTEN = ("files", "data", "media")


class StepIssues:
    """Checks the steps of one program; ``shape`` collects what is wrong."""

    def __init__(self, shape: Shape, defaults: Any, graph: Graph) -> None:
        self._shape = shape
        self._defaults: Mapping[str, Any] = defaults if isinstance(defaults, Mapping) else {}
        self._graph = graph

    def check(self, at: str, step: Mapping[str, Any]) -> None:
        """Check one step; ``at`` is its place, such as ``steps[2]``."""
        shape = self._shape
        for key in step:
            if key in DERIVED:
                shape.issues.append(f"{at}.{key} is derived from {DERIVED[key]} in v3; remove it")
            else:
                shape.say(key in STEP_FIELDS, f"{at}.{key} is not a v3 field")
        shape.no_nulls(at, step)
        shape.issues += prompt_issues(f"{at}.prompt", step.get("prompt"))
        shape.line(f"{at}.phase", step.get("phase"), PHASE_LENGTH)
        shape.line(f"{at}.label", step.get("label"), LABEL_LENGTH)
        shape.line(f"{at}.model", step.get("model"), LABEL_LENGTH)
        shape.say(not str(step.get("model")).startswith("-"), f"{at}.model must be a model, not an option of a CLI")
        shape.choices(at, step)
        shape.ids(f"{at}.dependsOn", step.get("dependsOn", []))
        self._upstream(at, "blindTo", step, step.get("blindTo", []))
        self._route(at, step)
        shape.issues += answer_issues(at, step)
        shape.issues += evidence_issues(at, step)
        self._files(at, step)
        if self._lane(step) in LANES:
            self._lane_rules(at, step)

    def _lane(self, step: Mapping[str, Any]) -> Any:
        lane = lane_of(step, self._defaults)
        return lane if isinstance(lane, str) else None

    def _upstream(self, at: str, field: str, step: Mapping[str, Any], value: Any) -> None:
        """Check a list of steps that must run before this one."""
        name = step.get("id")
        for other in self._shape.ids(f"{at}.{field}", value):
            if other == name:
                self._shape.issues.append(f"{at}.{field} cannot name the step itself")
            elif isinstance(name, str) and other not in self._graph.ancestors(name):
                self._shape.issues.append(
                    f'{at}.{field} names "{other}", which does not run before this step; add it to dependsOn (directly or'
                    " through another step)"
                )

    def _route(self, at: str, step: Mapping[str, Any]) -> None:
        route, shape = step.get("route"), self._shape
        if route is None:
            return
        if not isinstance(route, Mapping):
            shape.issues.append(f"{at}.route must be an object")
            return
        for key, value in route.items():
            if key == "independentOf":
                self._upstream(at, "route.independentOf", step, value)
            elif key not in ("pools", "providers") or not isinstance(value, Mapping):
                shape.issues.append(f"{at}.route.{key} is not allowed; a route has pools, providers and independentOf")
            else:
                self._route_names(f"{at}.route.{key}", value)

    def _route_names(self, at: str, value: Mapping[str, Any]) -> None:
        named = {}
        for side, names in value.items():
            self._shape.say(side in ("use", "avoid"), f"{at}.{side} is not allowed; it takes use and avoid")
            if side in ("use", "avoid"):
                named[side] = self._shape.names(f"{at}.{side}", names)
        for name in sorted(set(named.get("use", ())) & set(named.get("avoid", ()))):
            self._shape.issues.append(f'{at} names "{name}" in use and in avoid')

    def _files(self, at: str, step: Mapping[str, Any]) -> None:
        self._exact_files(f"{at}.files", step.get("files", []))
        deliverable = step.get("deliverable")
        if deliverable is None:
            return
        place = f"{at}.deliverable"
        if isinstance(deliverable, Mapping):
            for key in deliverable:
                self._shape.say(key in ("type", "paths"), f"{place}.{key} is not allowed; it has type and paths")
            self._exact_files(f"{place}.paths", deliverable.get("paths", []))
            kind = deliverable.get("type")
        else:
            kind = deliverable
        self._shape.say(
            kind in DELIVERABLES, f"{place} must be one of {', '.join(DELIVERABLES)}, or an object of type and paths"
        )

    def _exact_files(self, at: str, value: Any) -> None:
        if not isinstance(value, list):
            self._shape.issues.append(f"{at} must be an array of files")
            return
        for place, file in enumerate(value):
            self._shape.say(
                isinstance(file, str) and _is_exact(file),
                f'{at}[{place}] must name one exact file, not a directory or glob ("{file}")',
            )
        self._shape.once(at, value)

    def _lane_rules(self, at: str, step: Mapping[str, Any]) -> None:
        """Check what a lane may leave behind: analyze writes nothing, and writing lanes leave more than words."""
        shape, lane = self._shape, self._lane(step)
        shape.say(lane != "chore" or effort_of(step, self._defaults) == "low", f"{at}: a chore step must be low effort")
        files = texts(step.get("files"))
        shape.say(lane != "analyze" or not files, f"{at}: an analyze step writes no files")
        given = step.get("deliverable")
        kind = given.get("type") if isinstance(given, Mapping) else given
        paths = texts(given.get("paths")) if isinstance(given, Mapping) else []
        if kind in _WRITTEN:
            shape.say(
                lane != "analyze", f'{at}.deliverable "{kind}" needs the build or chore lane; analyze writes nothing'
            )
        elif kind in ("report", "outward"):
            shape.say(
                lane == "analyze", f'{at}.deliverable "{kind}" needs the analyze lane; a {lane} step leaves files'
            )
            shape.say(kind != "outward" or not files, f"{at}: an outward step owns no files")
            shape.say(not paths, f"{at}.deliverable.paths is for files, data and media")
        if kind in ("data", "media"):
            shape.say(paths, f"{at}.deliverable.paths is required for {kind}")
        missing = [path for path in paths if path not in files]
        if files and missing:
            shape.issues.append(f"{at}.deliverable.paths must be listed in files (missing: {', '.join(missing)})")


def _is_exact(file: str) -> bool:
    """Tell whether a name is one relative file inside the working folder."""
    if not file or file.endswith("/") or file.startswith(("/", "~")) or set(file) & set("*?[\0"):
        return False
    return ".." not in file.split("/") and "." not in file.split("/")
