"""What the journal keeps of an attempt, typed: how it was launched, what was measured, and how it was judged.

This is the only module that knows the JSON keys of these records. Each record keeps the JSON object that it was read from:
documents for people and agents show that object itself, so a key of a newer version is shown although nothing here reads it.
A missing key and a null read as the default; a value of the wrong type is damage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from bullswarm_core._dataclasses import dataclass, field
from bullswarm_core.errors import DamagedRunError
from bullswarm_core.wire import parse_iso

if TYPE_CHECKING:
    from bullswarm_core.judging.model import WorkerClocks

Document = Mapping[str, Any]
Part = TypeVar("Part")

# The finished event repeats these beside its judgement, and a verdict names them first.
_REPEATED = frozenset({"ok", "why", "failureKind", "backAt", "backAtSource"})


@dataclass(frozen=True, slots=True)
class Record:
    """Base of all records; ``document`` is the JSON object that the record was read from."""

    document: Document = field(default_factory=dict, repr=False)

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON object that the journal stores."""
        return dict(self.document)


@dataclass(frozen=True, slots=True)
class Problem:
    """One error of an answer or of checked data; ``path`` is a JSON pointer, None where the error names no place."""

    words: str
    path: str | None = None

    @property
    def line(self) -> str:
        """The problem on one line."""
        return self.words if self.path is None else f"{self.path}: {self.words}"


@dataclass(frozen=True, slots=True)
class CheckResult(Record):
    """The result of one check of a step; ``status`` is ``passed``, ``failed`` or ``not-run``.

    ``log`` is a path. ``fault`` is ``check`` where the check itself is wrong.
    """

    cmd: str | None = None
    file: str | None = None
    status: str | None = None
    why: str | None = None
    exit: int | None = None
    tail: str = ""
    log: str | None = None
    errors: tuple[Problem, ...] = ()
    fault: str | None = None

    @property
    def name(self) -> str:
        """The command, or the file whose schema was checked."""
        return self.cmd or f"schema of {self.file}"


@dataclass(frozen=True, slots=True)
class AnswerReport(Record):
    """The check of a typed answer; ``file`` is the path of what was given."""

    ok: bool = False
    file: str | None = None
    why: str | None = None
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class EarlyReturn(Record):
    """What a worker listed as not done; ``items`` are the first of ``count``."""

    count: int = 0
    items: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JudgementRecord(Record):
    """The judgement of an attempt with all that was found in its work.

    ``changed_files`` are the first names, relative to the folder of work; ``changed_file_count`` counts all of them.
    ``evidence_results`` None means that no check ran.
    """

    back_at: datetime | None = None
    back_at_source: str | None = None
    excerpt: str | None = None
    changed_files: tuple[str, ...] = ()
    changed_file_count: int | None = None
    commits: tuple[str, ...] = ()
    answer: Any = None
    answer_check: AnswerReport | None = None
    diff_stat: tuple[str, ...] = ()
    diff_file: str | None = None
    evidence_results: tuple[CheckResult, ...] | None = None
    returned_early: EarlyReturn | None = None
    outside_blockers: tuple[str, ...] = ()

    def details(self) -> dict[str, Any]:
        """Return the JSON object without the keys that the finished event or the head of a verdict repeats."""
        return {key: value for key, value in self.document.items() if key not in _REPEATED}

    @classmethod
    def from_wire(cls, document: object) -> JudgementRecord:
        """Read the judgement of a finished attempt. Raises DamagedRunError."""
        read = _Reading("judgement", document)
        return cls(
            document=read.document,
            back_at=read.time("backAt"),
            back_at_source=read.text("backAtSource"),
            excerpt=read.text("excerpt"),
            changed_files=read.texts("changedFiles"),
            changed_file_count=read.count("changedFileCount"),
            commits=read.texts("commits"),
            answer=read.document.get("answer"),
            answer_check=read.part("answerCheck", _answer_report),
            diff_stat=read.texts("diffStat"),
            diff_file=read.text("diffFile"),
            evidence_results=read.parts("evidenceResults", _check_result),
            returned_early=read.part("returnedEarly", _early_return),
            outside_blockers=read.texts("outsideBlockers"),
        )


