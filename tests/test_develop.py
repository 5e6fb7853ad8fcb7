"""`python3 develop.py VERB`: what a person tries first, before anything is installed."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.processes import until

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import develop  # noqa: E402 - the script at the root of the checkout is no package

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
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout that is installed already."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("develop.py", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    tools = environment_of(tmp_path) / "bin"
    tools.mkdir(parents=True)
    (tools / "python").symlink_to(sys.executable)
    (tools / "bullswarm").write_text(_SLOW_TO_STOP.format(python=sys.executable))
    (tools / "bullswarm").chmod(0o755)
    wanted = "import develop; develop.MARKER.write_text(develop.wanted())"
    subprocess.run([sys.executable, "-c", wanted], cwd=tmp_path, check=True)
    return tmp_path


def environment_of(checkout: Path) -> Path:
    """The folder into which the develop.py of this checkout installs."""
    show = "import develop; print(develop.ENVIRONMENT)"
    return Path(subprocess.check_output([sys.executable, "-c", show], cwd=checkout, text=True).strip())


def test_the_environment_is_outside_of_the_checkout_that_a_worker_may_write() -> None:
    assert not develop.ENVIRONMENT.is_relative_to(develop.ROOT)


def test_two_checkouts_of_one_name_have_environments_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folders = [tmp_path / "one" / "bullswarm", tmp_path / "two" / "bullswarm"]
    for folder in folders:
        folder.mkdir(parents=True)
        shutil.copy(ROOT / "develop.py", folder)
    first, second = map(environment_of, folders)
    assert first != second and first.parent == second.parent == tmp_path / "cache" / "bullswarm-develop"


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


def test_the_first_fault_ends_the_check_and_a_measurement_is_none() -> None:
    done: list[str] = []

    def step(title: str, code: int) -> tuple[str, develop.Step]:
        def work() -> int:
            done.append(title)
            return code

        return title, work

    assert develop.first_fault([step(develop.MEASUREMENTS, 1), step("a", 0)]) == 0
    assert develop.first_fault([step("b", 0), step("c", 5), step("d", 0)]) == 5
    assert done == [develop.MEASUREMENTS, "a", "b", "c"]


def test_what_runs_beside_the_steps_is_waited_for_and_shown(capfd: pytest.CaptureFixture[str]) -> None:
    with develop.beside(sys.executable, "-c", "print('installed'); raise SystemExit(3)") as wait:
        assert wait() == 3
    assert capfd.readouterr().out == "installed\n\n"


def test_a_check_that_ends_early_leaves_nothing_of_what_runs_beside_it(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    child = f"import os, time; open({str(told)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    with develop.beside(sys.executable, "-c", parent):
        pid = int(until(lambda: told.read_text() if told.exists() else None, "the child of it is at work"))
    until(lambda: not alive(pid), "the child has ended")


def alive(pid: int) -> bool:
    """Whether the process runs; one that nobody has waited for yet does not."""
    try:
        return b"State:\tZ" not in Path(f"/proc/{pid}/status").read_bytes()
    except OSError:
        return False
