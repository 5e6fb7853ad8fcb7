"""Finds the verb, imports only that verb's module, and turns errors into exit codes.

Even ``typing`` and ``collections.abc`` are for type checkers only here: they cost as much as bare Python's own start.

Exit codes: 0 good · 1 the work failed · 2 the call was wrong and nothing happened.
"""

from __future__ import annotations

import gc
import os
import sys

from bullswarm_core.fast import VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TextIO

# verb -> (module, one line for the help page); the order is the order of the help page.
VERBS: dict[str, tuple[str, str]] = {
    "run": ("run", "give one bounded task to one worker and print its verdict"),
    "route": ("route", "show the pick that a task would get, and why; starts nothing"),
    "pools": ("pools", "every pool with its meter, pace and load; `pools label` names one"),
    "label": ("label", "show, set or clear the display label of a pool"),
    "workflow": ("workflow", "run a program of dependent steps, and steer it"),
    "runs": ("runs", "list, show, read, wait for, steer, stop or delete what was started"),
    "dashboard": ("dashboard", "what needs you, what runs, and the pools, on a whole terminal"),
    "assignments": ("assignments", "what is in flight now, across every bullswarm process"),
    "strategy": ("strategy", "what you decided: pools on or off, rungs, assignments, subscriptions"),
    "simulate": ("simulate", "play your recorded days again: what each policy would have done"),
    "integrate": ("integrate", "set up Claude Code, Codex, OpenCode and Grok to call bullswarm"),
    "setup": ("setup", "find the agent CLIs of this machine and record your choices"),
    "doctor": ("doctor", "check this installation, a line per check with its fix"),
    "provider": ("provider", "list, validate, scaffold, probe, enable or disable providers"),
    "home": ("home", "what the home holds; delete runs that ended long ago"),
    "health": ("health", "judge saved outputs again"),
    "mcp": ("mcp", "the MCP server that agents start"),
    "delegation": ("delegation", "on or off: may hooks give an agent's subagents to other pools"),
    "mod-state": ("mod_state", "what the Claude Mod draws: pools, runs and verdicts as one JSON document"),
    "statusline": ("statusline", "the line for Claude Code's status line"),
    "completion": ("completion", "the completion script of bash, zsh or fish"),
}
# After these the cache of the hooks may be behind what the person decided.
_DECIDING = ("pools", "label", "strategy", "setup", "provider")
# These say what is wrong with a home, draw on somebody's screen at every turn, or read none.
_FOR_ANY_HOME = ("doctor", "statusline", "mod_state", "completion")
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130


