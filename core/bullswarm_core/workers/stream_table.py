"""The tables that teach the one stream reader a CLI's events (``providers/<name>/stream.json``), and their compiler.

A table is an object:

- ``schemaVersion``: ``bullswarm.stream.v1``
- ``kind``: the path (or paths, the first that is not null) of the string that names an event's kind, usually ``type``
- ``eventId`` (optional): a path; an event whose id was seen among the last 1,024 is a duplicate
- ``identicalLines`` (optional): ``duplicate`` (default) when two identical lines in a row are one event told twice,
  ``distinct`` for a CLI that streams bare words, where "ha", "ha" is two words
- ``skip`` (optional): beginnings of lines that can't matter; such a line is counted and never parsed
- ``join`` (optional): how texts become messages: ``group`` (default; texts with the same ``group`` are one message, one
  without a group is a message by itself) or ``consecutive`` (texts with no tool call between them are one message)
- ``separator`` (optional): what stands between the joined texts, "" by default
- ``stderr`` (optional): denials that the CLI tells on stderr alone: a list of ``{"marker", "words", "tool"}``; what
  follows the marker on its line is the reason of a denial of that tool if it holds one of the words; the first that
  fits counts
- ``rules``: a list; every rule that matches an event applies, those that emit ``terminal`` first

A rule is an object:

- ``on``: the kind of event, or a list of kinds
- ``match`` (optional): path → condition; all must hold. A condition is a value or a list of values (equal to one of
  them), or an object with one of ``startsWith``, ``contains`` (any letter case), ``not`` (each a value or a list),
  ``present`` (true|false)
- ``forEach`` (optional): the path of a list; the rule applies to each item. ``$`` is the item, ``$.name`` a value in it
- ``emit``: one of the words below
- ``fields``: name → path, ``{"value": constant}``, an object with ``path`` and ``unit`` or ``map`` (value → value; an
  unknown value stays as it is, or becomes ``otherwise``), or a list of these, of which the first that is not null
  counts. Units: ``epochSeconds``, ``epochMs``, ``isoTime``; ``seconds``, ``ms``; ``percent``, ``fraction``;
  ``statusInText`` and ``windowInText`` (an HTTP status, a window's name inside a sentence); ``message`` (the sentence
  inside an error that is wrapped in JSON)
- ``side`` (optional, true): a subagent's event: its calls and edits count, but it is not the agent's own progress

A path is dotted: ``message.usage.input_tokens``. The words of ``emit`` and their fields (* must be there):

- ``session``: id*            - ``model``: name*
- ``turn``: id               a new turn (counted once per id); work after a last word makes that word not the last
- ``text``: text*, group     something that the agent said
- ``tool_call``: id, name, target (told twice with one id, it is one call)
- ``tool_result``: id, name, target, failed, text (a failed one whose text is the system's "no" becomes a denial)
- ``edit``: path, or id (the file that the call of this id aimed at)
- ``denial``: id, tool, target, reason
- ``usage``: input, cacheRead, cacheWrite, output, reasoning, costUsd, with ``mode`` ``last`` (default) or ``sum`` and
  ``inclusive`` (field → the fields that it includes; they are subtracted, so that Tokens are disjoint)
- ``error``, ``retry`` (it went on by itself), ``warning``: text, status, code, retryAfterSec, with ``mirrorsReply``
  true where the record may repeat what the agent said
- ``limit``: window, scope, resetsAt, usedPct
- ``terminal``: answer, stopReason, turns, group (the answer is the message of that group, or empty), with
  ``failedWhen``: a list of ``match`` objects of which one holding means that the last word reports a failure
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bullswarm_core.errors import ConnectorError
from bullswarm_core.workers import stream_values as values

SCHEMA_VERSION = "bullswarm.stream.v1"
_ERROR_FIELDS = frozenset({"text", "status", "code", "retryAfterSec"})
FIELDS: Mapping[str, frozenset[str]] = {
    "session": frozenset({"id"}),
    "model": frozenset({"name"}),
    "turn": frozenset({"id"}),
    "text": frozenset({"text", "group"}),
    "tool_call": frozenset({"id", "name", "target"}),
    "tool_result": frozenset({"id", "name", "target", "failed", "text"}),
    "edit": frozenset({"path", "id"}),
    "denial": frozenset({"id", "tool", "target", "reason"}),
    "usage": frozenset({"input", "cacheRead", "cacheWrite", "output", "reasoning", "costUsd"}),
    "error": _ERROR_FIELDS,
    "retry": _ERROR_FIELDS,
    "warning": _ERROR_FIELDS,
    "limit": frozenset({"window", "scope", "resetsAt", "usedPct"}),
    "terminal": frozenset({"answer", "stopReason", "turns", "group"}),
}
_REQUIRED = {"session": "id", "model": "name", "text": "text"}
_OPTIONS: Mapping[str, frozenset[str]] = {
    "usage": frozenset({"mode", "inclusive"}),
    "error": frozenset({"mirrorsReply"}),
    "retry": frozenset({"mirrorsReply"}),
    "warning": frozenset({"mirrorsReply"}),
    "terminal": frozenset({"failedWhen"}),
}
_RULE_KEYS = frozenset({"on", "match", "forEach", "emit", "fields", "side"})
_TABLE_KEYS = frozenset(
    {"schemaVersion", "kind", "eventId", "identicalLines", "skip", "join", "separator", "rules", "stderr"}
)

Condition = tuple[values.Getter, values.Test]


@dataclass(frozen=True, slots=True)
class Rule:
    """One compiled rule; ``conditions`` read the event alone, ``item_conditions`` the item of ``for_each``."""

    emit: str
    kinds: tuple[str, ...]
    conditions: tuple[Condition, ...]
    fields: tuple[tuple[str, values.Getter], ...]
    for_each: values.Getter | None = None
    item_conditions: tuple[Condition, ...] = ()
    side: bool = False
    sums: bool = False
    inclusive: tuple[tuple[str, tuple[str, ...]], ...] = ()
    mirrors_reply: bool = False
    failed_when: tuple[tuple[Condition, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class StderrDenial:
    """A line of stderr that tells of a denial and of nothing else."""

    marker: str
    words: tuple[str, ...]
    tool: str


@dataclass(frozen=True, slots=True)
class StreamTable:
    """A compiled table; ``rules`` are grouped by the kind of event that they can match."""

    kind: values.Getter
    rules: Mapping[str, tuple[Rule, ...]]
    event_id: values.Getter | None = None
    identical_lines_are_duplicates: bool = True
    skip: tuple[bytes, ...] = ()
    joins_consecutive: bool = False
    separator: str = ""
    stderr: tuple[StderrDenial, ...] = ()


@dataclass(slots=True)
class _Place:
    """Where in which table we are, for messages that name both."""

    source: str
    path: str = ""

    def at(self, step: str | int) -> _Place:
        joined = f"{self.path}[{step}]" if isinstance(step, int) else f"{self.path}.{step}".lstrip(".")
        return _Place(self.source, joined)

    def wrong(self, value: Any, wanted: str) -> ConnectorError:
        shown = json.dumps(value, ensure_ascii=False, default=str)[:80]
        return ConnectorError(f"{self.source}: {self.path or 'the table'} is {shown}; it has to be {wanted}")


def load_table(path: Path) -> StreamTable:
    """Read and compile a table; raises ConnectorError that names the file, the place and the value."""
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise ConnectorError(f"{path}: can't be read ({error.strerror})") from error
    except ValueError as error:
        raise ConnectorError(f"{path}: is not JSON ({error})") from error
    return compile_table(content, source=str(path))


def compile_table(table: Mapping[str, Any], *, source: str = "stream table") -> StreamTable:
    """Compile a table; raises ConnectorError that names the place and the value of the first fault."""
    place = _Place(source)
    _object(table, place, _TABLE_KEYS)
    if table.get("schemaVersion") != SCHEMA_VERSION:
        raise place.at("schemaVersion").wrong(table.get("schemaVersion"), f'"{SCHEMA_VERSION}"')
    rules = table.get("rules")
    if not isinstance(rules, list) or not rules:
        raise place.at("rules").wrong(rules, "a list of rules")
    compiled = [_rule(rule, place.at("rules").at(index)) for index, rule in enumerate(rules)]
    compiled.sort(key=lambda rule: rule.emit != "terminal")
    names = {name for rule in compiled for name in rule.kinds}
    event_id = table.get("eventId")
    return StreamTable(
        kind=_first_of(_as_list(table.get("kind")), place.at("kind")),
        rules={name: tuple(rule for rule in compiled if name in rule.kinds) for name in names},
        event_id=None if event_id is None else values.getter(_string(event_id, place.at("eventId"))),
        identical_lines_are_duplicates=_choice(table, "identicalLines", ("duplicate", "distinct"), place)
        == "duplicate",
        skip=tuple(start.encode() for start in _strings(table.get("skip", []), place.at("skip"))),
        joins_consecutive=_choice(table, "join", ("group", "consecutive"), place) == "consecutive",
        separator=_string(table.get("separator", ""), place.at("separator"), may_be_empty=True),
        stderr=tuple(
            _stderr(one, place.at("stderr").at(index))
            for index, one in enumerate(_list(table.get("stderr", []), place.at("stderr")))
        ),
    )


def _stderr(rule: Any, place: _Place) -> StderrDenial:
    _object(rule, place, frozenset({"marker", "words", "tool"}))
    return StderrDenial(
        marker=_string(rule.get("marker"), place.at("marker")),
        words=tuple(_strings(rule.get("words"), place.at("words"))),
        tool=_string(rule.get("tool"), place.at("tool")),
    )


def _rule(rule: Any, place: _Place) -> Rule:
    emit = rule.get("emit") if isinstance(rule, dict) else None
    if not isinstance(emit, str) or emit not in FIELDS:
        raise place.at("emit").wrong(emit, "one of " + ", ".join(FIELDS))
    _object(rule, place, _RULE_KEYS | _OPTIONS.get(emit, frozenset()))
    match = _object(rule.get("match", {}), place.at("match"))
    for_each = rule.get("forEach")
    return Rule(
        emit=emit,
        kinds=tuple(_strings(_as_list(rule.get("on")), place.at("on"))),
        conditions=_conditions({p: c for p, c in match.items() if p[:1] != "$"}, place.at("match")),
        fields=_fields(rule.get("fields", {}), emit, place.at("fields"), in_item=for_each is not None),
        for_each=None if for_each is None else values.getter(_string(for_each, place.at("forEach"))),
        item_conditions=_item_conditions(match, place.at("match"), in_item=for_each is not None),
        side=_flag(rule, "side", place),
        sums=_choice(rule, "mode", ("last", "sum"), place) == "sum",
        inclusive=_inclusive(rule.get("inclusive", {}), place.at("inclusive")),
        mirrors_reply=_flag(rule, "mirrorsReply", place),
        failed_when=tuple(
            _conditions(_object(one, place.at("failedWhen").at(index)), place.at("failedWhen").at(index))
            for index, one in enumerate(_list(rule.get("failedWhen", []), place.at("failedWhen")))
        ),
    )


def _item_conditions(match: dict[str, Any], place: _Place, *, in_item: bool) -> tuple[Condition, ...]:
    own = {path: condition for path, condition in match.items() if path[:1] == "$"}
    if own and not in_item:
        raise place.wrong(next(iter(own)), "a path of the event, since the rule has no forEach")
    return _conditions(own, place)


def _conditions(match: Mapping[str, Any], place: _Place) -> tuple[Condition, ...]:
    return tuple((values.getter(path), _test(wanted, place.at(path))) for path, wanted in match.items())


_TESTS: Mapping[str, Callable[[Any, _Place], values.Test]] = {
    "startsWith": lambda wanted, place: values.starts_with(tuple(_strings(_as_list(wanted), place))),
    "contains": lambda wanted, place: values.contains(tuple(_strings(_as_list(wanted), place))),
    "not": lambda wanted, place: values.negated(_equals(wanted, place)),
    "present": lambda wanted, place: values.present(_truth(wanted, place)),
}


def _test(wanted: Any, place: _Place) -> values.Test:
    if not isinstance(wanted, dict):
        return _equals(wanted, place)
    if len(wanted) != 1 or next(iter(wanted)) not in _TESTS:
        raise place.wrong(wanted, "a value, a list of values, or an object with one of " + ", ".join(_TESTS))
    [(word, operand)] = wanted.items()
    return _TESTS[word](operand, place.at(word))


def _equals(wanted: Any, place: _Place) -> values.Test:
    options = _as_list(wanted)
    if not options or not all(isinstance(one, str | int | float | bool | None) for one in options):
        raise place.wrong(wanted, "a string, a number, true, false, null, or a list of them")
    return values.equals(tuple(options))


def _fields(fields: Any, emit: str, place: _Place, *, in_item: bool) -> tuple[tuple[str, values.Getter], ...]:
    _object(fields, place, FIELDS[emit])
    required = _REQUIRED.get(emit)
    if required and required not in fields:
        raise place.wrong(fields, f'an object with the field "{required}", which {emit} needs')
    compiled = []
    for name, spec in fields.items():
        for path in _paths(spec):
            if path[:1] == "$" and not in_item:
                raise place.at(name).wrong(path, "a path of the event, since the rule has no forEach")
        compiled.append((name, _field(spec, place.at(name))))
    return tuple(compiled)


def _paths(spec: Any) -> list[str]:
    if isinstance(spec, dict):
        return _paths(spec.get("path"))
    return (
        [spec]
        if isinstance(spec, str)
        else [path for one in spec for path in _paths(one)]
        if isinstance(spec, list)
        else []
    )


def _field(spec: Any, place: _Place) -> values.Getter:
    if isinstance(spec, list) and spec:
        return values.first_of(tuple(_field(one, place.at(index)) for index, one in enumerate(spec)))
    if not isinstance(spec, dict):
        return values.getter(_string(spec, place))
    if "value" in spec:
        _object(spec, place, frozenset({"value"}))
        constant = spec["value"]
        return lambda event, item: constant
    _object(spec, place, frozenset({"path", "unit", "map", "otherwise"}))
    get = _field(spec.get("path"), place.at("path"))
    if "unit" in spec:
        if not isinstance(spec["unit"], str) or spec["unit"] not in values.UNITS:
            raise place.at("unit").wrong(spec["unit"], "one of " + ", ".join(values.UNITS))
        convert = values.UNITS[spec["unit"]]
        return lambda event, item: convert(get(event, item))
    known = _object(spec.get("map", {}), place.at("map"))
    has_other, other = "otherwise" in spec, spec.get("otherwise")

    def mapped(event: Any, item: Any) -> Any:
        value = get(event, item)
        return known.get(value, other if has_other else value) if isinstance(value, str) else value

    return mapped


def _first_of(paths: list[Any], place: _Place) -> values.Getter:
    return values.first_of(tuple(values.getter(path) for path in _strings(paths, place)))


def _inclusive(spec: Any, place: _Place) -> tuple[tuple[str, tuple[str, ...]], ...]:
    _object(spec, place, FIELDS["usage"])
    for name, parts in spec.items():
        if not set(_strings(parts, place.at(name))) <= FIELDS["usage"]:
            raise place.at(name).wrong(parts, "a list of fields of usage")
    return tuple((name, tuple(parts)) for name, parts in spec.items())


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _object(value: Any, place: _Place, keys: frozenset[str] | None = None) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise place.wrong(value, "an object")
    for key in value:
        if keys is not None and key not in keys:
            raise place.at(key).wrong(value[key], "left out: known here are " + ", ".join(sorted(keys)))
    return value


def _list(value: Any, place: _Place) -> list[Any]:
    if not isinstance(value, list):
        raise place.wrong(value, "a list")
    return value


def _string(value: Any, place: _Place, *, may_be_empty: bool = False) -> str:
    if not isinstance(value, str) or not (value or may_be_empty):
        raise place.wrong(value, "a string")
    return value


def _strings(value: Any, place: _Place) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
        raise place.wrong(value, "a string or a list of strings")
    return value


def _truth(value: Any, place: _Place) -> bool:
    if not isinstance(value, bool):
        raise place.wrong(value, "true or false")
    return value


def _flag(owner: Mapping[str, Any], name: str, place: _Place) -> bool:
    return _truth(owner.get(name, False), place.at(name))


def _choice(owner: Mapping[str, Any], name: str, choices: tuple[str, ...], place: _Place) -> str:
    value = owner.get(name, choices[0])
    if value not in choices:
        raise place.at(name).wrong(value, "one of " + ", ".join(choices))
    return str(value)
