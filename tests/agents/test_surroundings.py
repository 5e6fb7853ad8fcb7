"""What stands around a worker: the folder, the caller's environment, the person's settings, a CLI that is gone, a full disk."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.agents.conftest import MachineMaker
from tests.agents.machine import COMMAND_LIMIT_SEC, SYSTEM_PATH, Machine, Outcome
from tests.agents.scripted_model.scenario import hang_before_headers, say
from tests.agents.setups import CLAUDE, CODEX, Setup
from tests.processes import until

pytestmark = pytest.mark.real_cli

ANSWER = "The parser splits the line at each comma and unquotes every field that starts with a quote."
ODD_FOLDER = "-x é ☃"
# What a shell inside another agent's session holds; the token is a secret of that session.
SESSION = {
    "CLAUDECODE": "1",
    "AI_AGENT": "claude-code_agent",
    "CLAUDE_CODE_ENTRYPOINT": "cli",
    "CLAUDE_CODE_SESSION_ID": "11111111-1111-4111-8111-111111111111",
    "CLAUDE_CODE_MESSAGING_TOKEN": "session-secret-1",
    "CLAUDE_CODE_MESSAGING_SOCKET": "/tmp/none.sock",
    "CODEX_THREAD_ID": "22222222-2222-4222-8222-222222222222",
    "CODEX_CI": "1",
    "OPENCODE": "1",
    "OPENCODE_PID": "1",
    "GROK_AGENT": "1",
}
# These each CLI sets anew for its own shells; the caller's value must be gone all the same.
OWN_VARIABLES = {
    "claude-code": ("CLAUDE", "AI_AGENT"), "codex": ("CODEX_",), "opencode": ("OPENCODE",), "grok": ("GROK_",),
}  # fmt: skip
SECRETS = ("stub-key", "session-secret-1", "sk-stray-key")
KEY = {"ANTHROPIC_API_KEY": "sk-stray-key"}


def main_clis() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("setup", [CLAUDE, CODEX], ids=lambda setup: setup.name)


def environment_of(machine: Machine, folder: Path) -> dict[str, str]:
    """Return what the worker's own shell saw, from the file that it wrote."""
    text = (folder / "env.txt").read_text(encoding="utf-8", errors="surrogateescape")
    return dict(line.split("=", 1) for line in text.split("\0") if "=" in line)


def show_environment(setup: Setup) -> list[Any]:
    command = "env -0 > env.txt; pwd -P > where.txt; git rev-parse --show-toplevel > tree.txt; git status --short"
    return [setup.run_shell(command), say("I wrote the files.")]


def stored_secrets(machine: Machine) -> list[str]:
    """Return the files of bullswarm's home in which a secret stands."""
    files = [path for path in machine.state.rglob("*") if path.is_file()]
    assert files
    return [str(path) for path in files if any(secret.encode() in path.read_bytes() for secret in SECRETS)]


def excluded(outcome: Outcome) -> dict[str, str]:
    return {entry["pool"]: entry["reason"] for entry in outcome.verdict["excluded"]}


