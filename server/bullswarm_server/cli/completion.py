"""`bullswarm completion bash|zsh|fish`: print the completion script of a shell, made from the verbs' own parsers by shtab.

shtab keeps up with three shells and has no dependencies of its own; it is loaded for this verb alone.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Any

from bullswarm_server.cli.context import CommandContext
from bullswarm_server.cli.help_format import Parser

SHELLS = ("bash", "zsh", "fish")
# What an option's value is called where it names a file or a folder.
_FILES = frozenset({"FILE", "FILE|JSON", "PATH"})
_FOLDERS = frozenset({"DIR"})
_HOW = {
    "bash": "bullswarm completion bash > ~/.local/share/bash-completion/completions/bullswarm",
    "zsh": "bullswarm completion zsh > ~/.zfunc/_bullswarm   (with `fpath+=~/.zfunc` before `compinit` in ~/.zshrc)",
    "fish": "bullswarm completion fish > ~/.config/fish/completions/bullswarm.fish",
}


def run(arguments: list[str], context: CommandContext) -> int:
    """Print the script; where it is to go stands in the help."""
    options = _parser().parse_args(arguments)
    import shtab

    context.print(shtab.complete(whole_parser(), shell=options.shell).rstrip("\n"))
    return 0


def whole_parser() -> argparse.ArgumentParser:
    """Return one parser with every verb below it."""
    from bullswarm_server.cli.main import VERBS

    parser = Parser(prog="bullswarm", description="hands bounded tasks to coding-agent accounts")
    parser.add_argument("--version", action="store_true", help="print the version")
    verbs: Any = parser.add_subparsers(metavar="VERB")
    for verb, (module, text) in VERBS.items():
        plain = verbs.add_parser(verb, help=text)
        parser_of = getattr(import_module(f"bullswarm_server.cli.{module}"), "_parser", None)
        own = plain if parser_of is None else parser_of()
        _name_files(own)
        verbs.choices[verb] = own
    return parser


def _name_files(parser: argparse.ArgumentParser) -> None:
    """Say of each argument that takes a file or a folder that it does, all the way down."""
    import shtab

    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                _name_files(below)
        elif action.metavar in _FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif action.metavar in _FOLDERS:
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="bullswarm completion",
        description="Print the completion script of a shell.",
        epilog="\n".join(["where it goes:", *(f"  {how}" for how in _HOW.values())]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=SHELLS, help="the shell that is to complete")
    return parser
