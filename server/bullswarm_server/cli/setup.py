"""`bullswarm setup`: find the agent CLIs of this machine and record which of them may take work.

Nothing needs it: a pool exists when its binary is found. It only writes choices down, and never changes an earlier
one.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from bullswarm_core.pools.connector import PoolProfile
from bullswarm_core.pools.labels import Labels
from bullswarm_core.pools.settings import Document, Settings, update_settings
from bullswarm_providers.registry import Registry, load
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.cli.help_format import Parser
from bullswarm_server.displays.text import one_line

SCHEMA_VERSION = "bullswarm.setup.v1"
_UNRECORDED = "nothing was recorded · bullswarm setup --yes records it"


def run(arguments: list[str], context: CommandContext) -> int:
    """Show what was found, ask (or take --yes), and record it; 1 when nothing was recorded for want of an answer."""
    options = _parser().parse_args(arguments)
    settings = Settings.load(context.home)
    registry = load(context.home, context.environ)
    new, before = _undecided(registry, settings), settings
    agreed = options.yes or (not options.json and sys.stdin.isatty() and _agrees(registry, settings, context))
    if agreed:
        settings = update_settings(context.home, lambda document: _record(document, new))
    if options.json:
        context.print_json(_document(registry, settings, recorded=new if agreed else [], context=context))
        return 0 if agreed else 1
    if options.yes or not sys.stdin.isatty():
        recorded = new if agreed else []
        context.print(*_lines(registry, before, Labels.load(context.home), recorded))
    if agreed:
        context.print("", f"Recorded in {context.home.state_file}.", *_next_actions(registry))
        return 0
    context.note(_UNRECORDED)
    return 1


def _undecided(registry: Registry, settings: Settings) -> list[str]:
    """Name the pools that can work and about which nothing was decided; a pool that can't work joins once it can."""
    real = (profile for profile in registry.profiles if not profile.connector.last_resort)
    return sorted(p.id for p in real if p.why_not() is None and p.id not in settings.pools)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="bullswarm setup",
        description="Find the agent CLIs of this machine and record which of them may take work.",
    )
    parser.add_argument("--yes", action="store_true", help="record without asking")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    return parser


def _agrees(registry: Registry, settings: Settings, context: CommandContext) -> bool:
    with context.asking(_UNRECORDED):
        context.print(*_lines(registry, settings, Labels.load(context.home), []))
        context.out.write("\nRecord this? [Y/n] ")
    answer = sys.stdin.readline()
    # Enter means yes; the end of the input is nobody's word.
    return answer != "" and answer.strip().lower() in ("", "y", "yes")


def _record(document: Document, new: list[str]) -> None:
    pools = document.setdefault("pools", {})
    for pool_id in new:
        pools.setdefault(pool_id, {}).setdefault("enabled", True)


def _lines(registry: Registry, settings: Settings, labels: Labels, recorded: list[str]) -> list[str]:
    real = [profile for profile in registry.profiles if not profile.connector.last_resort]
    found = [profile for profile in real if profile.binary is not None]
    lines = _table("Found:", found, settings, labels, recorded) or ["No agent CLI was found on PATH."]
    missing = [profile for profile in real if profile.binary is None]
    lines += _table("Not found:", missing, settings, labels, recorded)
    problems = [f"  {problem.name}: {one_line(problem.message)}" for problem in registry.problems]
    return lines + (["Problems:", *problems] if problems else [])


def _table(
    title: str, profiles: list[PoolProfile], settings: Settings, labels: Labels, recorded: list[str]
) -> list[str]:
    names = [labels.shown(profile.id) for profile in profiles]
    width = max((len(name) for name in names), default=0)
    lines = [title] if profiles else []
    for name, profile in zip(names, profiles, strict=True):
        state = profile.why_not() or f"sign-in: {profile.signed_in_why}"
        choice = settings.pools.get(profile.id)
        decided = "" if choice is None else f" (you turned it {'on' if choice.enabled else 'off'})"
        if profile.id in recorded:
            decided = " (turned on)"
        lines.append(f"  {name.ljust(width)}  {one_line(state)}{decided}")
    return lines


def _next_actions(registry: Registry) -> list[str]:
    usable = [p for p in registry.profiles if p.why_not() is None and not p.connector.last_resort]
    if not usable:
        return [
            "Install an agent CLI (Claude Code, Codex, OpenCode, Grok, Command Code) and sign in; see bullswarm doctor."
        ]
    return ['Next: bullswarm pools, then bullswarm run --lane analyze "Explain this project"']


def _document(
    registry: Registry, settings: Settings, *, recorded: list[str], context: CommandContext
) -> dict[str, Any]:
    labels = Labels.load(context.home)
    return {
        "schemaVersion": SCHEMA_VERSION,
        "configured": settings.configured,
        "stateFile": str(context.home.state_file),
        "recorded": recorded,
        "pools": [
            {
                "pool": profile.id,
                "poolLabel": labels.of(profile.id),
                "provider": profile.connector.name,
                "binary": profile.binary,
                "enabled": settings.enabled(profile.id),
                "signedIn": profile.signed_in,
                "signedInWhy": profile.signed_in_why,
                "billing": profile.billing,
                "unavailable": profile.why_not(),
            }
            for profile in registry.profiles
        ],
        "problems": [
            {"provider": problem.name, "where": problem.where, "message": problem.message}
            for problem in registry.problems
        ],
        "nextActions": _next_actions(registry),
    }
