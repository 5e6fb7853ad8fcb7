"""`bullswarm integrate install|status|remove`: set up the agents that call bullswarm, in the person's own files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bullswarm_core.errors import BullswarmError, UsageError
from bullswarm_core.process.environment import DEPTH_VARIABLE, read_depth
from bullswarm_core.store.home import file_lock
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.cli.help_format import Parser
from bullswarm_server.displays.text import one_line
from bullswarm_server.hook_state import refresh
from bullswarm_server.integrate.agent import Agent, Form
from bullswarm_server.integrate.apply import apply_plan
from bullswarm_server.integrate.claude import AGENT as CLAUDE
from bullswarm_server.integrate.codex import AGENT as CODEX
from bullswarm_server.integrate.grok import AGENT as GROK
from bullswarm_server.integrate.opencode import AGENT as OPENCODE
from bullswarm_server.integrate.person import Person
from bullswarm_server.integrate.plan import Action, Plan, make_plan
from bullswarm_server.integrate.record import Record
from bullswarm_server.integrate.shown import difference
from bullswarm_server.integrate.sources import Sources, claude_mod, find_sources

SCHEMA_VERSION = "bullswarm.integrate.v1"
_UNWRITTEN = "nothing was written · pass --yes to approve"
AGENTS: dict[str, Agent] = {agent.name: agent for agent in (CLAUDE, CODEX, OPENCODE, GROK)}


def run(arguments: list[str], context: CommandContext) -> int:
    """Show what would change, ask (or take --yes), and write it; 1 when something is left undone."""
    options = _parser().parse_args(arguments)
    if options.action != "status" and read_depth(context.environ) > 0:
        raise UsageError(
            f"{DEPTH_VARIABLE} is set: this is a worker's shell",
            hint="only a person's own shell may change their settings",
        )
    call = _Call(options, context)
    plans = [call.plan(agent) for agent in call.agents]
    if options.action == "status":
        return _status(call, plans)
    planned = [] if options.json else _planned(call, plans)
    open_plans = [plan for plan in plans if plan.changes]
    if not (options.yes or _agrees(call, open_plans, planned)):
        if options.json:
            context.print_json(_document(call, plans, {}))
        context.note(_UNWRITTEN)
        return 1
    written = _write(call, open_plans)
    # Without it the hooks would be silent until the first `bullswarm pools` or run.
    refresh(call.context.home, call.context.environ)
    failed = [error for error in written.values() if isinstance(error, BullswarmError)]
    undone = failed or any(plan.problems or call.is_wanted_but_missing(plan) for plan in plans)
    if options.json:
        context.print_json(_document(call, plans, written))
    else:
        # Behind the work where nobody was asked: `… --yes | head` must not keep anything from being done.
        context.print(*(planned if options.yes else ()), *_outcome(call, plans, written))
    return 1 if undone else 0


class _Call:
    """One call: whom it is about, and what it works with."""

    def __init__(self, options: argparse.Namespace, context: CommandContext) -> None:
        self.action: Action = options.action
        self.options = options
        self.context = context
        self.named = options.agents is not None
        flags = {"hook trust": "trust_hooks", "plug-in hook trust": "trust_hooks", "status line": "statusline"}
        self.asked_for = frozenset(part for part, flag in flags.items() if getattr(options, flag, False))
        asked = getattr(options, "codex_plugin", None)
        self.form: Form | None = None if asked is None else "plugin" if asked else "settings"
        self.agents = [AGENTS[name] for name in (options.agents or AGENTS)]
        home = context.environ.get("HOME")
        self.person = Person(Path(home) if home else Path.home(), context.environ)
        self.sources: Sources = find_sources(context.environ)
        self.record = Record(context.home)

    def plan(self, agent: Agent) -> Plan:
        """Plan for one agent; one whose CLI isn't here is left out, but what is ours of it can still be removed."""
        if self.action == "install" and agent.found(self.person) is None:
            return Plan(agent, None)
        return make_plan(
            agent, self.action, person=self.person, sources=self.sources, record=self.record,
            asked_for=self.asked_for, form=self.form,
        )  # fmt: skip

    def is_wanted_but_missing(self, plan: Plan) -> bool:
        """Whether the person named an agent whose CLI isn't on PATH; removing needs no CLI."""
        return self.named and plan.binary is None and self.action != "remove"


