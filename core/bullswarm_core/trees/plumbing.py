"""git plumbing on the person's files that neither reads the repository's own configuration nor changes anything of it.

All of it works with a repository folder and an index of our own; the person's repository only lends its objects. So no hook,
filter, monitor or setting of theirs plays a part, and contents are taken byte for byte: no line end is ever changed. A commit
of a working tree holds tracked edits, staged and untracked files; what git ignores and nested repositories are left out.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bullswarm_core._dataclasses import dataclass, field
from bullswarm_core.errors import BullswarmError, WorkerStartError
from bullswarm_core.fast.files import open_ordinary
from bullswarm_core.process.child import MARKER, ChildResult, run_child
from bullswarm_core.store.home import make_folder
from bullswarm_core.trees.files import Version
from bullswarm_core.trees.git import SAFE_SETTINGS, git_environment, settings_of_environment

_QUESTION_SEC = 60.0
# Hashing, packing and writing the files of a large tree: some seconds a GiB on a disk, minutes on a network.
_WORK_SEC = 900.0
# The paths of a million files.
_MOST_OUTPUT = 256 * 1024 * 1024
# What a repository says of its file system and of who may write its objects, and what the person leaves out of it.
_TAKEN_OVER = (
    r"^core\.(ignorecase|precomposeunicode|protecthfs|protectntfs|sharedrepository|symlinks|filemode|excludesfile)$"
)
_HOOKS = r"^hook\..*\.(command|event|enabled)$"
_RAW = ("-c", "core.autocrlf=false", "-c", "core.safecrlf=false", "-c", "core.attributesFile=/dev/null")
# Above all attributes of the tree: nothing is converted.
_ATTRIBUTES = b"* -text -ident !filter !working-tree-encoding\n"
_WHO = {
    f"GIT_{role}_{what}": said
    for role in ("AUTHOR", "COMMITTER")
    for what, said in (("NAME", "bullswarm"), ("EMAIL", "bullswarm@localhost"))
}
_KINDS = {"100644": "file", "100755": "file", "120000": "link", "160000": "other"}


class GitRefusedError(BullswarmError):
    """git did not do what was asked of it."""


def ask(
    words: Sequence[str],
    *,
    cwd: str,
    environ: Mapping[str, str],
    input: bytes | None = None,  # noqa: A002
) -> ChildResult:
    """Ask the git of the folder's own repository something that runs nothing and writes nothing."""
    return _run(words, cwd=cwd, environ=git_environment(environ), timeout_sec=_QUESTION_SEC, input=input)


def told(words: Sequence[str], *, cwd: str, environ: Mapping[str, str]) -> bytes:
    """Return what git says. Raises GitRefusedError when it fails or says more than can be held."""
    return _checked(words, ask(words, cwd=cwd, environ=environ))


def change(words: Sequence[str], *, cwd: str, environ: Mapping[str, str], mark: str) -> None:
    """Have git change the folder's own repository, with no hook run. Raises GitRefusedError when it fails.

    Newer gits (2.54) also take hooks from settings, where ``core.hooksPath`` doesn't reach.
    """
    said = ask(("config", "-z", "--name-only", "--get-regexp", _HOOKS), cwd=cwd, environ=environ)
    rows = os.fsdecode(said.stdout).split("\0")
    names = dict.fromkeys(row.partition(".")[2].rpartition(".")[0] for row in rows if row)
    off = {f"hook.{name}.{key}": value for name in names for key, value in (("command", "true"), ("enabled", "false"))}
    silent = {**git_environment(environ), **settings_of_environment(off), MARKER: mark}
    _checked(words, _run(words, cwd=cwd, environ=silent, timeout_sec=_QUESTION_SEC, input=None))


