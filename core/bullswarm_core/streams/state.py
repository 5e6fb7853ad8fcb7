"""What a reader knows so far: one method per word that a rule may emit, with bounded memory, and the binding to a table."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from bullswarm_core._dataclasses import replace
from bullswarm_core.streams import values
from bullswarm_core.streams.bounded import MAX_ANSWER_CHARS, CappedText, FirstLast, RecentKeys
from bullswarm_core.streams.facts import (
    OPENING_CHARS,
    AnswerSource,
    Denial,
    LimitSignal,
    ProviderError,
    StreamFacts,
    Tokens,
    opening,
)
from bullswarm_core.streams.table import ItemRules, Program, Rule, StreamTable, holds
from bullswarm_core.streams.values import read_slots

_KEPT = 64
_KEPT_ERRORS = 32
_KEPT_EDITS = 2_000
_KEPT_CALLS = 1_024
_MAX_NAME = 300
_MAX_PATH = 4_096
# The words of the operating system's own refusals, as shells, Node, Python and Effect print them (EACCES, EPERM, EROFS).
_SYSTEM_REFUSAL = re.compile(
    r"\b(?:EACCES|EPERM|EROFS)\b|permission ?denied|operation not permitted|read-only file ?system", re.IGNORECASE
)
# How the five CLIs name the file, the command or the query that a tool works on; a file comes before a command.
_TARGET_ARGUMENTS = ("file_path", "filePath", "notebook_path", "target_file", "path", "command", "cmd", "query", "url")
_NO_CALL: tuple[str, str | None] = ("", None)
_COUNTERS = ("input", "cacheRead", "cacheWrite", "output", "reasoning")


class StreamState:
    """Takes the values that rules read from events; ``facts()`` may be asked at any time."""

    __slots__ = (
        "_answered", "_calls", "_cost", "_counters", "_denial_total", "_denials", "_edits", "_errors", "_group",
        "_has_fatal", "_has_text", "_last_answer", "_limits", "_message", "_model", "_openings", "_stop_reason",
        "_structured", "_table", "_terminal", "_terminal_error", "_terminal_group", "_tool_calls", "_tool_since_text",
        "_turn_id", "_turns", "session_id",
    )  # fmt: skip

    def __init__(self, table: StreamTable) -> None:
        self._table = table
        self.session_id: str | None = None
        self._model: str | None = None
        self._message = CappedText()
        self._group: str | None = None
        self._has_text = False
        self._tool_since_text = False
        self._answered = True
        self._openings: FirstLast[str] = FirstLast(_KEPT)
        self._calls: RecentKeys[tuple[str, str | None]] = RecentKeys(_KEPT_CALLS)
        self._tool_calls = 0
        self._edits: dict[str, None] = {}
        self._denials: dict[str, Denial] = {}
        self._denial_total = 0
        self._errors: FirstLast[ProviderError] = FirstLast(_KEPT_ERRORS)
        self._has_fatal = False
        self._limits: FirstLast[LimitSignal] = FirstLast(_KEPT_ERRORS)
        self._counters: dict[str, int] = {}
        self._cost: float | None = None
        self._turns = 0
        self._turn_id: Any = None
        self._terminal = False
        self._terminal_error = False
        self._terminal_group: str | None = None
        self._last_answer: str | None = None
        self._structured: str | None = None
        self._stop_reason: str | None = None

    # --- the words of the tables

    def session(self, got: Mapping[str, Any], rule: Rule) -> None:
        self.session_id = _name(got["id"]) or self.session_id

    def model(self, got: Mapping[str, Any], rule: Rule) -> None:
        self._model = _name(got["name"]) or self._model

    def turn(self, got: Mapping[str, Any], rule: Rule) -> None:
        identity = got.get("id")
        if identity is None or identity != self._turn_id:
            self._turns += 1
            self._turn_id = identity
            self._goes_on()

    def text(self, got: Mapping[str, Any], rule: Rule) -> None:
        said, group = got["text"], got.get("group")
        if not isinstance(said, str):
            return
        joins = (
            not self._tool_since_text if self._table.joins_consecutive else group is not None and group == self._group
        )
        if not (joins and self._has_text):
            if self._table.joins_consecutive:
                self._say(self._message.opening(OPENING_CHARS * 8))
            self._message.clear()
            self._group = group if isinstance(group, str) else None
        elif self._table.separator:
            self._message.add(self._table.separator)
        self._message.add(said)
        self._has_text, self._tool_since_text = True, False
        if not self._table.joins_consecutive:
            self._say(said)
        if said and not said.isspace():
            self._answered = True
            self._goes_on()

    def tool_call(self, got: Mapping[str, Any], rule: Rule) -> None:
        if self._is_new_call(got):
            self._answered, self._tool_since_text = False, True
            self._goes_on()

    def side_call(self, got: Mapping[str, Any]) -> None:
        """A subagent's call: work, but not the agent's own progress."""
        self._is_new_call(got)

    def tool_result(self, got: Mapping[str, Any], rule: Rule) -> None:
        if got.get("failed") and _SYSTEM_REFUSAL.search(reason := values.text(got.get("text"))):
            self._deny(_name(got.get("id")), _name(got.get("name")), _target(got), reason, by_system=True)

    def edit(self, got: Mapping[str, Any], rule: Rule) -> None:
        path = got.get("path") or (self._calls.get(_name(got.get("id")) or "") or _NO_CALL)[1]
        if isinstance(path, str) and path and len(self._edits) < _KEPT_EDITS:
            self._edits[values.clean(path[:_MAX_PATH])] = None

    def usage(self, got: Mapping[str, Any], rule: Rule) -> None:
        counters = {name: number for name in _COUNTERS if (number := values.count(got.get(name))) is not None}
        cost = values.number(got["costUsd"]) if "costUsd" in got else None
        for name, parts in rule.inclusive:
            if name in counters:
                counters[name] = max(0, counters[name] - sum(counters.get(part, 0) for part in parts))
        if not rule.sums:
            self._counters = counters or self._counters
            self._cost = self._cost if cost is None else cost
            return
        for name, number in counters.items():
            self._counters[name] = self._counters.get(name, 0) + number
        if cost is not None:
            self._cost = cost + (self._cost or 0.0)

    def denial(self, got: Mapping[str, Any], rule: Rule) -> None:
        target, reason = _target(got), values.text(got.get("reason"))
        self._deny(_name(got.get("id")), _name(got.get("tool")), target, reason, by_system=False)

    def error(self, got: Mapping[str, Any], rule: Rule) -> None:
        self.add_error(_error(got, rule))

    def limit(self, got: Mapping[str, Any], rule: Rule) -> None:
        signal = LimitSignal(
            window=_name(got.get("window")),
            resets_at=got.get("resetsAt"),
            used_pct=got.get("usedPct"),
            scope=_name(got.get("scope")),
        )
        if not self._limits.find(signal):
            self._limits.add(signal)

    def terminal(self, got: Mapping[str, Any], *, failed: bool) -> None:
        answer, turns = got.get("answer"), values.count(got.get("turns"))
        self._terminal, self._terminal_error = True, failed
        self._last_answer = answer if isinstance(answer, str) and not failed else None
        self._structured = None if failed else _json(got.get("structured"))
        self._terminal_group = _name(got.get("group"))
        self._stop_reason = _name(got.get("stopReason"))
        self._turns = self._turns if turns is None else turns
        if not failed:
            self._recover()

    # --- what the words have in common

    def add_error(self, error: ProviderError) -> None:
        """Keep an error; one that was told before is told again with what both know."""
        self._has_fatal = self._has_fatal or error.fatal
        for known in self._errors:
            if known.text == error.text:
                self._errors.replace(known, _merged(known, error))
                return
        self._errors.add(error)

    def _goes_on(self) -> None:
        """There is progress: an earlier last word was not the last, and what failed before it did not end the run."""
        if self._terminal:
            self._terminal = self._terminal_error = False
            self._last_answer = self._structured = self._terminal_group = None
        self._recover()

    def _recover(self) -> None:
        if self._has_fatal:
            for known in [error for error in self._errors if error.fatal]:
                self._errors.replace(known, replace(known, fatal=False))
            self._has_fatal = False

    def _say(self, said: str) -> None:
        # Collapsing is left to facts(): most of what is said is never compared.
        self._openings.add(said[: OPENING_CHARS * 8])

    def _is_new_call(self, got: Mapping[str, Any]) -> bool:
        identity = _name(got.get("id"))
        if identity is not None:
            if identity in self._calls:
                return False
            self._calls.put(identity, (_name(got.get("name")) or "", _target(got)))
        self._tool_calls += 1
        return True

    def _deny(
        self, identity: str | None, tool: str | None, target: str | None, reason: str, *, by_system: bool
    ) -> None:
        called, aimed_at = (self._calls.get(identity) if identity else None) or _NO_CALL
        denial = Denial(tool or called, reason, target or aimed_at, "system" if by_system else "cli")
        key = identity or f"\0{denial.tool}\0{denial.target}\0{reason}"
        known = self._denials.get(key)
        if known is not None:
            self._denials[key] = Denial(
                known.tool or denial.tool,
                known.reason or denial.reason,
                known.target or denial.target,
                "cli" if "cli" in (known.by, denial.by) else "system",
            )
            return
        self._denial_total += 1
        if len(self._denials) < _KEPT:
            self._denials[key] = denial

    # --- what is known

    def facts(self) -> StreamFacts:
        """Return what the events said so far; counts of lines are the reader's to add."""
        answer, source = self._answer()
        said = [*self._openings, self._message.opening(OPENING_CHARS * 8) if self._table.joins_consecutive else ""]
        tokens = _tokens(self._counters)
        return StreamFacts(
            session_id=self.session_id,
            model=self._model,
            answer=answer,
            answer_source=source,
            terminal=self._terminal,
            terminal_error=self._terminal_error,
            stop_reason=self._stop_reason,
            errors=tuple(self._errors),
            limits=tuple(self._limits),
            denials=tuple(self._denials.values()),
            denial_count=self._denial_total,
            edits=tuple(self._edits),
            tool_calls=self._tool_calls,
            turns=self._turns,
            tokens=tokens,
            cost_usd=self._cost,
            answered_after_tools=self._answered or bool(self._last_answer and self._last_answer.strip()),
            worked=self._tool_calls > 0
            or tokens is None
            or bool(tokens.output or tokens.reasoning)
            or tokens.output is None,
            openings=tuple(values.clean(start) for text in said if (start := opening(text))),
            structured=self._structured,
        )

    def _answer(self) -> tuple[str, AnswerSource]:
        if self._last_answer is not None:
            capped = CappedText(cap=MAX_ANSWER_CHARS)
            capped.add(self._last_answer)
            return capped.text(), "terminal" if self._last_answer else "none"
        other_group = self._terminal_group is not None and self._terminal_group != self._group
        answer = "" if other_group else self._message.text()
        return answer, "messages" if answer else "none"


