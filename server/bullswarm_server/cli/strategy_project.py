"""`bullswarm strategy allow-project-settings`: which settings of a repository the person lets count, file by file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bullswarm_core.errors import UsageError
from bullswarm_core.fast.files import open_ordinary
from bullswarm_core.launch.project_settings import LARGEST_BYTES, UNREADABLE, found_settings, repository_root
from bullswarm_core.pools.settings import Document, Settings, update_settings
from bullswarm_core.process.environment import DEPTH_VARIABLE, read_depth
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.cli.strategy_writing import Options, registry
from bullswarm_server.displays.text import one_line

SCHEMA_VERSION = "bullswarm.project-settings.v1"
# Nothing happened: the call lacks the person's word.
_NOT_APPROVED = 2
_SECTION = "projectSettings"
# What fits in a few lines; the file itself has the rest.
_SHOWN_KEYS = 40
_NAME = re.compile(r"^[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=", re.MULTILINE)


def allow(options: Options, context: CommandContext) -> int:
    """Show what a repository's settings files decide, and with --yes let them count as they are now; or take that back.

    Values are never shown: a settings file may hold a key. Raises UsageError in a worker and for a folder without files.
    """
    if read_depth(context.environ) > 0:
        raise UsageError(
            f"{DEPTH_VARIABLE} is set: this is a worker's shell",
            hint="only a person's own shell may let a project's settings count",
        )
    folder = Path(options.folder or Path.cwd())
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder", hint="name the repository whose settings may count")
    root = repository_root(str(folder))
    found = _found(str(folder), context)
    granted = Settings.load(context.home).project_settings.get(root, {})
    if options.remove:
        if granted:
            update_settings(context.home, lambda state: _forget(state, root))
        return _say(
            options, context, root, found, {}, "nothing of it counts any more" if granted else "nothing counted"
        )
    if not found:
        raise UsageError(f"{root} has no settings of an agent CLI", hint="there is nothing to allow")
    unreadable = [name for name, digest in found.items() if digest == UNREADABLE]
    if unreadable:
        raise UsageError(
            f"{unreadable[0]} of {root} can't be read whole: it is too large, or no ordinary file, or a link leads to it",
            hint="put an ordinary file in its place",
        )
    if not options.yes:
        _say(options, context, root, found, granted, None)
        context.note("nothing was changed · pass --yes to let these files count as they are now")
        return _NOT_APPROVED
    update_settings(context.home, lambda state: _remember(state, root, found))
    return _say(
        options, context, root, found, found, "these files count as they are now; a changed or new one is held back"
    )


def _found(folder: str, context: CommandContext) -> dict[str, str]:
    """Look for the files of every CLI that is known at the root of the repository and in the folder that was named."""
    found: dict[str, str] = {}
    for profile in registry(context).profiles:
        part = profile.connector.launch.project
        own = (profile.config_dir,) if profile.config_dir else ()
        found |= found_settings(folder, part.files, besides=own)
        found |= found_settings(folder, (*part.refused, *part.refused_if), besides=own, everywhere=True)
    return dict(sorted(found.items()))


def _remember(state: Document, root: str, found: Mapping[str, str]) -> None:
    # What was allowed in another folder of the repository stays.
    state.setdefault(_SECTION, {}).setdefault(root, {}).update(found)


def _forget(state: Document, root: str) -> None:
    state.get(_SECTION, {}).pop(root, None)


def _say(
    options: Options,
    context: CommandContext,
    root: str,
    found: Mapping[str, str],
    granted: Mapping[str, str],
    done: str | None,
) -> int:
    files: list[dict[str, Any]] = [
        {"file": name, "decides": decided(Path(root, name)), "allowed": granted.get(name) == digest}
        for name, digest in found.items()
    ]
    if options.json:
        context.print_json({"schemaVersion": SCHEMA_VERSION, "folder": root, "files": files})
        return 0
    context.print(one_line(root))
    for each in files:
        keys = each["decides"] or ["text or a program"]
        more = f" and {len(keys) - _SHOWN_KEYS} more" if len(keys) > _SHOWN_KEYS else ""
        state = "counts" if each["allowed"] else "held back"
        context.print(one_line(f"  {each['file']} ({state}): {', '.join(keys[:_SHOWN_KEYS])}{more}"))
    if done:
        context.print(done)
    return 0


def decided(path: Path) -> list[str]:
    """Return the names of what a settings file sets, two levels deep, without any value; empty for text and programs."""
    try:
        with open_ordinary(path) as file:
            text = file.read(LARGEST_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError):
        return []
    if path.name.startswith(".env"):
        return list(dict.fromkeys(_NAME.findall(text)))
    return list(_keys(_parsed(path, text)))


def _parsed(path: Path, text: str) -> Any:
    try:
        if path.suffix == ".toml":
            import tomllib

            return tomllib.loads(text)
        return json.loads(text) if path.suffix in (".json", ".jsonc") else None
    except (ValueError, RecursionError):
        return None


def _keys(value: Any) -> Iterator[str]:
    for name, entry in value.items() if isinstance(value, dict) else ():
        if isinstance(entry, dict) and entry:
            yield from (f"{name}.{inner}" for inner in entry)
        else:
            yield str(name)
