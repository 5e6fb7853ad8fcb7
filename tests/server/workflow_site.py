"""Workflows in small for the tests of the command line: scripted workers, program files, and the commands that are printed."""

from __future__ import annotations

import importlib
import json
import re
import shlex
from pathlib import Path
from typing import Any

from tests.core.runs.journals import document
from tests.server.site import ANSWER, Said, Site

from bullswarm_server.cli.main import VERBS

# Answers, fails, writes, or waits, as the prompt says.
ACTOR = f"""p=$(cat)
case "$p" in
  *"FAIL"*) if [ -e mended ]; then echo '{ANSWER}'; else echo 'boom' >&2; exit 3; fi;;
  *"WAIT"*) n=0; while [ ! -e go ] && [ $n -lt 600 ]; do sleep 0.05; n=$((n+1)); done; echo '{ANSWER}';;
  *"WRITE"*) f=$(printf '%s' "$p" | sed -n 's/.*WRITE \\([a-z.]*\\).*/\\1/p'); echo made >> "$f"; echo '{ANSWER}';;
  *"DONE"*) echo '{{"done": true}}';;
  *"PART"*) echo '{{"steps": [{{"id": "late", "prompt": "Do it."}}]}}';;
  *"NEVER"*) echo '{{"done": false}}';;
  *) echo '{ANSWER}';;
esac"""
TYPED = {"type": "object", "properties": {"done": {"type": "boolean"}}, "required": ["done"]}
GATED = document({"id": "a"}, {"id": "b", "dependsOn": ["g"]}, gates=[{"id": "g", "dependsOn": ["a"], "note": "look"}])
LOOPING = document(
    {"id": "r", "prompt": "NEVER", "answer": TYPED},
    loops=[{"id": "l", "steps": ["r"], "until": {"step": "r", "field": "done"}, "maxRounds": 1}],
)
# A command ends where the text that tells of it goes on.
_PRINTED = re.compile(r"bullswarm ((?:workflow|runs|home)\b[^\n`]*)")
_AFTER = re.compile(r" · |\)$|\) | \(see|$")


def program_file(site: Site, program: Any, name: str = "program.json") -> Path:
    """Write a program beside the project."""
    path = site.root / name
    path.write_text(json.dumps(program), encoding="utf-8")
    return path


def goal(site: Site, program: Any, *words: str, text: str = "the goal", cwd: Path | None = None) -> Said:
    """Start a workflow with the command line."""
    file = program_file(site, program)
    return site.say("workflow", "goal", text, "--program", str(file), "--cwd", str(cwd or site.project), *words)


def actors(site: Site, *names: str) -> None:
    """Put pools on the machine that do as they are told."""
    for name in names or ("one", "two"):
        site.worker(name, ACTOR)


def printed_commands(*texts: str) -> list[str]:
    """Find every command of ours in texts for people and in JSON documents."""
    found = []
    for text in texts:
        for match in _PRINTED.findall(_strings(text)):
            found.append(_AFTER.split(match, maxsplit=1)[0].strip())
    return list(dict.fromkeys(found))


def assert_taken(command: str) -> None:
    """Check that a printed command is one that the program takes, as it stands."""
    words = shlex.split(command)
    parser = importlib.import_module(f"bullswarm_server.cli.{VERBS[words[0]][0]}")._parser()
    try:
        parser.parse_args(words[1:])
    except SystemExit as stop:
        raise AssertionError(f"bullswarm {command} is refused") from stop


def _strings(text: str) -> str:
    """A document's strings, one a line, as somebody who reads it would copy them."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return "\n".join(_leaves(value))


def _leaves(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in _leaves(item)]
    if isinstance(value, list):
        return [leaf for item in value for leaf in _leaves(item)]
    return [value] if isinstance(value, str) else []
