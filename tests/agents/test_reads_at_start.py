"""What a CLI reads or runs in its own folders at a start is compared before and after a worker, or known to be harmless.

A new version of a CLI may begin to read something new. Where that lies in a place that the connector calls volatile, a worker
could instruct the person's sessions unseen. So each volatile place that is read stands in a table here, with the reason
why it may; one that is in none fails.
"""

import json
import re
from pathlib import Path

import pytest
from tests.agents.conftest import MachineMaker
from tests.agents.gemini_model import GeminiModel
from tests.agents.gemini_model import text as gemini_says
from tests.agents.machine import Machine
from tests.agents.scripted_model.scenario import say
from tests.agents.setups import CLAUDE, CODEX, COMMAND_CODE, GROK, OPENCODE, Setup
from tests.agents.test_optional_providers import COPILOT, QWEN, GeminiMaker, gemini, turned_on
from tests.agents.traced import read_or_run, trace

from bullswarm_core.launch.state_folders import StateFolders, _matcher

__all__ = ["gemini"]
pytestmark = pytest.mark.real_cli

ANSWER = "The parser splits the line at each comma and unquotes every field that starts with a quote."
UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
# For each CLI: what it reads in volatile places, relative to the home, and why that neither instructs it nor runs.
HARMLESS = {
    "claude-code": {
        r"\.claude\.json(\..*)?": "its own state; the parts that name servers, rights and variables are guarded",
        rf"\.claude/projects/[^/]+/{UUID}\.jsonl": "what was said in a session, which is read where that one is continued",
        r"\.claude/sessions/\d+\.json": "which sessions run",
        r"\.claude/plugins/store/[^/]+\.json": "what a built-in plug-in keeps: data",
        r"\.claude/(history\.jsonl|stats-cache\.json|policy-limits\.json|\.credentials\.json)": "lines, counts, the token",
    },
    "codex": {
        r"\.codex/[^/]+\.sqlite(-shm|-wal)?": "databases of threads, logs and goals; what can be told from them is data",
        rf"\.codex/sessions/.+-{UUID}\.jsonl": "what was said in a session, which is read where that one is continued",
        r"\.codex/(.+/)?[^/]*\.lock": "locks",
        r"\.codex/\.tmp/\.staging/.+": "a download that is checked before it is put in place",
        r"\.codex/(auth|models_cache|version)\.json": "the token, the vendor's list of models, the newest version",
    },
    "opencode": {
        r"\.local/share/opencode/opencode\.db(-shm|-wal)?": "the database of sessions",
        r"\.local/share/opencode/(auth|mcp-auth)\.json": "tokens",
        r"\.local/share/opencode/snapshot/.+/(HEAD|index|objects/.+|refs/.+|info/exclude)": "contents of a git repository;"
        " its settings, hooks and attributes are compared",
        r"\.local/share/opencode/log/.+": "logs",
        r"\.local/state/opencode/.+": "which model was used last, locks",
        r"\.cache/opencode/version": "a number",
    },
    "grok": {
        r"\.grok/sessions/.+": "what was said in a session, which is read where that one is continued, and its search index",
        r"\.grok/(.+/)?[^/]*\.lock": "locks",
        r"\.grok/(agent_id|auth\.json|models_cache\.json|version\.json)": "a number, the token, the vendor's models",
        r"\.grok/logs/.+": "logs",
        r"\.grok/(docs/.+|README\.md)": "its manual, which each start of Grok writes again before anything reads it",
    },
    "command-code": {
        rf"\.commandcode/projects/[^/]+/{UUID}\..*jsonl?": "what was said in a session",
        r"\.commandcode/(auth\.json|telemetry-install-id|update-check\.json|history\.jsonl)": "the token, numbers, typed lines",
    },
    "copilot": {
        rf"\.copilot/session-state/{UUID}/.+": "what was said in a session, which is read where that one is continued",
        r"\.copilot/session-store\.db(-shm|-wal)?": "the database of sessions",
        r"\.copilot/(.+/)?[^/]*\.lock": "locks",
        r"\.copilot/config\.json": "its own state",
    },
    "qwen": {
        r"\.qwen/settings\.json": "its parts that instruct, name commands or rights are guarded",
        r"\.qwen/(projects|tmp|usage|todos|debug)/.+": "what was said in a session, counts",
        r"\.qwen/(installation_id|oauth_creds\.json)": "a number, the token",
    },
    "gemini": {
        r"\.gemini/(tmp|history)/.+": "what was said in a session",
        r"\.gemini/(installation_id|user_id|state\.json|projects\.json|google_accounts\.json)": "numbers, names of folders",
        r"\.gemini/(oauth_creds|gemini-credentials)\.json": "tokens",
    },
}  # fmt: skip
# What a person of that CLI may have in its folder; a start reads most of it.
INSTRUCTIONS = ("AGENTS.md", "CLAUDE.md", "GEMINI.md", "QWEN.md", "copilot-instructions.md", "memory/MEMORY.md")
DESCRIBED = "---\nname: tidy\ndescription: Tidies the desk when asked.\n---\nTidy it.\n"
DESCRIPTIONS = (
    "skills/tidy/SKILL.md", "skill/tidy/SKILL.md", "agents/tidy.md", "agent/tidy.md", "commands/tidy.md", "command/tidy.md",
    "rules/tidy.md", "output-styles/tidy.md", "prompts/tidy.md", "plans/tidy.md", "instructions/tidy.instructions.md",
)  # fmt: skip
SETTINGS = ("hooks.json", "hooks/tidy.json", "mcp.json", "mcp-config.json")
FOLDERS = {
    "claude-code": ".claude", "codex": ".codex", "opencode": ".config/opencode", "grok": ".grok",
    "command-code": ".commandcode", "copilot": ".copilot", "qwen": ".qwen", "gemini": ".gemini",
}  # fmt: skip
# Each must be among what a start reads, or nothing was traced.
SURELY_READ = {
    "claude-code": (
        ".claude/settings.json",
        ".claude/CLAUDE.md",
        ".claude/skills/tidy/SKILL.md",
        ".claude/hooks/tidy.sh",
    ),
    "codex": (".codex/config.toml", ".codex/AGENTS.md", ".codex/skills/tidy/SKILL.md"),
    "opencode": (".config/opencode/opencode.json", ".config/opencode/plugin/tidy.js", ".config/opencode/tool/tidy.js"),
    "grok": (".grok/config.toml", ".grok/AGENTS.md", ".grok/skills/tidy/SKILL.md"),
    "command-code": (".commandcode/providers.json", ".commandcode/AGENTS.md", ".commandcode/mcp.json"),
    "copilot": (".copilot/copilot-instructions.md", ".copilot/mcp-config.json", ".copilot/skills/tidy/SKILL.md"),
    "qwen": (".qwen/settings.json", ".qwen/QWEN.md"),
    "gemini": (".gemini/settings.json", ".gemini/GEMINI.md"),
}


