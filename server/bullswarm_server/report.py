"""`report.html` of a workflow: one page that needs nothing else, with what ran where and when and what came of it.

It has no script and asks for nothing outside of itself; its policy forbids both. All that a worker, a check or a person wrote
is text in it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from string import Template
from typing import Any
from urllib.parse import quote

from bullswarm_core.pools.labels import Labels
from bullswarm_core.runs.attempt_result import CheckResult, JudgementRecord
from bullswarm_core.runs.run_files import RunFolder
from bullswarm_core.runs.state import AttemptState, RunState
from bullswarm_core.store.home import Home, write_bytes_atomic
from bullswarm_core.wire import iso
from bullswarm_server.displays.report_text import block, elapsed, inline, tag
from bullswarm_server.displays.report_timeline import timeline

FILE_NAME = "report.html"
# The largest page takes a fraction of a second; a kernel waits no longer than this for a disk that hangs.
PATIENCE_SEC = 10.0
_TEMPLATE = Path(__file__).with_name("report_template.html")
# What a page can hold and still open at once; the files have the rest.
_MOST_ATTEMPTS = 20
_MOST_FILES = 50
_MOST_TEXT = 4_000
_TONES = {
    "completed": "good", "succeeded": "good", "passed": "good", "partial": "bad", "failed": "bad", "blocked": "bad",
    "cancelled": "bad", "running": "work", "pending": "faint",
}  # fmt: skip

Document = Mapping[str, Any]


def write_report(folder: RunFolder, state: RunState, result: Document, *, labels: Labels) -> Path:
    """Write the page into the run's folder and return its path. Raises StorageError when the disk refuses it."""
    path = folder.path / FILE_NAME
    write_bytes_atomic(path, report_page(folder, state, result, labels=labels).encode("utf-8", "replace"))
    return path


def write_at_end(
    home: Home, state: RunState, *, say: Callable[[str], None], patience_sec: float = PATIENCE_SEC
) -> None:
    """Write the page of a workflow that has its verdict; whatever goes wrong is said and changes nothing of the run.

    A disk that hangs holds nobody up for longer than ``patience_sec``: the verdict stands in the journal before this.
    """
    finished = state.finished
    if state.is_single or finished is None or not home.root.is_dir():
        return

    def write() -> None:
        try:
            folder = RunFolder.of(home, state.created.run_id)
            write_report(folder, state, finished.verdict, labels=Labels.load(home))
        except Exception as error:
            say(f"no {FILE_NAME}: {type(error).__name__}: {error}")

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    writer.join(patience_sec)
    if writer.is_alive():
        say(f"no {FILE_NAME} within {patience_sec:g} s · write it with: bullswarm runs report {state.created.short_id}")


def report_page(folder: RunFolder, state: RunState, result: Document, *, labels: Labels) -> str:
    """Return the page for a run and its result document."""
    outcome = str(result["status"])
    template = Template(_TEMPLATE.read_text("utf-8"))
    return template.substitute(
        title=inline(state.created.goal) or inline(state.created.short_id),
        tone=tone_of(outcome),
        outcome=inline(outcome),
        reason=inline(labels.in_text(str(result.get("reason") or ""))),
        facts=" · ".join(_facts(state)),
        body="\n".join(_body(folder, state, result, labels)),
    )


def tone_of(status: str) -> str:
    """Return the colour class of a status or an outcome."""
    return _TONES.get(status, "warn")


def _facts(state: RunState) -> Iterator[str]:
    created = state.created
    yield f"run {inline(created.short_id)} ({inline(created.run_id)})"
    yield inline(created.cwd)
    yield f"{inline(iso(state.created_at))} → {inline(iso(state.finished_at)) if state.finished_at else 'not over'}"


