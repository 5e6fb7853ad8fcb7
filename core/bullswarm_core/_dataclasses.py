"""Value classes as ``dataclasses`` makes them, without its price at start-up.

The standard library compiles six methods per class when a module is imported (0.3 to 0.8 ms), and loads ``inspect``,
``ast`` and ``tokenize`` to do it; ``bullswarm pools`` imports forty such classes. Here a constructor is compiled when its
class turns out to make many values, and the other methods are the same functions everywhere.

Type checkers see the standard library's names. At run time there is what the project uses: classes with slots, frozen
or not, keyword-only or not; defaults, default factories, ``ClassVar``, ``__post_init__``, inheritance. What else asks
(``dataclasses.fields`` or ``asdict``, Hypothesis, pydantic) finds dataclasses, described by the standard library itself.
"""

from __future__ import annotations

import sys
from functools import partial
from operator import attrgetter
from reprlib import recursive_repr

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# Compiling a constructor takes as long as filling in thirty values (0.1 to 0.8 ms); `bullswarm pools` uses 26 classes and
# makes a handful of values of each.
_FILLED_IN = 20
_MISSING: Any = type("Missing", (), {"__repr__": lambda _: "<factory>"})()


class _Field:
    """What is known of one field, under the names that ``dataclasses.Field`` has for it."""

    __slots__ = ("default", "default_factory", "kw_only", "name", "repr", "type")
    name: str
    type: Any
    kw_only: bool

    def __init__(self, *, default: Any = _MISSING, default_factory: Any = _MISSING, repr: bool = True) -> None:  # noqa: A002
        self.default, self.default_factory, self.repr = default, default_factory, repr

    def value(self) -> Any:
        """Give what the field holds when nothing was given for it, _MISSING when something must be."""
        return self.default if self.default_factory is _MISSING else self.default_factory()


class _Later:
    """A class attribute that is made when it is first asked for, and then stands in the class itself."""

    __slots__ = ("make", "name", "owner")

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self.make = make

    def __set_name__(self, owner: Any, name: str) -> None:
        self.owner, self.name = owner, name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        made = self.make(self.owner)
        setattr(self.owner, self.name, made)
        return made.__get__(instance, owner) if hasattr(made, "__get__") else made


class _Constructor(_Later):
    """``__init__``: fills in the first values field by field, and is compiled for the others."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        super().__init__(_compiled_constructor)
        self.left = _FILLED_IN

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if self.left and isinstance(instance, self.owner):
            self.left -= 1
            return partial(self._fill, instance)
        return super().__get__(instance, owner)

    def _fill(self, instance: Any, /, *given: Any, **named: Any) -> None:
        owner, put = self.owner, object.__setattr__
        content = {**dict(zip(owner.__match_args__, given, strict=False)), **named}
        unclear = len(content) < len(given) + len(named)
        for name, item in owner.__value_fields__.items():
            value = content.pop(name) if name in content else item.value()
            unclear |= value is _MISSING
            put(instance, name, value)
        if unclear or content:
            # Python itself says best what is wrong with a call.
            super().__get__(instance)(*given, **named)
        elif hasattr(owner, "__post_init__"):
            instance.__post_init__()


def _dataclass(*, slots: bool = False, frozen: bool = False, kw_only: bool = False) -> Callable[[Any], Any]:
    if not slots:
        raise TypeError("a value class has slots: dataclass(slots=True)")
    return lambda source: _with_slots(source, frozen=frozen, kw_only=kw_only)


def _with_slots(source: Any, *, frozen: bool, kw_only: bool) -> Any:
    """Make the class anew, since slots can't be added to one that is there."""
    inherited: dict[str, _Field] = {}
    for base in reversed(source.__mro__[1:]):
        inherited |= vars(base).get("__value_fields__", {})
    own = {name: kind for name, kind in source.__annotations__.items() if "ClassVar" not in str(kind)}
    known = inherited | {name: _field_of(source, name, kind, kw_only) for name, kind in own.items()}
    left_out = {"__dict__", "__weakref__", *own}
    content = {name: value for name, value in vars(source).items() if name not in left_out}
    made = {
        "__qualname__": source.__qualname__,
        "__slots__": tuple(name for name in own if name not in inherited),
        "__match_args__": tuple(name for name, item in known.items() if not item.kw_only),
        "__value_fields__": known,
        # With the class there are always two or more, or the one that a class without fields consists of.
        "__value_content__": attrgetter(*known, "__class__"),
        "__init__": _Constructor(),
        "__dataclass_fields__": _Later(lambda owner: _standard(owner).__dataclass_fields__),
        "__dataclass_params__": _Later(lambda owner: _standard(owner).__dataclass_params__),
    }
    shared = _FROZEN if frozen else _OPEN
    return type(source)(source.__name__, source.__bases__, {**shared, **content, **made})


def _field_of(source: Any, name: str, kind: Any, kw_only: bool) -> _Field:
    default = vars(source).get(name, _MISSING)
    item = default if isinstance(default, _Field) else _Field(default=default)
    item.name, item.type, item.kw_only = name, kind, kw_only
    return item


