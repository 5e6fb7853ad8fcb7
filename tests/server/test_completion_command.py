"""`bullswarm completion`: scripts that the shells take and that know every verb and its options."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from tests.server.site import Site

from bullswarm_server.cli.completion import SHELLS, whole_parser
from bullswarm_server.cli.main import VERBS


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_names_every_verb_and_its_shell_takes_it(site: Site, shell: str) -> None:
    said = site.say("completion", shell)
    assert said.code == 0 and all(verb in said.out for verb in VERBS)
    assert not site.home.root.exists()
    if (binary := shutil.which(shell)) is not None:
        file = site.root / "script"
        file.write_text(said.out)
        checked = subprocess.run([binary, "-n", str(file)], capture_output=True, text=True, check=False)
        assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["wor"], {"workflow"}),
        (["workflow", "step", "re"], {"rerun", "restart"}),
        (["workflow", "goal", "--isolation", ""], {"shared", "worktree"}),
        (["workflow", "plan", ""], {"contract", "validate", "schema"}),
        (["run", "--lane", ""], {"analyze", "build", "chore"}),
        (["completion", ""], {"bash", "zsh", "fish"}),
    ],
)
def test_bash_completes(site: Site, typed: list[str], offered: set[str]) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash")
    script = site.root / "completion.bash"
    script.write_text(site.say("completion", "bash").out)
    ask = f"""source {script}
COMP_WORDS=(bullswarm "$@"); COMP_CWORD=$#; COMPREPLY=()
word=${{COMP_WORDS[$COMP_CWORD]}}; before=${{COMP_WORDS[$((COMP_CWORD-1))]}}
$(complete -p bullswarm | sed 's/.*-F \\([^ ]*\\).*/\\1/') bullswarm "$word" "$before"
printf '%s\\n' "${{COMPREPLY[@]}}" """
    done = subprocess.run([bash, "-c", ask, "bash", *typed], capture_output=True, text=True, check=False)
    assert set(done.stdout.split()) == offered, done


def test_files_and_folders_are_completed_as_such() -> None:
    verbs = next(action for action in whole_parser()._actions if action.dest == "==SUPPRESS==" and action.choices)
    assert isinstance(verbs.choices, dict) and set(verbs.choices) == set(VERBS)


@pytest.mark.parametrize("words", [(), ("tcsh",), ("bash", "zsh")])
def test_another_shell_is_refused(site: Site, words: tuple[str, ...]) -> None:
    assert site.say("completion", *words).code == 2


def test_where_the_script_goes_is_said(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert site.say("completion", "--help").code == 0
    page = capsys.readouterr().out
    assert all(f"bullswarm completion {shell} > ~/" in page for shell in SHELLS)
