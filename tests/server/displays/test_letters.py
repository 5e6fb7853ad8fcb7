"""Every sign that a display draws takes one place, and none needs a font that a plain terminal may lack."""

from __future__ import annotations

import ast
import unicodedata
from pathlib import Path

import pytest

from bullswarm_server import dashboard, displays
from bullswarm_server.displays.terminal import cells

FILES = sorted(path for room in (displays, dashboard) for path in Path(room.__file__ or "").parent.glob("*.py"))


def signs(path: Path) -> set[str]:
    """The letters beyond ASCII in the texts that a module may draw; its docstrings draw nothing."""
    module = ast.parse(path.read_text(encoding="utf-8"))
    described = {
        node.value for node in ast.walk(module) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    texts = [node for node in ast.walk(module) if isinstance(node, ast.Constant) and node not in described]
    return {letter for node in texts if isinstance(node.value, str) for letter in node.value if ord(letter) > 126}


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_sign_takes_one_place_and_is_in_every_font(path: Path) -> None:
    for sign in signs(path):
        # Marks that are looked for in order to be removed are drawn by nobody.
        if unicodedata.category(sign) in ("Cf", "Cc", "Cn", "Co", "Zl", "Zp") or unicodedata.combining(sign):
            continue
        assert cells(sign) == 1, (sign, hex(ord(sign)))
        assert not 0x2800 <= ord(sign) <= 0x28FF, "a terminal without a Braille font shows a question mark"
        assert ord(sign) < 0x1F000, "no picture"


def test_there_is_something_to_check() -> None:
    assert len(FILES) > 20 and {"✓", "✗", "▶"} <= {sign for path in FILES for sign in signs(path)}
