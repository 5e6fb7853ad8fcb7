"""No file imports, by whatever way, a file that needs it: late imports and those for types alone count, too.

import-linter holds packages apart, not the files within one. A circle of files is read as one file, however many it has,
and a late import that only hides the circle is found by whoever moves it to the top.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from importlib.util import resolve_name
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = ("core", "providers", "server", "hooks")


def module_files(folder: Path) -> dict[str, Path]:
    """Every module below an import root, by its name; a package by the name of its folder."""
    found = {}
    for file in folder.rglob("*.py"):
        parts = file.relative_to(folder).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def imported(name: str, file: Path) -> Iterator[str]:
    """Every name that a file imports, wherever in it: a module, or what is perhaps one within a package."""
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = resolve_name("." * node.level + (node.module or ""), package)
            yield from (f"{source}.{alias.name}" for alias in node.names)


def graph_of(files: Mapping[str, Path]) -> dict[str, set[str]]:
    """Which of the files each of them imports."""
    graph = {}
    for name, file in files.items():
        nearest = (target if target in files else target.rpartition(".")[0] for target in imported(name, file))
        graph[name] = {target for target in nearest if target in files and target != name}
    return graph


def circle(graph: Mapping[str, set[str]]) -> list[str]:
    """One circle, in the order of its imports; empty where there is none."""
    left = dict(graph)
    while free := [name for name, targets in left.items() if not targets & left.keys()]:
        for name in free:
            del left[name]
    if not left:
        return []
    path = [min(left)]
    while path[-1] not in path[:-1]:
        path.append(min(left[path[-1]] & left.keys()))
    return path[path.index(path[-1]) :]


@pytest.mark.parametrize("source", SOURCES)
def test_no_files_import_each_other(source: str) -> None:
    files = module_files(ROOT / source)
    graph = graph_of(files)
    assert any(graph.values()), f"{source}: no import was found at all"
    found = circle(graph)
    assert not found, f"{' -> '.join(found)} · move what both need into a file below them"


@pytest.mark.parametrize(
    "back",
    [
        "from pack.one import name",
        "import pack.one",
        "from pack import one",
        "from .one import name",
        "def late():\n    from pack.one import name",
        "TYPE_CHECKING = False\nif TYPE_CHECKING:\n    from pack.one import name",
    ],
)
def test_every_way_to_import_closes_a_circle(tmp_path: Path, back: str) -> None:
    folder = tmp_path / "pack"
    folder.mkdir()
    for name, text in {"__init__": "", "one": "from pack import two", "two": "import json", "three": back}.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    assert circle(graph_of(module_files(tmp_path))) == []
    (folder / "two.py").write_text("import pack.three\n", encoding="utf-8")
    assert circle(graph_of(module_files(tmp_path))) == ["pack.one", "pack.two", "pack.three", "pack.one"]
