"""No child ever shares our standard input: it would hang on it, or eat the bytes of the protocol."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SOURCES = sorted(
    path for part in ("core", "providers", "server", "hooks") for path in (ROOT / part).rglob("*.py")
)  # fmt: skip
STARTERS = {"run", "Popen", "call", "check_call", "check_output", "create_subprocess_exec", "create_subprocess_shell"}
# These start a child without a word on its stdin, or through a shell.
FORBIDDEN = {"system", "popen", "spawnv", "spawnve", "posix_spawn", "posix_spawnp", "create_subprocess_shell"}
OWN_STDIN = {"subprocess.DEVNULL", "subprocess.PIPE", "stdin"}


def starts(source: str) -> list[ast.Call]:
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [call for call in calls if isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) in MODULES]


MODULES = {"subprocess", "asyncio", "os", "anyio"}


def faults(source: str) -> list[str]:
    found = []
    for call in starts(source):
        assert isinstance(call.func, ast.Attribute)
        module, name = ast.unparse(call.func.value), call.func.attr
        given = {word.arg: ast.unparse(word.value) for word in call.keywords}
        if name in FORBIDDEN or given.get("shell") == "True":
            found.append(f"line {call.lineno}: {module}.{name}")
        elif module != "os" and name in STARTERS and module == "subprocess" and given.get("stdin") not in OWN_STDIN:
            found.append(f"line {call.lineno}: {module}.{name} with stdin {given.get('stdin')}")
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_child_gets_no_input_or_a_pipe_of_its_own(path: Path) -> None:
    assert faults(path.read_text(encoding="utf-8")) == []


def test_the_look_finds_each_kind_of_fault() -> None:
    for bad in (
        "subprocess.run(['git'])", "subprocess.Popen(x, stdin=None)", "os.system('git')", "os.popen('git')",
        "subprocess.run('git', shell=True, stdin=subprocess.DEVNULL)", "asyncio.create_subprocess_shell('git')",
    ):  # fmt: skip
        assert faults(bad), bad
    assert faults("subprocess.run(['git'], stdin=subprocess.DEVNULL)") == []
    assert any(path.name == "child.py" for path in SOURCES)
