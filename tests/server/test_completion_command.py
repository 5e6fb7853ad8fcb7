"""`bullswarm completion`: scripts that the shells take and that know every verb and its options."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest
from tests.server.site import Site
from tests.server.terminals import on_terminal

from bullswarm_core.fast import hook_state
from bullswarm_core.store.home import write_json
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
    assert set(_offered(site, typed)) == offered


def _offered(site: Site, typed: list[str], *, path: str | None = None) -> list[str]:
    """Return what bash offers behind these words, the last of which is being typed; ``path`` goes before PATH."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash")
    script = site.root / "completion.bash"
    script.write_text(site.say("completion", "bash").out)
    ask = f"""source {script}
COMP_LINE="bullswarm $*"; COMP_WORDS=(bullswarm "$@"); COMP_CWORD=$#; COMPREPLY=()
word=${{COMP_WORDS[$COMP_CWORD]}}; before=${{COMP_WORDS[$((COMP_CWORD-1))]}}
$(complete -p bullswarm | sed 's/.*-F \\([^ ]*\\).*/\\1/') bullswarm "$word" "$before"
printf '%s\\n' "${{COMPREPLY[@]}}" """
    search = os.pathsep.join(filter(None, (path, os.environ.get("PATH"))))
    done = subprocess.run(
        [bash, "-c", ask, "bash", *typed],
        env={**os.environ, "PATH": search, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done
    return sorted(done.stdout.split())


def _known(site: Site, *pools: str, labels: dict[str, str] | None = None) -> None:
    """Let the home remember these pools, as `bullswarm pools` and the hooks leave them."""
    entries = [{"pool": pool} for pool in pools]
    state = {"schemaVersion": hook_state.SCHEMA_VERSION, "at": "2026-03-01T12:00:00Z", "pools": entries}
    write_json(site.home.cache_dir / "hook-state.json", state)
    if labels:
        write_json(site.home.labels_file, {"version": 1, "labels": labels})


def test_pools_are_named_by_id_and_label(site: Site) -> None:
    assert (site.say("completion", "--pools").code, site.say("completion", "--pools").out) == (0, "")
    assert not site.home.root.exists()
    _known(site, "codex", "claude-code:a1", labels={"claude-code:a1": "acme", "grok": "$(touch x)"})
    assert site.say("completion", "--pools").out.split() == ["acme", "claude-code:a1", "codex"]
    for file in (site.home.labels_file, site.home.cache_dir / "hook-state.json"):
        file.write_text("{")
    said = site.say("completion", "--pools")
    assert (said.code, said.out, said.err) == (0, "", "")


@pytest.mark.parametrize(
    "typed",
    [
        ["run", "--pool", "c"],
        ["route", "--use-pool", "c"],
        ["pools", "resume", "c"],
        ["pools", "label", "c"],
        ["label", "c"],
        ["provider", "probe", "c"],
        ["strategy", "set-rung", "c"],
    ],
)
def test_bash_completes_pools(site: Site, typed: list[str]) -> None:
    _known(site, "codex", "grok", labels={"grok": "corner"})
    command = f'BULLSWARM_HOME={site.home.root} exec {sys.executable} -m bullswarm_server.cli.main "$@"'
    assert _offered(site, typed, path=_program(site, command)) == ["codex", "corner"]


@pytest.mark.parametrize(
    ("typed", "taken"),
    [
        ("run --pool cl\t", "run --pool claude-code:acme-"),
        ("run --pool claude-code:\t", "run --pool claude-code:acme-"),
        ("run --pool claude-code:acme-e\t", "run --pool claude-code:acme-east"),
        ("run --pool=claude-code:acme-e\t", "run --pool=claude-code:acme-east"),
        ("run --pool=gr\t", "run --pool=grok"),
        ("run --pool=claude-code:acme-w\t--lane b\t", "run --pool=claude-code:acme-west --lane build"),
        ("run --pool claude-code:acme-w\t--effort m\t", "run --pool claude-code:acme-west --effort medium"),
        ("run --lane=\t", "run --lane="),
        ("label claude-code:acme-w\t", "label claude-code:acme-west"),
        ("run --prompt a: --pool gr\t", "run --prompt a: --pool grok"),
        ("run --prompt a : --pool gr\t", "run --prompt a : --pool grok"),
        ("run a:b --effort hi\t", "run a:b --effort high"),
        ("run --pool te\t", "run --pool team=red"),
        ("run --pool team=\t", "run --pool team=red"),
        ("run --pool=team=r\t--lane b\t", "run --pool=team=red --lane build"),
        ("label team=r\t", "label team=red"),
        ("run --pool x:team=r\t", "run --pool x:team=red"),
    ],
)
def test_a_person_who_types_in_bash_gets_whole_words(site: Site, typed: str, taken: str) -> None:
    """What readline, and no imitation of it, makes of a line: `:` and `=` end a word for it."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash")
    script, said = site.root / "completion.bash", site.root / "said"
    # The prompt is set there, since a system's own settings of bash may set another.
    script.write_text(site.say("completion", "bash").out + "PS1='ready> '\n")
    names = "printf '%s\\n' claude-code:acme-east claude-code:acme-west grok team=red x:team=red"
    path = _program(site, f"""[ "$*" = 'completion --pools' ] && {names} || printf '%s\\n' "$*" > {said}""")
    environ = {
        "HOME": str(site.root), "INPUTRC": "/dev/null", "TERM": "dumb",
        "PATH": os.pathsep.join((path, os.environ["PATH"])),
    }  # fmt: skip
    program = (bash, "--noprofile", "--rcfile", str(script), "-i")
    with on_terminal([], environ, program=program) as terminal:
        terminal.until(lambda seen: "ready> " in seen, "the prompt")
        terminal.type(f"bullswarm {typed}\n")
        terminal.type("exit\n")
        assert terminal.end() == 0
    assert said.read_text().strip() == taken


def test_a_name_is_no_program_of_the_shell(site: Site) -> None:
    path = _program(site, f"""printf '%s\\n' 'c$(touch${{IFS}}{site.root}/run)'""")
    assert _offered(site, ["run", "--pool", "c"], path=path) == [f"c$(touch${{IFS}}{site.root}/run)"]
    assert not (site.root / "run").exists()


def test_fish_completes_pools(site: Site) -> None:
    fish = shutil.which("fish")
    if fish is None:
        pytest.skip("there is no fish")
    script = site.root / "bullswarm.fish"
    script.write_text(site.say("completion", "fish").out)
    path = _program(site, "printf '%s\\n' codex grok corner")
    done = subprocess.run(
        [fish, "--no-config", "-c", f"source {script}; complete -C 'bullswarm run --pool c'"],
        env={**os.environ, "PATH": os.pathsep.join((path, os.environ["PATH"]))}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert sorted(line.split("\t")[0] for line in done.stdout.splitlines()) == ["codex", "corner"], done


def _program(site: Site, command: str) -> str:
    """Write a `bullswarm` that runs this shell command, and return its folder."""
    program = site.root / "shell" / "bullswarm"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{command}\n")
    program.chmod(0o755)
    return str(program.parent)


def test_files_and_folders_are_completed_as_such() -> None:
    verbs = next(action for action in whole_parser()._actions if action.dest == "==SUPPRESS==" and action.choices)
    assert isinstance(verbs.choices, dict) and set(verbs.choices) == set(VERBS)


@pytest.mark.parametrize("words", [(), ("tcsh",), ("bash", "zsh"), ("bash", "--pools")])
def test_another_shell_is_refused(site: Site, words: tuple[str, ...]) -> None:
    assert site.say("completion", *words).code == 2


def test_where_the_script_goes_is_said(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert site.say("completion", "--help").code == 0
    page = capsys.readouterr().out
    assert all(f"bullswarm completion {shell} > ~/" in page for shell in SHELLS)
