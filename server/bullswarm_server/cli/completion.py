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
# No `compgen -W`: it expands its words, and a name is no program of the shell.
_POOLS: Any = {
    "bash": "_bullswarm_pools",
    "zsh": "_bullswarm_pools",
    "fish": "(bullswarm completion --pools 2>/dev/null)",
    "preamble": {
        "bash": """_bullswarm_pools() {
  local name
  while IFS= read -r name; do
    [[ $name == "$1"* ]] && printf '%s\\n' "$name"
  done < <(bullswarm completion --pools 2>/dev/null)
}""",
        "zsh": """_bullswarm_pools() {
  local -a names
  names=(${(f)"$(bullswarm completion --pools 2>/dev/null)"})
  compadd -a names
}""",
    },
}
# For bash a word ends at each colon and equals sign of $COMP_WORDBREAKS, and shtab knows neither `claude-code:work` nor
# `--pool=work`. So the words are put together again around both and parted at the first equals sign of an option, and
# what readline takes for an earlier word, which stands in the line already, is cut off what is offered. Also for bash 3.2.
_WORDS_OF_BASH = """
_bullswarm() {
  local rest=$COMP_LINE word part ends index=0 last=-1 typed=0
  local -a words=()
  for word in "${COMP_WORDS[@]}"; do
    if [[ $last -lt 0 || $rest == [[:space:]]* ]]; then
      words[++last]=$word
    elif [[ $word == = && ${words[last]} == --* ]]; then
      words[++last]=
    elif [[ $word == [:=]* || ${words[last]} == *[:=] || -z ${words[last]} ]]; then
      words[last]+=$word
    else
      words[++last]=$word
    fi
    rest=${rest#*"$word"}
    [[ $((index++)) -eq $COMP_CWORD ]] && typed=$last
  done
  local -a COMP_WORDS=("${words[@]}")
  local COMP_CWORD=$typed
  _shtab_bullswarm
  part=${words[typed]} ends=${COMP_WORDBREAKS//[!:=]/}
  [[ -n $ends && $part == *[$ends]* ]] || return 0
  part=${part%"${part##*[$ends]}"}
  for index in "${!COMPREPLY[@]}"; do
    COMPREPLY[index]=${COMPREPLY[index]#"$part"}
  done
}

complete -o bashdefault -F _bullswarm bullswarm"""
_HOW = {
    "bash": "bullswarm completion bash > ~/.local/share/bash-completion/completions/bullswarm",
    "zsh": "bullswarm completion zsh > ~/.zfunc/_bullswarm   (with `fpath+=~/.zfunc` before `compinit` in ~/.zshrc)",
    "fish": "bullswarm completion fish > ~/.config/fish/completions/bullswarm.fish",
}


def run(arguments: list[str], context: CommandContext) -> int:
    """Print the script, or the names that it asks for; where it is to go stands in the help."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if (options.shell is None) is not options.pools:
        parser.error("either a shell or --pools is required, and not both")
    if options.pools:
        context.print(*pool_names(context))
        return 0
    import shtab

    script = shtab.complete(whole_parser(), shell=options.shell).rstrip("\n")
    context.print(script, *([_WORDS_OF_BASH] if options.shell == "bash" else []))
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
        if verb == "pools":
            _add_verbs_of_pools(own)
        _name_values(own)
        verbs.choices[verb] = own
    return parser


def pool_names(context: CommandContext) -> list[str]:
    """Return how the pools may be called that were last seen, by label where there is one; nothing where that fails.

    It is asked at every press of the Tab key: it looks at what is remembered, searches for no CLI and starts nothing. A
    name that a shell would read as more than a word is left out, since an agent may have set a label.
    """
    import shlex

    from bullswarm_core.errors import BullswarmError
    from bullswarm_core.fast import hook_state
    from bullswarm_core.pools.labels import Labels

    try:
        state = hook_state.load({**context.environ, "BULLSWARM_HOME": str(context.home.root)})
        labels = Labels.load(context.home)
    except (BullswarmError, OSError, ValueError):
        return []
    ids = {pool.id for pool in state.pools} if state else set()
    names = {labels.shown(pool_id) for pool_id in ids} | ids | {label for _, label in labels.items()}
    return sorted(name for name in names if shlex.quote(name) == name and not name.startswith("-"))


def _add_verbs_of_pools(parser: argparse.ArgumentParser) -> None:
    """Declare what `pools` finds out by itself, so that the shells know of it."""
    from bullswarm_server.cli import pools

    verbs: Any = parser.add_subparsers(metavar="VERB")
    for name in pools.VERBS:
        own = pools.module_of(name)._parser()
        verbs.add_parser(name, help=own.description)
        verbs.choices[name] = own


def _name_values(parser: argparse.ArgumentParser) -> None:
    """Say of each argument that takes a file, a folder or a pool that it does, all the way down."""
    import shtab

    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                _name_values(below)
        elif action.metavar == "POOL" or (action.metavar is None and action.dest == "pool"):
            action.complete = _POOLS  # type: ignore[attr-defined]
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
    parser.add_argument(
        "--pools", action="store_true", help="alone: print the pools that were last seen, as the scripts ask for them"
    )
    parser.add_argument("shell", nargs="?", choices=SHELLS, help="the shell that is to complete")
    return parser
