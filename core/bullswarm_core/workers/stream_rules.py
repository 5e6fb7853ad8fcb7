"""Compiles a table's rules into programs: per kind of event, which values to read once, and what to make of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bullswarm_core.values import dataclass, field
from bullswarm_core.workers import stream_check as check
from bullswarm_core.workers import stream_values as values

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
_KEYS = frozenset({"on", "match", "forEach", "emit", "fields", "side"})

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

    def reader(self, path: Any, place: check.Place) -> Reader:
        keys = tuple(check.string(path, place).split("."))
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

    def add(self, rule: dict[str, Any], place: check.Place) -> None:
        for_each = rule.get("forEach")
        if for_each is None:
            self.rules.append(_rule(rule, place, _Scope(self.slots)))
            return
        path = check.string(for_each, place.at("forEach"))
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


def compile_programs(rules: Any, place: check.Place) -> dict[str, Program]:
    """Compile the rules of a table, grouped by the kind of event; raises ConnectorError for the first fault."""
    if not check.list_of(rules, place):
        raise place.wrong(rules, "a list of at least one rule")
    drafts: dict[str, _Draft] = {}
    for index, rule in enumerate(rules):
        here = place.at(index)
        for kind in check.strings(check.as_list(check.object_of(rule, here).get("on")), here.at("on")):
            drafts.setdefault(kind, _Draft()).add(rule, here)
    return {kind: draft.program() for kind, draft in drafts.items()}


def holds(conditions: tuple[Condition, ...], slots: list[Any]) -> bool:
    """Tell whether all conditions hold for the values in the slots."""
    for slot, test, wanted in conditions:  # noqa: SIM110  (a generator costs twice the loop)
        if (slots[slot] != wanted) if test is None else not test(slots[slot]):
            return False
    return True


def _rule(rule: dict[str, Any], place: check.Place, scope: _Scope) -> Rule:
    emit = rule.get("emit")
    if not isinstance(emit, str) or emit not in FIELDS:
        raise place.at("emit").wrong(emit, "one of " + ", ".join(FIELDS))
    check.object_of(rule, place, _KEYS | _OPTIONS.get(emit, frozenset()))
    match = check.object_of(rule.get("match", {}), place.at("match"))
    of_item = {path: wanted for path, wanted in match.items() if path[:1] == "$"}
    if of_item and scope.item is None:
        raise place.at("match").wrong(next(iter(of_item)), "a path of the event, since the rule has no forEach")
    side = check.string(rule["side"], place.at("side")) if "side" in rule else None
    return Rule(
        emit=emit,
        conditions=_conditions({p: c for p, c in match.items() if p not in of_item}, place.at("match"), scope.event),
        fields=_fields(rule.get("fields", {}), emit, place.at("fields"), scope),
        item_conditions=_conditions(of_item, place.at("match"), scope.item or scope.event),
        side=-1 if side is None else scope.event.slot(tuple(side.split("."))),
        sums=check.choice(rule, "mode", ("last", "sum"), place) == "sum",
        inclusive=_inclusive(rule.get("inclusive", {}), place.at("inclusive")),
        mirrors_reply=check.flag(rule, "mirrorsReply", place),
        failed_when=tuple(
            _conditions(check.object_of(one, here := place.at("failedWhen").at(index)), here, scope.event)
            for index, one in enumerate(check.list_of(rule.get("failedWhen", []), place.at("failedWhen")))
        ),
    )


def _conditions(match: Mapping[str, Any], place: check.Place, slots: values.Slots) -> tuple[Condition, ...]:
    compiled: list[Condition] = []
    for path, wanted in match.items():
        slot = slots.slot(tuple(key for key in path.split(".") if key != "$"))
        plain = wanted is None or isinstance(wanted, str)
        compiled.append((slot, None, wanted) if plain else (slot, _test(wanted, place.at(path)), None))
    return tuple(compiled)


_TESTS: Mapping[str, Callable[[Any, check.Place], values.Test]] = {
    "startsWith": lambda wanted, place: values.starts_with(tuple(check.strings(check.as_list(wanted), place))),
    "contains": lambda wanted, place: values.contains(tuple(check.strings(check.as_list(wanted), place))),
    "not": lambda wanted, place: values.negated(_equals(wanted, place)),
    "present": lambda wanted, place: values.present(check.truth(wanted, place)),
}


def _test(wanted: Any, place: check.Place) -> values.Test:
    if not isinstance(wanted, dict):
        return _equals(wanted, place)
    if len(wanted) != 1 or next(iter(wanted)) not in _TESTS:
        raise place.wrong(wanted, "a value, a list of values, or an object with one of " + ", ".join(_TESTS))
    [(word, operand)] = wanted.items()
    return _TESTS[word](operand, place.at(word))


def _equals(wanted: Any, place: check.Place) -> values.Test:
    options = check.as_list(wanted)
    if not options or not all(isinstance(one, str | int | float | bool | None) for one in options):
        raise place.wrong(wanted, "a string, a number, true, false, null, or a list of them")
    return values.equals(tuple(options))


def _fields(fields: Any, emit: str, place: check.Place, scope: _Scope) -> tuple[tuple[str, Reader], ...]:
    check.object_of(fields, place, FIELDS[emit])
    required = _REQUIRED.get(emit)
    if required and required not in fields:
        raise place.wrong(fields, f'an object with the field "{required}", which {emit} needs')
    return tuple((name, _field(spec, place.at(name), scope)) for name, spec in fields.items())


def _field(spec: Any, place: check.Place, scope: _Scope) -> Reader:
    if isinstance(spec, list) and spec:
        return values.first_of(tuple(_field(one, place.at(index), scope) for index, one in enumerate(spec)))
    if not isinstance(spec, dict):
        return scope.reader(spec, place)
    if "value" in spec:
        check.object_of(spec, place, frozenset({"value"}))
        constant = spec["value"]
        return lambda event, item: constant
    check.object_of(spec, place, frozenset({"path", "unit", "map", "otherwise"}))
    read = _field(spec.get("path"), place.at("path"), scope)
    if "unit" in spec:
        if not isinstance(spec["unit"], str) or spec["unit"] not in values.UNITS:
            raise place.at("unit").wrong(spec["unit"], "one of " + ", ".join(values.UNITS))
        convert = values.UNITS[spec["unit"]]
        return lambda event, item: convert(read(event, item))
    known = check.object_of(spec.get("map", {}), place.at("map"))
    has_other, other = "otherwise" in spec, spec.get("otherwise")

    def mapped(event: list[Any], item: list[Any]) -> Any:
        value = read(event, item)
        return known.get(value, other if has_other else value) if isinstance(value, str) else value

    return mapped


def _inclusive(spec: Any, place: check.Place) -> tuple[tuple[str, tuple[str, ...]], ...]:
    check.object_of(spec, place, FIELDS["usage"])
    for name, parts in spec.items():
        if not set(check.strings(parts, place.at(name))) <= FIELDS["usage"]:
            raise place.at(name).wrong(parts, "a list of fields of usage")
    return tuple((name, tuple(parts)) for name, parts in spec.items())
