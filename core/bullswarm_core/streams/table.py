"""The tables that teach the one stream reader a CLI's events (``providers/<name>/stream.json``), and their compiler.

A table is an object:

- ``schemaVersion``: ``bullswarm.stream.v1``
- ``kind``: the path (or paths, the first that is not null) of the string that names an event's kind, usually ``type``
- ``eventId`` (optional): a path; an event whose id was seen among the last 1,024 is a duplicate
- ``identicalLines`` (optional): ``duplicate`` (default) when two identical lines in a row are one event told twice,
  ``distinct`` for a CLI that streams bare words, where "ha", "ha" is two words
- ``skip`` (optional): lines that can't matter, by their bytes; such a line is counted and never parsed. A list of beginnings,
  or of ``{"start", "unless"}``: a line with this beginning that holds none of the strings of ``unless``
- ``join`` (optional): how texts become messages: ``group`` (default; texts with the same ``group`` are one message, one
  without a group is a message by itself) or ``consecutive`` (texts with no tool call between them are one message)
- ``separator`` (optional): what stands between the joined texts, "" by default
- ``stderr`` (optional): what the CLI tells on stderr alone: a list of ``{"marker", "words", "tool"}``; what follows the
  marker on its line is the reason of a denial of that tool if it holds one of the words; the first that fits counts. With
  ``waitAfter`` in the place of ``tool`` it is a retry: the wait ("90s", "250ms") stands behind ``waitAfter``, is the
  provider's word from ``leastWaitSec`` on (a shorter one is the CLI's own pause), and the error behind ``textAfter``
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
- ``side`` (optional): a path that has a value in a subagent's events: its calls count, but what it says and does is not
  the agent's own progress

A path is dotted: ``message.usage.input_tokens``. The words of ``emit`` and their fields (* must be there):

- ``session``: id*            - ``model``: name*
- ``turn``: id               a new turn (counted once per id); work after a last word makes that word not the last
- ``text``: text*, group     something that the agent said
- ``tool_call``: id, name, input (told twice with one id, it is one call; what it aims at is found in the input object)
- ``tool_result``: id, name, input, failed, text (a failed one whose text is the system's "no" becomes a denial)
- ``edit``: path, or id (the file that the call of this id aimed at)
- ``denial``: id, tool, input, reason (what the call of this id told need not be told again)
- ``usage``: input, cacheRead, cacheWrite, output, reasoning, costUsd, with ``mode`` ``last`` (default) or ``sum`` and
  ``inclusive`` (field → the fields that it includes; they are subtracted, so that Tokens are disjoint)
- ``error``, ``retry`` (it went on by itself), ``warning``: text, status, code, retryAfterSec, with ``mirrorsReply``
  true where the record may repeat what the agent said; retryAfterSec is the provider's word, never the CLI's own pause
- ``limit``: window, scope, resetsAt, usedPct
- ``terminal``: answer, structured (the JSON value of the CLI's own structured output), stopReason, turns, group (the
  answer is the message of that group, or empty), with ``failedWhen``: a list of ``match`` objects of which one holding
  means that the last word reports a failure
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from bullswarm_core._dataclasses import dataclass, field
from bullswarm_core.errors import ConnectorError
from bullswarm_core.streams import values

SCHEMA_VERSION = "bullswarm.stream.v1"
_TABLE_KEYS = frozenset(
    {"schemaVersion", "kind", "eventId", "identicalLines", "skip", "join", "separator", "rules", "stderr"}
)


@dataclass(frozen=True, slots=True)
class StderrDenial:
    """A line of stderr that tells of a denial and of nothing else."""

    marker: str
    words: tuple[str, ...]
    tool: str


@dataclass(frozen=True, slots=True)
class StderrRetry:
    """A line of stderr that tells how long the CLI waits before it asks again; ``least_wait_sec`` in seconds."""

    marker: str
    words: tuple[str, ...]
    wait_after: str
    text_after: str
    least_wait_sec: float


@dataclass(frozen=True, slots=True)
class Skip:
    """Lines with this beginning that hold none of these strings can't matter."""

    start: bytes
    unless: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class StreamTable:
    """A compiled table; ``programs`` says for each kind of event what is read from it and what that means."""

    kind: values.Getter
    programs: Mapping[str, Program]
    event_id: values.Getter | None = None
    identical_lines_are_duplicates: bool = True
    skip: tuple[bytes, ...] = ()
    skip_unless: tuple[Skip, ...] = ()
    joins_consecutive: bool = False
    separator: str = ""
    stderr: tuple[StderrDenial, ...] = ()
    stderr_retries: tuple[StderrRetry, ...] = ()