def run_here(machine: Machine, *options: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    return machine.bullswarm("run", "--json", "--lane", "analyze", *options, "Do the task.", environ=environ)


# --- the folder and the environment


def test_a_worker_works_in_its_folder_whatever_the_callers_shell_says(
    make_machine: MachineMaker, setup: Setup, tmp_path: Path
) -> None:
    """An odd name, a PWD and a GIT_DIR that mean another place, a calling agent's session: one run shows them all."""
    machine = make_machine(setup, show_environment(setup))
    elsewhere, folder = tmp_path / "elsewhere", machine.root / ODD_FOLDER
    for repository in (elsewhere, folder):
        subprocess.run(
            ["git", "init", "--quiet", "--", str(repository)],
            check=True,
            env={"PATH": SYSTEM_PATH, "HOME": str(tmp_path)},
        )
    misleading = {"PWD": str(elsewhere), "GIT_DIR": str(elsewhere / ".git"), "GIT_WORK_TREE": str(elsewhere)}
    done = machine.bullswarm(
        "run", "--json", "--lane", "build", "--pool", setup.name, *machine.model_option(),
        "--add-dir", f"./{ODD_FOLDER}", "Write the files.",
        environ={**misleading, **SESSION, "BULLSWARM_CALLER": "none"}, cwd=machine.root,
    )  # fmt: skip
    verdict = json.loads(done.stdout)
    assert verdict["ok"], verdict
    assert (folder / "where.txt").read_text().strip() == str(folder)
    assert (folder / "tree.txt").read_text().strip() == str(folder)
    assert sorted(verdict["changedFiles"]) == ["env.txt", "tree.txt", "where.txt"]
    assert list(elsewhere.iterdir()) == [elsewhere / ".git"]
    seen = environment_of(machine, folder)
    assert {
        name for name in SESSION if name in seen and not name.startswith(OWN_VARIABLES.get(setup.name, "-"))
    } == set()
    assert not set(SESSION.values()) - {"1"} & set(seen.values())
    assert not [name for name in seen if name in misleading and seen[name] == misleading[name]]
    assert (seen["BULLSWARM_DEPTH"], seen["BULLSWARM_CALLER"]) == ("1", setup.name)
    assert stored_secrets(machine) == []


def test_a_stray_key_never_reaches_a_subscriptions_worker(make_machine: MachineMaker) -> None:
    machine = make_machine(CLAUDE, show_environment(CLAUDE))
    outcome = machine.run("Write the files.", lane="build", environ=KEY)
    assert outcome.verdict["ok"], outcome.verdict["why"]
    assert "ANTHROPIC_API_KEY" not in environment_of(machine, machine.project)
    assert any("ANTHROPIC_API_KEY kept from the worker" in note for note in outcome.verdict["launchNotes"])
    assert (outcome.verdict["billing"], outcome.verdict["pick"]["command"].startswith("env -u ANTHROPIC_API_KEY ")) == (
        "subscription", True,
    )  # fmt: skip
    assert not [request for request in machine.model.prompts() if "sk-stray-key" in str(request.headers)]
    assert stored_secrets(machine) == []


def test_a_key_that_is_the_only_sign_in_waits_for_one_command_and_is_then_used_and_named(
    make_machine: MachineMaker,
) -> None:
    machine = make_machine(CLAUDE, [say(ANSWER)])
    del machine.environ["CLAUDE_CODE_OAUTH_TOKEN"]
    refused = machine.run(environ=KEY)
    assert (refused.verdict["ok"], refused.kind) == (False, "unavailable"), refused
    assert machine.model.prompts() == []
    command = re.search(r"to allow it: bullswarm ([^)]*)\)", refused.verdict["why"])
    assert command, refused
    assert machine.bullswarm(*command[1].split()).returncode == 0
    outcome = machine.run(environ=KEY)
    assert (outcome.verdict["ok"], outcome.verdict["billing"]) == (True, "api-key"), outcome
    assert any(request.headers.get("x-api-key") == "sk-stray-key" for request in machine.model.prompts())
    assert stored_secrets(machine) == []


# --- the caller


def test_the_callers_own_pool_takes_no_work(make_machine: MachineMaker) -> None:
    machine = make_machine(CLAUDE, [say(ANSWER)])
    outcome = Outcome(0, json.loads(run_here(machine, CLAUDECODE="1").stdout), "")
    assert "claude-code" in excluded(outcome), outcome
    assert outcome.verdict["pick"]["pool"] == "echo"
    assert machine.model.prompts() == []


def test_another_account_of_the_caller_may_work(make_machine: MachineMaker) -> None:
    machine = make_machine(CLAUDE, [say(ANSWER)])
    for folder, account in ((".claude", "one"), (".claude-work", "two")):
        (machine.home / folder).mkdir()
        (machine.home / folder / "settings.json").write_text("{}", encoding="utf-8")
        identity = machine.home / (".claude.json" if folder == ".claude" else f"{folder}/.claude.json")
        identity.write_text(json.dumps({"oauthAccount": {"accountUuid": account}}), encoding="utf-8")
    outcome = Outcome(0, json.loads(run_here(machine, CLAUDECODE="1").stdout), "")
    assert outcome.verdict["pick"]["pool"] == "claude-code:work", outcome
    assert outcome.verdict["ok"] and "claude-code" in excluded(outcome)
    assert list((machine.home / ".claude-work" / "projects").rglob("*.jsonl")), "the session is in the account's folder"
    back = Outcome(
        0,
        json.loads(run_here(machine, CLAUDECODE="1", CLAUDE_CONFIG_DIR=str(machine.home / ".claude-work")).stdout),
        "",
    )
    assert back.verdict["pick"]["pool"] == "claude-code", back


# --- the person's settings


def spied_on(machine: Machine) -> tuple[Path, Path]:
    """Give the person's settings a hook and an MCP server, each of which leaves a file, and the project its instructions."""
    folder = machine.home / (".claude" if machine.setup is CLAUDE else ".codex")
    # Where a confined worker may write, and where what is written is no finding.
    logs = folder / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    hook, server = logs / "hook-ran", logs / "server-ran"
    spy = {"command": "/bin/sh", "args": ["-c", f"touch {shlex.quote(str(server))}; sleep 5"]}
    if machine.setup is CLAUDE:
        hooks = {"SessionStart": [{"hooks": [{"type": "command", "command": f"touch {shlex.quote(str(hook))}"}]}]}
        (folder / "settings.json").write_text(json.dumps({"hooks": hooks}), encoding="utf-8")
        (machine.home / ".claude.json").write_text(json.dumps({"mcpServers": {"spy": spy}}), encoding="utf-8")
        (machine.project / "CLAUDE.md").write_text("Remember the word amaranth.\n", encoding="utf-8")
    else:
        with (folder / "config.toml").open("a", encoding="utf-8") as file:
            file.write(f'\n[mcp_servers.spy]\ncommand = "/bin/sh"\nargs = {json.dumps(spy["args"])}\n')
        (machine.project / "AGENTS.md").write_text("Remember the word amaranth.\n", encoding="utf-8")
    return hook, server


@main_clis()
def test_the_persons_settings_stay_out_and_the_projects_instructions_come_in(
    make_machine: MachineMaker, setup: Setup
) -> None:
    machine = make_machine(setup, [say(ANSWER)])
    hook, server = spied_on(machine)
    assert machine.run().verdict["ok"]
    assert (hook.exists(), server.exists()) == (False, False)
    assert any("amaranth" in json.dumps(request.body) for request in machine.model.prompts())


@main_clis()
def test_a_person_may_want_their_settings_in(make_machine: MachineMaker, setup: Setup) -> None:
    machine = make_machine(setup, [say(ANSWER)])
    hook, server = spied_on(machine)
    chosen = machine.bullswarm("strategy", "set-provider", setup.name, "--inherits-config", "on", "--yes")
    assert chosen.returncode == 0, chosen.stderr
    outcome = machine.run()
    assert outcome.verdict["ok"], outcome.verdict["why"]
    assert server.exists()
    # Codex runs no hook that the person has not approved in its own screen.
    assert hook.exists() == (setup is CLAUDE)


# --- a CLI that isn't there


def test_a_missing_cli_is_named(make_machine: MachineMaker) -> None:
    machine = make_machine(CLAUDE, [])
    (machine.root / "bin" / "claude").unlink()
    outcome = machine.run()
    assert (outcome.code, outcome.kind, outcome.verdict["attempts"]) == (1, "unavailable", 0), outcome
    assert "claude was not found on PATH" in outcome.verdict["why"]


def test_a_pool_whose_cli_is_not_installed_does_not_exist(make_machine: MachineMaker) -> None:
    machine = make_machine(CODEX, [])
    (machine.root / "bin" / "codex").unlink()
    done = run_here(machine, "--pool", "codex")
    assert (done.returncode, done.stdout) == (2, "")
    assert 'unknown pool "codex"' in done.stderr
    assert not (machine.state / "workflows").exists()


@main_clis()
def test_a_binary_that_is_not_executable_is_named(make_machine: MachineMaker, setup: Setup) -> None:
    machine = make_machine(setup, [])
    binary = machine.root / "bin" / setup.binary
    binary.unlink()
    binary.write_text("#!/bin/sh\n", encoding="utf-8")
    outcome = machine.run()
    assert (outcome.code, outcome.kind) == (1, "unavailable"), outcome
    assert f"{binary} is not executable" in outcome.verdict["why"]


@main_clis()
def test_a_binary_that_vanishes_after_the_pick(make_machine: MachineMaker, setup: Setup) -> None:
    """The first thing between pick and start is a look at the tree by git; this git takes the CLI away."""
    machine = make_machine(setup, [])
    binary, git = machine.root / "bin" / setup.binary, machine.root / "bin" / "git"
    git.write_text(
        f'#!/bin/sh\nrm -f {shlex.quote(str(binary))}\nexec {shutil.which("git", path=SYSTEM_PATH)} "$@"\n',
        encoding="utf-8",
    )
    git.chmod(0o755)
    outcome = machine.run()
    assert (outcome.code, outcome.kind, outcome.verdict["attempts"]) == (1, "process", 1), outcome
    assert f"cannot start {binary}: No such file or directory" in outcome.verdict["why"]
    assert json.loads(machine.bullswarm("assignments", "--json").stdout)["assignments"] == []


# --- disks


def in_namespace(machine: Machine, mount: str, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run a verb where the home of bullswarm is mounted by ``mount``, in which $1 is that folder."""
    script = f'home=$1; shift; {mount} && exec "$@"'
    argv = ["unshare", "-Urm", "sh", "-c", script, "sh", str(machine.state), *machine.command(*words)]
    return subprocess.run(
        argv, cwd=machine.project, env=machine.environ, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=COMMAND_LIMIT_SEC, check=False,
    )  # fmt: skip


READ_ONLY = 'mount --bind "$home" "$home" && mount -o remount,bind,ro "$home"'
RUN_CODEX = ("run", "--json", "--lane", "analyze", "--pool", "codex", "Do the task.")


def test_a_read_only_home_does_nothing_and_says_so(make_machine: MachineMaker) -> None:
    machine = make_machine(CODEX, [say(ANSWER)])
    assert machine.run().verdict["ok"]
    # The kernel closes its database after the verdict.
    until(lambda: not machine.processes(), "everything of the first run has ended")
    before = {path: path.read_bytes() for path in machine.state.rglob("*") if path.is_file()}
    asked = len(machine.model.requests)
    done = in_namespace(machine, READ_ONLY, *RUN_CODEX)
    assert (done.returncode, done.stdout) == (1, ""), done
    assert "Read-only file system" in done.stderr and "BULLSWARM_HOME" in done.stderr
    assert {path: path.read_bytes() for path in machine.state.rglob("*") if path.is_file()} == before
    assert len(machine.model.requests) == asked
    for words in (("pools",), ("runs", "list"), ("assignments",), ("run", "--dry-run", *RUN_CODEX[2:])):
        looked = in_namespace(machine, READ_ONLY, *words)
        assert looked.returncode == 0 and "error" not in looked.stderr.lower(), (words, looked)


def test_a_disk_that_is_full_before_the_start(make_machine: MachineMaker) -> None:
    machine = make_machine(CODEX, [say(ANSWER)])
    done = in_namespace(machine, 'mount -t tmpfs -o mode=700,size=64k none "$home"', *RUN_CODEX)
    assert (done.returncode, done.stdout) == (1, ""), done
    assert "full" in done.stderr
    assert machine.model.prompts() == []


def test_a_disk_that_leaves_no_room_for_the_journal(make_machine: MachineMaker) -> None:
    machine = make_machine(CODEX, [say(ANSWER)])
    done = in_namespace(machine, 'mount -t tmpfs -o mode=700,size=140k none "$home"', *RUN_CODEX)
    assert (done.returncode, done.stdout) == (1, ""), done
    assert "full" in done.stderr, done
    assert machine.model.prompts() == []


@pytest.mark.parametrize(
    ("size", "words"),
    [("1m", "No space left on device ("), ("2m", "No space left on device; nothing was changed")],
    ids=["the worker's output", "the answer's file"],
)
def test_a_disk_that_fills_up_is_not_blamed_on_the_worker(make_machine: MachineMaker, size: str, words: str) -> None:
    machine = make_machine(CODEX, [say("A long line of the answer.\n" * 60_000)])
    # The small disk is a new one, and the person's word on billing has to stand on it.
    kept = '"$home/../kept.json"'
    prepare = f'cp "$home/state.json" {kept}; mount -t tmpfs -o mode=700,size={size} none "$home"; cp {kept} "$home/state.json"'
    done = in_namespace(machine, prepare, *RUN_CODEX)
    verdict = json.loads(done.stdout)
    assert (done.returncode, verdict["ok"], verdict["failureKind"]) == (1, False, "runtime"), verdict
    assert words in verdict["why"], verdict["why"]
    assert verdict["meta"]["streamFile"] and verdict["meta"]["capture"]["outputBytes"] > 1_500_000
    if size == "1m":
        assert verdict["meta"]["capture"]["droppedBytes"] > 0
        kinds = [note["kind"] for note in verdict["notes"]]
        assert kinds == ["capture-cut", "first-start-files"], "this machine's Codex starts for the first time"


def test_a_limit_on_file_size_is_named(make_machine: MachineMaker) -> None:
    machine = make_machine(CLAUDE, [say("A long line of the answer.\n" * 60_000)])
    command = machine.command("run", "--json", "--lane", "analyze", "--pool", "claude-code", "Do the task.")
    done = subprocess.run(
        ["bash", "-c", 'ulimit -f 1024 && exec "$@"', "sh", *command],
        cwd=machine.project, env=machine.environ, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=COMMAND_LIMIT_SEC, check=False,
    )  # fmt: skip
    verdict = json.loads(done.stdout)
    assert (done.returncode, verdict["ok"], verdict["failureKind"]) == (1, False, "interrupted"), verdict
    assert "SIGXFSZ" in verdict["why"], "the CLI's own session file met the limit"
    assert "File too large" in verdict["meta"]["capture"]["error"]
    assert "capture-cut" in [note["kind"] for note in verdict["notes"]]


# --- two writers


def test_two_build_runs_in_one_tree(make_machine: MachineMaker) -> None:
    machine = make_machine(CODEX, [hang_before_headers()])
    first = machine.start_run(lane="build")
    assert machine.model.wait_for_prompts(1)
    (running,) = machine.runs()
    refused = machine.bullswarm("run", "--json", "--lane", "build", "--pool", "codex", "Do more.")
    assert (refused.returncode, refused.stdout) == (1, ""), refused
    assert f"run {running['shortId']} already writes in {machine.project}" in refused.stderr
    assert "--shared-tree" in refused.stderr
    assert len(machine.runs()) == 1
    machine.turns[:] = [say(ANSWER)]
    assert machine.run().verdict["ok"], "an analysis may look on"
    assert machine.bullswarm("runs", "stop", running["shortId"]).returncode in (0, 1)
    assert until(lambda: first.poll() is not None, "the first run has ended")
