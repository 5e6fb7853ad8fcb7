"""A commit of a working tree as it stands: tracked edits, staged and untracked files, byte for byte, and no trace of it.

What git ignores is left out, and so are repositories inside the tree that are none of its own. Files that a sparse checkout
left out stay in the commit. The person's index, HEAD, branches and logs are only read.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from bullswarm_core.runs.private_git import GitRefusedError, PrivateGit, Repository, ask, told
from bullswarm_core.values import dataclass

_MESSAGE = "The working tree as it was when a step of a workflow began"
_LINK = "160000"


@dataclass(frozen=True, slots=True)
class Listing:
    """What the person's repository knows of its tree, by path: ``tracked`` as ``mode digest``, ``sparse`` not checked out.

    ``nested`` are repositories inside that are no submodules, ``submodules`` those that are and have their files here.
    """

    tracked: Mapping[str, str]
    sparse: frozenset[str]
    untracked: tuple[str, ...]
    nested: tuple[str, ...]
    submodules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TreeCommit:
    """The commit and its tree; ``head`` is the commit that the person had checked out, None before their first."""

    commit: str
    tree: str
    head: str | None


def listing(repository: Repository, environ: Mapping[str, str]) -> Listing:
    """Read the person's index and look for untracked files. Raises GitRefusedError."""
    top = repository.top
    tracked: dict[str, str] = {}
    sparse: set[str] = set()
    for row in _rows(told(("ls-files", "-z", "-s", "-t"), cwd=top, environ=environ)):
        words, _, path = row.partition("\t")
        tag, mode, digest, _ = words.split()
        # A path in a conflict has up to three entries; what counts is the file.
        tracked.setdefault(path, f"{mode} {digest}")
        if tag == "S" and not os.path.lexists(f"{top}/{path}"):
            sparse.add(path)
    others = _rows(told(("ls-files", "-z", "--others", "--exclude-standard"), cwd=top, environ=environ))
    return Listing(
        tracked=tracked,
        sparse=frozenset(sparse),
        untracked=tuple(path for path in others if not path.endswith("/")),
        nested=tuple(path for path in others if path.endswith("/")),
        submodules=tuple(
            path for path, what in tracked.items() if what.startswith(_LINK) and os.path.lexists(f"{top}/{path}/.git")
        ),
    )


def commit_tree(git: PrivateGit) -> TreeCommit:
    """Write the objects of a commit of ``git.tree``, and its index; nothing of the repository names it yet.

    Raises GitRefusedError for what can't be read, and when files come and go all the while.
    """
    last: GitRefusedError | None = None
    for _ in range(3):
        git.index.unlink(missing_ok=True)
        found = listing(git.repository, git.environ)
        try:
            _fill(git, found)
            tree = os.fsdecode(git.said("write-tree", "--missing-ok")).strip()
            return _committed(git, tree)
        except GitRefusedError as error:
            last = error  # a file turned into a folder while git was about it, say
    assert last is not None, "three tries that failed have an error"
    raise last


def _fill(git: PrivateGit, found: Listing) -> None:
    links = {path for path, what in found.tracked.items() if what.startswith(_LINK)}
    kept = [path for path in found.tracked if path in links or path in found.sparse]
    top = git.repository.top
    there = [path for path in found.tracked if path not in links and path not in found.sparse and _is_there(top, path)]
    git.add((*there, *found.untracked))
    git.enter(f"{found.tracked[path]} 0\t{path}" for path in kept)
    git.skip(found.sparse)


def _committed(git: PrivateGit, tree: str) -> TreeCommit:
    said = ask(
        ("rev-parse", "--quiet", "--verify", "HEAD^{commit}"), cwd=git.repository.top, environ=git.environ
    )  # fails before the first commit
    head = os.fsdecode(said.stdout).strip() or None
    parent = ("-p", head) if head else ()
    commit = os.fsdecode(git.said("commit-tree", tree, *parent, "-m", _MESSAGE)).strip()
    return TreeCommit(commit, tree, head)


def _is_there(top: str, path: str) -> bool:
    """Whether a tracked path is a file or a link and lies in real folders: git refuses what is beyond a link."""
    place = Path(top, path)
    if not (place.is_symlink() or place.is_file()):
        return False
    return not any(parent.is_symlink() for parent in place.parents if len(parent.parts) > len(Path(top).parts))


def _rows(said: bytes) -> list[str]:
    return [os.fsdecode(row) for row in said.split(b"\0") if row]
