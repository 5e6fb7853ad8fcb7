"""Which step waits for which: the graph of a program's document, with gates and loops in it.

Works on documents that may be wrong, since it also serves to say what is wrong with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bullswarm_core.values import dataclass


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
