"""Declared files of a worktree, brought back into the person's tree: all of them or none, each by one rename.

What becomes of one file is the rule of every three-way merge: a change of one side is taken, equal changes are taken once,
and different ones are merged by lines where both are plain files, else they are a conflict.

First everything that will be written is put into a folder of ours, together with what it replaces; then a plan is written
that says so; only then the person's files are touched. After a kill the plan can be finished, or taken back where a file
has changed meanwhile.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from bullswarm_core._dataclasses import dataclass, field
from bullswarm_core.store.home import write_bytes_atomic
from bullswarm_core.trees.files import MISSING, BeyondLinkError, TreeFiles, Version, as_git_sees
from bullswarm_core.wire import to_wire


@dataclass(frozen=True, slots=True)
class Decision:
    """``keep`` leaves the file alone, ``take`` makes it the worker's, ``blend`` makes it a file of both sides.

    For ``blend``, ``content`` says whose bytes it gets (``both``: merged by lines, which may still conflict) and ``executable``
    its mode. ``why`` explains a ``conflict``.
    """

    action: Literal["keep", "take", "blend", "conflict"]
    content: Literal["ours", "theirs", "both"] = "ours"
    executable: bool = False
    why: str = ""


def decide(base: Version, ours: Version, theirs: Version) -> Decision:
    """Return what is to be done to ``ours``, the person's file, given where both began and what the worker made of it."""
    if theirs in (base, ours):
        return Decision("keep")
    if not theirs.can_be_merged:
        return Decision("conflict", why=f"the worker made a {_word(theirs)} of it")
    if ours == base:
        return Decision("take")
    if ours.kind == theirs.kind == "file":
        return _blended(base, ours, theirs)
    return Decision("conflict", why=f"{_changed('you', base, ours)}, and {_changed('the worker', base, theirs)}")


def _blended(base: Version, ours: Version, theirs: Version) -> Decision:
    mode = theirs.executable if ours.executable == base.executable else ours.executable
    if base.kind != "file":
        mode = ours.executable or theirs.executable
    if ours.digest == theirs.digest or theirs.digest == base.digest:
        return Decision("blend", "ours", mode)
    if base.kind != "file":
        return Decision("conflict", why="you and the worker both made it, not alike")
    return Decision("blend", "theirs" if ours.digest == base.digest else "both", mode)


def _changed(who: str, base: Version, now: Version) -> str:
    if now.kind == "missing":
        return f"{who} deleted it"
    if base.kind == "missing":
        return f"{who} made it ({_word(now)})"
    return f"{who} changed it" if now.kind == base.kind else f"{who} made a {_word(now)} of it"


def _word(version: Version) -> str:
    return {"link": "symbolic link", "other": "special file"}.get(version.kind, version.kind)


# Merges the files ours and theirs, whose common origin has this digest; None where it can't.
Blend = Callable[[Path, str, Path], bytes | None]