@dataclass(frozen=True, slots=True)
class MetaRecord(Record):
    """What was measured of an attempt. ``wall_sec`` are seconds, ``out_bytes`` the size of the output file.

    ``worked`` False: the pool refused before any work; None where that is not on record. ``usage`` holds token counts by
    kind, without those that the provider did not report.
    """

    end_reason: str | None = None
    worked: bool | None = None
    stalled: bool = False
    wall_sec: float | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    out_bytes: int | None = None
    usage: Mapping[str, int] | None = None
    confinement: str | None = None

    @property
    def usage_document(self) -> Document | None:
        """The token counts as the journal stores them, with a null for each that is unknown."""
        found: Document | None = self.document.get("usage")
        return found

    @classmethod
    def from_wire(cls, document: object) -> MetaRecord:
        """Read the measurements of a finished attempt. Raises DamagedRunError."""
        read = _Reading("meta", document)
        return cls(
            document=read.document,
            end_reason=read.text("endReason"),
            worked=read.flag("worked"),
            stalled=bool(read.flag("stalled")),
            wall_sec=read.number("wallSec"),
            started_at=read.time("startedAt"),
            ended_at=read.time("endedAt"),
            out_bytes=read.count("outBytes"),
            usage=read.part("usage", _counts),
            confinement=read.text("confinement"),
        )


@dataclass(frozen=True, slots=True)
class LaunchRecord(Record):
    """How a CLI was launched, with nothing secret in it. ``guarded`` are fingerprints of the person's settings, by path.

    The four clocks are in seconds; None for one that was off. ``runs.workspace`` reads ``workspace``.
    """

    command: str | tuple[str, ...] | None = None
    confinement: str = "none"
    billing: str | None = None
    reasoning: Any = None
    notes: tuple[str, ...] = ()
    startup_sec: float | None = None
    silence_sec: float | None = None
    no_progress_sec: float | None = None
    wall_sec: float | None = None
    guarded: Document = field(default_factory=dict)
    structured_output: bool = False
    workspace: Document | None = None

    def clocks(self) -> WorkerClocks:
        """Return the clocks under which the worker ran."""
        # Only a kernel asks; whoever folds a journal to list runs does not load the rules of judging.
        from bullswarm_core.judging.model import WorkerClocks

        return WorkerClocks(self.startup_sec, self.silence_sec, self.no_progress_sec, self.wall_sec)

    @classmethod
    def from_wire(cls, document: object) -> LaunchRecord:
        """Read how an attempt was launched. Raises DamagedRunError."""
        read = _Reading("launch", document)
        clocks = _Reading("launch.clocks", read.mapping("clocks") or {})
        return cls(
            document=read.document,
            command=read.command("command"),
            confinement=read.text("confinement") or "none",
            billing=read.text("billing"),
            reasoning=read.document.get("reasoning"),
            notes=read.texts("notes"),
            startup_sec=clocks.number("startupSec") or None,
            silence_sec=clocks.number("silenceSec") or None,
            no_progress_sec=clocks.number("noProgressSec") or None,
            wall_sec=clocks.number("wallSec") or None,
            guarded=read.mapping("guarded") or {},
            structured_output=bool(read.flag("structuredOutput")),
            workspace=read.mapping("workspace"),
        )


