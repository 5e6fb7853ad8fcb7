"""What keeps a tree from being worked on in worktrees: told before anything starts, with the way out."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bullswarm_core.runs.private_git import GitRefusedError, Repository, ask
from bullswarm_core.runs.tree_commit import Listing, listing

_OUT = "leave --isolation out"
_MOST_NAMED = 5


def obstacles(cwd: str, files: Sequence[str], *, home: Path, environ: Mapping[str, str]) -> list[str]:
    """Return why steps that write ``files`` (relative to ``cwd``) can't have worktrees; nothing when they can.

    ``home`` is bullswarm's own folder, which must not lie among the files that a worktree is made of.
    """
    try:
        repository = Repository.of(cwd, environ)
        found = listing(repository, environ)
    except GitRefusedError as error:
        return [
            f"--isolation worktree needs a git working tree that can be read, and {cwd} is in none: {error}; {_OUT}"
        ]
    return [*_of_tree(repository, found, cwd, home, environ), *_of_files(repository, found, files)]


def _of_tree(repository: Repository, found: Listing, cwd: str, home: Path, environ: Mapping[str, str]) -> Iterator[str]:
    if found.submodules:
        names = ", ".join(found.submodules[:_MOST_NAMED])
        yield f"the submodules {names} are checked out, and a worktree would not hold their files; {_OUT}"
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