def _body(folder: RunFolder, state: RunState, result: Document, labels: Labels) -> Iterator[str]:
    yield _tiles(state, result)
    picture = timeline(state, labels=labels)
    if picture:
        yield "<h2>Timeline</h2>"
        yield f'<div class="wide">{picture}</div>'
    yield "<h2>Steps</h2>"
    phase = None
    for step in result["steps"]:
        if step.get("phase") and step["phase"] != phase:
            phase = step["phase"]
            yield tag("p", inline(phase), "faint")
        yield _step(folder, state, step, labels)
    yield from _nodes(result)
    yield from _your_call(result)
    yield from _list("Messages", [str(said) for said in result.get("unreadSteering") or ()])


def _tiles(state: RunState, result: Document) -> str:
    totals = result.get("totals") or {}
    steps = result["steps"]
    done = sum(step["status"] == "succeeded" for step in steps)
    shown = [(f"{done} of {len(steps)}", "steps succeeded"), (totals.get("attempts", 0), "attempts")]
    shown.append((elapsed(float(totals.get("minutes") or 0) * 60), "of workers' time"))
    if state.finished_at is not None:
        shown.append((elapsed((state.finished_at - state.created_at).total_seconds()), "from start to end"))
    tokens = totals.get("tokens")
    if isinstance(tokens, Mapping):
        shown.append((f"{sum(int(tokens.get(key) or 0) for key in tokens):,}", "tokens measured"))
    tiles = "".join(f"<div><b>{inline(str(number))}</b> {inline(word)}</div>" for number, word in shown)
    return f'<div class="tiles">{tiles}</div>'


def _step(folder: RunFolder, state: RunState, step: Document, labels: Labels) -> str:
    known = state.steps[step["id"]]
    status = str(step["status"])
    head = [tag("b", inline(step["id"])), tag("span", inline(status), tone_of(status))]
    if step.get("label") and step["label"] != step["id"]:
        head.append(inline(step["label"]))
    head.append(tag("span", inline(f"{step.get('lane')}/{step.get('effort')}"), "faint"))
    head += [inline(step["proof"])] if step.get("proof") else []
    parts = [f"<summary>{' · '.join(head)}</summary>"]
    waits = state.plan.waits.get(step["id"], ())
    parts += [tag("p", f"after {inline(', '.join(waits))}", "faint")] if waits else []
    if step.get("why") and status != "succeeded":
        parts.append(tag("p", inline(labels.in_text(str(step["why"]))), "bad"))
    if step.get("accepted"):
        parts.append(tag("p", f"accepted by choice: {inline(str(step['accepted']))}", "warn"))
    shown = known.attempts[-_MOST_ATTEMPTS:]
    if len(known.attempts) > len(shown):
        parts.append(tag("p", f"the newest {len(shown)} of {len(known.attempts)} attempts", "faint"))
    parts += [_attempts(shown, labels)] if shown else []
    parts += [_outcome(folder, attempt) for attempt in shown]
    opened = " open" if status in ("failed", "cancelled") else ""
    return f"<details{opened}>{''.join(parts)}</details>"


def _attempts(attempts: Iterable[AttemptState], labels: Labels) -> str:
    rows = "".join(_attempt_row(attempt, labels) for attempt in attempts)
    head = "".join(f"<th>{word}</th>" for word in ("attempt", "pool", "model", "began", "time", "came to"))
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _attempt_row(attempt: AttemptState, labels: Labels) -> str:
    picked, finished = attempt.picked, attempt.finished
    word = "running" if finished is None else "succeeded" if finished.ok else str(finished.failure_kind or "failed")
    tone = "work" if finished is None else "good" if finished.ok else "bad"
    why = "" if finished is None or finished.ok else f" {inline(labels.in_text(finished.why))}"
    cells = [
        inline(f"{picked.step}-{picked.ordinal}"),
        inline(labels.shown(picked.pool)),
        inline(picked.model or "the CLI's own"),
        inline(iso(attempt.launched_at)) if attempt.launched_at else "never",
        inline(elapsed(seconds_of(attempt))),
        tag("span", inline(word), tone) + why,
    ]
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def seconds_of(attempt: AttemptState, *, now: datetime | None = None) -> float | None:
    """Return how long an attempt took, as its keeper measured or as the journal tells."""
    if attempt.finished is not None and attempt.finished.meta.wall_sec is not None:
        return float(attempt.finished.meta.wall_sec)
    end = attempt.finished_at or now
    return (end - attempt.launched_at).total_seconds() if attempt.launched_at and end else None


