"""No code walks folders by a method that recurses; the linter sees functions of modules, and not the methods of a path."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
# What it lists was made by the program itself.
OWN_FOLDERS = {"server/bullswarm_server/integrate/own_files.py"}


def recursions(text: str) -> list[int]:
    """Return the lines that call ``rglob``, ``walk`` of a path, or a ``glob`` with ``**``."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        pattern = node.args[0] if node.args else None
        literal = pattern.value if isinstance(pattern, ast.Constant) and isinstance(pattern.value, str) else None
        # A looker walks with a stack; `os.walk` is the linter's to see.
        of_module = isinstance(node.func.value, ast.Name) and node.func.value.id in ("ast", "os", "looker")
        called = node.func.attr
        if (
            called == "rglob"
            or (called == "walk" and not of_module)
            or (called == "glob" and literal is not None and "**" in literal)
        ):
            found.append(node.lineno)
    return found


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ('x.rglob("*")', [1]),
        ('x.glob("**/a")', [1]),
        ("x.walk()", [1]),
        ('x.glob("*")', []),
        ("ast.walk(x)", []),
        ("walk(x)", []),
    ],
)
def test_a_recursion_is_seen(text: str, lines: list[int]) -> None:
    assert recursions(text) == lines


@pytest.mark.parametrize("part", ["core", "providers", "server", "hooks"])
def test_no_code_recurses_into_folders(part: str) -> None:
    files = list((ROOT / part).rglob("*.py"))
    assert files
    found = {
        str(path.relative_to(ROOT)): lines for path in files if (lines := recursions(path.read_text(encoding="utf-8")))
    }
    assert set(found) <= OWN_FOLDERS, found
