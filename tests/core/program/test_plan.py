"""The order of a program: each node behind all that it waits for, and no cost that grows with its square."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.runs.journals import document

from bullswarm_core.program.model import program_from
from bullswarm_core.program.plan import Plan, plan_of


@st.composite
def dependencies(draw: st.DrawFn) -> dict[str, list[str]]:
    """Steps in any order, each with some of those that come before it in another order."""
    names = draw(st.permutations([f"s{number}" for number in range(draw(st.integers(1, 12)))]))
    made = {
        name: draw(st.lists(st.sampled_from(names[:place]), unique=True)) if place else []
        for place, name in enumerate(names)
    }
    return {name: made[name] for name in draw(st.permutations(names))}


def plan(waits: dict[str, list[str]]) -> Plan:
    return plan_of(program_from(document(*({"id": name, "dependsOn": others} for name, others in waits.items()))))


def in_waves(waits: dict[str, list[str]]) -> tuple[str, ...]:
    """The same order in the plainest way: again and again all that is ready."""
    order: list[str] = []
    while len(order) < len(waits):
        order += [name for name in waits if name not in order and all(other in order for other in waits[name])]
    return tuple(order)


@given(dependencies())
def test_each_node_is_behind_what_it_waits_for_and_else_as_the_program_has_it(waits: dict[str, list[str]]) -> None:
    assert plan(waits).order == in_waves(waits)


@given(dependencies())
def test_before_and_behind_are_two_sides_of_one_thing(waits: dict[str, list[str]]) -> None:
    found = plan(waits)
    for name in waits:
        assert found.behind([name]) == {other for other in waits if name in found.before(other)}


def test_a_cycle_is_named() -> None:
    with pytest.raises(ValueError, match="a cycle through a, b"):
        plan({"c": [], "a": ["b", "c"], "b": ["a"]})
