"""Record what the real agent CLIs print, for the tests of the stream reader and of the judge.

python -m tests.recordings.record claude-code codex     # every case of two agents
python -m tests.recordings.record opencode:hang         # one case
"""

import contextlib
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import psutil
from tests.agents.install import BIN_FOLDER, install
from tests.agents.scripted_model.scenario import Script, fail, hang_before_headers, hang_mid_stream, say
from tests.agents.scripted_model.scenario import say_nothing as nothing
from tests.agents.scripted_model.server import ScriptedModel
from tests.agents.setups import SETUPS, Setup
from tests.recordings.cleaning import clean

_FOLDER = Path(__file__).resolve().parent
_PROMPT = "Write hello.txt with the word hello, then say what you did."
# How long an agent that hangs or runs a tool is left alone, from the moment its request reached the model.
_HANG_SECONDS = 3.0
_START_SECONDS = 60.0
_GRACE_SECONDS = 10.0
# The longest real failure that we saw was 44 s (Grok, a server error with one retry).
_LONGEST_SECONDS = 150.0


@dataclass(frozen=True, slots=True)
class Case:
    """One run to record. `denied` starts the agent without the leave to write."""

    name: str
    note: str
    script: Callable[[Setup, str], Script]
    denied: bool = False
    kill_after_seconds: float | None = None
    environment: dict[str, str] = field(default_factory=dict)


def _reset() -> datetime:
    return datetime.now(UTC).replace(microsecond=0) + timedelta(hours=2)


CASES = (
    Case("text", "a text answer", lambda setup, path: [say("The answer is 42.")]),
    Case(
        "warned",
        "a text answer, beside which the vendor says how much of a window is used",
        lambda setup, path: [say("The answer is 42.", headers=setup.window_headers(_reset()))],
    ),
    Case(
        "tool",
        "writes hello.txt, runs a command, then answers",
        lambda setup, path: [
            setup.write_file(path, "hello\n"),
            setup.run_shell(f"cat {path} && echo problem >&2 && exit 3"),
            say("I wrote hello.txt."),
        ],
    ),
    Case(
        "untouched", "says done and touches nothing", lambda setup, path: [say("Done. I wrote hello.txt with hello.")]
    ),
    Case("usage-limit", "used-up window, reset in two hours", lambda setup, path: [setup.usage_limit(_reset())]),
    Case("usage-limit-no-reset", "used-up window, no time of reset", lambda setup, path: [setup.usage_limit(None)]),
    Case("rate-limit", "429 that would pass", lambda setup, path: [setup.rate_limit()]),
    Case("unauthorized", "401", lambda setup, path: [setup.unauthorized()]),
    Case("overloaded", "the vendor's overload answer", lambda setup, path: [setup.overloaded()]),
    Case(
        "server-error",
        "500",
        lambda setup, path: [fail(500, {"error": {"type": "api_error", "message": "boom"}}, {"retry-after-ms": "50"})],
    ),
    Case("empty", "an answer with no content", lambda setup, path: [nothing()]),
    Case(
        "denied",
        "a tool without leave, then no text",
        lambda setup, path: [setup.write_file(path, "hello\n"), nothing()],
        denied=True,
    ),
    Case(
        "killed",
        "TERM while a tool runs",
        lambda setup, path: [setup.run_shell("tail -f /dev/null"), say("Never.")],
        kill_after_seconds=_HANG_SECONDS,
    ),
    Case(
        "hang",
        "the model takes the request and never answers; TERM",
        lambda setup, path: [hang_before_headers()],
        kill_after_seconds=_HANG_SECONDS,
    ),
    Case(
        "hang-mid-stream",
        "the model stops in the middle of a text; TERM",
        lambda setup, path: [hang_mid_stream("Let me look at")],
        kill_after_seconds=_HANG_SECONDS,
    ),
)


def launch_line(setup: Setup, case: Case) -> list[str]:
    """Give the arguments that start an agent with its stream on stdout; the prompt comes by stdin where it may."""
    match setup.name:
        case "claude-code":
            leave = [] if case.denied else ["--permission-mode", "bypassPermissions"]
            return ["claude", "-p", "--output-format", "stream-json", "--verbose", "--model", setup.model, *leave]
        case "codex":
            sandbox = "read-only" if case.denied else "workspace-write"
            return ["codex", "exec", "--json", "--skip-git-repo-check", "-s", sandbox, "-m", setup.model, "-"]
        case "opencode":
            return ["opencode", "run", "--format", "json", "-m", setup.model, "--title", "stub"]
        case "grok":
            leave = [] if case.denied else ["--always-approve"]
            return ["grok", "-p", _PROMPT, "--output-format", "streaming-json", "-m", setup.model, *leave]
        case "command-code":
            leave = [] if case.denied else ["--yolo"]
            fixed = ["--output-format", "json", "-m", setup.model, "-t", "--skip-onboarding", "--no-auto-update"]
            return ["command-code", "-p", *fixed, *leave]
    raise ValueError(f"no launch line for {setup.name}")


