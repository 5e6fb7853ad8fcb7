"""`bullswarm doctor`: one line per check with its fix. It changes nothing but the cache."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from bullswarm_core.errors import BullswarmError, UsageError
from bullswarm_core.fast import VERSION
from bullswarm_core.meters.due import why_not_read
from bullswarm_core.pools.connector import Connector, PoolProfile
from bullswarm_core.pools.labels import Labels
from bullswarm_core.pools.settings import Settings
from bullswarm_core.routing.billing import grant_command
from bullswarm_core.store.home import readable_by_others, refuse_foreign
from bullswarm_providers.registry import Registry, load
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.cli.doctor_meters import mode_trouble, trouble
from bullswarm_server.cli.help_format import Parser
from bullswarm_server.displays.text import one_line, style_for

SCHEMA_VERSION = "bullswarm.doctor.v1"
Status = Literal["ok", "warning", "failed"]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at. ``fix`` says what to do about it; empty when there is nothing to do."""

    id: str
    status: Status
    message: str
    fix: str = ""


def run(arguments: list[str], context: CommandContext) -> int:
    """Run every check; 1 when one failed."""
    options = _parser().parse_args(arguments)
    checks = list(_checks(context))
    good = all(check.status != "failed" for check in checks)
    if options.json:
        context.print_json(
            {
                "schemaVersion": SCHEMA_VERSION,
                "version": VERSION,
                "configured": context.home.state_file.exists(),
                "ok": good,
                "checks": [
                    {"id": c.id, "status": c.status, "message": c.message, "fix": c.fix or None} for c in checks
                ],
                "nextActions": [check.fix for check in checks if check.status != "ok" and check.fix],
            }
        )
    else:
        _print(checks, context)
    return 0 if good else 1


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="bullswarm doctor",
        description="Check this installation, a line per check with its fix.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    return parser


def _print(checks: list[Check], context: CommandContext) -> None:
    style = style_for(context.out, context.environ)
    paint = {"ok": style.good, "warning": style.warn, "failed": style.bad}
    width = max(len(check.id) for check in checks)
    for check in checks:
        fix = f" · {one_line(check.fix)}" if check.fix else ""
        mark = paint[check.status](check.status.ljust(7))
        context.print(f"{mark}  {check.id.ljust(width)}  {one_line(check.message)}{fix}")


def _checks(context: CommandContext) -> Iterator[Check]:
    yield Check("python", "ok", f"Python {sys.version.split()[0]} on {sys.platform}, bullswarm {VERSION}")
    yield _home(context)
    yield _readable("settings", lambda: str(context.home.state_file), lambda: Settings.load(context.home))
    yield _readable("labels", lambda: str(context.home.labels_file), lambda: Labels.load(context.home))
    yield _readable("database", lambda: str(context.home.database_file), lambda: _open_database(context))
    yield _confinement()
    yield _git(context)
    registry = load(context.home, context.environ)
    for problem in registry.problems:
        fix = "" if "·" in problem.message else f"bullswarm provider validate {shlex.quote(problem.where)}"
        yield Check(f"provider {problem.name}", "failed", problem.message, fix)
    yield from _pools(registry, context)
    if found := mode_trouble(context.environ):
        yield Check("meters", "warning", *found)


def _home(context: CommandContext) -> Check:
    root = context.home.root
    there = root
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        return Check(
            "home", "failed", f"{root} can't be written", "make it yours, or set BULLSWARM_HOME to another folder"
        )
    try:
        refuse_foreign(context.home)
    except UsageError as error:
        return Check("home", "failed", error.message, error.hint or "")
    if warning := readable_by_others(context.home):
        return Check("home", "warning", warning, f"chmod 700 {root}")
    return Check("home", "ok", str(root) if root.exists() else f"{root} (not made yet)")


def _readable(name: str, where: Callable[[], str], look: Callable[[], object]) -> Check:
    try:
        look()
    except BullswarmError as error:
        return Check(name, "failed", error.message, error.hint or "")
    return Check(name, "ok", where() if Path(where()).exists() else f"{where()} (none yet)")


