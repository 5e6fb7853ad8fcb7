"""What an install, a remove or a look at one agent comes to, before anything is written."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from bullswarm_core._dataclasses import dataclass
from bullswarm_server.integrate.agent import Agent, Form, Setup
from bullswarm_server.integrate.errors import IntegrationError
from bullswarm_server.integrate.parts import Notes, Part, PartState, foreign, guarded
from bullswarm_server.integrate.person import Person
from bullswarm_server.integrate.record import Record
from bullswarm_server.integrate.sources import Sources
from bullswarm_server.integrate.workspace import Change, Workspace

Action = Literal["install", "remove", "status"]


@dataclass(frozen=True, slots=True)
class Seen:
    """One part as it is on disk now."""

    part: Part
    found: PartState


@dataclass(frozen=True, slots=True)
class Plan:
    """What is there of one agent's parts, and what would change. With a problem nothing of this agent changes."""

    agent: Agent
    binary: str | None
    seen: tuple[Seen, ...] = ()
    changes: tuple[Change, ...] = ()
    notes: tuple[tuple[Path, str, Notes], ...] = ()
    problems: tuple[str, ...] = ()
    form: str = ""
    hint: str = ""

    @property
    def complete(self) -> bool:
        """Whether every part that counts is installed as this bullswarm would install it."""
        counted = [seen.found.state == "installed" for seen in self.seen if not seen.part.optional]
        return not self.problems and bool(counted) and all(counted)


def make_plan(
    agent: Agent,
    action: Action,
    *,
    person: Person,
    sources: Sources,
    record: Record,
    asked_for: frozenset[str] = frozenset(),
    form: Form | None = None,
) -> Plan:
    """Look at one agent's files and work out what the action changes; reads only.

    ``asked_for`` names the optional parts to install; those that are there already are brought up to date. ``form`` is how
    an agent that takes several is set up; None keeps the form that it has.
    """
    setup = agent.make(person, sources, form)
    parts = (*setup.parts, *setup.replaced)
    space = Workspace(person.roots)
    seen, problems = _look(setup, space)
    plan = Plan(agent, agent.found(person), seen=seen, form=setup.form, hint=setup.hint)
    if problems and action != "status":
        return _with(plan, problems=problems)
    notes: list[tuple[Path, str, Notes]] = []
    try:
        if action == "install":
            notes = _install(setup, space, record, asked_for=asked_for)
        elif action == "remove":
            for part in reversed(parts):
                _remove(part, space, record)
    except IntegrationError as error:
        problems = (*problems, str(error))
    return _with(plan, problems=problems, changes=() if problems else space.changes(), notes=tuple(notes))


def _look(setup: Setup, space: Workspace) -> tuple[tuple[Seen, ...], tuple[str, ...]]:
    seen: list[Seen] = []
    problems: list[str] = []
    for part in setup.parts:
        try:
            with guarded(part):
                seen.append(Seen(part, part.state(space)))
        except IntegrationError as error:
            if str(error) not in problems:
                problems.append(str(error))
    for part in setup.replaced:
        try:
            with guarded(part):
                found = part.state(space)
        except IntegrationError:
            continue
        if found.state in ("installed", "outdated"):
            other = setup.form or "what stands in the settings"
            seen.append(Seen(part, PartState("outdated", f"{other} brings it too; install takes this one out")))
    return tuple(seen), tuple(problems)


def _install(
    setup: Setup, space: Workspace, record: Record, *, asked_for: frozenset[str]
) -> list[tuple[Path, str, Notes]]:
    for part in reversed(setup.replaced):
        _remove(part, space, record)
    notes = []
    for part in setup.parts:
        with guarded(part):
            found = part.state(space)
        if part.optional and part.name not in asked_for and found.state != "outdated":
            continue
        if found.state == "foreign":
            raise foreign(part, found)
        if found.state == "installed":
            continue
        with guarded(part):
            kept = part.install(space, record.notes(part.file, part.name))
        notes.append((part.file, part.name, kept))
    return notes


def _remove(part: Part, space: Workspace, record: Record) -> None:
    notes = record.notes(part.file, part.name)
    with guarded(part):
        found = part.state(space)
        if found.state in ("installed", "outdated") or (part.optional and notes):
            part.remove(space, notes)


def _with(
    plan: Plan,
    *,
    problems: tuple[str, ...],
    changes: tuple[Change, ...] = (),
    notes: tuple[tuple[Path, str, Notes], ...] = (),
) -> Plan:
    return Plan(plan.agent, plan.binary, plan.seen, changes, notes, problems, plan.form, plan.hint)