Written = dict[str, tuple[Path, ...] | BullswarmError]


def _write(call: _Call, plans: Sequence[Plan]) -> Written:
    written: Written = {}
    if not plans:
        return written
    with file_lock(call.context.home.root / "integrations.lock"):
        call.record = Record(call.context.home)
        for plan in plans:
            # Another agent's failure is no reason to leave this one undone.
            try:
                written[plan.agent.name] = apply_plan(
                    plan, installing=call.action == "install", record=call.record, now=datetime.now(UTC)
                )
            except BullswarmError as error:
                written[plan.agent.name] = error
    return written


def _status(call: _Call, plans: Sequence[Plan]) -> int:
    if call.options.json:
        call.context.print_json(_document(call, plans, {}))
    else:
        call.context.print(*(line for plan in plans for line in _state(call, plan)))
    selected = [plan for plan in plans if call.named or plan.binary is not None]
    complete = all(plan.complete and plan.binary is not None for plan in selected)
    return 0 if selected and complete else 1


def _state(call: _Call, plan: Plan) -> list[str]:
    found = plan.binary is not None
    title = f"{plan.agent.title}: "
    if plan.problems:
        return [f"{title}not readable", *(f"  {one_line(problem)}" for problem in plan.problems)]
    if not found and all(seen.found.state == "missing" for seen in plan.seen):
        return [f"{title}not found ({plan.agent.binary} is not on PATH)"]
    word = "complete" if plan.complete else "not complete · bullswarm integrate install"
    lines = [f"{title}{word}{'' if found else f' ({plan.agent.binary} is not on PATH)'}"]
    width = max(12, *(len(seen.part.name) for seen in plan.seen))
    for seen in plan.seen:
        detail = f" · {one_line(seen.found.detail)}" if seen.found.detail else ""
        where = call.person.shown(seen.part.file)
        lines.append(f"  {seen.part.name.ljust(width)} {seen.found.state.ljust(9)} {where}{detail}")
    if plan.form:
        lines.append(f"  {plan.form} brings the MCP server, the hooks and the skill")
    return lines


def _planned(call: _Call, plans: Sequence[Plan]) -> list[str]:
    shown: dict[str, Path] = {}
    return [line for plan in plans for line in _planned_for(call, plan, shown)]


def _planned_for(call: _Call, plan: Plan, shown: dict[str, Path]) -> list[str]:
    if call.action == "install" and plan.binary is None:
        return [f"{plan.agent.title}: {plan.agent.binary} is not on PATH, left out"]
    if plan.problems:
        return [f"{plan.agent.title}: nothing is written", *(f"  {one_line(problem)}" for problem in plan.problems)]
    if not plan.changes:
        return [f"{plan.agent.title}: nothing to do"]
    lines = [f"{plan.agent.title}:"]
    for change in plan.changes:
        # The skill is the same for every agent; once is enough to read it.
        text = change.text if change.file.text is None else None
        if text is not None and text in shown:
            lines.append(f"  +++ {call.person.shown(change.file.path)}  (new, the same text as {shown[text]})")
            continue
        if text is not None:
            shown[text] = Path(call.person.shown(change.file.path))
        lines += [f"  {line}" for line in difference(change, call.person)]
    return lines


def _outcome(call: _Call, plans: Sequence[Plan], written: Written) -> list[str]:
    lines = []
    for plan in plans:
        result = written.get(plan.agent.name)
        if isinstance(result, BullswarmError):
            lines.append(f"{plan.agent.title}: failed · {result}")
        elif result is not None:
            verb = "set up" if call.action == "install" else "taken out"
            kept = "".join(f"\n  backup: {call.person.shown(path)}" for path in result)
            lines.append(f"{plan.agent.title}: {verb}{kept}")
    if call.action == "install" and any(not isinstance(result, BullswarmError) for result in written.values()):
        lines.append("Sessions that run now see it when they start again.")
        lines += [f"{plan.agent.title}: {plan.hint}" for plan in plans if plan.hint and plan.agent.name in written]
        lines += _advice(call, plans)
    return ["", *lines] if lines else []


