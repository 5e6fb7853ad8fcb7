"""The order of a program: what each node waits for, and the order in which all of them can be looked at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bullswarm_core.program.model import Program, Step
from bullswarm_core.values import dataclass


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
