"""What is wrong with one step of a program: its fields, its route, what it must leave behind and how that is checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bullswarm_core.pools import LANES
from bullswarm_core.program.evidence_issues import answer_issues, evidence_issues
from bullswarm_core.program.graph import Graph, texts
from bullswarm_core.program.model import effort_of, lane_of
from bullswarm_core.program.shape import Shape
from bullswarm_core.program.text_issues import prompt_issues

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