def _outcome(folder: RunFolder, attempt: AttemptState) -> str:
    finished = attempt.finished
    if finished is None:
        return ""
    judgement = finished.judgement
    name = inline(f"{attempt.picked.step}-{attempt.picked.ordinal}")
    parts = [_evidence(item, folder) for item in judgement.evidence_results or ()]
    if judgement.answer is not None:
        answer = json.dumps(judgement.answer, ensure_ascii=False, indent=2)
        parts.append(f"<p>answer of {name}</p>{block(answer, most=_MOST_TEXT)}")
    files = judgement.changed_files
    if files:
        more = [f"and {len(files) - _MOST_FILES} more"] if len(files) > _MOST_FILES else []
        items = "".join(f"<li><code>{inline(path)}</code></li>" for path in [*files[:_MOST_FILES], *more])
        parts.append(f"<p>files changed by {name}</p><ul>{items}</ul>")
    links = [link for label, path in _files(judgement, finished.output_file) if (link := _link(folder, label, path))]
    excerpt = judgement.excerpt
    if links or excerpt:
        parts.append(f"<p>output of {name}{': ' if links else ''}{' · '.join(links)}</p>")
    parts += [block(excerpt, most=_MOST_TEXT)] if excerpt else []
    return "".join(parts)


def _files(judgement: JudgementRecord, output: str | None) -> Iterator[tuple[str, str]]:
    if output:
        yield "reply", output
    if judgement.diff_file is not None:
        yield "diff", judgement.diff_file
    if judgement.answer_check is not None and judgement.answer_check.file is not None:
        yield "answer", judgement.answer_check.file


def _link(folder: RunFolder, label: str, path: str) -> str:
    """Link a file that lies beside the page; any other one is only named."""
    place = Path(path)
    if place.parent == folder.path:
        return f'<a href="./{quote(place.name, safe="")}">{inline(label)}</a>'
    return f"{inline(label)} <code>{inline(path)}</code>"


def _evidence(item: CheckResult, folder: RunFolder) -> str:
    status = str(item.status)
    tone = {"passed": "good", "failed": "bad"}.get(status, "warn")
    why = f" → {inline(item.why)}" if item.why else ""
    link = f" · {_link(folder, 'log', item.log)}" if item.log is not None else ""
    line = f"<p>evidence {tag('span', inline(status), tone)} <code>{inline(item.name)}</code>{why}{link}</p>"
    return line + (block(item.tail, most=_MOST_TEXT) if item.tail and status != "passed" else "")


def _nodes(result: Document) -> Iterator[str]:
    gates, loops = result.get("gates") or (), result.get("loops") or ()
    if not gates and not loops:
        return
    yield "<h2>Gates and loops</h2><ul>"
    for gate in gates:
        note = f" · {inline(str(gate['note']))}" if gate.get("note") else ""
        yield f"<li>gate <b>{inline(gate['id'])}</b> {_status(gate)}{note}</li>"
    for loop in loops:
        rounds = inline(f"round {loop.get('round')} of {loop.get('maxRounds')}")
        yield f"<li>loop <b>{inline(loop['id'])}</b> {_status(loop)} · {rounds}</li>"
    yield "</ul>"


def _status(node: Document) -> str:
    return tag("span", inline(str(node.get("outcome") or node["status"])), tone_of(str(node["status"])))


def _your_call(result: Document) -> Iterator[str]:
    options = (result.get("handback") or {}).get("options") or {}
    if not options:
        return
    rows = "".join(
        f"<tr><th>{inline(name)}</th><td><code>{inline(str(value))}</code></td></tr>" for name, value in options.items()
    )
    yield f"<h2>Your call</h2><table><tbody>{rows}</tbody></table>"


def _list(title: str, texts: list[str]) -> Iterator[str]:
    if texts:
        yield f"<h2>{inline(title)}</h2><ul>{''.join(f'<li>{inline(text)}</li>' for text in texts)}</ul>"
