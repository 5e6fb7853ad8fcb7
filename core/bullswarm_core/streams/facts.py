"""What is known about an attempt once it has ended: how the process ended and what its stream said.

These are the only inputs of the judge. Nothing here is an opinion.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from bullswarm_core._dataclasses import dataclass

# Texts are compared by their first 60 characters, white space collapsed.
OPENING_CHARS = 60


# Why an attempt's process is no longer running, as its keeper saw it.
#   exited         by itself                        after-terminal  said its last word, then lingered past the grace
#   startup        no byte within the start-up clock  silence        no byte within the silence clock
#   no-progress    no file change within that clock   wall           the caller's time limit
#   stopped        a person or the kernel asked       limit          stopped on a provider's limit notice
#   never-started  the binary could not be run        lost           neither the keeper nor its exit record is there
EndReason = Literal[
    "exited", "after-terminal", "startup", "silence", "no-progress", "wall", "stopped", "limit", "never-started", "lost"
]
AnswerSource = Literal["terminal", "messages", "stdout", "none"]
DeniedBy = Literal["cli", "system"]


@dataclass(frozen=True, slots=True)
class ExitFacts:
    """How a worker's process ended; bytes are of its stdout, seconds are awake seconds (sleep is not counted).

    ``survivors`` counts processes of the worker that KILL had not ended when this was written; their keeper goes on.
    ``confinement_why`` says why a wanted confinement was not to be had or is weaker here; ``capture_error`` names the
    file and the reason when a disk refused output (the worker went on, ``dropped_bytes`` counts what is in no file).
    """

    reason: EndReason
    exit_code: int | None = None
    signal: str | None = None
    start_error: str | None = None
    wall_sec: float = 0.0
    silent_sec: float | None = None
    cpu_sec: float | None = None
    output_bytes: int = 0
    dropped_bytes: int = 0
    stderr_tail: str = ""
    leftovers_killed: int = 0
    survivors: int = 0
    started_at: datetime | None = None
    ended_at: datetime | None = None
    confinement: str = "none"
    confinement_why: str = ""
    capture_error: str = ""


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token counts as the provider reported them, made disjoint; None is unknown, never 0."""

    input: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    output: int | None = None
    reasoning: int | None = None


@dataclass(frozen=True, slots=True)
class ProviderError:
    """One record with which the provider itself reports a failure, its text at most 4,000 characters.

    ``fatal`` False: it went on by itself (a retry), or said so itself (``warning`` True: news, never a failure).
    ``mirrors_reply`` True: the text stood in a last-word record, where some CLIs repeat what the agent said.
    """

    text: str
    status: int | None = None
    code: str | None = None
    retry_after_sec: float | None = None
    fatal: bool = True
    warning: bool = False
    mirrors_reply: bool = False


@dataclass(frozen=True, slots=True)
class LimitSignal:
    """A machine-readable notice that a quota window refused the work (Claude's ``rate_limit_event``, say).

    ``window`` is a window kind of ours where the provider's name has one, else the provider's own name; ``scope`` is
    the model family that the window belongs to; ``used_pct`` is in percent.
    """

    window: str | None
    resets_at: datetime | None
    used_pct: float | None = None
    scope: str | None = None


@dataclass(frozen=True, slots=True)
class Denial:
    """A tool call that was refused: by the CLI and its permissions, or by the operating system.

    ``by`` "system" is read from the tool's own complaint ("Read-only file system"): with a confinement around the
    worker it was that; without one it is an ordinary failure of the tool.
    """

    tool: str
    reason: str = ""
    target: str | None = None
    by: DeniedBy = "cli"


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """Everything that one attempt's event stream said.

    ``terminal`` is True when the CLI's last-word event arrived, ``terminal_error`` when that event reports a failure.
    ``channel`` is the provider's error channel, the only text in which limit and sign-in
    phrases are read. ``answered_after_tools`` is False when the stream ends in a tool call. ``worked`` is False when
    the provider reports a turn that produced nothing.

    ``openings`` are the first 60 characters of what the agent said, white space collapsed (the first and the last 64
    texts). ``event_stream`` is False for a CLI that prints plain text. ``plain_text`` is the tail of stdout that was
    no event, at most 4,000 characters. ``denial_count`` counts the denials beyond those that are kept, too.
    ``structured`` is the answer of the CLI's own structured output as JSON text, None where it gave none.
    """

    session_id: str | None = None
    model: str | None = None
    answer: str = ""
    answer_source: AnswerSource = "none"
    terminal: bool = False
    terminal_error: bool = False
    stop_reason: str | None = None
    errors: tuple[ProviderError, ...] = ()
    limits: tuple[LimitSignal, ...] = ()
    denials: tuple[Denial, ...] = ()
    edits: tuple[str, ...] = ()
    tool_calls: int = 0
    turns: int = 0
    tokens: Tokens | None = None
    cost_usd: float | None = None
    answered_after_tools: bool = True
    worked: bool = True
    channel: str = ""
    lines: int = 0
    bad_lines: int = 0
    long_lines: int = 0
    duplicate_lines: int = 0
    gap_bytes: int = 0
    openings: tuple[str, ...] = ()
    event_stream: bool = True
    plain_text: str = ""
    denial_count: int = 0
    structured: str | None = None


def opening(text: str) -> str:
    """Return the first 60 characters of a text with white space collapsed."""
    return " ".join(text[: OPENING_CHARS * 8].split())[:OPENING_CHARS]
