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

from collections.abc import Mapping
from typing import Any

from bullswarm_core.values import dataclass
from bullswarm_core.workers import stream_check as check
from bullswarm_core.workers import stream_values as values
from bullswarm_core.workers.stream_rules import Program, compile_programs

SCHEMA_VERSION = "bullswarm.stream.v1"
_KEYS = frozenset(
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
    place = check.Place(source)
    check.object_of(table, place, _KEYS)
    if table.get("schemaVersion") != SCHEMA_VERSION:
        raise place.at("schemaVersion").wrong(table.get("schemaVersion"), f'"{SCHEMA_VERSION}"')
    skips = [
        _skip(one, place.at("skip").at(index))
        for index, one in enumerate(check.list_of(table.get("skip", []), place.at("skip")))
    ]
    repeats = check.choice(table, "identicalLines", ("duplicate", "distinct"), place)
    stderr = [
        _stderr(one, place.at("stderr").at(index))
        for index, one in enumerate(check.list_of(table.get("stderr", []), place.at("stderr")))
    ]
    return StreamTable(
        kind=values.first_path(check.strings(check.as_list(table.get("kind")), place.at("kind"))),
        programs=compile_programs(table.get("rules"), place.at("rules")),
        event_id=_event_id(table, place),
        identical_lines_are_duplicates=repeats == "duplicate",
        skip=tuple(one.start for one in skips if not one.unless),
        skip_unless=tuple(one for one in skips if one.unless),
        joins_consecutive=check.choice(table, "join", ("group", "consecutive"), place) == "consecutive",
        separator=check.string(table.get("separator", ""), place.at("separator"), may_be_empty=True),
        stderr=tuple(one for one in stderr if isinstance(one, StderrDenial)),
        stderr_retries=tuple(one for one in stderr if isinstance(one, StderrRetry)),
    )


def _event_id(table: Mapping[str, Any], place: check.Place) -> values.Getter | None:
    return values.first_path([check.string(table["eventId"], place.at("eventId"))]) if "eventId" in table else None


def _skip(rule: Any, place: check.Place) -> Skip:
    if not isinstance(rule, dict):
        return Skip(check.string(rule, place).encode(), ())
    check.object_of(rule, place, frozenset({"start", "unless"}))
    unless = check.strings(rule.get("unless"), place.at("unless"))
    return Skip(check.string(rule.get("start"), place.at("start")).encode(), tuple(one.encode() for one in unless))


def _stderr(rule: Any, place: check.Place) -> StderrDenial | StderrRetry:
    is_retry = isinstance(rule, dict) and "waitAfter" in rule
    own = {"waitAfter", "textAfter", "leastWaitSec"} if is_retry else {"tool"}
    check.object_of(rule, place, frozenset({"marker", "words", *own}))
    marker = check.string(rule.get("marker"), place.at("marker"))
    words = tuple(check.strings(rule.get("words"), place.at("words")))
    if not is_retry:
        return StderrDenial(marker=marker, words=words, tool=check.string(rule.get("tool"), place.at("tool")))
    return StderrRetry(
        marker=marker,
        words=words,
        wait_after=check.string(rule.get("waitAfter"), place.at("waitAfter")),
        text_after=check.string(rule.get("textAfter"), place.at("textAfter")),
        least_wait_sec=check.seconds(rule.get("leastWaitSec"), place.at("leastWaitSec")),
    )