def compile_table(table: Mapping[str, Any], *, source: str = "stream table") -> StreamTable:
    """Compile a table; raises ConnectorError that names the place and the value of the first fault."""
    place = Place(source)
    object_of(table, place, _TABLE_KEYS)
    if table.get("schemaVersion") != SCHEMA_VERSION:
        raise place.at("schemaVersion").wrong(table.get("schemaVersion"), f'"{SCHEMA_VERSION}"')
    skips = [
        _skip(one, place.at("skip").at(index))
        for index, one in enumerate(list_of(table.get("skip", []), place.at("skip")))
    ]
    repeats = choice(table, "identicalLines", ("duplicate", "distinct"), place)
    stderr = [
        _stderr(one, place.at("stderr").at(index))
        for index, one in enumerate(list_of(table.get("stderr", []), place.at("stderr")))
    ]
    return StreamTable(
        kind=values.first_path(strings(as_list(table.get("kind")), place.at("kind"))),
        programs=compile_programs(table.get("rules"), place.at("rules")),
        event_id=_event_id(table, place),
        identical_lines_are_duplicates=repeats == "duplicate",
        skip=tuple(one.start for one in skips if not one.unless),
        skip_unless=tuple(one for one in skips if one.unless),
        joins_consecutive=choice(table, "join", ("group", "consecutive"), place) == "consecutive",
        separator=string(table.get("separator", ""), place.at("separator"), may_be_empty=True),
        stderr=tuple(one for one in stderr if isinstance(one, StderrDenial)),
        stderr_retries=tuple(one for one in stderr if isinstance(one, StderrRetry)),
    )


def _event_id(table: Mapping[str, Any], place: Place) -> values.Getter | None:
    return values.first_path([string(table["eventId"], place.at("eventId"))]) if "eventId" in table else None


def _skip(rule: Any, place: Place) -> Skip:
    if not isinstance(rule, dict):
        return Skip(string(rule, place).encode(), ())
    object_of(rule, place, frozenset({"start", "unless"}))
    unless = strings(rule.get("unless"), place.at("unless"))
    return Skip(string(rule.get("start"), place.at("start")).encode(), tuple(one.encode() for one in unless))


def _stderr(rule: Any, place: Place) -> StderrDenial | StderrRetry:
    is_retry = isinstance(rule, dict) and "waitAfter" in rule
    own = {"waitAfter", "textAfter", "leastWaitSec"} if is_retry else {"tool"}
    object_of(rule, place, frozenset({"marker", "words", *own}))
    marker = string(rule.get("marker"), place.at("marker"))
    words = tuple(strings(rule.get("words"), place.at("words")))
    if not is_retry:
        return StderrDenial(marker=marker, words=words, tool=string(rule.get("tool"), place.at("tool")))
    return StderrRetry(
        marker=marker,
        words=words,
        wait_after=string(rule.get("waitAfter"), place.at("waitAfter")),
        text_after=string(rule.get("textAfter"), place.at("textAfter")),
        least_wait_sec=seconds(rule.get("leastWaitSec"), place.at("leastWaitSec")),
    )


