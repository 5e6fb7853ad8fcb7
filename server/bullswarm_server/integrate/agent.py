"""What an agent is to `integrate`: its name, its CLI, its folder, and the parts that it needs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from bullswarm_core._dataclasses import dataclass
from bullswarm_server.integrate.parts import MarkedBlock, OwnFile, Part
from bullswarm_server.integrate.person import Person
from bullswarm_server.integrate.sources import AWARENESS, SKILL_MARK, SKILL_NAME, Sources

Form = Literal["settings", "plugin"]


@dataclass(frozen=True, slots=True)
class Setup:
    """The parts of one agent on this machine. ``replaced`` are those of its other form; ``form`` names a plug-in.

    ``hint`` is what the person has to know that no part can settle.
    """

    parts: tuple[Part, ...]
    replaced: tuple[Part, ...] = ()
    form: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Agent:
    """One agent CLI; ``make`` gives the parts that it needs on this machine, in the form that is asked for, if any."""

    name: str
    title: str
    binary: str
    make: Callable[[Person, Sources, Form | None], Setup]

    def found(self, person: Person) -> str | None:
        """Return the path of the agent's CLI; None where it isn't on PATH."""
        return shutil.which(self.binary, path=person.environ.get("PATH", ""))


def skill(folder: Path, sources: Sources) -> OwnFile:
    """The skill in an agent's folder of skills."""
    return OwnFile(folder / SKILL_NAME / "SKILL.md", sources.skill, SKILL_MARK, "skill")


def instructions(file: Path) -> MarkedBlock:
    """The awareness block in an agent's instruction file."""
    return MarkedBlock(file, AWARENESS)


def json_value(path: Path) -> object:
    """Read a file of the agent's for a decision only: None where it is missing or can't be read."""
    try:
        value: object = json.loads(path.read_bytes().decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return None
    return value