def record(setup: Setup, case: Case) -> dict[str, object]:
    """Run one case and keep what it printed; the report is also written beside the recording."""
    # Not below the temporary directory: Codex warns about a home there.
    room = tempfile.TemporaryDirectory(dir="/var/tmp", ignore_cleanup_errors=True)
    with room as scratch, ScriptedModel(case.script(setup, f"{scratch}/project/hello.txt")) as model:
        home, project = Path(scratch, "home"), Path(scratch, "project")
        home.mkdir()
        project.mkdir()
        _git_init(project)
        environment = _environment(home, project) | setup.prepare(home, model.url) | case.environment
        if setup.name == "opencode" and case.denied:
            environment["OPENCODE_PERMISSION"] = json.dumps({"edit": "ask"})
        argv = launch_line(setup, case)
        started = time.monotonic()
        code, out, err = _run(argv, environment, project, case, model, by_stdin=setup.reads_stdin)
        seconds = round(time.monotonic() - started, 1)
        touched = sorted(path.name for path in project.iterdir() if path.name != ".git")
        places = _places(home, project) | {model.url: "http://127.0.0.1:4000"}
        requests = len(model.prompts())
    report = {"exitCode": code, "seconds": seconds, "argv": argv, "stdin": setup.reads_stdin, "note": case.note}
    report |= {"requests": requests, "leftBehind": touched}
    _keep(setup, case, clean(out, places), clean(err, places), report)
    return report


def _places(home: Path, project: Path) -> dict[str, str]:
    """Tell what to show in place of this machine's paths, in each of the spellings that agents make of them."""
    shown = {str(project): "/home/user/project", str(home): "/home/user"}
    encoded = {quote(real, safe=""): quote(place, safe="") for real, place in shown.items()}
    dashed = {re.sub(r"[^A-Za-z0-9]", "-", real): place.replace("/", "-") for real, place in shown.items()}
    return shown | encoded | dashed | {real.lstrip("-"): place.lstrip("-") for real, place in dashed.items()}


def _run(
    argv: Sequence[str], environment: dict[str, str], project: Path, case: Case, model: ScriptedModel, *, by_stdin: bool
) -> tuple[int, str, str]:
    process = subprocess.Popen(
        argv,
        cwd=project,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdin is not None
    process.stdin.write(_PROMPT if by_stdin else "")
    process.stdin.close()
    process.stdin = None
    if case.kill_after_seconds is not None:
        model.wait_for_prompts(1, timeout=_START_SECONDS)
    try:
        out, err = process.communicate(timeout=case.kill_after_seconds or _LONGEST_SECONDS)
    except subprocess.TimeoutExpired:
        started = _descendants(process.pid)
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
        _end_what_outlived(started)
        out, err = process.communicate()
    return process.returncode, out, err


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _end_what_outlived(processes: list[psutil.Process]) -> None:
    _, outlived = psutil.wait_procs(processes, timeout=1)
    for child in outlived:
        with contextlib.suppress(psutil.NoSuchProcess):
            if child.status() != psutil.STATUS_ZOMBIE:
                sys.stderr.write(f"outlived its agent: {child.cmdline()}\n")
                child.kill()


def _environment(home: Path, project: Path) -> dict[str, str]:
    path = f"{BIN_FOLDER}:/usr/local/bin:/usr/bin:/bin"
    return {"PATH": path, "HOME": str(home), "PWD": str(project), "LANG": "C.UTF-8", "TZ": "UTC"}


def _git_init(project: Path) -> None:
    subprocess.run(["git", "init", "-q", str(project)], check=True, stdin=subprocess.DEVNULL)


def _keep(setup: Setup, case: Case, out: str, err: str, report: dict[str, object]) -> None:
    folder = _FOLDER / setup.name
    folder.mkdir(exist_ok=True)
    (folder / f"{case.name}.jsonl").write_text(out, encoding="utf-8")
    (folder / f"{case.name}.stderr").write_text(err, encoding="utf-8")
    (folder / f"{case.name}.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    """Record the named agents, or `agent:case` pairs."""
    install()
    for argument in arguments or list(SETUPS):
        agent, _, wanted = argument.partition(":")
        for case in CASES:
            if re.fullmatch(wanted or ".*", case.name):
                report = record(SETUPS[agent], case)
                shown = {key: report[key] for key in ("exitCode", "seconds", "requests", "leftBehind")}
                sys.stderr.write(f"{agent}/{case.name} {shown}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
