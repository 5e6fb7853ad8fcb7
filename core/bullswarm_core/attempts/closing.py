"""From the end of a worker to the record of its attempt: judged, then checked where its step has evidence.

What the worker left behind is looked at once, at its end, and kept while the checks run: a kernel that takes over runs the
checks again, but does not blame the worker for what came later.
Rule: docs/design/runs.md, "Attempts".
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bullswarm_core._dataclasses import replace
from bullswarm_core.attempts.checks import Checks, start_checks
from bullswarm_core.attempts.conclusion import Conclusion
from bullswarm_core.dispatch.services import Services
from bullswarm_core.errors import StateError
from bullswarm_core.judging.evidence import failure_words, outcome
from bullswarm_core.judging.model import Note, StopKind
from bullswarm_core.judging.prose import not_done, outside_blockers, returned_early
from bullswarm_core.judging.verdict import Judgement
from bullswarm_core.program.model import Program, Step, files_of
from bullswarm_core.runs.run_files import AttemptFiles
from bullswarm_core.store.home import read_json, write_json
from bullswarm_core.trees.snapshot import outside_of
from bullswarm_core.wire import from_wire, to_wire

# The sections stand at the end of a reply; nobody lists a MiB of what is not done.
_REPLY_END = 1024 * 1024
# Killing a tree takes some milliseconds; a process that hangs in the kernel is not waited for longer.
_STOP_SEC = 10.0


class Closing:
    """The last stretch of one attempt. ``step`` is None for a `run`, which has no evidence and no sections."""

    def __init__(
        self, services: Services, files: AttemptFiles, step: Step | None, *, cwd: str, one_more_round: bool
    ) -> None:
        self._services = services
        self._files = files
        self._step = step
        self._cwd = cwd
        self._one_more_round = one_more_round
        self._conclusion: Conclusion | None = None
        self._checks: Checks | None = None

    def poll(self, conclude: Callable[[], Conclusion | None], *, stop: StopKind | None) -> Conclusion | None:
        """Return what the attempt comes to, None while it is looked at or its checks run.

        ``conclude`` says how it stands before them, None while that is worked out. ``stop`` says what it means that it is to
        end now.
        """
        if self._conclusion is None:
            self._conclusion = self._kept() or conclude()
        if self._conclusion is None:
            return None
        if self._step is None:
            return self._conclusion
        if not self._step.evidence or not self._conclusion.judgement.ok:
            return self._with_sections(self._conclusion, {"evidenceResults": None} if self._step.evidence else {})
        if self._checks is None:
            self._checks = self._start(self._step, self._conclusion)
        if stop is not None:
            self._checks.stop()
        if not self._checks.done:
            return None
        results = self._checks.results()
        judged = self._judged(self._conclusion.judgement, results, stop or "cancelled")
        return self._with_sections(replace(self._conclusion, judgement=judged), {"evidenceResults": results})

    def recorded(self) -> None:
        """Forget what was kept for another kernel: the journal has it now."""
        self._files.concluded.unlink(missing_ok=True)

    def break_off(self) -> None:
        """End the checks for good."""
        if self._checks is not None:
            self._checks.stop()
            self._checks.wait(_STOP_SEC)

    def _start(self, step: Step, conclusion: Conclusion) -> Checks:
        write_json(self._files.concluded, _document(conclusion))
        return start_checks(
            step.evidence,
            cwd=self._cwd,
            environ=self._services.environ,
            files=self._files,
            run_folder=self._files.folder,
            step_id=step.id,
            deliverable_paths=tuple(files_of(step)) or conclusion.edited,
            left_out=outside_of(self._cwd, self._services.home),
        )

    def _judged(self, judgement: Judgement, results: Sequence[Mapping[str, Any]], stop: StopKind) -> Judgement:
        came_to = outcome(results)
        if came_to == "passed":
            return judgement
        if came_to == "stopped":
            return replace(judgement, ok=False, failure_kind=stop, why=f"{stop}: its checks were stopped on request")
        words = failure_words(results)
        if came_to == "failed" and self._one_more_round:
            return replace(judgement, why=f"{judgement.why} · checked, not passed: {words}")
        return replace(judgement, ok=False, failure_kind="failed-evidence", why=words)

    def _with_sections(self, conclusion: Conclusion, more: Mapping[str, Any]) -> Conclusion:
        items = not_done(_end_of(conclusion.output_file))
        said: dict[str, Any] = {}
        if conclusion.judgement.ok:
            said["returnedEarly"] = returned_early(items)
        else:
            said["outsideBlockers"] = outside_blockers(items)
        return replace(conclusion, parts={**conclusion.parts, **more, **said})

    def _kept(self) -> Conclusion | None:
        """Return what an earlier kernel concluded before it began the checks; None where none did."""
        try:
            document = read_json(self._files.concluded)
            return _conclusion(document) if document is not None else None
        except (StateError, ValueError, KeyError, TypeError):
            return None


def one_more_round(program: Program, step: Step) -> bool:
    """Tell whether a failed check of the step only means another round of its loop."""
    return step.loop is not None and program.loop(step.loop).until_by_evidence(step.id)


def _document(conclusion: Conclusion) -> dict[str, Any]:
    return {
        "judgement": to_wire(conclusion.judgement),
        "meta": conclusion.meta,
        "outputFile": conclusion.output_file,
        "parts": dict(conclusion.parts),
        "edited": list(conclusion.edited),
    }


def _conclusion(document: Mapping[str, Any]) -> Conclusion:
    judgement = from_wire(Judgement, document["judgement"])
    notes = tuple(from_wire(Note, note) for note in document["judgement"].get("notes", ()))
    return Conclusion(
        judgement=replace(judgement, notes=notes),
        meta=document["meta"],
        output_file=document["outputFile"],
        parts=document["parts"],
        edited=tuple(document["edited"]),
    )


def _end_of(output_file: str | None) -> str:
    """Return the end of the saved final reply; nothing where there is none, or it can't be read."""
    if output_file is None:
        return ""
    try:
        with Path(output_file).open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _REPLY_END))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""
