"""`bullswarm provider probe`: the CLI runs once with a task that has one right answer, as a worker would run.

It is the only verb besides a run that uses quota, and it says so. The recursion limit does not hold for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bullswarm_core.errors import NoPoolError
from bullswarm_core.fast.tree import temporary_folder
from bullswarm_core.launch.plan import LaunchPlan, plan_launch, shown_command
from bullswarm_core.pools import Rung
from bullswarm_core.pools.connector import PoolProfile
from bullswarm_core.process.child import ChildResult, run_child
from bullswarm_core.process.environment import DEPTH_VARIABLE
from bullswarm_core.process.secrets import is_secret
from bullswarm_core.streams.reader import StreamReader, with_stderr
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.displays.text import one_line, plain

SCHEMA_VERSION = "bullswarm.providerProbe.v1"
TASK = "Reply with the single word PONG and nothing else. Use no tool.\n"
ANSWER = "PONG"
_EXCERPT = 400


def probe(profile: PoolProfile, *, timeout_sec: float, as_json: bool, context: CommandContext) -> int:
    """Run the CLI in an empty folder; 0 when it answered, 1 when it didn't. NoPoolError: the pool is out."""
    if why := profile.why_not():
        raise NoPoolError(f"{profile.id}: {why}")
    with temporary_folder("bullswarm-probe-") as folder:
        cwd, private_tmp, task = Path(folder) / "work", Path(folder) / "tmp", Path(folder) / "task.md"
        cwd.mkdir()
        private_tmp.mkdir()
        task.write_text(TASK, encoding="utf-8")
        environ = {name: value for name, value in context.environ.items() if name != DEPTH_VARIABLE}
        plan = _plan(profile, str(cwd.resolve()), str(task), str(private_tmp), environ)
        result = run_child(
            plan.argv,
            cwd=plan.cwd,
            environ=plan.environment,
            timeout_sec=timeout_sec,
            input=TASK.encode() if plan.stdin_file else None,
        )
    document = _document(profile, plan, result, timeout_sec)
    if as_json:
        context.print_json(document)
    else:
        _print(document, context)
    return 0 if document["ok"] else 1


def _plan(profile: PoolProfile, cwd: str, task: str, private_tmp: str, environ: Mapping[str, str]) -> LaunchPlan:
    # Without a keeper nobody confines it, so the CLI's own permissions must hold it; the folder is empty in any case.
    tiers = profile.connector.tiers
    rung = tiers.get("low") or next(iter(tiers.values()), Rung())
    return plan_launch(
        profile, rung=rung, lane="analyze", cwd=cwd, prompt_file=task, private_tmp=private_tmp, environ=environ,
        can_confine=False,
    )  # fmt: skip


def _document(profile: PoolProfile, plan: LaunchPlan, result: ChildResult, timeout_sec: float) -> dict[str, Any]:
    reader = StreamReader(plan.stream, stdout_is_answer=not plan.stream)
    reader.feed(result.stdout)
    stderr = plain(result.stderr.decode("utf-8", errors="replace"))
    facts = with_stderr(reader.finish(), stderr)
    answered = result.ok and not facts.terminal_error and bool(facts.answer.strip())
    return {
        "schemaVersion": SCHEMA_VERSION,
        "pool": profile.id,
        "provider": profile.connector.name,
        "ok": answered and (ANSWER in facts.answer or profile.connector.last_resort),
        "answer": plain(facts.answer)[:_EXCERPT],
        "errors": [plain(error.text)[:_EXCERPT] for error in facts.errors],
        "exitCode": result.exit_code,
        "timedOut": result.timed_out,
        "timeoutSec": timeout_sec,
        "wallSec": round(result.wall_sec, 1),
        "billing": plan.billing,
        "command": shown_command(plan),
        "environment": {
            name: "…" if is_secret(name, value) else value
            for name in plan.added
            if (value := plan.environment.get(name)) is not None
        },
        "stderr": stderr[-_EXCERPT:],
        "linesNotUnderstood": facts.bad_lines,
    }


def _print(document: dict[str, Any], context: CommandContext) -> None:
    context.print(document["command"])
    if document["ok"]:
        context.print(f"{document['pool']} answered in {document['wallSec']} s: {one_line(document['answer'])}")
        return
    if document["timedOut"]:
        context.print(f"{document['pool']} gave no answer within {document['timeoutSec']:g} s and was ended")
    else:
        said = one_line(document["answer"]) or "nothing"
        context.print(f"{document['pool']} failed: exit code {document['exitCode']}, it answered: {said}")
    context.print(*(f"  {one_line(line)}" for line in (*document["errors"], document["stderr"]) if line.strip()))
