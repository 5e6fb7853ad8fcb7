"""Documents and program agree: every command that README, the pages and SECURITY show is one that the program takes.

Those in blocks are run, too (test_documents_commands); here are also those within sentences.
"""

import importlib
import io
import re
import shlex
from pathlib import Path

import pytest
from tests.server.documents import PAGES, Command, parts_of

from bullswarm_server.cli.main import VERBS, dispatch, help_text

ROOT = Path(__file__).parents[2]
DOCUMENTS = (*PAGES, "SECURITY.md")
_BLOCK = re.compile(r"^```[^\n]*\n.*?^```", re.M | re.S)
_COMMAND = re.compile(r"^(?:python3 develop\.py|bullswarm) (\S.*)$")
_INLINE = re.compile(r"`(?:python3 develop\.py|bullswarm) ([^`…]+)`")
_OWN_WORDS = {"test", "check", "agents", "ruff", "mypy"}
_NOT_ONE_COMMAND = re.compile(r"[|<>]")


def documented_commands() -> list[str]:
    """Every command of the documents but those that a page shows to be refused."""
    found = []
    for name in DOCUMENTS:
        commands = [part for part in parts_of(name) if isinstance(part, Command) and part.code != 2]
        found += [match[1] for command in commands if (match := _COMMAND.match(command.text))]
        text = (ROOT / name).read_text(encoding="utf-8")
        found += [" ".join(command.split()) for command in _INLINE.findall(_BLOCK.sub("", text))]
    return sorted({command for command in found if not _NOT_ONE_COMMAND.search(command)})


@pytest.mark.parametrize("command", documented_commands())
def test_a_documented_command_is_taken(command: str) -> None:
    words = shlex.split(command)
    if words[0] in _OWN_WORDS or words[0].startswith("-") or words == ["mcp"]:  # that one has no parser
        return
    assert words[0] in VERBS, f"{words[0]} is no verb"
    if words[0] == "pools" and words[1:2] == ["label"]:
        words = words[1:]
    module = VERBS[words[0]][0]
    if words[:2] in (["pools", "history"], ["pools", "resume"]):
        module, words = f"pools_{words[1]}", words[1:]
    parser = importlib.import_module(f"bullswarm_server.cli.{module}")._parser()
    accepted = [action.dest for action in parser._actions]
    try:
        parser.parse_args(words[1:])
    except SystemExit:
        # A verb that is only named (`bullswarm run`) lacks its arguments, and that is no fault of the document.
        if len(words) > 1 and not _is_bare_operation(words):
            raise AssertionError(f"bullswarm {command} is refused; the parser knows {accepted}") from None


def _is_bare_operation(words: list[str]) -> bool:
    return (
        len(words) == 2
        and not words[1].startswith("-")
        and words[0] in ("runs", "provider", "strategy", "workflow", "home")
    )


def test_there_is_something_to_check() -> None:
    assert len(documented_commands()) > 20


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_every_verb_has_help_that_changes_nothing(
    verb: str, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = io.StringIO()
    code = dispatch([verb, "--help"], environ={"HOME": str(own_home)}, out=out, err=io.StringIO())
    shown = out.getvalue() + capsys.readouterr().out
    assert code == 0
    assert f"bullswarm {verb}" in shown
    assert verb in help_text()
    assert not (own_home / ".bullswarm").exists()


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_an_unknown_flag_is_refused_before_anything_happens(verb: str, own_home: Path) -> None:
    code = dispatch([verb, "--no-such-flag"], environ={"HOME": str(own_home)}, out=io.StringIO(), err=io.StringIO())
    assert code == 2
    assert not (own_home / ".bullswarm").exists()


def test_an_unknown_verb_is_refused() -> None:
    err = io.StringIO()
    assert dispatch(["dance"], environ={}, out=io.StringIO(), err=err) == 2
    assert err.getvalue() == 'bullswarm: unknown verb "dance" · `bullswarm --help` lists them\n'
