"""What in a worktree exists nowhere else: files that differ from its snapshot and were not merged, commits, staged contents."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from bullswarm_core.fast.files import open_ordinary
from bullswarm_core.judging.fingerprint import BUILD_NAMES, BUILD_SUFFIXES, CACHE_NAMES, CACHE_SUFFIXES
from bullswarm_core.runs.private_git import PrivateGit, Repository, versions
from bullswarm_core.runs.three_way import MISSING, Version, as_git_sees
from bullswarm_core.runs.tree_files import TreeFiles
from bullswarm_core.values import dataclass, replace

COMMITS = "(commits)"
_NOT_OURS = CACHE_NAMES - {".git"}
# A path; whatever is longer is not what git wrote.
_LONGEST_LINK = 64 * 1024


@dataclass(frozen=True, slots=True)
class Expected:
    """What a worktree was when it was made, and the versions of its files that were merged since, by path.

    ``admin`` is what git keeps of it, ``link`` the content of its ``.git``, ``log`` the digest of its log of commits.
    """

    repository: Repository
    admin: str
    link: str
    commit: str
    log: str
    merged: Mapping[str, Version]


def left_in(git: PrivateGit, expected: Expected) -> tuple[str, ...]:
    """Return the paths that would be lost with the worktree, sorted; ``(commits)`` stands for commits made in it.

    ``git`` works on the worktree with the index of its snapshot, which is not written. Raises GitRefusedError, OSError.
    """
    files = TreeFiles(Path(git.tree), expected.repository.algorithm)
    origin = git.entries()
    found: set[str] = set()
    for path in _candidates(git):
        if path.endswith("/") or not _is_known(path, files, origin, expected.merged):
            found.add(path)
    found |= _ignored(git, files, expected.merged)
    found |= _staged(expected, git, origin)
    if link_of(git.tree) != expected.link:
        found.add(".git")
    if _has_commits(expected):
        found.add(COMMITS)
    return tuple(sorted(found))


def _candidates(git: PrivateGit) -> Iterable[str]:
    yield from git.lines("diff-files", "-z", "--name-only", "--ignore-submodules=all")
    for path in git.lines("ls-files", "-z", "--others", "--exclude-standard"):
        if not _is_among(path, _NOT_OURS, CACHE_SUFFIXES):
            yield path


def _is_known(path: str, files: TreeFiles, origin: Mapping[str, Version], merged: Mapping[str, Version]) -> bool:
    now = as_git_sees(files.look(path))
    return now == origin.get(path, MISSING) or (path in merged and now == merged[path])


def _ignored(git: PrivateGit, files: TreeFiles, merged: Mapping[str, Version]) -> set[str]:
    """Ignored files are somebody's, too (a database, keys), unless they are what every tool leaves."""
    rows = git.lines("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
    names, suffixes = _NOT_OURS | BUILD_NAMES, CACHE_SUFFIXES + BUILD_SUFFIXES
    return {
        path
        for path in rows
        if not _is_among(path, names, suffixes) and not (path in merged and files.look(path) == merged[path])
    }


def _staged(expected: Expected, git: PrivateGit, origin: Mapping[str, Version]) -> set[str]:
    """Return paths of which the worktree's own index holds something that neither the snapshot nor a merged file is."""
    index = Path(expected.admin, "index")
    if not index.is_file():
        return set()
    own = replace(git, index=index)
    held = versions(own.said("ls-files", "-z", "-s"))
    return {
        path
        for path, version in held.items()
        if version != origin.get(path) and version.digest != expected.merged.get(path, MISSING).digest
    }


def _has_commits(expected: Expected) -> bool:
    """Whether somebody committed in the worktree, even if they went back afterwards."""
    admin = Path(expected.admin)
    if not admin.is_dir():
        return False
    head, log = admin / "HEAD", admin / "logs/HEAD"
    with open_ordinary(head) as file:
        if file.read(_LONGEST_LINK).decode("utf-8", "replace").strip() != expected.commit:
            return True
    return (hashlib.sha256(log.read_bytes()).hexdigest() if log.is_file() else "") != expected.log


def link_of(tree: str | Path) -> str | None:
    """Return what the ``.git`` of a worktree says; None where a worker left no such file, or something else in its place."""
    try:
        with open_ordinary(Path(tree, ".git")) as file:
            return file.read(_LONGEST_LINK).decode("utf-8", "surrogateescape")
    except OSError:
        return None


def _is_among(path: str, names: frozenset[str], suffixes: tuple[str, ...]) -> bool:
    parts = os.fspath(path).rstrip("/").split("/")
    return any(part in names or part.endswith(suffixes) for part in parts)
