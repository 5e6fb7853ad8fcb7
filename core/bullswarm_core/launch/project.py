"""What a project decides about one start of a worker's CLI: its instructions, and no setting that the person didn't allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from shlex import quote

from bullswarm_core._dataclasses import dataclass, field
from bullswarm_core.errors import WorkerStartError
from bullswarm_core.launch.project_instructions import leading_out, read_instructions
from bullswarm_core.launch.project_settings import found_settings, is_allowed, repository_root, shown_files, unlike
from bullswarm_core.pools.connector import PoolProfile

ALLOW_COMMAND = "bullswarm strategy allow-project-settings"


@dataclass(frozen=True, slots=True)
class ProjectGrant:
    """The repository of the person in which a worker works, and the settings files of it that they allowed.

    ``root`` is what they call the repository, also where the worker works in a copy of it. ``digests`` are by the file's path
    below the root.
    """

    root: str
    digests: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Project:
    """What is to be done about a project. ``allowed``: its settings count; ``instructions`` are handed to the CLI.

    ``settings`` are the files that are there and not allowed, ``root`` is the repository by the person's name for it.
    """

    root: str
    allowed: bool = False
    settings: tuple[str, ...] = ()
    instructions: str = ""
    notes: tuple[str, ...] = ()


def project_grant(allowed: Mapping[str, Mapping[str, str]], cwd: str) -> ProjectGrant:
    """Return what the person allowed of the repository that ``cwd`` belongs to; ``allowed`` are digests by its root."""
    root = repository_root(cwd)
    return ProjectGrant(root, allowed.get(root, {}))


def look_at_project(profile: PoolProfile, cwd: str, grant: ProjectGrant | None) -> Project:
    """Look at the settings and instructions of the project in ``cwd``.

    Raises WorkerStartError where the CLI would obey a file that the person didn't allow, and has no way to pass it over.
    """
    refuse_obedient(profile, cwd, grant)
    part = profile.connector.launch.project
    own = (profile.config_dir,) if profile.config_dir else ()
    granted = grant.digests if grant is not None else {}
    root = grant.root if grant is not None else repository_root(cwd)
    found = found_settings(cwd, part.files, besides=own)
    if found and is_allowed(found, granted):
        return Project(
            root, allowed=True, notes=(f"{shown_files(list(found))} of the project: in force, as you allowed",)
        )
    instructions = read_instructions(cwd, part.instructions, above_repository=part.above_repository, besides=own)
    notes = [f"instructions left out: {shown_files(instructions.left_out)}"] if instructions.left_out else []
    if found:
        since = " since you allowed it" if granted else ""
        changed = f" ({shown_files(unlike(found, granted))} is new or changed{since})" if granted else ""
        notes.append(
            f"{shown_files(list(found))} of the project decides nothing here but instructions{changed};"
            f" to read what it decides and allow it: {ALLOW_COMMAND} {quote(root)}"
        )
    return Project(root, settings=tuple(found), instructions=instructions.text, notes=tuple(notes))


def refuse_obedient(profile: PoolProfile, cwd: str, grant: ProjectGrant | None) -> None:
    """Refuse a CLI that would obey files of the project in ``cwd`` which the person didn't allow. Raises WorkerStartError."""
    part = profile.connector.launch.project
    own = (profile.config_dir,) if profile.config_dir else ()
    person_root = grant.root if grant is not None else ""
    out = leading_out(cwd, part.read_by_itself, besides=own, imports=part.imports_anything, person_root=person_root)
    if out is not None:
        raise WorkerStartError(
            f"{profile.connector.name} would read what the project's {out} leads to, out of the repository:"
            " put an ordinary file in its place",
            hint="or choose another pool",
        )
    if not part.refused and not part.refused_text:
        return
    kept = found_settings(cwd, part.refused, besides=own, everywhere=True)
    if part.refused_text:
        kept |= found_settings(cwd, part.refused_if, besides=own, text=part.refused_text, everywhere=True)
    refused = unlike(kept, grant.digests if grant is not None else {})
    if refused:
        raise obeys(profile.connector.name, refused, grant.root if grant is not None else repository_root(cwd))


def obeys(cli: str, files: Sequence[str], root: str, *, why: str = "can't be kept from it") -> WorkerStartError:
    """Return the refusal to start a CLI that would obey ``files`` of the project."""
    # Short, since a verdict quotes only the beginning of why a worker never started.
    more = f" (+{len(files) - 1})" if len(files) > 1 else ""
    return WorkerStartError(
        f"{cli} would obey the project's {files[0]}{more}; it {why}. Read and allow it: {ALLOW_COMMAND}",
        hint=f"{ALLOW_COMMAND} {quote(root)}",
    )