@dataclass(frozen=True, slots=True)
class Item:
    """One file to be replaced. ``staged`` and ``backup`` are names in the stage folder, empty where there is nothing."""

    path: str
    before: Version
    after: Version
    staged: str = ""
    backup: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """``conflicts`` say why by path; with one of them nothing is to be done. ``theirs`` are the worker's versions of what it
    changed.
    """

    items: tuple[Item, ...] = ()
    conflicts: Mapping[str, str] = field(default_factory=dict)
    theirs: Mapping[str, Version] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` reads."""
        return {
            "items": [to_wire(item) for item in self.items],
            "conflicts": dict(self.conflicts),
            "theirs": {path: to_wire(version) for path, version in self.theirs.items()},
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Plan:
        """Read what `to_json` wrote."""
        items = (
            Item(row["path"], Version(**row["before"]), Version(**row["after"]), row["staged"], row["backup"])
            for row in value["items"]
        )
        theirs = {path: Version(**version) for path, version in value["theirs"].items()}
        return cls(tuple(items), value["conflicts"], theirs)


def plan_merge(
    files: Iterable[str],
    base: Mapping[str, Version],
    *,
    person: TreeFiles,
    worker: TreeFiles,
    stage: Path,
    blend: Blend,
) -> Plan:
    """Decide for each declared file, and stage what is to be written; ``stage`` is an empty folder.

    Nothing of either tree is changed. Raises OSError when the stage can't be written.
    """
    items: list[Item] = []
    conflicts: dict[str, str] = {}
    theirs: dict[str, Version] = {}
    for number, path in enumerate(files):
        origin = base.get(path, MISSING)
        try:
            made = as_git_sees(worker.look(path, copy_to=stage / f"{number}.theirs"))
            if made == origin:
                continue
            theirs[path] = made
            ours = person.look(path, copy_to=stage / f"{number}.ours")
            item = _item(number, path, origin, ours, made, stage, blend)
        except _ConflictError as error:
            conflicts[path] = str(error)
        except BeyondLinkError:
            conflicts[path] = "it lies behind a symbolic link"
        except (OSError, ValueError) as error:
            conflicts[path] = f"it can't be read: {getattr(error, 'strerror', None) or error}"
        else:
            items += [item] if item.before != item.after else []
    return Plan(tuple(items), conflicts, theirs)


def carry_out(plan: Plan, person: TreeFiles, stage: Path, *, mark: str, keep: str = "") -> dict[str, str]:
    """Do what the plan says; on the first file that is not as it was nor as it will be, take everything back.

    It may be called again after a kill. Returns why nothing was done, by path; nothing when all is done. ``mark`` is part of
    the temporary files' names, ``keep`` a folder that is never removed. Raises OSError when what was there can't be put back.
    """
    # Deletions first: a file may take the place of a folder that they empty, or a folder that of a file.
    items = sorted(enumerate(plan.items), key=lambda each: each[1].after.kind != "missing")
    for number, item in items:
        why = _replace(item, person, stage, _temporary(mark, number), keep)
        if why is not None:
            for other_number, other in reversed(items):
                _take_back(other, person, stage, _temporary(mark, other_number), keep)
            return {item.path: why}
    return {}


class _ConflictError(Exception):
    pass


def _item(number: int, path: str, base: Version, ours: Version, theirs: Version, stage: Path, blend: Blend) -> Item:
    decision = decide(base, ours, theirs)
    backup = f"{number}.ours" if ours.kind in ("file", "link") else ""
    if decision.action == "conflict":
        raise _ConflictError(decision.why)
    if decision.action == "keep":
        return Item(path, ours, ours)
    if decision.action == "take":
        staged = f"{number}.theirs" if theirs.kind in ("file", "link") else ""
        if theirs.kind == "link" and _leads_out(path, os.fsdecode((stage / staged).read_bytes())):
            raise _ConflictError("the worker made a link of it that leads out of the tree")
        return Item(path, ours, theirs, staged, backup)
    staged = f"{number}.{'theirs' if decision.content == 'theirs' else 'ours'}"
    digest = theirs.digest if decision.content == "theirs" else ours.digest
    if decision.content == "both":
        staged = f"{number}.both"
        whole = blend(stage / f"{number}.ours", base.digest, stage / f"{number}.theirs")
        if whole is None:
            raise _ConflictError("you and the worker both changed it, in the same place")
        write_bytes_atomic(stage / staged, whole)
        digest = TreeFiles(stage, "sha1" if len(base.digest) == 40 else "sha256").look(staged).digest
    return Item(path, ours, Version("file", decision.executable, digest), staged, backup)


def _replace(item: Item, person: TreeFiles, stage: Path, temporary: str, keep: str) -> str | None:
    """Bring one file from before to after; return why that can't be."""
    try:
        person.drop(item.path, temporary)
        now = person.look(item.path)
        if now == item.after:
            return None
        if now != item.before:
            return "it was changed while it was being merged"
        _write(item.path, item.after, stage / item.staged, person, temporary, keep)
    except BeyondLinkError:
        return "it lies behind a symbolic link"
    except OSError as error:
        return f"it can't be written: {error.strerror or error}"
    return None


def _take_back(item: Item, person: TreeFiles, stage: Path, temporary: str, keep: str) -> None:
    person.drop(item.path, temporary)
    try:
        now = person.look(item.path)
    except OSError:
        return
    if now == item.after:
        _write(item.path, item.before, stage / item.backup, person, temporary, keep)


def _write(path: str, version: Version, source: Path, person: TreeFiles, temporary: str, keep: str) -> None:
    if version.kind == "missing":
        person.remove(path, keep=keep)
    else:
        person.put(path, source, kind=version.kind, executable=version.executable, temporary=temporary)


def _temporary(mark: str, number: int) -> str:
    return f".bullswarm-{mark}-{number}.tmp"


def _leads_out(path: str, target: str) -> bool:
    if target.startswith("/"):
        return True
    found = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return found == ".." or found.startswith("../")