def write(file: Path, content: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content, encoding="utf-8")


def furnish(machine: Machine) -> None:
    """Give the CLI all that a person may have set up for it."""
    folder = machine.home / FOLDERS[machine.setup.name]
    for name in INSTRUCTIONS:
        write(folder / name, "Be kind.\n")
    for name in DESCRIPTIONS:
        write(folder / name, DESCRIBED)
    for name in SETTINGS:
        write(folder / name, '{"hooks": {}, "mcpServers": {}}')
    if machine.setup is CLAUDE:
        script = folder / "hooks" / "tidy.sh"
        write(script, "#!/bin/sh\ntrue\n")
        script.chmod(0o755)
        hooks = {"SessionStart": [{"hooks": [{"type": "command", "command": str(script)}]}]}
        write(folder / "settings.json", json.dumps({"hooks": hooks}))
        slug = re.sub(r"[^A-Za-z0-9]", "-", str(machine.project))
        write(folder / "projects" / slug / "memory" / "MEMORY.md", "- likes amaranth\n")
    if machine.setup is OPENCODE:
        write(folder / "plugin" / "tidy.js", "export const Tidy = async () => ({})\n")
        write(
            folder / "tool" / "tidy.js", "export default {description: 'x', args: {}, async execute() {return 'x'}}\n"
        )


def started_as_the_person_does(machine: Machine) -> Machine:
    """Let the person's own settings count in a worker, and nothing hold it, as in a session of the person's."""
    words = ("strategy", "set-provider", machine.setup.name, "--sandbox", "full", "--inherits-config", "on", "--yes")
    chosen = machine.bullswarm(*words)
    assert chosen.returncode == 0, chosen.stderr
    return machine


def state_of(machine: Machine) -> StateFolders:
    """Return what bullswarm itself wrote down of the state folders before the start of the last worker."""
    (*_, last) = sorted(machine.state.glob("workflows/**/state-*.json"), key=lambda file: file.stat().st_mtime)
    before = json.loads(last.read_text(encoding="utf-8"))
    return StateFolders(tuple(before["folders"]), tuple(before["volatile"]), written_once=tuple(before["writtenOnce"]))


def assert_compared(machine: Machine, record: Path) -> None:
    state, home = state_of(machine), f"{machine.home}/"
    read = read_or_run(record, (*(f"{folder.rstrip('/')}/" for folder in state.folders), f"{home}.claude.json"))
    missing = [name for name in SURELY_READ[machine.setup.name] if home + name not in read]
    assert not missing, (missing, sorted(read))
    is_volatile = _matcher(state.volatile)
    harmless = re.compile("|".join(f"(?:{pattern})" for pattern in HARMLESS[machine.setup.name]))
    unknown = [
        path.removeprefix(home)
        for path in sorted(read)
        if is_volatile(path) and not harmless.fullmatch(path.removeprefix(home))
    ]
    assert not unknown, f"read at a start, and not compared before and after a worker: {unknown}"


@pytest.mark.parametrize(
    "setup", [CLAUDE, CODEX, OPENCODE, GROK, COMMAND_CODE, COPILOT, QWEN], ids=lambda setup: setup.name
)
def test_what_a_start_reads_is_compared_or_harmless(make_machine: MachineMaker, setup: Setup) -> None:
    machine = make_machine(setup, [say(ANSWER)])
    started_as_the_person_does(turned_on(machine) if setup in (COPILOT, QWEN) else machine)
    first = machine.run()
    assert first.code == 0, first.verdict["why"]
    furnish(machine)
    record = trace(machine)
    machine.turns[:] = [say(ANSWER)]
    outcome = machine.run()
    assert outcome.kind in (None, "ownership"), outcome
    assert_compared(machine, record)


def test_what_gemini_reads_at_a_start_is_compared_or_harmless(gemini: GeminiMaker) -> None:
    with GeminiModel([gemini_says(ANSWER)]) as model:
        machine = started_as_the_person_does(gemini(model))
        options = ["--model", machine.setup.model]
        first = machine.run(options=options)
        assert first.code == 0, first
        furnish(machine)
        record = trace(machine)
        assert machine.run(options=options).code == 0
    assert_compared(machine, record)
