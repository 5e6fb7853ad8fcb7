"""What a provider.py may offer is declared in one place, and each packaged one keeps to it."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import bullswarm_core
import bullswarm_providers
from bullswarm_core.provider import Provider

DECLARED = {
    name: each for name, each in vars(Provider).items() if inspect.isfunction(each) and not name.startswith("_")
}
PACKAGE = Path(bullswarm_providers.__path__[0])
PACKAGED = sorted(file.parent.name for file in PACKAGE.glob("*/provider.py"))
ASKED = re.compile(r'getattr\([\w.]*(?:\.provider|loaded\.module), "(\w+)"')


def shape(function: object) -> list[tuple[str, object]]:
    found = inspect.signature(function).parameters.values()  # type: ignore[arg-type]
    return [(each.name, each.kind) for each in found if each.name != "self"]


@pytest.mark.parametrize("name", PACKAGED)
def test_a_packaged_provider_takes_what_it_is_called_with(name: str) -> None:
    module: ModuleType = import_module(f"bullswarm_providers.{name}.provider")
    offered = {each: function for each, function in inspect.getmembers(module, inspect.isfunction) if each in DECLARED}
    assert offered
    for each, function in offered.items():
        assert shape(function) == shape(DECLARED[each]), each


def test_nothing_is_asked_of_a_provider_that_is_not_declared() -> None:
    files = [file for package in (Path(bullswarm_core.__path__[0]), PACKAGE) for file in package.rglob("*.py")]
    asked = {name for file in files for name in ASKED.findall(file.read_text(encoding="utf-8"))}
    assert asked == set(DECLARED)
