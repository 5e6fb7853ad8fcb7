"""What keeps a tree from being worked on in worktrees: told before anything starts, with the way out."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from bullswarm_core.program.model import Program, Step, files_of
from bullswarm_core.runs.private_git import GitRefusedError, Repository, ask
from bullswarm_core.runs.tree_commit import Listing, listing

_OUT = "leave --isolation out"
_MOST_NAMED = 5


def isolation_issues(program: Program, cwd: str, *, home: Path, environ: Mapping[str, str]) -> list[str]:
    """Return why the steps of ``program`` can't work in worktrees of their own; nothing when they can."""
    writers = [step for step in program.steps if step.lane != "analyze"]
    files = {step.id: tuple(files_of(step)) for step in writers}
    declared = sorted({name for names in files.values() for name in names})
    blocked = obstacles(cwd, declared, home=home, environ=environ)
    # git does not answer for names that are no place of a file in its tree.
    ignored = frozenset() if blocked else _ignored(cwd, declared, environ)
    return [*(issue for step in writers for issue in _of_step(step, files[step.id], ignored)), *blocked]


def _of_step(step: Step, files: Sequence[str], ignored: Collection[str]) -> Iterator[str]:
    if not files and step.deliverable.type != "outward":
        yield f"step {step.id} writes and declares no files; under --isolation worktree only declared files are merged back"
    if hidden := [name for name in files if name in ignored]:
        yield (
            f"step {step.id} declares {', '.join(hidden)}, which git ignores: a worktree would not carry"
            f" {'it' if len(hidden) == 1 else 'them'} back; drop --isolation worktree, or take the file out of .gitignore"
        )


def _ignored(cwd: str, files: Sequence[str], environ: Mapping[str, str]) -> frozenset[str]:
    if not files:
        return frozenset()
    names = b"".join(os.fsencode(name) + b"\0" for name in files)
    said = ask(("check-ignore", "--stdin", "-z"), cwd=cwd, environ=environ, input=names)
    return frozenset(os.fsdecode(name) for name in said.stdout.split(b"\0") if name)


def obstacles(cwd: str, files: Sequence[str], *, home: Path, environ: Mapping[str, str]) -> list[str]:
    """Return why steps that write ``files`` (relative to ``cwd``) can't have worktrees; nothing when they can.

    ``home`` is bullswarm's own folder, which must not lie among the files that a worktree is made of.
    """
    try:
        repository = Repository.of(cwd, environ)
        if not os.path.lexists(f"{repository.top}/.git"):
            # Whoever made the repository chose which folder that is: / or the person's home would be copied whole.
            return [
                f"the repository of {cwd} puts its working tree at {repository.top} (core.worktree), where it does not lie"
                f" itself; {_OUT}"
            ]
        found = listing(repository, environ)
    except GitRefusedError as error:
        return [
            f"--isolation worktree needs a git working tree that can be read, and {cwd} is in none: {error}; {_OUT}"
        ]
    return [*_of_tree(repository, found, cwd, home, environ), *_of_files(repository, found, files)]


def _of_tree(repository: Repository, found: Listing, cwd: str, home: Path, environ: Mapping[str, str]) -> Iterator[str]:
    if found.submodules:
        names = ", ".join(found.submodules[:_MOST_NAMED])
        yield (
            f"the submodules {names} are checked out, and a worktree would not hold their files; {_OUT}, and say"
            f" --concurrency 1 to have the steps work in {cwd} itself, one after the other"
        )
    if repository.prefix and ask(("check-ignore", "-q", "--", "."), cwd=cwd, environ=environ).exit_code == 0:
        yield f"git ignores {cwd}, so that a worktree would not hold it; {_OUT}, or work in another folder"
    own = os.path.relpath(os.path.realpath(home), repository.top)
    if any(path.startswith(f"{own}/") for path in (*found.untracked, *found.nested, *found.tracked)):
        yield f"bullswarm's own state in {home} would be among the files of a worktree; add it to .gitignore"
    if not os.access(repository.common, os.W_OK):
        yield f"a worktree is entered in {repository.common}, which you may not write; {_OUT}"


def _of_files(repository: Repository, found: Listing, files: Sequence[str]) -> Iterator[str]:
    others = (*found.nested, *(f"{path}/" for path, what in found.tracked.items() if what.startswith("160000 ")))
    for name in files:
        path = posixpath.normpath(repository.prefix + name)
        if path.startswith(("../", "/")) or path.split("/")[0] == ".git":
            yield f"{name} lies outside of the working tree {repository.top}"
        elif inside := next((other for other in others if f"{path}/".startswith(other)), None):
            yield f"{name} lies in another repository ({inside}), which a worktree would not hold; {_OUT}"
        elif path in found.sparse:
            yield f"{name} is left out by the sparse checkout: add it (git sparse-checkout add), or {_OUT}"
        elif link := _link_before(repository.top, path):
            yield f"{name} lies behind the symbolic link {link}: name the file by its real path"
        elif Path(repository.top, path).is_dir() and not Path(repository.top, path).is_symlink():
            yield f"{name} is a folder: name one exact file"


def _link_before(top: str, path: str) -> str | None:
    """Return the first folder on the way to a path that is a symbolic link."""
    parts = path.split("/")[:-1]
    places = ("/".join(parts[: number + 1]) for number in range(len(parts)))
    return next((place for place in places if Path(top, place).is_symlink()), None)