def help_text() -> str:
    """The page that `bullswarm --help` prints."""
    width = max(len(verb) for verb in VERBS)
    lines = [
        "bullswarm hands a bounded task to the coding-agent account whose included quota would otherwise expire,",
        "runs that agent's CLI, judges what it left behind, and prints one verdict.",
        "",
        "usage: bullswarm <verb> [options]        bullswarm <verb> --help for the options of one",
        "       bullswarm alone opens the dashboard on a terminal, once `bullswarm setup` has recorded your choices",
        "",
    ]
    lines += [f"  {verb.ljust(width)}  {line}" for verb, (_, line) in VERBS.items()]
    lines += [
        "",
        f"  {'--version'.ljust(width)}  print the version",
        "",
        "exit codes: 0 good · 1 the work failed · 2 the call was wrong, nothing happened",
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one `bullswarm` command and return its exit code; without ``arguments`` the process is there for it alone."""
    if arguments is not None:
        return _command(list(arguments))
    # What a start imports stays to the end: looking for garbage in it, on the way in and on the way out, took an eighth
    # of `pools`.
    gc.disable()
    code = _command(sys.argv[1:])
    gc.disable()
    gc.freeze()
    return code


def _command(words: list[str]) -> int:
    _stand_in_for_closed_streams()
    _speak_utf8(sys.stdout, sys.stderr)
    stdout, output = sys.stdout, _Output(sys.stdout)
    sys.stdout = output
    code = 0
    try:
        code = _answer(words)
        sys.stdout.flush()
    except OSError as error:
        if output.error is None:
            return _cannot_go_on(error, stdout)
        _leave(stdout)
        if isinstance(output.error, BrokenPipeError):
            # The reader went away (`bullswarm pools | head -1`), which takes nothing back of what a verb ended with.
            return code
        _say(f"cannot write the answer: {_told(output.error)} · what was done stays done")
        return EXIT_FAILED
    finally:
        sys.stdout = stdout
    return code


class _Output:
    """Standard output that keeps its own failure apart from every other one of a verb."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.error: OSError | None = None

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError as error:
            self.error = error
            raise

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            self.error = error
            raise

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


def _cannot_go_on(error: OSError, stdout: TextIO) -> int:
    """Say what failed, behind what was printed already."""
    try:
        stdout.flush()
    except OSError:
        _leave(stdout)
    names = [name for name in (error.filename, error.filename2) if isinstance(name, (str, os.PathLike))]
    where = f"{', '.join(map(str, names))}: " if names else ""
    _say(f"cannot go on: {where}{_told(error)} · what was done stays done")
    return EXIT_FAILED


def _told(error: OSError) -> str:
    return error.strerror or str(error) or type(error).__name__


def _say(text: str) -> None:
    from bullswarm_core.fast.text import one_line

    sys.stderr.write(f"bullswarm: {one_line(text)}\n")


def _answer(words: list[str]) -> int:
    if sys.platform == "win32":
        sys.stderr.write("bullswarm: Windows is not supported · run it inside WSL\n")
        return EXIT_USAGE
    if not words and _may_open_dashboard():
        words = ["dashboard"]
    if not words or words[0] in ("--help", "-h", "help"):
        sys.stdout.write(help_text() + "\n")
        return 0
    if words[0] in ("--version", "version"):
        sys.stdout.write(f"bullswarm {VERSION}\n")
        return 0
    if words == ["statusline"]:  # Claude Code starts it several times a minute: not even the context of a verb
        from bullswarm_server.cli import statusline

        return statusline.quick(os.environ)
    if words[0] == "mcp":
        # A client drops a server that is slow to introduce itself: nothing else is loaded before it has.
        from bullswarm_server.cli.mcp import serve

        return serve(words[1:], out=sys.stdout, err=sys.stderr)
    return dispatch(words, environ=os.environ, out=sys.stdout, err=sys.stderr)


def _may_open_dashboard() -> bool:
    """Whether somebody who set bullswarm up sits at a terminal that can be drawn on."""
    if not (sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    if os.environ.get("TERM", "") in ("", "dumb"):
        return False
    from bullswarm_core.store.home import Home

    return Home(os.environ.get("BULLSWARM_HOME") or None).state_file.is_file()


def dispatch(words: list[str], *, environ: Mapping[str, str], out: TextIO, err: TextIO) -> int:
    """Call the verb ``words[0]`` with the rest as its arguments; return the exit code."""
    words = _spelled_out(words)
    verb = words[0]
    if verb not in VERBS:
        from bullswarm_server.cli.help_format import unknown_verb

        err.write(f"bullswarm: {unknown_verb(verb, VERBS)}`bullswarm --help` lists them\n")
        return EXIT_USAGE
    try:
        return _call(VERBS[verb][0], words[1:], environ=environ, out=out, err=err)
    except SystemExit as stop:  # argparse prints its own message and leaves this way
        return stop.code if isinstance(stop.code, int) else EXIT_USAGE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def _call(module: str, arguments: list[str], *, environ: Mapping[str, str], out: TextIO, err: TextIO) -> int:
    from importlib import import_module

    from bullswarm_core.errors import BullswarmError
    from bullswarm_core.fast.files import is_behind
    from bullswarm_core.store.home import Home, readable_by_others, refuse_foreign
    from bullswarm_server.cli.context import CommandContext

    verb = import_module(f"bullswarm_server.cli.{module}")
    if not gc.isenabled():
        gc.freeze()
        gc.enable()
    colour = out.isatty() and "NO_COLOR" not in environ and environ.get("TERM") != "dumb"
    try:
        root = environ.get("BULLSWARM_HOME")
        context = CommandContext(home=Home(root or None), environ=environ, out=out, err=err, colour=colour)
        if module not in _FOR_ANY_HOME:
            refuse_foreign(context.home)
            if warning := readable_by_others(context.home):
                _say(f"{warning} · chmod 700 {context.home.root}")
        code: int = verb.run(arguments, context)
        if module in _DECIDING and is_behind(str(context.home.root)):
            from bullswarm_server.hook_state import refresh

            refresh(context.home, environ)
        return code
    except BullswarmError as error:
        from bullswarm_core.fast.text import plain

        err.write(f"bullswarm: {plain(str(error))}\n")
        return error.exit_code


def _spelled_out(words: list[str]) -> list[str]:
    """Turn the older `workflow runs …` into `runs …`."""
    if words[:2] == ["workflow", "runs"]:
        rest = words[2:]
        return ["runs", *(rest if rest and not rest[0].startswith("-") else ["list", *rest])]
    return words


def _stand_in_for_closed_streams() -> None:
    # `bullswarm pools >&-`: Python then has no stream at all, and every write to it would be a crash.
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - it is there to the end
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - likewise


def _leave(stdout: TextIO) -> None:
    """Point it at nothing, so that closing it can't raise too."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stdout.fileno())


def _speak_utf8(*streams: TextIO) -> None:
    # A console in another encoding must not turn a check mark in a worker's answer into a crash.
    for stream in streams:
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="replace")


if __name__ == "__main__":
    sys.exit(main())
