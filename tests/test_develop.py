"""`python3 develop.py VERB`: what a person tries first, before anything is installed."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# Stands in for `bullswarm run`: it needs longer to end its worker than Python waits before it kills a child.
_SLOW_TO_STOP = """#!{python}
import signal, sys, time
def stop(*_):
    time.sleep(1)
    print("the verdict", flush=True)
    sys.exit(1)
signal.signal(signal.SIGINT, stop)
print("ready", *sys.argv[1:], flush=True)
signal.pause()
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout that is installed already."""
    for name in ("develop.py", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    tools = tmp_path / ".venv" / "bin"
    tools.mkdir(parents=True)
    (tools / "python").symlink_to(sys.executable)
    (tools / "bullswarm").write_text(_SLOW_TO_STOP.format(python=sys.executable))
    (tools / "bullswarm").chmod(0o755)
    wanted = "import develop; develop.MARKER.write_text(develop.wanted())"
    subprocess.run([sys.executable, "-c", wanted], cwd=tmp_path, check=True)
    return tmp_path


def test_ctrl_c_is_answered_by_the_verb_and_its_exit_code_is_kept(checkout: Path) -> None:
    command = [sys.executable, str(checkout / "develop.py"), "run", "--lane", "analyze", "Explain the parser"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready run --lane analyze Explain the parser\n"
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (out, err, process.returncode) == ("the verdict\n", "", 1)
