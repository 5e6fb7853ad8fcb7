"""What a script may say: one turn for each answer that the agent asks for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.agents.scripted_model.request import ModelRequest


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens that one answer reports. `input` counts every token read, those from the cache among them."""

    input: int = 100
    cached: int = 30
    output: int = 40
    reasoning: int = 5


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call, in the vocabulary of the agent that will run it; Codex's tools of a namespace are `namespace.name`."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """Text, then tool calls; either may be missing, and an answer with neither is the empty answer.

    `headers` are sent beside it: vendors tell the state of their windows there.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fail:
    """An HTTP error. The agent's retries find the same turn again, so it goes on failing."""

    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HangBeforeHeaders:
    """Take the request and never answer."""


@dataclass(frozen=True, slots=True)
class HangMidStream:
    """Begin an answer with this text and never end it."""

    after: str


@dataclass(frozen=True, slots=True)
class DropConnection:
    """Close the connection before the first byte of an answer."""


@dataclass(frozen=True, slots=True)
class Later:
    """Wait this many seconds, then do the turn."""

    seconds: float
    turn: "Turn"


Turn = Answer | Fail | HangBeforeHeaders | HangMidStream | DropConnection | Later
Script = Sequence[Turn | Callable[[ModelRequest], Turn]]

SCRIPT_IS_OVER = Answer(text="The script is over.")


def say(text: str, *, usage: Usage | None = None, headers: Mapping[str, str] | None = None) -> Answer:
    """Answer with text, which ends the agent's turn."""
    return Answer(text=text, usage=usage or Usage(), headers=dict(headers or {}))


def say_nothing() -> Answer:
    """Answer with no content at all."""
    return Answer()


def call_tool(name: str, /, **arguments: Any) -> Answer:
    """Call one tool."""
    return Answer(calls=(ToolCall(name, arguments),))


def call_tools(*calls: ToolCall | Answer, text: str = "") -> Answer:
    """Call several tools in one answer, after an optional text; calls may be given as answers that hold calls."""
    flat = [call for given in calls for call in (given.calls if isinstance(given, Answer) else (given,))]
    return Answer(text=text, calls=tuple(flat))


def fail(status: int, body: Any = None, headers: Mapping[str, str] | None = None) -> Fail:
    """Fail this request and every one after it."""
    return Fail(status, body, dict(headers or {}))


def hang_before_headers() -> HangBeforeHeaders:
    """Never send a byte."""
    return HangBeforeHeaders()


def hang_mid_stream(after: str = "Let me look") -> HangMidStream:
    """Send this partial text, then nothing more."""
    return HangMidStream(after)


def drop_connection() -> DropConnection:
    """Close the connection without an answer."""
    return DropConnection()


def later(seconds: float, turn: Turn) -> Later:
    """Do this turn after a wait."""
    return Later(seconds, turn)


def turn_for(request: ModelRequest, script: Script) -> Turn:
    """Pick the turn that answers this request, from the request alone.

    An agent that asks again after the last turn gets that turn once more (it retries a failure, or nudges after an
    empty answer), save that a tool call is not repeated, which would never end.
    """
    if not script:
        return SCRIPT_IS_OVER
    chosen = script[min(request.turn, len(script) - 1)]
    turn = chosen(request) if callable(chosen) else chosen
    past_the_end = request.turn >= len(script)
    if past_the_end and isinstance(turn, Answer) and turn.calls:
        return SCRIPT_IS_OVER
    return turn
