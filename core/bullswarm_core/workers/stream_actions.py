"""Binds a table's programs to what a reader knows: kind of event → what to do with an event of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bullswarm_core.workers.stream_rules import ItemRules, Program, Rule, holds
from bullswarm_core.workers.stream_state import StreamState
from bullswarm_core.workers.stream_table import StreamTable
from bullswarm_core.workers.stream_values import read_slots

Apply = Callable[[dict[str, Any]], None]
_Emit = Callable[[list[Any], list[Any]], None]
_NO_ITEM: list[Any] = []


def bind(table: StreamTable, state: StreamState) -> dict[str, Apply]:
    """Return what to do with an event, by its kind."""
    return {kind: _apply(program, state) for kind, program in table.programs.items()}


def _apply(program: Program, state: StreamState) -> Apply:
    steps = program.steps
    plain = tuple((rule.conditions, _emitter(rule, state)) for rule in program.rules)
    of_items = tuple(_each(item_rules, state) for item_rules in program.item_rules)

    def apply(event: dict[str, Any]) -> None:
        # read_slots() and holds(), here and not called: this runs for every line and every rule of it.
        slots: list[Any] = [event]
        for parent, key in steps:
            value = slots[parent]
            slots.append(value.get(key) if type(value) is dict else None)
        for conditions, emit in plain:
            for slot, test, wanted in conditions:
                if (slots[slot] != wanted) if test is None else not test(slots[slot]):
                    break
            else:
                emit(slots, _NO_ITEM)
        for each in of_items:
            each(slots)

    return apply


def _each(item_rules: ItemRules, state: StreamState) -> Callable[[list[Any]], None]:
    position, steps = item_rules.items, item_rules.steps
    bound = tuple((rule.conditions, rule.item_conditions, _emitter(rule, state)) for rule in item_rules.rules)

    def each(slots: list[Any]) -> None:
        items = slots[position]
        if type(items) is not list:
            return
        for item in items:
            item_slots = read_slots(steps, item)
            for conditions, item_conditions, emit in bound:
                if holds(item_conditions, item_slots) and holds(conditions, slots):
                    emit(slots, item_slots)

    return each


def _emitter(rule: Rule, state: StreamState) -> _Emit:
    fields, side, failed_when = rule.fields, rule.side, rule.failed_when
    method = state.error if rule.emit in ("error", "retry", "warning") else getattr(state, rule.emit)

    def emit(slots: list[Any], item: list[Any]) -> None:
        method({name: read(slots, item) for name, read in fields}, rule)

    def emit_unless_side(slots: list[Any], item: list[Any]) -> None:
        if slots[side] is None:
            emit(slots, item)
        elif rule.emit == "tool_call":
            state.side_call({name: read(slots, item) for name, read in fields})

    def emit_terminal(slots: list[Any], item: list[Any]) -> None:
        failed = any(holds(one, slots) for one in failed_when)
        state.terminal({name: read(slots, item) for name, read in fields}, failed=failed)

    if rule.emit == "terminal":
        return emit_terminal
    return emit if side < 0 else emit_unless_side
