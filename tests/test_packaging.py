"""What is installed is whole: a wheel holds the data files beside the code, and works from where it was unpacked."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PLUGIN = ROOT / "claude-mod"
PARTS = ("bullswarm_core", "bullswarm_simulation", "bullswarm_providers", "bullswarm_server", "bullswarm_hooks")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("*.whl")
    return built


def test_a_wheel_holds_every_file_of_the_parts_and_nothing_else(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    tracked = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "core", "providers", "server", "hooks"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    parts = {name.partition("/")[2] for name in tracked if (ROOT / name).exists()}
    plugin = {
        f"bullswarm_server/_claude_mod/{file.relative_to(PLUGIN)}" for file in PLUGIN.rglob("*") if file.is_file()
    }
    assert names == parts | plugin
    assert "bullswarm_server/_claude_mod/.claude-plugin/plugin.json" in names
    assert "bullswarm_providers/claude_code/connector.json" in names
    assert {f"{part}/py.typed" for part in PARTS} <= names


def test_an_unpacked_wheel_runs_a_task(wheel: Path, own_home: Path, tmp_path: Path) -> None:
    place = tmp_path / "unpacked"
    zipfile.ZipFile(wheel).extractall(place)
    libraries = os.pathsep.join(path for path in sys.path if path.endswith("site-packages"))
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(own_home), "PYTHONPATH": f"{place}{os.pathsep}{libraries}"}
    command = [sys.executable, "-m", "bullswarm_server.cli.main", "run", "--lane", "analyze", "Explain the parser"]
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "the embedded worker: no model reads this task" in done.stdout
    assert str(place) in subprocess.run(
        [sys.executable, "-c", "import bullswarm_core; print(bullswarm_core.__file__)"],
        env=environ, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip


def test_an_unpacked_wheel_finds_the_plugin_the_skill_and_the_hooks_in_itself(
    wheel: Path, own_home: Path, tmp_path: Path
) -> None:
    place = tmp_path / "unpacked"
    zipfile.ZipFile(wheel).extractall(place)
    libraries = os.pathsep.join(path for path in sys.path if path.endswith("site-packages"))
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(own_home), "PYTHONPATH": f"{place}{os.pathsep}{libraries}"}
    asked = "from bullswarm_server.integrate.sources import find_sources, claude_mod; s = find_sources({}); "
    asked += "print(claude_mod()); print(sorted(s.templates)); print(s.skill.splitlines()[1])"
    done = subprocess.run([sys.executable, "-c", asked], env=environ, capture_output=True, text=True, check=True)
    folder, templates, name = done.stdout.splitlines()
    assert folder == str(place / "bullswarm_server" / "_claude_mod")
    assert templates == "['claude.json', 'codex.json', 'opencode.js']"
    assert name == "name: delegate"