def _advice(call: _Call, plans: Sequence[Plan]) -> list[str]:
    """Say what else there is for those who ask for it."""
    parts = [seen for plan in plans for seen in plan.seen if seen.part.optional and seen.found.state == "missing"]
    return [f"{seen.part.name}: {seen.found.detail}" for seen in parts if seen.part.name not in call.asked_for]


def _agrees(call: _Call, plans: Sequence[Plan], planned: Sequence[str]) -> bool:
    """Show the changes and ask whether to write them; nothing to write needs no leave."""
    if not plans:
        call.context.print(*planned)
        return True
    with call.context.asking(_UNWRITTEN):
        call.context.print(*planned)
        if call.options.json or not sys.stdin.isatty():
            return False
        _ask(call, plans)
    # Other programs' settings are at stake: only a clear yes counts.
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _ask(call: _Call, plans: Sequence[Plan]) -> None:
    # The changes fill more than a screen; what they are about must stand where the answer is given.
    changes = [change for plan in plans for change in plan.changes]
    # Of a folder that is bullswarm's own the folder is told.
    files = dict.fromkeys(call.person.shown(change.within or change.file.path) for change in changes)
    call.context.print("", "Files:", *(f"  {file}" for file in files))
    call.context.out.write("\nWrite this? [y/N] ")


def _document(call: _Call, plans: Sequence[Plan], written: Written) -> dict[str, Any]:
    return {
        "schemaVersion": SCHEMA_VERSION,
        "action": call.action,
        "command": call.sources.command,
        "claudePluginFolder": claude_mod(),
        "agents": [_agent_document(call, plan, written.get(plan.agent.name)) for plan in plans],
    }


def _agent_document(call: _Call, plan: Plan, result: tuple[Path, ...] | BullswarmError | None) -> dict[str, Any]:
    problems = [*plan.problems, *([str(result)] if isinstance(result, BullswarmError) else [])]
    return {
        "agent": plan.agent.name,
        "binary": plan.binary,
        "complete": plan.complete,
        "form": plan.form or None,
        "hint": plan.hint or None,
        "parts": [
            {
                "part": seen.part.name,
                "file": str(seen.part.file),
                "state": seen.found.state,
                "detail": seen.found.detail or None,
                "optional": seen.part.optional,
            }
            for seen in plan.seen
        ],
        "changes": [
            {"file": str(change.file.path), "diff": "\n".join(difference(change, call.person))}
            for change in plan.changes
        ],
        "written": isinstance(result, tuple),
        "backups": [str(path) for path in result] if isinstance(result, tuple) else [],
        "problems": problems,
    }


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in AGENTS:
            raise UsageError(f'unknown agent "{name}"', hint=f"one or more of {','.join(AGENTS)}")
    if not names:
        raise UsageError("--agents names no agent", hint=f"one or more of {','.join(AGENTS)}")
    return list(dict.fromkeys(names))


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="bullswarm integrate",
        description="Set up the agents that call bullswarm: MCP server, hooks, skill, and a few lines of instruction. "
        "Shows the changes first, and leaves everything else in your files as it is.",
    )
    verbs = parser.add_subparsers(dest="action", required=True, metavar="install|status|remove")
    for name, text in (
        ("install", "write what each agent needs"),
        ("status", "say what is installed; 0 only when every selected agent is complete"),
        ("remove", "take away exactly what install added"),
    ):
        verb = verbs.add_parser(name, help=text, description=text)
        verb.add_argument(
            "--agents", type=_names, metavar="NAMES", help=f"of {','.join(AGENTS)} (default: those found)"
        )
        verb.add_argument("--json", action="store_true", help="print one JSON document")
        if name != "status":
            verb.add_argument("--yes", action="store_true", help="write without asking")
        if name == "install":
            verb.add_argument(
                "--trust-hooks", action="store_true", help="also record in Codex that you trust bullswarm's hooks"
            )
            verb.add_argument(
                "--codex-plugin",
                action=argparse.BooleanOptionalAction,
                help="set Codex up by one plug-in, or by its settings again (default: as it is, at first its settings)",
            )
            verb.add_argument("--statusline", action="store_true", help="also give Claude Code bullswarm's status line")
    return parser