def _compiled_constructor(owner: Any) -> Any:
    """Compile ``__init__`` in the module of its class, where the annotations mean what they say.

    Setting an attribute of a frozen class past its refusal takes eight times as long as setting one of an open class, and
    a pick among a thousand pools makes six thousand values: so a value is filled in while it is of an open class, and then
    becomes what it is.
    """
    known = owner.__value_fields__
    given: dict[str, Any] = {"_set": object.__setattr__, "_missing": _MISSING, "KIND": owner}
    parameters, values = ["self"], {}
    for name, item in sorted(known.items(), key=lambda entry: entry[1].kw_only):
        if item.kw_only and "*" not in parameters:
            parameters.append("*")
        parameter = value = name
        if item.default is not _MISSING:
            parameter, given[f"_{name}"] = f"{name}=_{name}", item.default
        elif item.default_factory is not _MISSING:
            parameter, given[f"_{name}"] = f"{name}=_missing", item.default_factory
            value = f"_{name}() if {name} is _missing else {name}"
        parameters.append(parameter)
        values[name] = value
    lines = [f"  self.{name} = {value}" for name, value in values.items()]
    if owner.__setattr__ is _refuse_to_set:
        given["OPEN"] = _open_heir(owner)
        # A class that somebody derived without the decorator has other slots, and its values can't change theirs.
        slowly = [f"   _set(self, {name!r}, {value})" for name, value in values.items()]
        quickly = ["   _set(self, '__class__', OPEN)", *(f" {line}" for line in lines), "   self.__class__ = KIND"]
        lines = ["  if self.__class__ is KIND:", *quickly, "  else:", "   pass", *slowly]
    lines.append("  self.__post_init__()" if hasattr(owner, "__post_init__") else "  pass")
    text = [f"def outer({', '.join(given)}):", f" def __init__({', '.join(parameters)}):", *lines, " return __init__"]
    found: dict[str, Any] = {}
    # Compiled apart: a Ctrl-C that comes while Python runs a text ends a `python -m` process by the signal, though caught.
    code = compile("\n".join(text), f"<constructor of {owner.__qualname__}>", "exec")
    exec(code, vars(sys.modules[owner.__module__]), found)
    constructor = found["outer"](**given)
    constructor.__qualname__ = f"{owner.__qualname__}.__init__"
    constructor.__annotations__ = {**{name: item.type for name, item in known.items()}, "return": None}
    return constructor


def _open_heir(owner: Any) -> Any:
    """Make a class whose values may be changed: an heir, since of classes that are not kin Python compares slot by slot
    whether a value of one can become one of the other.
    """
    own = {
        "__setattr__": object.__setattr__,
        "__delattr__": object.__delattr__,
    }  # one place of a class in C: both or none
    return type(owner)(owner.__name__, (owner,), {"__slots__": (), "__module__": owner.__module__, **own})


def _standard(owner: Any) -> Any:
    """Make the standard library's dataclass of the same name and fields."""
    import dataclasses

    def described(item: _Field) -> Any:
        names = ("default", "default_factory", "repr", "kw_only")
        options = {name: getattr(item, name) for name in names if getattr(item, name) is not _MISSING}
        return item.name, item.type, dataclasses.field(**options)

    items = [described(item) for item in owner.__value_fields__.values()]
    frozen = owner.__setattr__ is _refuse_to_set
    return dataclasses.make_dataclass(owner.__name__, items, bases=owner.__bases__, frozen=frozen)


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{name}={getattr(self, name)!r}" for name, item in self.__value_fields__.items() if item.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _equal(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    content = self.__value_content__
    return content(self) == content(other)


def _hash(self: Any) -> int:
    return hash(self.__value_content__(self))


def _refuse_to_set(self: Any, name: str, value: Any) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self.__value_fields__]


def _set_state(self: Any, state: list[Any]) -> None:
    for name, value in zip(self.__value_fields__, state, strict=True):
        object.__setattr__(self, name, value)


_OPEN = {"__repr__": _repr, "__eq__": _equal, "__hash__": None}
_FROZEN = _OPEN | {
    "__hash__": _hash,
    "__setattr__": _refuse_to_set,
    "__delattr__": _refuse_to_delete,
    "__getstate__": _state,
    "__setstate__": _set_state,
}


def _fields(value: Any) -> tuple[_Field, ...]:
    return tuple(value.__value_fields__.values())


def _is_dataclass(value: Any) -> bool:
    return hasattr(value, "__value_fields__")


def _replace(value: Any, /, **changes: Any) -> Any:
    kept = {name: getattr(value, name) for name in value.__value_fields__ if name not in changes}
    return type(value)(**kept, **changes)


if TYPE_CHECKING:
    from dataclasses import MISSING as MISSING
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import fields as fields
    from dataclasses import is_dataclass as is_dataclass
    from dataclasses import replace as replace
else:
    MISSING, dataclass, field = _MISSING, _dataclass, _Field
    fields, is_dataclass, replace = _fields, _is_dataclass, _replace