_ERROR_FIELDS = frozenset({"text", "status", "code", "retryAfterSec"})
FIELDS: Mapping[str, frozenset[str]] = {
    "session": frozenset({"id"}),
    "model": frozenset({"name"}),
    "turn": frozenset({"id"}),
    "text": frozenset({"text", "group"}),
    "tool_call": frozenset({"id", "name", "input"}),
    "tool_result": frozenset({"id", "name", "input", "failed", "text"}),
    "edit": frozenset({"path", "id"}),
    "denial": frozenset({"id", "tool", "input", "reason"}),
    "usage": frozenset({"input", "cacheRead", "cacheWrite", "output", "reasoning", "costUsd"}),
    "error": _ERROR_FIELDS,
    "retry": _ERROR_FIELDS,
    "warning": _ERROR_FIELDS,
    "limit": frozenset({"window", "scope", "resetsAt", "usedPct"}),
    "terminal": frozenset({"answer", "structured", "stopReason", "turns", "group"}),
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

# A slot and what its value must pass; without a test, the string or None that it must equal (the cheap case).
Condition = tuple[int, values.Test | None, str | None]
# Reads a field from the slots of an event and of its item.
Reader = Callable[[list[Any], list[Any]], Any]


@dataclass(frozen=True, slots=True)
class Rule:
    """One compiled rule; ``side`` is a slot of the event, or -1."""

    emit: str
    conditions: tuple[Condition, ...]
    fields: tuple[tuple[str, Reader], ...]
    item_conditions: tuple[Condition, ...] = ()
    side: int = -1
    sums: bool = False
    inclusive: tuple[tuple[str, tuple[str, ...]], ...] = ()
    mirrors_reply: bool = False
    failed_when: tuple[tuple[Condition, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class ItemRules:
    """The rules for each item of the list in slot ``items``; ``steps`` read an item's values."""

    items: int
    steps: tuple[values.Step, ...]
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """What to do with one kind of event: ``steps`` read its values once, for all rules."""

    steps: tuple[values.Step, ...]
    rules: tuple[Rule, ...]
    item_rules: tuple[ItemRules, ...]


@dataclass(slots=True)
class _Scope:
    """The slots that are being laid out: the event's, and the item's where there is one."""

    event: values.Slots
    item: values.Slots | None = None

    def reader(self, path: Any, place: Place) -> Reader:
        keys = tuple(string(path, place).split("."))
        if keys[0] != "$":
            slot = self.event.slot(keys)
            return lambda event, item: event[slot]
        if self.item is None:
            raise place.wrong(path, "a path of the event, since the rule has no forEach")
        slot = self.item.slot(keys[1:])
        return lambda event, item: item[slot]


@dataclass(slots=True)
class _Draft:
    """A program in the making."""

    slots: values.Slots = field(default_factory=values.Slots)
    rules: list[Rule] = field(default_factory=list)
    items: dict[str, tuple[values.Slots, list[Rule]]] = field(default_factory=dict)

    def add(self, rule: dict[str, Any], place: Place) -> None:
        for_each = rule.get("forEach")
        if for_each is None:
            self.rules.append(_rule(rule, place, _Scope(self.slots)))
            return
        path = string(for_each, place.at("forEach"))
        self.slots.slot(tuple(path.split(".")))
        item_slots, rules = self.items.setdefault(path, (values.Slots(), []))
        rules.append(_rule(rule, place, _Scope(self.slots, item_slots)))

    def program(self) -> Program:
        return Program(
            rules=tuple(sorted(self.rules, key=lambda rule: rule.emit != "terminal")),
            item_rules=tuple(
                ItemRules(self.slots.slot(tuple(path.split("."))), tuple(slots.steps), tuple(rules))
                for path, (slots, rules) in self.items.items()
            ),
            steps=tuple(self.slots.steps),
        )


def compile_programs(rules: Any, place: Place) -> dict[str, Program]:
    """Compile the rules of a table, grouped by the kind of event; raises ConnectorError for the first fault."""
    if not list_of(rules, place):
        raise place.wrong(rules, "a list of at least one rule")
    drafts: dict[str, _Draft] = {}
    for index, rule in enumerate(rules):
        here = place.at(index)
        for kind in strings(as_list(object_of(rule, here).get("on")), here.at("on")):
            drafts.setdefault(kind, _Draft()).add(rule, here)
    return {kind: draft.program() for kind, draft in drafts.items()}


def holds(conditions: tuple[Condition, ...], slots: list[Any]) -> bool:
    """Tell whether all conditions hold for the values in the slots."""
    for slot, test, wanted in conditions:  # noqa: SIM110  (a generator costs twice the loop)
        if (slots[slot] != wanted) if test is None else not test(slots[slot]):
            return False
    return True


def _rule(rule: dict[str, Any], place: Place, scope: _Scope) -> Rule:
    emit = rule.get("emit")
    if not isinstance(emit, str) or emit not in FIELDS:
        raise place.at("emit").wrong(emit, "one of " + ", ".join(FIELDS))
    object_of(rule, place, _RULE_KEYS | _OPTIONS.get(emit, frozenset()))
    match = object_of(rule.get("match", {}), place.at("match"))
    of_item = {path: wanted for path, wanted in match.items() if path[:1] == "$"}
    if of_item and scope.item is None:
        raise place.at("match").wrong(next(iter(of_item)), "a path of the event, since the rule has no forEach")
    side = string(rule["side"], place.at("side")) if "side" in rule else None
    return Rule(
        emit=emit,
        conditions=_conditions({p: c for p, c in match.items() if p not in of_item}, place.at("match"), scope.event),
        fields=_fields(rule.get("fields", {}), emit, place.at("fields"), scope),
        item_conditions=_conditions(of_item, place.at("match"), scope.item or scope.event),
        side=-1 if side is None else scope.event.slot(tuple(side.split("."))),
        sums=choice(rule, "mode", ("last", "sum"), place) == "sum",
        inclusive=_inclusive(rule.get("inclusive", {}), place.at("inclusive")),
        mirrors_reply=flag(rule, "mirrorsReply", place),
        failed_when=tuple(
            _conditions(object_of(one, here := place.at("failedWhen").at(index)), here, scope.event)
            for index, one in enumerate(list_of(rule.get("failedWhen", []), place.at("failedWhen")))
        ),
    )


def _conditions(match: Mapping[str, Any], place: Place, slots: values.Slots) -> tuple[Condition, ...]:
    compiled: list[Condition] = []
    for path, wanted in match.items():
        slot = slots.slot(tuple(key for key in path.split(".") if key != "$"))
        plain = wanted is None or isinstance(wanted, str)
        compiled.append((slot, None, wanted) if plain else (slot, _test(wanted, place.at(path)), None))
    return tuple(compiled)


_TESTS: Mapping[str, Callable[[Any, Place], values.Test]] = {
    "startsWith": lambda wanted, place: values.starts_with(tuple(strings(as_list(wanted), place))),
    "contains": lambda wanted, place: values.contains(tuple(strings(as_list(wanted), place))),
    "not": lambda wanted, place: values.negated(_equals(wanted, place)),
    "present": lambda wanted, place: values.present(truth(wanted, place)),
}


def _test(wanted: Any, place: Place) -> values.Test:
    if not isinstance(wanted, dict):
        return _equals(wanted, place)
    if len(wanted) != 1 or next(iter(wanted)) not in _TESTS:
        raise place.wrong(wanted, "a value, a list of values, or an object with one of " + ", ".join(_TESTS))
    [(word, operand)] = wanted.items()
    return _TESTS[word](operand, place.at(word))


def _equals(wanted: Any, place: Place) -> values.Test:
    options = as_list(wanted)
    if not options or not all(isinstance(one, str | int | float | bool | None) for one in options):
        raise place.wrong(wanted, "a string, a number, true, false, null, or a list of them")
    return values.equals(tuple(options))


def _fields(fields: Any, emit: str, place: Place, scope: _Scope) -> tuple[tuple[str, Reader], ...]:
    object_of(fields, place, FIELDS[emit])
    required = _REQUIRED.get(emit)
    if required and required not in fields:
        raise place.wrong(fields, f'an object with the field "{required}", which {emit} needs')
    return tuple((name, _field(spec, place.at(name), scope)) for name, spec in fields.items())


def _field(spec: Any, place: Place, scope: _Scope) -> Reader:
    if isinstance(spec, list) and spec:
        return values.first_of(tuple(_field(one, place.at(index), scope) for index, one in enumerate(spec)))
    if not isinstance(spec, dict):
        return scope.reader(spec, place)
    if "value" in spec:
        object_of(spec, place, frozenset({"value"}))
        constant = spec["value"]
        return lambda event, item: constant
    object_of(spec, place, frozenset({"path", "unit", "map", "otherwise"}))
    read = _field(spec.get("path"), place.at("path"), scope)
    if "unit" in spec:
        if not isinstance(spec["unit"], str) or spec["unit"] not in values.UNITS:
            raise place.at("unit").wrong(spec["unit"], "one of " + ", ".join(values.UNITS))
        convert = values.UNITS[spec["unit"]]
        return lambda event, item: convert(read(event, item))
    known = object_of(spec.get("map", {}), place.at("map"))
    has_other, other = "otherwise" in spec, spec.get("otherwise")

    def mapped(event: list[Any], item: list[Any]) -> Any:
        value = read(event, item)
        return known.get(value, other if has_other else value) if isinstance(value, str) else value

    return mapped


def _inclusive(spec: Any, place: Place) -> tuple[tuple[str, tuple[str, ...]], ...]:
    object_of(spec, place, FIELDS["usage"])
    for name, parts in spec.items():
        if not set(strings(parts, place.at(name))) <= FIELDS["usage"]:
            raise place.at(name).wrong(parts, "a list of fields of usage")
    return tuple((name, tuple(parts)) for name, parts in spec.items())


@dataclass(slots=True)
class Place:
    """Where in which table we are, for messages that name both."""

    source: str
    path: str = ""

    def at(self, step: str | int) -> Place:
        joined = f"{self.path}[{step}]" if isinstance(step, int) else f"{self.path}.{step}".lstrip(".")
        return Place(self.source, joined)

    def wrong(self, value: Any, wanted: str) -> ConnectorError:
        shown = json.dumps(value, ensure_ascii=False, default=str)[:80]
        return ConnectorError(f"{self.source}: {self.path or 'the table'} is {shown}; it has to be {wanted}")


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def object_of(value: Any, place: Place, keys: frozenset[str] | None = None) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise place.wrong(value, "an object")
    for key in value:
        if keys is not None and key not in keys:
            raise place.at(key).wrong(value[key], "left out: known here are " + ", ".join(sorted(keys)))
    return value


def list_of(value: Any, place: Place) -> list[Any]:
    if not isinstance(value, list):
        raise place.wrong(value, "a list")
    return value


def string(value: Any, place: Place, *, may_be_empty: bool = False) -> str:
    if not isinstance(value, str) or not (value or may_be_empty):
        raise place.wrong(value, "a string")
    return value


def strings(value: Any, place: Place) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
        raise place.wrong(value, "a string or a list of strings")
    return value


def truth(value: Any, place: Place) -> bool:
    if not isinstance(value, bool):
        raise place.wrong(value, "true or false")
    return value


def seconds(value: Any, place: Place) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise place.wrong(value, "a number of seconds, 0 or more")
    return float(value)


def flag(owner: Mapping[str, Any], name: str, place: Place) -> bool:
    return truth(owner.get(name, False), place.at(name))


def choice(owner: Mapping[str, Any], name: str, choices: tuple[str, ...], place: Place) -> str:
    value = owner.get(name, choices[0])
    if value not in choices:
        raise place.at(name).wrong(value, "one of " + ", ".join(choices))
    return str(value)
