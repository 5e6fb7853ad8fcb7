"""The order of a program: which step waits for which, with its gates and loops, and an order to look at all nodes once.

The graph works on documents that may be wrong, since it also serves to say what is wrong with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.program.model import Program, Step


@dataclass(frozen=True, slots=True)
class Plan:
    """``waits`` are the ids that must be over before a node is; ``order`` has each node behind all that it waits for.

    A loop waits for its steps. A step of a loop also waits for whatever any step of that loop waits for outside of it: a
    loop begins as a whole.
    """

    order: tuple[str, ...]
    waits: Mapping[str, tuple[str, ...]]

    def behind(self, names: Iterable[str]) -> frozenset[str]:
        """Return the nodes that wait for one of ``names``, directly or through others; the names themselves not."""
        found, sources = set(), set(names)
        for name in self.order:
            if name not in sources and any(other in sources or other in found for other in self.waits[name]):
                found.add(name)
        return frozenset(found)

    def before(self, name: str) -> frozenset[str]:
        """Return the nodes that run before ``name``."""
        found = set(self.waits[name])
        for other in reversed(self.order):
            if other in found:
                found.update(self.waits[other])
        return frozenset(found)


def plan_of(program: Program) -> Plan:
    """Work out the plan of a valid program."""
    waits: dict[str, tuple[str, ...]] = {}
    entrances = {loop.id: _entrance(program, loop.steps) for loop in program.loops}
    for step in program.steps:
        waits[step.id] = _once((*step.depends_on, *(entrances[step.loop] if step.loop else ())))
    waits |= {gate.id: _once(gate.depends_on) for gate in program.gates}
    waits |= {loop.id: loop.steps for loop in program.loops}
    return Plan(_order(waits), waits)


def _entrance(program: Program, members: tuple[str, ...]) -> tuple[str, ...]:
    inside: list[Step] = [step for step in program.steps if step.id in members]
    return _once(other for step in inside for other in step.depends_on if other not in members)


def _once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _order(waits: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Put each node behind what it waits for, else keep the order of the program."""
    position = {name: number for number, name in enumerate(waits)}
    missing = {name: len(others) for name, others in waits.items()}
    behind: dict[str, list[str]] = {}
    for name, others in waits.items():
        for other in others:
            behind.setdefault(other, []).append(name)
    order: list[str] = []
    ready = [name for name, count in missing.items() if not count]
    while ready:
        order += ready
        for other in (other for name in ready for other in behind.get(name, ())):
            missing[other] -= 1
        released = {other for name in ready for other in behind.get(name, ()) if not missing[other]}
        ready = sorted(released, key=position.__getitem__)
    if len(order) < len(waits):
        raise ValueError(f"a cycle through {', '.join(name for name in waits if missing[name])}")
    return tuple(order)


@dataclass(frozen=True, slots=True)
class Graph:
    """``before`` maps each id to the ids that it names in dependsOn; ``owner`` each step of a loop to that loop."""

    before: Mapping[str, tuple[str, ...]]
    owner: Mapping[str, str]
    members: Mapping[str, tuple[str, ...]]

    def ancestors(self, name: str) -> frozenset[str]:
        """Return every id that runs before ``name``; a loop stands for its steps, and its steps wait for what it waits for."""
        found: set[str] = set()
        waiting = [*self.before.get(name, ()), *self._entrance(name)]
        while waiting:
            other = waiting.pop()
            if other in found or other == name:
                continue
            found.add(other)
            waiting += [*self.before.get(other, ()), *self.members.get(other, ()), *self._entrance(other)]
        return frozenset(found)

    def is_cyclic(self) -> bool:
        """Tell whether something waits for itself, through steps, gates and loops."""
        return _cyclic(self._units()) or _cyclic({name: set(others) for name, others in self.before.items()})

    def _entrance(self, name: str) -> list[str]:
        """What the whole loop of ``name`` waits for: the dependencies of its steps that lie outside of it."""
        loop = self.owner.get(name)
        if loop is None:
            return []
        members = self.members[loop]
        return [other for member in members for other in self.before.get(member, ()) if other not in members]

    def _units(self) -> dict[str, set[str]]:
        """The graph with each loop as one thing."""
        units: dict[str, set[str]] = {}
        for name, others in self.before.items():
            unit = self.owner.get(name, name)
            around = {self.owner.get(other, other) for other in others}
            units.setdefault(unit, set()).update(around - ({unit} if name in self.owner else set()))
        return units


def graph_of(program: Mapping[str, Any]) -> Graph:
    """Read the graph of a document, leaving out what is not of its form."""
    members = {str(loop.get("id")): tuple(texts(loop.get("steps"))) for loop in objects(program.get("loops"))}
    owner = {step: loop for loop, steps in reversed(members.items()) for step in steps}
    before = {
        str(item.get("id")): tuple(texts(item.get("dependsOn")))
        for item in (*objects(program.get("steps")), *objects(program.get("gates")))
    }
    return Graph(before, owner, members)


def objects(value: Any) -> list[Mapping[str, Any]]:
    """Return the objects of a list; nothing for what is no list."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def texts(value: Any) -> list[str]:
    """Return the texts of a list; nothing for what is no list."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _cyclic(graph: Mapping[str, Iterable[str]]) -> bool:
    from graphlib import CycleError, TopologicalSorter

    try:
        TopologicalSorter(graph).prepare()
    except CycleError:
        return True
    return False
