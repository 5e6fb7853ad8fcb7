"""What stands between a key and its effect: the command that it equals, a word that is asked for, and yes or no."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from bullswarm_core._dataclasses import dataclass, field
from bullswarm_server.dashboard.ink import safe


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked before something happens: the ``command`` that it equals for an answer, and what is to be answered.

    ``asks`` None asks for yes or no alone. ``wrong`` says what is wrong with an answer, nothing when it is right.
    """

    title: str
    command: Callable[[str], str]
    told: tuple[str, ...] = ()
    asks: str | None = None
    given: str = ""
    wrong: Callable[[str], str] = field(default=lambda answer: "")


class Ask(ModalScreen[str | None]):
    """Shows a question; its result is the answer, or None when nothing is to happen."""

    DEFAULT_CSS = """
    Ask { align: center middle; }
    Ask > Vertical { width: 90%; max-width: 96; height: auto; max-height: 90%; padding: 0 1; background: $panel;
        border: round $primary; overflow-y: auto; }
    Ask Static { width: 100%; height: auto; }
    Ask #title { text-style: bold; }
    Ask #command { color: $text-accent; margin: 1 0; }
    Ask #wrong { color: $text-error; }
    Ask #keys { color: $foreground-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", show=False),
        Binding("enter", "agree", show=False),
    ]

    def __init__(self, question: Question) -> None:
        super().__init__()
        self.question = question

    def compose(self) -> ComposeResult:
        """Lay the question out."""
        question = self.question
        with Vertical():
            yield Static(safe(question.title), id="title", markup=False)
            for line in question.told:
                yield Static(safe(line), markup=False)
            if question.asks is not None:
                yield Input(question.given, placeholder=safe(question.asks), id="answer")
            yield Static("", id="command", markup=False)
            yield Static("", id="wrong", markup=False)
            yield Static("enter runs it   esc leaves it", id="keys", markup=False)

    def on_mount(self) -> None:
        """Show the command from the start."""
        if self.question.asks is not None:
            self.query_one(Input).focus()
        self._tell(self.question.given)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Keep the command in step with the answer."""
        self._tell(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter in the field agrees."""
        self.action_agree()

    def action_agree(self) -> None:
        """Let it happen, unless something is wrong with the answer."""
        answer = self._answer()
        if wrong := self.question.wrong(answer):
            self.query_one("#wrong", Static).update(safe(wrong))
        else:
            self.dismiss(answer)

    def action_leave(self) -> None:
        """Let nothing happen."""
        self.dismiss(None)

    def _answer(self) -> str:
        return self.query_one(Input).value.strip() if self.question.asks is not None else ""

    def _tell(self, answer: str) -> None:
        self.query_one("#command", Static).update(safe(self.question.command(answer.strip())))
        self.query_one("#wrong", Static).update("")