class _Reading:
    """Reads one JSON object; ``where`` names it in the message of a DamagedRunError."""

    def __init__(self, where: str, document: object) -> None:
        if not isinstance(document, Mapping):
            raise DamagedRunError(f"{where} must be a JSON object, not {type(document).__name__}")
        self.document: Document = document
        self._where = where

    def text(self, key: str) -> str | None:
        value = self.document.get(key)
        return value if value is None or isinstance(value, str) else self._fail(key, "text", value)

    def flag(self, key: str) -> bool | None:
        value = self.document.get(key)
        return value if value is None or isinstance(value, bool) else self._fail(key, "true or false", value)

    def number(self, key: str) -> float | None:
        value = self.document.get(key)
        fits = isinstance(value, (int, float)) and not isinstance(value, bool)
        return value if value is None or fits else self._fail(key, "a number", value)

    def count(self, key: str) -> int | None:
        value = self.document.get(key)
        fits = isinstance(value, int) and not isinstance(value, bool)
        return value if value is None or fits else self._fail(key, "a whole number", value)

    def time(self, key: str) -> datetime | None:
        value = self.text(key)
        if value is None:
            return None
        try:
            # A time at the edge of the calendar parses and has no form in UTC.
            return parse_iso(value).astimezone(UTC)
        except (ValueError, OverflowError) as error:
            raise self._damage(key, "an ISO-8601 time", value) from error

    def texts(self, key: str) -> tuple[str, ...]:
        value = self._list(key)
        if value is None:
            return ()
        return tuple(item if isinstance(item, str) else self._fail(key, "a list of texts", item) for item in value)

    def mapping(self, key: str) -> Document | None:
        value = self.document.get(key)
        return value if value is None or isinstance(value, Mapping) else self._fail(key, "a JSON object", value)

    def command(self, key: str) -> str | tuple[str, ...] | None:
        value = self.document.get(key)
        return value if value is None or isinstance(value, str) else self.texts(key)

    def lines(self, key: str) -> str:
        value = self.document.get(key)
        return (self.text(key) or "") if value is None or isinstance(value, str) else "\n".join(self.texts(key))

    def part(self, key: str, read: Callable[[str, object], Part]) -> Part | None:
        value = self.document.get(key)
        return None if value is None else read(f"{self._where}.{key}", value)

    def parts(self, key: str, read: Callable[[str, object], Part]) -> tuple[Part, ...] | None:
        value = self._list(key)
        if value is None:
            return None
        return tuple(read(f"{self._where}.{key}[{place}]", item) for place, item in enumerate(value))

    def _list(self, key: str) -> list[Any] | tuple[Any, ...] | None:
        value = self.document.get(key)
        return value if value is None or isinstance(value, (list, tuple)) else self._fail(key, "a list", value)

    def _fail(self, key: str, wanted: str, value: object) -> Any:
        raise self._damage(key, wanted, value)

    def _damage(self, key: str, wanted: str, value: object) -> DamagedRunError:
        shown = repr(value)
        shown = shown if len(shown) <= 80 else f"{shown[:79]}…"
        return DamagedRunError(f"{self._where}.{key} must be {wanted}, not {shown}")


def _check_result(where: str, document: object) -> CheckResult:
    read = _Reading(where, document)
    return CheckResult(
        document=read.document,
        cmd=read.text("cmd"),
        file=read.text("file"),
        status=read.text("status"),
        why=read.text("why"),
        exit=read.count("exit"),
        tail=read.lines("tail"),
        log=read.text("log"),
        errors=read.parts("errors", _problem) or (),
        fault=read.text("fault"),
    )


def _answer_report(where: str, document: object) -> AnswerReport:
    read = _Reading(where, document)
    return AnswerReport(
        document=read.document,
        ok=bool(read.flag("ok")),
        file=read.text("file"),
        why=read.text("why"),
        problems=read.parts("problems", _problem) or (),
    )


def _early_return(where: str, document: object) -> EarlyReturn:
    read = _Reading(where, document)
    return EarlyReturn(document=read.document, count=read.count("count") or 0, items=read.texts("items"))


def _problem(where: str, document: object) -> Problem:
    if isinstance(document, str):
        return Problem(document)
    read = _Reading(where, document)
    return Problem(read.text("problem") or read.text("message") or "", read.text("path") or "#")


def _counts(where: str, document: object) -> Mapping[str, int]:
    read = _Reading(where, document)
    return {key: count for key in read.document if (count := read.count(key)) is not None}
