"""`bullswarm pools history <pool>`: the use of a window against its pace, in the terminal, as SVG or as JSON."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path
from textwrap import wrap

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.errors import UsageError
from bullswarm_core.pools import WINDOW_KINDS, WindowKind
from bullswarm_core.pools.labels import Labels
from bullswarm_core.pools.settings import Settings
from bullswarm_core.quota.history import History, read_history
from bullswarm_core.store.home import write_bytes_atomic
from bullswarm_core.wire import iso
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.cli.help_format import Parser
from bullswarm_server.displays.moments import local_moment
from bullswarm_server.displays.plot import plot_lines
from bullswarm_server.displays.plot_svg import svg_of
from bullswarm_server.displays.terminal import terminal_of
from bullswarm_server.displays.text import one_line
from bullswarm_server.displays.traces import Trace, kinds_of, summary, trace_document, trace_of
from bullswarm_server.ops.pools import load_registry

SCHEMA_VERSION = "bullswarm.pools-history.v1"
_HIGHEST = 18
_BESIDE = 5
"""Lines on the screen beside the drawing, the heading and what is told below: legend, axis, command and prompt."""


@dataclass(frozen=True, slots=True)
class _Subject:
    pool_id: str
    label: str | None
    preferred: WindowKind | None

    @property
    def name(self) -> str:
        return one_line(self.label or self.pool_id)


def run(arguments: list[str], context: CommandContext) -> int:
    """Draw the kept readings of one pool; changes nothing but the file of ``--svg``.

    Raises UnknownNameError for no pool, UsageError for a window that was never read, StorageError for a file that can't
    be written.
    """
    options = _parser().parse_args(arguments)
    if options.json and options.svg == "-":
        raise UsageError("--svg - and --json both go to stdout", hint="name a file for --svg")
    now = datetime.now(UTC)
    subject = _subject(options.pool, context)
    history = read_history(context.home, subject.pool_id)
    kinds = kinds_of(history.observations)
    kind = _chosen(options.window, subject, kinds)
    trace = trace_of(history.observations, kind, now=now)
    if options.svg is not None:
        _write_svg(options.svg, trace, subject, context)
    if options.json:
        context.print_json(_document(trace, subject, history, kinds, now=now))
    elif options.svg is None:
        context.print(*_drawn(trace, subject, history, kinds, context))
    return 0


def _subject(name: str, context: CommandContext) -> _Subject:
    registry, labels, settings = load_registry(context.ops), Labels.load(context.home), Settings.load(context.home)
    pool_id = labels.resolve(name, registry.pool_ids(), why_no_pool=registry.why_no_pool)
    profile = next(each for each in registry.profiles if each.id == pool_id)
    plan = settings.subscriptions.get(pool_id)
    preferred = (plan.quota_window if plan else None) or profile.connector.quota_window
    return _Subject(pool_id, labels.of(pool_id), preferred)


def _chosen(asked: WindowKind | None, subject: _Subject, kinds: tuple[WindowKind, ...]) -> WindowKind:
    if asked is not None and kinds and asked not in kinds:
        raise UsageError(
            f"{subject.name} has no kept reading of its {asked} window",
            hint=f"there are readings of {', '.join(kinds)}",
        )
    if asked is not None:
        return asked
    if subject.preferred in kinds:
        return subject.preferred
    return kinds[0] if kinds else subject.preferred or "weekly"


def _drawn(
    trace: Trace, subject: _Subject, history: History, kinds: tuple[WindowKind, ...], context: CommandContext
) -> list[str]:
    told = _told(trace, history, kinds)
    if not trace.spans:
        return [f"{subject.name}: no reading of its {trace.kind} window is kept yet", *told]
    terminal = terminal_of(context.out, context.environ, colour=context.colour)
    heading = wrap(terminal.spelled(f"{subject.name} · {summary(trace)}"), max(20, terminal.width))
    height = min(_HIGHEST, terminal.height - _BESIDE - len(heading) - len(told))
    legend = "use ━  clock ┄" if terminal.unicode else "use *  clock ."
    return [*heading, terminal.style.faint(legend), *plot_lines(trace, terminal, height=height), *told]


def _told(trace: Trace, history: History, kinds: tuple[WindowKind, ...]) -> list[str]:
    """What the drawing alone doesn't say: how much there is, what was left out, what else could be drawn."""
    points = trace.points
    lines = []
    if len(points) == 1:
        lines.append("one reading so far: a line needs two")
    elif points:
        resets = len(trace.spans) - 1
        between = f", {resets} reset{'s' if resets > 1 else ''} between them" if resets else ""
        lines.append(f"{len(points)} readings since {local_moment(points[0].at, trace.now)}{between}")
    if trace.ahead:
        lines.append(f"{trace.ahead} from the future left out: they were stamped by a clock that was wrong")
    if history.skipped:
        lines.append(f"{history.skipped} lines of the history could not be understood")
    others = [kind for kind in kinds if kind != trace.kind]
    return [*lines, *([f"--window shows the others: {', '.join(others)}"] if others else [])]


def _document(
    trace: Trace, subject: _Subject, history: History, kinds: tuple[WindowKind, ...], *, now: datetime
) -> dict[str, object]:
    return {
        "schemaVersion": SCHEMA_VERSION,
        "at": iso(now),
        "pool": subject.pool_id,
        "poolLabel": subject.label,
        **trace_document(trace),
        "kinds": list(kinds),
        "skippedLines": history.skipped,
    }


def _write_svg(file: str, trace: Trace, subject: _Subject, context: CommandContext) -> None:
    if not trace.spans:
        raise UsageError(
            f"{subject.name} has no kept reading of its {trace.kind} window, so that there is nothing to draw",
            hint="readings are kept from the first one on: bullswarm pools",
        )
    drawing = svg_of(trace, title=f"{subject.name}: {trace.kind} use against its pace", summary=summary(trace))
    if file == "-":
        context.out.write(drawing)
        return
    path = Path(file).expanduser()
    if path.is_symlink():
        raise UsageError(
            f"--svg {file} is a link, and what it leads to would be replaced",
            hint="name the file itself, or remove the link",
        )
    # A device or a pipe would be replaced by a file.
    if not path.parent.is_dir() or (path.exists() and not path.is_file()):
        raise UsageError(
            f"--svg {file} is no file in a folder that exists", hint="name one such as use.svg, or - for stdout"
        )
    write_bytes_atomic(path, drawing.encode())
    context.note(f"drawn in {one_line(str(path))}")


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="bullswarm pools history",
        description="Draw a pool's window, its use against its pace, from the readings that were kept.",
    )
    parser.add_argument("pool", help="id or label of the pool")
    parser.add_argument("--window", choices=WINDOW_KINDS, help="which window (default: the one that paces the pool)")
    parser.add_argument("--svg", metavar="FILE", help="write the drawing to FILE instead, - for stdout")
    parser.add_argument("--json", action="store_true", help=f"print every reading as one document ({SCHEMA_VERSION})")
    return parser
