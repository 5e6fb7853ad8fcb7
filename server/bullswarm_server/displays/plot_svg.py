"""A trace as one self-contained SVG file: no script, no font, no link; sizes in user units, text escaped."""

from __future__ import annotations

from datetime import datetime, timedelta
from html import escape

from bullswarm_server.displays.moments import local_day, local_moment
from bullswarm_server.displays.text import one_line
from bullswarm_server.displays.traces import Span, Trace

WIDTH, HEIGHT = 800, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 24, 48, 40
_USE, _PACE, _GRID, _INK, _PAPER = "#15803d", "#64748b", "#e2e8f0", "#0f172a", "#ffffff"
_TICKS = 7


def svg_of(trace: Trace, *, title: str, summary: str) -> str:
    """Draw ``trace``, which has at least one reading; ``title`` and ``summary`` are plain text."""
    frame = _Frame(trace)
    heading, told = escape(_plain_xml(title)), escape(_plain_xml(summary))
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
            ' role="img" font-family="system-ui, sans-serif" font-size="12">',
            f"<title>{heading}</title>",
            f"<desc>{told}</desc>",
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{_PAPER}"/>',
            f'<text x="{_LEFT}" y="20" fill="{_INK}" font-size="15" font-weight="600">{heading}</text>',
            f'<text x="{_LEFT}" y="38" fill="{_PACE}">{told}</text>',
            *frame.grid(),
            *(line for span in trace.spans for line in _span(span, frame)),
            *frame.now_mark(),
            "</svg>",
            "",
        ]
    )


class _Frame:
    """Where a moment and a percentage lie in the picture."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.length = max(trace.ends - trace.begins, timedelta(minutes=1))
        self.top = max(100.0, *(point.used for point in trace.points))

    def x(self, moment: datetime) -> float:
        return round(_LEFT + (moment - self.trace.begins) / self.length * (WIDTH - _LEFT - _RIGHT), 1)

    def y(self, percent: float) -> float:
        return round(HEIGHT - _BOTTOM - percent / self.top * (HEIGHT - _TOP - _BOTTOM), 1)

    def grid(self) -> list[str]:
        lines = []
        for percent in range(0, int(self.top) + 1, 25 if self.top < 200 else 100):
            y = self.y(percent)
            lines.append(f'<line x1="{_LEFT}" y1="{y}" x2="{WIDTH - _RIGHT}" y2="{y}" stroke="{_GRID}"/>')
            lines.append(f'<text x="{_LEFT - 8}" y="{y + 4}" text-anchor="end" fill="{_PACE}">{percent}%</text>')
        for tick in range(_TICKS):
            moment = self.trace.begins + self.length * (tick / (_TICKS - 1))
            long = self.length > timedelta(days=6)
            label = local_day(moment) if long else local_moment(moment, self.trace.now)
            anchor = "start" if tick == 0 else "end" if tick == _TICKS - 1 else "middle"
            y = HEIGHT - _BOTTOM + 20
            lines.append(f'<text x="{self.x(moment)}" y="{y}" text-anchor="{anchor}" fill="{_PACE}">{label}</text>')
        return lines

    def now_mark(self) -> list[str]:
        x = self.x(self.trace.now)
        return [
            f'<line x1="{x}" y1="{_TOP}" x2="{x}" y2="{HEIGHT - _BOTTOM}" stroke="{_INK}" stroke-dasharray="1 3">'
            "<title>now</title></line>"
        ]


def _span(span: Span, frame: _Frame) -> list[str]:
    lines = []
    if span.opens is not None and span.resets is not None:
        lines.append(
            f'<line x1="{frame.x(span.opens)}" y1="{frame.y(0)}" x2="{frame.x(span.resets)}" y2="{frame.y(100)}"'
            f' stroke="{_PACE}" stroke-width="1.5" stroke-dasharray="5 4"><title>the window\'s clock</title></line>'
        )
    places = [(frame.x(point.at), frame.y(point.used)) for point in span.points]
    if len(places) > 1:
        points = " ".join(f"{x},{y}" for x, y in places)
        lines.append(f'<polyline points="{points}" fill="none" stroke="{_USE}" stroke-width="2.5"/>')
    x, y = places[-1]
    lines.append(f'<circle cx="{x}" cy="{y}" r="4" fill="{_USE}"/>')
    return lines


def _plain_xml(text: str) -> str:
    """Return ``text`` on one line, without the letters that XML 1.0 knows no way to write."""
    return "".join(char for char in one_line(text) if not 0xD800 <= ord(char) <= 0xDFFF and char not in "\ufffe\uffff")