def _name(value: Any) -> str | None:
    """Give an identifier as text: a non-empty string, cut at 300 characters, or a whole number."""
    if type(value) is str:
        return values.clean(value[:_MAX_NAME]) or None
    return str(value) if type(value) is int and abs(value) <= values.MAX_COUNT else None


def _json(value: Any) -> str | None:
    """Write a value as JSON again, cut far beyond what any answer may have; None for none."""
    if value is None:
        return None
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))[:MAX_ANSWER_CHARS]
    except RecursionError:
        return None


def _target(got: Mapping[str, Any]) -> str | None:
    """Give what a call aims at: the first of the usual arguments that its input holds."""
    given = got.get("input")
    if type(given) is not dict:
        return None
    for argument in _TARGET_ARGUMENTS:
        if type(value := given.get(argument)) is str and value:
            return values.clean(value[:_MAX_PATH])
    return None


def _error(got: Mapping[str, Any], rule: Rule) -> ProviderError:
    status = values.count(got.get("status"))
    wait = values.number(got.get("retryAfterSec"))
    return ProviderError(
        text=values.text(got.get("text")),
        status=status if status is not None and 100 <= status <= 599 else None,
        code=_name(got.get("code")),
        retry_after_sec=wait if wait is not None and wait >= 0 else None,
        fatal=rule.emit == "error",
        warning=rule.emit == "warning",
        mirrors_reply=rule.mirrors_reply,
    )


def _merged(known: ProviderError, again: ProviderError) -> ProviderError:
    return ProviderError(
        text=known.text,
        status=known.status if again.status is None else again.status,
        code=known.code or again.code,
        retry_after_sec=known.retry_after_sec if again.retry_after_sec is None else again.retry_after_sec,
        fatal=known.fatal or again.fatal,
        warning=known.warning and again.warning,
        mirrors_reply=known.mirrors_reply and again.mirrors_reply,
    )


def _tokens(counters: Mapping[str, int]) -> Tokens | None:
    if not counters:
        return None
    return Tokens(*(counters.get(name) for name in _COUNTERS))


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
