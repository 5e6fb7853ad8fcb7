"""`bullswarm workflow watch` on a terminal: the run drawn in place until it ends or waits for somebody."""

from __future__ import annotations

import time
from collections.abc import Callable

from bullswarm_core.dispatch.services import utc_now
from bullswarm_core.pools.labels import Labels
from bullswarm_core.reports.watch import Notice, standing
from bullswarm_core.runs.state import RunState
from bullswarm_core.runs.status import statuses
from bullswarm_server.cli.screen import draw_frame, own_screen, wake_ups
from bullswarm_server.cli.workflow_follow import Watch
from bullswarm_server.displays.terminal import terminal_of
from bullswarm_server.displays.text import Style
from bullswarm_server.displays.workflow import result_lines
from bullswarm_server.displays.workflow_live import Scene, live_lines
from bullswarm_server.ops.runs import document_of

# The clocks of a frame show seconds.
_FRAME_SEC = 1.0
_FOOT = "Ctrl-C leaves the run alone"


def follow_live(watch: Watch) -> int:
    """Draw the run once a second; what it came to stays on the terminal."""
    try:
        with own_screen(watch.context), wake_ups() as wait:
            drawing = _Drawing(watch, wait)
            drawing.draw()
            watch.wait(drawing.look)
            watch.read()
    except KeyboardInterrupt:
        return watch.leave()
    return _ended(watch)


def _ended(watch: Watch) -> int:
    context, state = watch.context, watch.state
    if state.is_single:
        watch.print_outcome()
    else:
        labels = Labels.load(context.home)
        context.print(
            *result_lines(document_of(context.home, state), labels=labels, style=Style(colour=context.colour))
        )
    return watch.exit_code()


class _Drawing:
    """Keeps what stands open from look to look, and draws."""

    def __init__(self, watch: Watch, wait: Callable[[float], bool]) -> None:
        self._watch = watch
        self._wait = wait
        self._troubles: list[Notice] = []
        self._signs: list[Notice] = []
        self._next_look = 0.0

    def look(self, _: RunState) -> bool:
        """Draw again when a second has passed or the window has another size; the run's end is somebody else's to see."""
        if time.monotonic() >= self._next_look or self._wait(0):
            self.draw()
        return False

    def draw(self) -> None:
        """Read on and draw one frame."""
        watch = self._watch
        self._next_look = time.monotonic() + _FRAME_SEC
        found = watch.read()
        running = {(life.step, life.ordinal) for life in watch.lives}
        signs = [notice for notice in found if notice.kind in ("stale", "stall")]
        self._troubles = standing([*self._troubles, *(notice for notice in found if notice not in signs)], watch.state)
        self._signs = [
            sign for sign in (*self._signs, *signs) if any(sign.facts["attempt"] == f"{s}-{o}" for s, o in running)
        ]
        context, state = watch.context, watch.state
        terminal = terminal_of(context.out, context.environ, colour=context.colour)
        scene = Scene(
            state=state,
            known=statuses(state),
            lives={life.step: life for life in watch.lives},
            troubles=[*self._troubles, *self._signs],
            labels=Labels.load(context.home),
            now=utc_now(),
        )
        draw_frame(context, live_lines(scene, terminal, foot=_FOOT))