@dataclass(frozen=True, slots=True)
class Repository:
    """Where the person's repository keeps what: ``top`` is the working tree, ``common`` the folder that worktrees share.

    ``prefix`` is the way from ``top`` to the folder asked about, empty or with a slash at its end.
    """

    top: str
    prefix: str
    common: str
    algorithm: str = "sha1"
    settings: tuple[str, ...] = ()

    @property
    def objects(self) -> str:
        """The folder with the contents."""
        return posixpath.join(self.common, "objects")

    @classmethod
    def of(cls, cwd: str, environ: Mapping[str, str]) -> Repository:
        """Find the repository around a folder. Raises GitRefusedError, with git's words, where there is no working tree."""

        top, common, algorithm, prefix = _places(cwd, environ)
        said = ask(("config", "-z", "--get-regexp", _TAKEN_OVER), cwd=cwd, environ=environ)
        rows = (row.partition("\n") for row in os.fsdecode(said.stdout).split("\0") if row)
        return cls(
            top=os.path.realpath(top),
            prefix=prefix,
            common=os.path.realpath(posixpath.join(os.path.realpath(cwd), common)),
            algorithm=algorithm,
            settings=tuple(f"{key}={value}" for key, _, value in rows),
        )

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` reads."""
        return {
            "top": self.top, "prefix": self.prefix, "common": self.common, "algorithm": self.algorithm,
            "settings": list(self.settings),
        }  # fmt: skip

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Repository:
        """Read what `to_json` wrote."""
        return cls(value["top"], value["prefix"], value["common"], value["algorithm"], tuple(value["settings"]))


@dataclass(frozen=True, slots=True)
class PrivateGit:
    """git with our own repository folder ``folder`` on the files below ``tree``; ``index`` is the file of its index.

    ``mark`` tells its processes from others when their kernel is killed.
    """

    folder: Path
    repository: Repository
    tree: str
    index: Path
    environ: Mapping[str, str] = field(repr=False)
    mark: str = ""

    def make(self) -> None:
        """Make the repository folder. Raises StorageError, OSError."""
        for name in ("objects", "refs", "info"):
            make_folder(self.folder / name)
        versioned = self.repository.algorithm != "sha1"
        config = f"[core]\n\trepositoryformatversion = {int(versioned)}\n\tbare = false\n"
        if versioned:
            config += f"[extensions]\n\tobjectformat = {self.repository.algorithm}\n"
        files = {
            "config": config.encode(), "info/attributes": _ATTRIBUTES, "info/exclude": _excludes(self.repository),
            "HEAD": b"ref: refs/heads/none\n",
        }  # fmt: skip
        for name, data in files.items():
            (self.folder / name).write_bytes(data)

    def said(self, *words: str, input: bytes | None = None) -> bytes:  # noqa: A002
        """Run a plumbing command and return what it says. Raises GitRefusedError when it fails."""
        settings = [word for setting in self.repository.settings for word in ("-c", setting)]
        argv = (*settings, *_RAW, *words)
        child = _run(argv, cwd=self.tree, environ=self._environment(), timeout_sec=_WORK_SEC, input=input)
        return _checked(words, child)

    def lines(self, *words: str) -> list[str]:
        """Return the NUL-separated entries that a command says, with bytes that are no UTF-8 as surrogates."""
        return [os.fsdecode(row) for row in self.said(*words).split(b"\0") if row]

    def entries(self) -> dict[str, Version]:
        """Return what the index holds, by path."""
        return versions(self.said("ls-files", "-z", "-s"))

    def add(self, paths: Iterable[str]) -> None:
        """Take these files into the index as they are now; one that is gone is left out."""
        self.said("update-index", "-z", "--add", "--remove", "--stdin", input=_joined(paths))

    def enter(self, rows: Iterable[str]) -> None:
        """Put entries (``mode digest stage``, a tab, the path) into the index without a look at any file."""
        if given := _joined(rows):
            self.said("update-index", "-z", "--index-info", input=given)

    def skip(self, paths: Iterable[str]) -> None:
        """Mark entries as not checked out."""
        if given := _joined(paths):
            self.said("update-index", "-z", "--skip-worktree", "--stdin", input=given)

    def merged(self, ours: Path, base: Path, theirs: Path) -> bytes | None:
        """Merge three files by lines; None where both sides changed the same lines, or one is no text."""
        words = ("merge-file", "-p", "-q", str(ours), str(base), str(theirs))
        child = _run(words, cwd=self.tree, environ=self._environment(), timeout_sec=_WORK_SEC, input=None)
        return child.stdout if child.ok and not child.cut else None

    def _environment(self) -> dict[str, str]:
        own = {"GIT_DIR": str(self.folder), "GIT_WORK_TREE": self.tree, "GIT_INDEX_FILE": str(self.index), **_WHO}
        if Path(self.repository.objects).is_dir():
            own["GIT_OBJECT_DIRECTORY"] = self.repository.objects
        if self.mark:
            own[MARKER] = self.mark
        return git_environment(self.environ) | own


def versions(listing: bytes) -> dict[str, Version]:
    """Read what ``ls-files -s -z`` says."""
    found: dict[str, Version] = {}
    for row in listing.split(b"\0"):
        words, _, path = row.partition(b"\t")
        if path:
            mode, digest, _ = os.fsdecode(words).split()
            kind = _KINDS.get(mode, "other")
            found[os.fsdecode(path)] = Version(kind, mode == "100755", digest)  # type: ignore[arg-type]
    return found


def _places(cwd: str, environ: Mapping[str, str]) -> tuple[str, str, str, str]:
    """Return the working tree, the common folder, the hash algorithm and the prefix, as git tells them."""
    words = ("--show-toplevel", "--git-common-dir", "--show-object-format", "--show-prefix")

    def say(*asked: str) -> str:
        return os.fsdecode(told(("rev-parse", *asked), cwd=cwd, environ=environ)).removesuffix("\n")

    lines = say(*words).split("\n")
    if len(lines) != len(words):  # a name with a line end in it
        lines = [say(word) for word in words]
    return lines[0], lines[1], lines[2], lines[3]


def _excludes(repository: Repository) -> bytes:
    try:
        with open_ordinary(Path(repository.common, "info/exclude")) as file:
            return file.read(_MOST_OUTPUT)
    except OSError:
        return b""


def _joined(rows: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(row) + b"\0" for row in rows)


def _run(
    words: Sequence[str],
    *,
    cwd: str,
    environ: Mapping[str, str],
    timeout_sec: float,
    input: bytes | None,  # noqa: A002
) -> ChildResult:
    argv = ["git", "--no-pager", "--no-optional-locks", *SAFE_SETTINGS, *words]
    try:
        return run_child(
            argv, cwd=cwd, environ=environ, timeout_sec=timeout_sec, input=input, output_limit=_MOST_OUTPUT
        )
    except WorkerStartError as error:
        raise GitRefusedError(f"git can't be run: {error}", hint="install git, or leave --isolation out") from error


def _checked(words: Sequence[str], child: ChildResult) -> bytes:
    if child.ok and not child.cut:
        return child.stdout
    lines = child.stderr.decode("utf-8", "replace").strip().splitlines()
    why = lines[-1].removeprefix("fatal: ") if lines else "it said nothing"
    if child.cut:
        why = f"it said more than {_MOST_OUTPUT // 1024**2} MiB"
    elif child.timed_out:
        why = "it did not end in time"
    what = next((word for word in words if not word.startswith("-") and "=" not in word), "")
    raise GitRefusedError(f"git {what}: {why}")


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
