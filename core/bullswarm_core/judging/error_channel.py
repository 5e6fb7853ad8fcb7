"""The provider's error channel: the only text in which limit and sign-in phrases are read.

Rule: docs/design/judging.md, "The error channel". What the agent said, what its tools printed and the answer never get in:
an agent that quotes "You've hit your usage limit" in a good answer has not hit it.
"""

from __future__ import annotations

from bullswarm_core._dataclasses import replace
from bullswarm_core.streams.facts import ProviderError, StreamFacts, opening

# A notice is short and comes last; more would only let other output in.
STDERR_TAIL_CHARS = 4_000
CHANNEL_CHARS = 8_000


def error_channel(stream: StreamFacts, *, stderr_tail: str = "") -> str:
    """Return the text of the error channel, at most 8,000 characters; where it is too long, its end.

    From an event stream: the errors that the provider itself reported and the tail of stderr. From a CLI that prints
    plain text, or that ended before its first event: the tails of stdout and stderr.
    """
    said = frozenset(stream.openings)
    parts = [stderr_tail[-STDERR_TAIL_CHARS:].strip()]
    if not stream.event_stream or stream.lines == stream.bad_lines:
        parts.append(stream.plain_text.strip())
    parts += [_line(error) for error in stream.errors if _is_the_providers(error, said)]
    if notice := _notice_in_reply(stream):
        parts.append(notice)
    return _last(dict.fromkeys(part for part in parts if part))


def with_channel(stream: StreamFacts, *, stderr_tail: str = "") -> StreamFacts:
    """Return the facts with their ``channel`` filled in."""
    return replace(stream, channel=error_channel(stream, stderr_tail=stderr_tail))


def _is_the_providers(error: ProviderError, said: frozenset[str]) -> bool:
    """False for mere news, and for a last-word record that only repeats what the agent said."""
    if error.warning or not error.text:
        return False
    return not (error.mirrors_reply and opening(error.text) in said)


def _line(error: ProviderError) -> str:
    """Put the status before a text that doesn't show it, in the shape that the limit rules know as an error."""
    if error.status is None or str(error.status) in error.text:
        return error.text
    return f"HTTP {error.status}: {error.text}"


def _notice_in_reply(stream: StreamFacts) -> str | None:
    """Give a reply that is exactly one line from a turn that produced nothing: it is the provider speaking."""
    reply = stream.answer.strip()
    one_line = bool(reply) and len(reply.splitlines()) == 1
    return reply if one_line and not stream.worked else None


def _last(parts: dict[str, None]) -> str:
    return "\n".join(parts)[-CHANNEL_CHARS:]
