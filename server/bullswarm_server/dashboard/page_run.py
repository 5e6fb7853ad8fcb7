"""Run and Step: one run with its plan, and one step of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from bullswarm_core.errors import DamagedRunError, UnknownNameError
from bullswarm_server.dashboard.actions import Action, actions_at, resume_of
from bullswarm_server.dashboard.bars import Bar, Key, Part
from bullswarm_server.dashboard.follow import RunFollower, RunView, StepTexts
from bullswarm_server.dashboard.page import Page
from bullswarm_server.dashboard.row_list import RowList
from bullswarm_server.dashboard.rows import Place
from bullswarm_server.dashboard.view_run import head_lines, run_rows
from bullswarm_server.dashboard.view_step import PARTS, step_head, step_rows
from bullswarm_server.dashboard.view_step import Part as StepPart


class FollowingPage(Page):
    """A page about one run, which it follows."""

    TAB = "runs"

    def __init__(self, follower: RunFollower) -> None:
        super().__init__()
        self.follower = follower
        self.view: RunView | None = None
        self._gone = ""
        self._drawn_from: tuple[object, ...] = ()

    def content(self) -> ComposeResult:
        """Two lines of a head, and the list."""
        yield Bar("head")
        yield Bar("standing")
        yield RowList("rows")

    def read(self) -> None:
        """Read on in the run's journal."""
        try:
            self.view = self.follower.read()
            self._gone = ""
        except (DamagedRunError, UnknownNameError) as error:
            self._gone = str(error)

    def is_new(self, *drawn_from: object) -> bool:
        """Tell whether the list would be drawn from something else than the last time."""
        before, self._drawn_from = self._drawn_from, drawn_from
        return drawn_from != before

    def show_head(self, lines: Sequence[str]) -> None:
        """Show the two lines above the list."""
        self.query_one("#head", Bar).say_line(lines[0])
        self.query_one("#standing", Bar).say_line(f"\x1b[31m{self._gone}" if self._gone else lines[1])

    def actions_of(self, node: str) -> list[Action]:
        """Return what may be done about a node of the run, and how the run itself goes on."""
        view = self.view
        if view is None:
            return []
        found = actions_at(view.state, node, view.known, folder=self.follower.folder, labels=view.labels)
        resume = resume_of(view.state, view.status)
        return [*found, *([resume] if resume else [])]


class RunPage(FollowingPage):
    """The plan by phase with live steps, the line of time, and what happened."""

    def fill(self) -> None:
        """Draw the run as it was read last."""
        if self.view is None:
            self.show_head([self.follower.run_id, "reading"])
            return
        sheet = self.sheet()
        self.show_head(head_lines(self.view, sheet))
        # What stands still is drawn once; where something runs, the clocks go on.
        runs = any(step.running is not None for step in self.view.state.steps.values())
        if runs or self.is_new(self.view.state.seq, self.view.labels.items(), sheet.width, sheet.unicode):
            self.listing.show(run_rows(self.view, sheet))

    def actions(self) -> list[Action]:
        """Return what may be done about the step under the cursor."""
        place = self.listing.place
        return self.actions_of(place.name if place else "")

    def keys(self) -> Sequence[Key]:
        """A step can be opened."""
        return (Key("enter", "open"),)

    def on_row_list_opened(self, message: RowList.Opened) -> None:
        """Open the step, with what was read of the run already."""
        message.stop()
        if message.place.kind == "step":
            self.dashboard.open_step(self.follower, message.place.name)


class StepPage(FollowingPage):
    """What a step's worker does, its output, its checks, its task."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "part(1)", show=False, priority=True),
        Binding("shift+tab", "part(-1)", show=False, priority=True),
        Binding("p", "plan", show=False),
    ]

    def __init__(self, follower: RunFollower, step: str, *, part: StepPart = "activity") -> None:
        super().__init__(follower)
        self.step = step
        self.part: StepPart = part
        self._texts = StepTexts()

    def content(self) -> ComposeResult:
        """The head, the parts, the list."""
        yield Bar("head")
        yield Bar("standing")
        yield Bar("parts")
        yield RowList("rows")

    def read(self) -> None:
        """Read on in the run and in the step's files."""
        super().read()
        if self.view is not None:
            self._texts = self.follower.texts(self.view, self.step)

    def fill(self) -> None:
        """Draw the part that is open."""
        view = self.view
        parts = [Part(f" {name} ", action=f"screen.open_part({name!r})", on=name == self.part) for name in PARTS]
        self.query_one("#parts", Bar).say(*(parts if view is None or self.step in view.state.steps else ()))
        if view is None or self.step not in view.known:
            self.show_head([self.step, "reading"])
            return
        sheet = self.sheet()
        self.show_head(step_head(view, self.step, sheet))
        if self.is_new(view.state.seq, view.labels.items(), sheet.width, self.part, self._texts):
            rows = step_rows(view, self.step, self.part, self._texts, sheet, folder=self.follower.folder)
            self.listing.show(rows)

    def actions(self) -> list[Action]:
        """Return what may be done about the step."""
        return self.actions_of(self.step)

    def keys(self) -> Sequence[Key]:
        """The parts are gone through by one key."""
        view = self.view
        plan = () if view is None or view.state.is_single else (Key("p", "plan"),)
        return (Key("tab", "next part"), *plan) if view is None or self.step in view.state.steps else plan

    def action_part(self, by: int) -> None:
        """Open the next part, or the one before."""
        self.show_part(PARTS[(PARTS.index(self.part) + by) % len(PARTS)])

    def action_open_part(self, name: StepPart) -> None:
        """Open the part that was clicked."""
        self.show_part(name)

    def action_plan(self) -> None:
        """Open the run that the step is of."""
        if self.view is not None and not self.view.state.is_single:
            self.dashboard.open_run(self.follower)

    def show_part(self, part: StepPart) -> None:
        """Open one part, from its beginning."""
        self.part = part
        self.listing.scroll_to(y=0, animate=False)
        self.redraw()

    @property
    def place(self) -> Place:
        """Where the page is."""
        return Place("step", self.follower.run_id, self.step)