def _open_database(context: CommandContext) -> None:
    from bullswarm_core.store.database import open_database

    connection = open_database(context.home, readonly=True)
    if connection is not None:
        connection.close()


def _confinement() -> Check:
    from bullswarm_core.process.confinement import problem, weakness

    why = problem()
    if why:
        return Check(
            "confinement", "warning", f"workers run unconfined: {why}", "reinstall bullswarm, on Linux 5.13 or macOS"
        )
    lacks = weakness()
    if lacks:
        return Check("confinement", "warning", f"workers are held less firmly: {lacks}", "a newer kernel holds them")
    return Check("confinement", "ok", "workers can be held to the folder they work in")


def _git(context: CommandContext) -> Check:
    from bullswarm_providers.finding import find_binary

    found = find_binary("git", context.environ)
    if found.path is None or found.problem:
        why = found.problem or "git was not found on PATH"
        return Check("git", "warning", why, "install git: without it changes are judged by the files alone")
    return Check("git", "ok", found.path)


def _pools(registry: Registry, context: CommandContext) -> Iterator[Check]:
    try:
        settings, labels = Settings.load(context.home), Labels.load(context.home)
    except BullswarmError:
        settings, labels = Settings(), Labels()
    usable, by_key = 0, ""
    for profile in registry.profiles:
        check = _pool(profile, settings, labels.shown(profile.id))
        usable += check.status == "ok" and settings.enabled(profile.id) and not profile.connector.last_resort
        by_key = by_key or (check.fix if check.fix == grant_command(profile.id) else "")
        yield check
        if found := _meter(profile, settings, context, labels.shown(profile.id)):
            yield found
    missing = [
        f"{loaded.connector.display_name} ({how_to_start(loaded.connector)})"
        for loaded in registry.providers
        if loaded.connector.name not in registry.disabled
        and not any(profile.connector.name == loaded.connector.name for profile in registry.profiles)
    ]
    if missing:
        yield Check("not installed", "ok", ", ".join(missing))
    if not usable and by_key:
        yield Check("pools", "failed", "every pool that could work is paid by API key, and none is allowed", by_key)
    elif not usable:
        yield Check(
            "pools",
            "failed",
            "no agent CLI can take work; only the echo worker is left",
            "install one and sign in to it" + ("; `not installed` says how" if missing else ""),
        )


def _pool(profile: PoolProfile, settings: Settings, name: str) -> Check:
    title = f"pool {name}"
    if not settings.enabled(profile.id):
        return Check(title, "ok", "turned off by you", f"bullswarm strategy set-provider {profile.id} on")
    why = profile.why_not()
    if why:
        message, _, fix = why.partition(" · ")
        asked_for = profile.id in settings.pools
        if profile.binary is None:
            fix = how_to_start(profile.connector)
        said = f"{message} (a failure, since you turned this pool on)" if asked_for else message
        return Check(title, "failed" if asked_for else "warning", said, fix)
    if profile.billing == "api-key" and not settings.pool(profile.id).billing_granted:
        message = f"{profile.binary}; {profile.signed_in_why}: paid by API key, and not used before you allow it"
        return Check(title, "warning", message, grant_command(profile.id))
    return Check(title, "ok", f"{profile.binary}; sign-in: {profile.signed_in_why}; billing: {profile.billing}")


def _meter(profile: PoolProfile, settings: Settings, context: CommandContext, name: str) -> Check | None:
    """Look at what the last attempt to read the meter left; nothing is asked here."""
    if why_not_read(profile, enabled=settings.enabled(profile.id)) is not None:
        return None
    found = trouble(context.home, profile, now=datetime.now(UTC))
    return Check(f"meter {name}", "warning", *found) if found else None


def how_to_start(connector: Connector) -> str:
    """Say how a CLI that isn't there is installed and signed in to, as far as its connector tells."""
    steps = [connector.install or f"install {connector.display_name}", connector.sign_in.hint]
    return ", then ".join(step for step in steps if step)
