"""Value classes behave as the standard library's dataclasses of the same definition."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core import _dataclasses

Maker = Any


@_dataclasses.dataclass(frozen=True, slots=True)
class Base:
    kind: ClassVar[str] = "base"
    name: str
    size: int = 1


@_dataclasses.dataclass(frozen=True, slots=True)
class Derived(Base):
    kind: ClassVar[str] = "derived"
    size: int = 2
    notes: Mapping[str, Any] = _dataclasses.field(default_factory=dict, repr=False)
    parts: tuple[Base, ...] = ()

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ValueError(f"size is {self.size}")

    @property
    def shown(self) -> str:
        return f"{self.name}!"


@_dataclasses.dataclass(slots=True)
class Open:
    count: int = 0
    seen: list[int] = _dataclasses.field(default_factory=list)


@_dataclasses.dataclass(frozen=True, slots=True)
class Empty:
    """Nothing."""


class FieldPlan(NamedTuple):
    default: str  # none | value | factory
    shown: bool


names = st.sampled_from(["a", "b", "c", "d", "e", "value", "name", "other"])
contents = st.none() | st.integers(-3, 3) | st.text(max_size=3) | st.tuples(st.integers(0, 1)) | st.just(float("nan"))


@st.composite
def definitions(draw: st.DrawFn) -> tuple[dict[str, FieldPlan], dict[str, bool]]:
    options = {"frozen": draw(st.booleans()), "kw_only": draw(st.booleans())}
    plans: dict[str, FieldPlan] = {}
    for name in draw(st.lists(names, unique=True, max_size=6)):
        optional = not options["kw_only"] and any(plan.default != "none" for plan in plans.values())
        defaults = ["value", "factory"] if optional else ["none", "value", "factory"]
        plans[name] = FieldPlan(draw(st.sampled_from(defaults)), draw(st.booleans()))
    return plans, options


def class_of(maker: Maker, plans: dict[str, FieldPlan], options: dict[str, bool]) -> Any:
    body: dict[str, Any] = {"__annotations__": dict.fromkeys(plans, "Any"), "__module__": __name__, "__doc__": "Made."}
    for name, plan in plans.items():
        if plan.default == "value":
            body[name] = maker.field(default=name, repr=plan.shown)
        elif plan.default == "factory":
            body[name] = maker.field(default_factory=list, repr=plan.shown)
        elif not plan.shown:
            body[name] = maker.field(repr=False)
    return maker.dataclass(slots=True, **options)(type("Made", (), body))


def outcome(action: Callable[[], Any]) -> Any:
    try:
        return action()
    except Exception as error:
        return type(error)


@given(definitions(), st.data())
def test_a_class_does_what_the_standard_one_does(
    definition: tuple[dict[str, FieldPlan], dict[str, bool]], data: st.DataObject
) -> None:
    ours, theirs = (class_of(maker, *definition) for maker in (_dataclasses, dataclasses))
    assert ours.__slots__ == theirs.__slots__
    assert ours.__match_args__ == theirs.__match_args__
    # A look at a constructor compiles it; without one the first values are filled in field by field.
    if data.draw(st.booleans()):
        assert str(inspect.signature(ours)) == str(inspect.signature(theirs))
    positional = data.draw(st.lists(contents, max_size=3))
    named = data.draw(st.dictionaries(names, contents, max_size=6))
    mine, other = outcome(lambda: ours(*positional, **named)), outcome(lambda: theirs(*positional, **named))
    if isinstance(other, type):
        assert mine is other
        return
    assert repr(mine) == repr(other)
    assert dataclasses.asdict(mine) == dataclasses.asdict(other)
    assert mine == ours(*positional, **named)
    assert (outcome(lambda: hash(mine)) is TypeError) == (outcome(lambda: hash(other)) is TypeError)
    changes = data.draw(st.dictionaries(names, contents, max_size=3))
    changed, theirs_changed = (
        outcome(lambda: _dataclasses.replace(mine, **changes)),
        outcome(lambda: dataclasses.replace(other, **changes)),
    )
    assert repr(changed) == repr(theirs_changed)
    assert repr(outcome(lambda: dataclasses.replace(mine, **changes))) == repr(theirs_changed)
    assert (outcome(lambda: mine == changed)) == (outcome(lambda: other == theirs_changed))


@given(st.text(max_size=5), st.integers(-2, 5))
def test_inheritance_defaults_and_checks(name: str, size: int) -> None:
    if size < 0:
        with pytest.raises(ValueError, match="size is"):
            Derived(name, size)
        return
    made = Derived(name, size)
    assert (made.kind, Base.kind, made.shown, made.notes, made.parts) == ("derived", "base", f"{name}!", {}, ())
    assert made != Base(name, size) and Base(name, size) == Base(name=name, size=size)
    assert hash(Base(name, size)) == hash(Base(name, size))
    assert repr(made) == f"Derived(name={name!r}, size={size}, parts=())"
    for copied in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert copied == made and type(copied) is Derived


def test_the_first_values_are_as_all_the_others() -> None:
    kind = class_of(_dataclasses, {"a": FieldPlan("none", True), "b": FieldPlan("factory", True)}, {"frozen": True})
    found = [kind(number, b=[number]) for number in range(100)]
    assert found == [kind(a=number, b=[number]) for number in range(100)]
    assert repr(found[0]) == "Made(a=0, b=[0])"


@pytest.mark.parametrize("used", [0, 100])
def test_a_wrong_call_is_explained_by_python_itself(used: int) -> None:
    kind = class_of(_dataclasses, {"a": FieldPlan("none", True), "b": FieldPlan("value", True)}, {"frozen": True})
    for number in range(used):
        kind(number)
    wrong: list[tuple[tuple[int, ...], dict[str, int], str]] = [
        ((), {}, "missing 1 required positional argument: 'a'"),
        ((1, 2, 3), {}, "takes from 2 to 3 positional arguments but 4 were given"),
        ((1,), {"a": 1}, "got multiple values for argument 'a'"),
        ((1,), {"c": 1}, "got an unexpected keyword argument 'c'"),
    ]
    for given_values, named, message in wrong:
        with pytest.raises(TypeError, match=message):
            kind(*given_values, **named)


def test_a_class_pattern_takes_a_value_apart() -> None:
    match Derived("n", 3):
        case Derived(name, size):
            assert (name, size) == ("n", 3)
        case _:
            pytest.fail("no match")


def test_a_frozen_value_refuses_changes() -> None:
    made: Any = Base("n")
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'size'"):
        made.size = 3
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'name'"):
        del made.name
    assert made == Base("n", 1)


class Plain(Base):
    """A class that was derived without the decorator has a dictionary beside the slots."""


def test_a_plain_class_that_is_derived_from_a_frozen_one_is_filled_in_as_well() -> None:
    made = [Plain("n", number) for number in range(100)]
    assert {type(item) for item in made} == {Plain}
    assert [item.size for item in made] == [*range(100)]
    with pytest.raises(dataclasses.FrozenInstanceError):
        made[-1].size = 3  # type: ignore[misc]


def test_a_value_whose_making_fails_midway_leaves_nothing_open() -> None:
    made: list[Any] = []

    def build() -> dict[str, Any]:
        if len(made) == 60:
            raise OSError("no more")
        return {}

    kind: Any = _dataclasses.dataclass(frozen=True, slots=True)(
        type(
            "Late",
            (),
            {
                "__annotations__": {"a": "int", "b": "dict"},
                "b": _dataclasses.field(default_factory=build),
                "__module__": __name__,
            },
        )
    )
    with pytest.raises(OSError, match="no more"):
        for number in range(100):
            made.append(kind(number))
    assert len(made) == 60
    with pytest.raises(dataclasses.FrozenInstanceError):
        made[-1].a = 3


def test_an_open_value_can_be_changed_and_shares_nothing() -> None:
    one, two = Open(), Open()
    one.count = 3
    one.seen.append(1)
    assert (two, one) == (Open(0, []), Open(3, [1]))
    assert pickle.loads(pickle.dumps(one)) == one
    with pytest.raises(TypeError):
        hash(one)
    with pytest.raises(AttributeError):
        one.colour = "red"  # type: ignore[attr-defined]


def test_a_value_that_holds_itself_can_be_shown() -> None:
    inner: list[Any] = []
    made = Open(0, inner)
    inner.append(made)
    assert repr(made) == "Open(count=0, seen=[...])"


def test_a_class_without_fields() -> None:
    assert Empty() == Empty() and hash(Empty()) == hash(Empty()) and repr(Empty()) == "Empty()"
    other: object = Base("n")
    assert Empty() != other


def test_the_standard_library_knows_the_classes() -> None:
    assert (
        dataclasses.is_dataclass(Derived) and _dataclasses.is_dataclass(Derived) and not _dataclasses.is_dataclass(int)
    )
    listed = dataclasses.fields(Derived)
    assert [(item.name, item.type, item.repr) for item in listed] == [
        ("name", "str", True),
        ("size", "int", True),
        ("notes", "Mapping[str, Any]", False),
        ("parts", "tuple[Base, ...]", True),
    ]
    assert [item.name for item in _dataclasses.fields(Derived("n"))] == [item.name for item in listed]

    @dataclasses.dataclass(frozen=True, slots=True)
    class Theirs(Base):
        colour: str = "red"

    assert Theirs("n", 2, "blue") == Theirs("n", size=2, colour="blue")


def test_a_class_without_slots_is_refused() -> None:
    with pytest.raises(TypeError, match="slots=True"):
        _dataclasses.dataclass(frozen=True)


def test_values_are_made_without_the_modules_that_are_slow_to_load() -> None:
    code = (
        "import sys\n"
        f"sys.path[:0] = {[path for path in sys.path if path]!r}\n"
        "from bullswarm_core.pools import Pool, Window\n"
        "from bullswarm_core._dataclasses import replace\n"
        "pool = replace(Pool('codex', 'codex', windows=(Window('weekly', 3.0),)), label='cx')\n"
        "assert (pool, pool.shown_name) == (Pool('codex', 'codex', 'cx', windows=(Window('weekly', 3.0),)), 'cx')\n"
        "print([name for name in ('dataclasses', 'inspect', 'ast', 'tokenize') if name in sys.modules], repr(pool)[:20])\n"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[] Pool(id='codex', pro\n"


def test_a_ctrl_c_while_a_constructor_is_being_made_can_be_caught(tmp_path: Path) -> None:
    (tmp_path / "caught.py").write_text(
        """
import os, signal, sys
from bullswarm_core._dataclasses import dataclass

@dataclass(slots=True)
class Value:
    x: int = 0

def interrupt(frame, event, argument):
    if event == "call" and frame.f_code.co_name == "<module>":
        sys.setprofile(None)
        os.kill(os.getpid(), signal.SIGINT)

try:
    sys.setprofile(interrupt)
    for _ in range(100):
        Value()
except KeyboardInterrupt:
    sys.exit(130)
"""
    )
    path = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        [sys.executable, "-m", "caught"], cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, check=False
    )
    assert done.returncode == 130
