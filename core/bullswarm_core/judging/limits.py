"""What a provider refused: a spent window, a rate, a sign-in or a model, told from its records first, then its words.

A machine-readable record beats a sentence; quota comes before throttle, throttle before sign-in. An overload (5xx, "at
capacity") is no limit of the account: the verdict calls it the provider's failure.

Rule: docs/design/judging.md, "Limit phrases".
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any

from bullswarm_core._dataclasses import dataclass, replace
from bullswarm_core.fast.text import one_line
from bullswarm_core.judging.phrases import (
    LONGEST_NOTICE,
    NO_SIGNATURES,
    flat,
    has_window_wording,
    kind_of_code,
    kind_of_line,
    scope_named,
    window_named,
)
from bullswarm_core.judging.reset_times import DEFAULT_HORIZON, parse_reset
from bullswarm_core.pools.connector import Signatures
from bullswarm_core.pools.model import WindowKind
from bullswarm_core.quota.notice import Notice, NoticeKind
from bullswarm_core.streams.facts import LimitSignal, ProviderError, StreamFacts

# A spent window never comes back within seconds: a shorter wait is the vendor's spacing of retries, not a reset.
_SHORTEST_RESET = timedelta(minutes=1)
# A throttle that names more than 2 minutes goes back to the caller instead of waiting.
PATIENCE = timedelta(minutes=2)
# No reset lies further ahead than its window is long; the slack is for clocks that differ.
_SLACK = timedelta(minutes=15)
_LENGTHS: dict[WindowKind, timedelta] = {
    "5h": timedelta(hours=5), "daily": timedelta(days=1), "weekly": timedelta(days=7), "monthly": timedelta(days=31),
}  # fmt: skip
# Time zones lie whole half hours apart (but for a few quarter hours); clock times are stated to the minute.
_HALF_HOUR = 1800.0
_STATED_TO = 120.0
_RANK: dict[NoticeKind, int] = {"quota": 0, "throttle": 1, "auth": 2, "model-not-in-plan": 3}
# A mirrored reply is known by its first 60 characters.
_OPENING = 60
_ACCOUNT_WORDS = ("authenti", "api key", "sign in", "log in", "login", "token", "credential", "permission", "account")
# Only records up to 4,000 characters are read.
_LONGEST_RECORD = 4000
_RECORD_KEYS = ("code", "type", "name", "message", "error", "detail", "data", "result")


@dataclass(frozen=True, slots=True)
class Reader:
    """How one pool's notices are read: ``written_at`` anchors their times, ``zone`` belongs to stamps without one.

    ``failed`` says that the stream declared a failure (sign-in phrases count only then). ``horizon`` bounds a reset of
    a window that the notice does not name.
    """

    written_at: datetime
    signatures: Signatures = NO_SIGNATURES
    zone: tzinfo | str = UTC
    horizon: timedelta = DEFAULT_HORIZON
    failed: bool = False

    def reset(self, text: str, window: WindowKind | None) -> datetime | None:
        """Return the moment that ``text`` names, within the length of ``window`` where it is known."""
        horizon = _LENGTHS[window] + _SLACK if window else self.horizon
        return parse_reset(text, written_at=self.written_at, zone=self.zone, horizon=horizon)

    def bounded(self, moment: datetime | None, window: WindowKind | None) -> datetime | None:
        """Return a reset that a signal named; None for one further ahead than its window, or any, can be."""
        horizon = _LENGTHS[window or "monthly"] + _SLACK
        return moment if moment is not None and moment - self.written_at <= horizon else None

    def after(self, seconds: float | None) -> datetime | None:
        """Return the end of a wait of ``seconds`` named by the provider; None for none or one out of bounds."""
        if seconds is None or not 0 <= seconds <= _LENGTHS["monthly"].total_seconds():
            return None
        return self.written_at + timedelta(seconds=seconds)


def classify_notice(text: str, reader: Reader, *, in_record: bool = False) -> Notice | None:
    """Return the gravest refusal that the lines of ``text`` (an error channel) state, or None.

    Of several lines of the gravest kind, one that names its reset wins. JSON records among the lines are read by their
    messages; ``in_record`` says that the whole text is the message of one.
    """
    best: Notice | None = None
    for line, following, of_record in _lines(text):
        found = _notice_of_line(line, following, reader, in_record=in_record or of_record)
        if found and (best is None or _weight(found) < _weight(best)):
            best = found
    return best


def notice_of(stream: StreamFacts, reader: Reader) -> Notice | None:
    """Return what the provider refused in this attempt: its signal, then its error records, then its words.

    A reply that is one line accepted as a limit notice, from a turn that produced nothing, is the provider's notice.
    """
    said = _said_by_errors(stream, reader) or classify_notice(_final_words(stream), reader)
    signalled = _notice_of_signals(stream.limits, said, reader)
    if signalled is not None:
        return signalled
    if said is not None:
        return said
    answer = stream.answer.strip()
    if not stream.worked and answer and "\n" not in answer:
        reply = _notice_of_line(answer, "", replace(reader, failed=False))
        return replace(reply, said_by="reply") if reply else None
    return None


def notice_of_error(error: ProviderError, reader: Reader) -> Notice | None:
    """Return what one error record refuses: by its code and HTTP status first, by its words where they say more."""
    if error.warning:
        return None
    words = classify_notice(error.text, replace(reader, failed=reader.failed or error.fatal), in_record=True)
    kind = _kind_of_error(error, words)
    if kind is None:
        return None
    notice = words if words and words.kind == kind else _noted(kind, error.text, reader)
    return replace(_with_wait(notice, error.retry_after_sec, reader), said_by="error")


def early_stop(stream: StreamFacts, reader: Reader) -> Notice | None:
    """Return the refusal for which a running attempt may be stopped at once, or None while it may still come good.

    A spent window stops it, even where the CLI itself goes on retrying for hours; a throttle only where the provider
    named a wait beyond ``PATIENCE``. Sign-in phrases never stop a worker, and plain text never does: there the
    notice and an answer that quotes one look alike. Rule: docs/design/judging.md, "Stopping early".
    """
    if stream.terminal or not stream.event_stream:
        return None
    found = notice_of(stream, replace(reader, failed=False))
    if found is None or found.said_by == "reply":
        return None
    if found.kind == "quota":
        return found
    patient = found.resets_at is None or found.resets_at - reader.written_at <= PATIENCE
    return None if patient or found.kind != "throttle" else found


def _said_by_errors(stream: StreamFacts, reader: Reader) -> Notice | None:
    """Return the gravest refusal among the error records; of those that a fatal one followed, only a spent window."""
    ended = any(_is_end(error) for error in stream.errors)
    found = []
    for error in stream.errors:
        notice = notice_of_error(_without_reply(error, stream), reader)
        if notice and (_is_end(error) or not ended or notice.kind == "quota"):
            found.append(notice)
    return min(found, key=_weight, default=None)


def _final_words(stream: StreamFacts) -> str:
    """Return the error channel without the retries that a fatal error followed: they are not why it ended."""
    if not any(_is_end(error) for error in stream.errors):
        return stream.channel
    passing = tuple(error.text for error in stream.errors if not error.fatal and error.text)
    return "\n".join(line for line in stream.channel.splitlines() if not (passing and line.endswith(passing)))


def _is_end(error: ProviderError) -> bool:
    return error.fatal and not error.warning


def _notice_of_signals(limits: tuple[LimitSignal, ...], said: Notice | None, reader: Reader) -> Notice | None:
    """Turn the last signal that names a window or a reset into a notice, in the provider's own words where it had some.

    A signal that names neither proves no window: Claude Code sends one for a plain 429, with "(not your usage limit)".
    """
    signal = next((s for s in reversed(limits) if s.window or s.resets_at), None)
    if signal is None:
        return Notice("throttle", "rate limited by the provider", said_by="signal") if limits and said is None else None
    window = window_named(signal.window or "")
    spoken = said if said is not None and said.kind == "quota" else None
    # A worker's own commands can write into the stream; what they say there must not keep the pool out for years.
    named = reader.bounded(signal.resets_at, window)
    return Notice(
        "quota",
        spoken.line if spoken else f"the provider refused the work: {signal.window or 'usage'} window spent",
        window=window or (spoken.window if spoken else None),
        resets_at=named or (spoken.resets_at if spoken else None),
        reset_source="named" if named or (spoken and spoken.resets_at) else None,
        scope=signal.scope or scope_named(signal.window or "") or (spoken.scope if spoken else None),
        said_by="signal",
    )


def _without_reply(error: ProviderError, stream: StreamFacts) -> ProviderError:
    """Blank a text that only repeats what the agent said in a turn that worked."""
    mirrored = error.mirrors_reply and stream.worked and " ".join(error.text.split())[:_OPENING] in stream.openings
    return replace(error, text="") if mirrored else error


def _kind_of_error(error: ProviderError, words: Notice | None) -> NoticeKind | None:
    by_code = kind_of_code(error.code)
    spoken = words.kind if words else None
    if "quota" in (by_code, spoken) or error.status == 402:
        return "quota"
    if error.status is not None and error.status >= 500:
        return None
    if error.status == 429 or "throttle" in (by_code, spoken):
        return "quota" if has_window_wording(flat(error.text)) else "throttle"
    if "model-not-in-plan" in (by_code, spoken):
        return "model-not-in-plan"
    # A 403 alone also means a country or a policy; it is a sign-in failure only where code or words say so.
    return "auth" if error.status == 401 or "auth" in (by_code, spoken) or _refused_account(error) else None


def _refused_account(error: ProviderError) -> bool:
    return error.status == 403 and any(word in flat(error.text) for word in _ACCOUNT_WORDS)


def _notice_of_line(line: str, following: str, reader: Reader, *, in_record: bool = False) -> Notice | None:
    def kind_of(this: str, after: str) -> NoticeKind | None:
        return kind_of_line(this, after, signatures=reader.signatures, failed=reader.failed, in_record=in_record)

    kind = kind_of(line, following)
    if kind is None:
        return None
    return _noted(kind, line, reader, "" if kind_of(following, "") else following)


def _noted(kind: NoticeKind, line: str, reader: Reader, following: str = "") -> Notice:
    shown = one_line(line)[:LONGEST_NOTICE]
    if kind not in ("quota", "throttle"):
        return Notice(kind, shown)
    window = (window_named(line) or window_named(following)) if kind == "quota" else None
    resets_at = reader.reset(line, window) or (reader.reset(following, window) if following else None)
    scope = scope_named(line) if kind == "quota" else None
    return Notice(kind, shown, window, resets_at, "named" if resets_at else None, scope)


def _with_wait(notice: Notice, seconds: float | None, reader: Reader) -> Notice:
    """Add the wait of ``seconds`` that a header named, where the words name no reset or name it in another zone."""
    waited = reader.after(seconds)
    if waited is None or notice.kind not in ("quota", "throttle"):
        return notice
    if notice.kind == "quota" and waited - reader.written_at < _SHORTEST_RESET:
        return notice
    if notice.resets_at is None or _is_zone_apart(notice, waited, reader):
        return replace(notice, resets_at=waited, reset_source="named")
    return notice


def _is_zone_apart(notice: Notice, waited: datetime, reader: Reader) -> bool:
    """Tell whether a stamp without a zone lies whole half hours from the wait: it was written in another zone."""
    if notice.resets_at is None or reader.reset(notice.line, notice.window) == notice.resets_at == replace(
        reader, zone=timezone(timedelta(minutes=7))
    ).reset(notice.line, notice.window):
        return False
    apart = abs((notice.resets_at - waited).total_seconds())
    beside = min(apart % _HALF_HOUR, -apart % _HALF_HOUR)
    return apart > _HALF_HOUR / 2 and beside <= _STATED_TO


def _weight(notice: Notice) -> tuple[int, bool]:
    return _RANK[notice.kind], notice.resets_at is None


def _lines(text: str) -> Iterator[tuple[str, str, bool]]:
    """Yield each line with the one after it; a JSON record counts as its own messages, which are marked True."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for index, line in enumerate(lines):
        at = line.find("{")
        record = _record(line[at:]) if at >= 0 and len(line) <= _LONGEST_RECORD else None
        if record is not None:
            yield from ((message, "", True) for message in _messages(record))
        yield line, lines[index + 1] if index + 1 < len(lines) else "", False


def _record(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _messages(record: dict[str, Any], depth: int = 0) -> Iterator[str]:
    for key in _RECORD_KEYS:
        value = record.get(key)
        if isinstance(value, str):
            yield from value.splitlines()
        elif isinstance(value, dict) and depth < 4:
            yield from _messages(value, depth + 1)
