"""The git worktrees of writing steps under ``--isolation worktree``: made, merged back, and removed when nothing would be lost.

Each writing attempt has one, ``workspaces/<step>-<ordinal>`` in its run's folder, made from a commit of the person's tree.
The file ``<step>-<ordinal>.state`` next to it records how far it has come, so that a kernel that takes over after a kill goes
on from there. Nothing of the person's repository changes but its objects and its list of worktrees. A worktree is removed
only when it holds nothing that exists nowhere else: differing files that were not merged, commits, staged contents.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bullswarm_core._dataclasses import dataclass, field, replace
from bullswarm_core.errors import BullswarmError, StateError, StorageError, WorkerStartError
from bullswarm_core.fast.files import open_ordinary
from bullswarm_core.fast.tree import remove_tree
from bullswarm_core.process.child import kill_orphans
from bullswarm_core.store.home import file_lock, make_folder, read_json, write_json
from bullswarm_core.trees.files import MISSING, TreeFiles, Version, as_git_sees
from bullswarm_core.trees.fingerprint import BUILD_NAMES, BUILD_SUFFIXES, CACHE_NAMES, CACHE_SUFFIXES
from bullswarm_core.trees.location import WORKTREES
from bullswarm_core.trees.merge import Plan, carry_out, plan_merge
from bullswarm_core.trees.plumbing import GitRefusedError, PrivateGit, Repository, change, commit_tree, versions
from bullswarm_core.wire import to_wire

_STATE = ".state"
_RECORD = "worktree.json"
# A merge takes milliseconds, a worktree of a large tree some seconds.
_LOCK_SEC = 120.0


@dataclass(frozen=True, slots=True)
class Merged:
    """What came of a worktree: ``merged`` files stand in the person's tree, ``conflicts`` say why, by path, nothing does.

    ``left`` are paths that exist nowhere but in the worktree.
    """

    path: str
    merged: tuple[str, ...] = ()
    conflicts: Mapping[str, str] = field(default_factory=dict)
    left: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Worktree:
    """The worktree of one attempt, whether or not it is there yet. ``run_folder`` is its run's folder."""

    run_folder: Path
    id: str
    environ: Mapping[str, str] = field(repr=False)

    @property
    def path(self) -> Path:
        """Where its files are."""
        return self.run_folder / WORKTREES / self.id

    @property
    def is_ready(self) -> bool:
        """Whether it was made whole, so that a worker may have been in it."""
        return self._record().get("state") in ("ready", "merged", "conflict")

    def make(self, cwd: str) -> None:
        """Make it from the tree around ``cwd`` as it is now; one that is there already is only looked at.

        Raises WorkerStartError when it can't be made, or when something else is in its place; StorageError for a full disk.
        """
        record = self._record()
        if record.get("state") not in (None, "making"):
            self._refuse_another(record)
            return
        # Whatever is there was cut short before any worker saw it.
        if record or self._state.exists():
            kill_orphans({"attempt": self._mark})
            self._discard(record)
        try:
            repository = Repository.of(cwd, self.environ)
            with self._locked(repository.common):
                self._make(repository)
        except GitRefusedError as error:
            raise WorkerStartError(
                f"no worktree could be made of {cwd}: {error}", hint="run it without --isolation worktree"
            ) from error
        except OSError as error:
            raise StorageError(f"cannot write {error.filename or self.path}: {error.strerror}") from error

    def merge_back(self, files: Sequence[str]) -> Merged:
        """Bring the declared ``files`` (relative to the run's folder of work) back into the person's tree, all or none.

        Called again after a kill it finishes what was begun. Raises BullswarmError when the worktree is gone or can't be
        read, StorageError when the disk refuses.
        """
        record = self._record()
        repository = self._repository(record)
        if record["state"] == "ready":
            self._refuse_another(record)
            try:
                with self._locked(repository.common):
                    plan, conflicts = self._merge(record, repository, files)
            except OSError as error:
                raise StorageError(f"cannot merge {self.path}: {error.strerror} ({error.filename})") from error
            record |= {
                "state": "conflict" if conflicts else "merged",
                "conflicts": conflicts,
                "merged": {} if conflicts else plan.to_json()["theirs"],
            }
            self._write(record)
        return Merged(str(self.path), tuple(record["merged"]), record["conflicts"], self.left())

    def left(self) -> tuple[str, ...]:
        """Return the paths in it that exist nowhere else: neither as they were when it was made nor merged.

        What tools leave behind (caches, build output that git ignores) doesn't count. A worktree that can't be judged has
        ``.`` left.
        """
        record = self._record()
        if not os.path.lexists(self.path) or record.get("state") in ("making", "removing"):
            return ()
        try:
            expected = self._expected(record)
            return left_in(self._git(expected.repository), expected)
        except (KeyError, TypeError, ValueError, OSError, BullswarmError):
            return (".",)

    def remove_if_spent(self) -> bool:
        """Remove it if nothing would be lost by that, and tell whether it is gone."""
        record = self._record()
        if self.left():
            return False
        # What can't be deleted now is deleted by a later call: the record says that nothing of it is needed.
        with contextlib.suppress(OSError, StorageError):
            if record:
                self._write(record | {"state": "removing"})
            self._discard(record)
        return not os.path.lexists(self.path)

    @property
    def _state(self) -> Path:
        return self.path.with_name(self.id + _STATE)

    @property
    def _mark(self) -> str:
        return f"{self.run_folder.name}/{self.id}/worktree"

    def _record(self) -> dict[str, Any]:
        try:
            record = read_json(self._state / _RECORD, default={})
        except StateError:
            return {"state": "unreadable"}
        return record if isinstance(record, dict) else {"state": "unreadable"}

    def _write(self, record: Mapping[str, Any]) -> None:
        write_json(self._state / _RECORD, record)

    def _repository(self, record: Mapping[str, Any]) -> Repository:
        try:
            return Repository.from_json(record["repository"])
        except (KeyError, TypeError) as error:
            raise StateError(
                f"{self._state / _RECORD} does not tell what {self.path} was made of",
                hint="take what you need from the worktree yourself",
            ) from error

    def _git(self, repository: Repository) -> PrivateGit:
        return PrivateGit(
            self._state / "git", repository, str(self.path), self._state / "index", self.environ, mark=self._mark
        )

    def _locked(self, common: str) -> contextlib.AbstractContextManager[None]:
        """One at a time works on a repository: git's own locks make the second fail instead of wait."""
        name = hashlib.sha256(os.fsencode(common)).hexdigest()[:24]
        return file_lock(self.run_folder.parent.parent / "locks" / f"worktrees-{name}.lock", timeout_sec=_LOCK_SEC)

    def _make(self, repository: Repository) -> None:
        make_folder(self._state)
        record: dict[str, Any] = {"state": "making", "repository": repository.to_json(), "admin": None}
        self._write(record)
        git = self._git(repository)
        git.make()
        snapshot = commit_tree(
            PrivateGit(git.folder, repository, repository.top, git.index, self.environ, mark=self._mark)
        )
        words = ("worktree", "add", "--detach", "--no-checkout", "--quiet", str(self.path), snapshot.commit)
        change(words, cwd=repository.top, environ=self.environ, mark=self._mark)
        link = (self.path / ".git").read_text("utf-8", "surrogateescape")
        admin = link.removeprefix("gitdir: ").rstrip("\n")
        self._write(record | {"admin": admin})
        git.said("checkout-index", "--quiet", "--all", "--force", "--index")
        shutil.copyfile(git.index, f"{admin}/index")
        make_folder(self.path / repository.prefix)
        self._write(
            record
            | {
                "state": "ready",
                "admin": admin,
                "link": link,
                "commit": snapshot.commit,
                "log": _log_of(admin),
                "identity": _identity(self.path),
                "merged": {},
                "conflicts": {},
            }
        )

    def _refuse_another(self, record: Mapping[str, Any]) -> None:
        """Raise WorkerStartError unless the worktree is the one that was made: git in another one works somewhere else."""
        try:
            same = _identity(self.path) == record.get("identity")
            same = same and link_of(self.path) == record.get("link")
        except (OSError, ValueError):
            same = False
        if not same:
            raise WorkerStartError(
                f"the worktree {self.path} is gone, or something else is in its place", hint="start the step again"
            )

    def _merge(
        self, record: Mapping[str, Any], repository: Repository, files: Sequence[str]
    ) -> tuple[Plan, Mapping[str, str]]:
        stage, planned = self._state / "merge", self._state / "merge.json"
        person = TreeFiles(Path(repository.top), repository.algorithm)
        document = read_json(planned)
        if document is not None:
            plan = Plan.from_json(document)
        else:
            plan = self._planned(repository, files, person, stage)
            if plan.conflicts:
                return plan, plan.conflicts
            write_json(planned, plan.to_json())
        mark = f"{self.run_folder.name}-{self.id}"[-100:]
        return plan, carry_out(plan, person, stage, mark=mark, keep=repository.prefix.rstrip("/"))

    def _planned(self, repository: Repository, files: Sequence[str], person: TreeFiles, stage: Path) -> Plan:
        remove_tree(stage)
        make_folder(stage)
        git = self._git(repository)

        def blend(ours: Path, digest: str, theirs: Path) -> bytes | None:
            origin = ours.with_suffix(".base")
            origin.write_bytes(git.said("cat-file", "blob", digest))
            return git.merged(ours, origin, theirs)

        return plan_merge(
            [repository.prefix + name for name in dict.fromkeys(files)],
            git.entries(),
            person=person,
            worker=TreeFiles(self.path, repository.algorithm),
            stage=stage,
            blend=blend,
        )

    def _expected(self, record: Mapping[str, Any]) -> Expected:
        return Expected(
            repository=self._repository(record),
            admin=record["admin"],
            link=record["link"],
            commit=record["commit"],
            log=record["log"],
            merged={path: Version(**version) for path, version in record["merged"].items()},
        )

    def _discard(self, record: Mapping[str, Any]) -> None:
        """Delete the worktree, what git knows of it, and our record, in an order that can be taken up again."""
        admin = record.get("admin") or _admin_of(self.path, record)
        remove_tree(self.path)
        if os.path.lexists(self.path):
            return
        if admin is not None:
            if _is_of(admin, self.path):
                _delete(Path(admin), last="gitdir")
            for folder in (Path(admin), Path(admin).parent):
                with contextlib.suppress(OSError):  # another worktree's, by now, or the place of others
                    folder.rmdir()
        _delete(self._state, last=_RECORD)


def worktrees(run_folder: Path, environ: Mapping[str, str] = os.environ) -> Iterator[Worktree]:
    """Give every worktree of a run that is there or has left a record, in the order of their names."""
    folder = run_folder / WORKTREES
    names = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
    for name in dict.fromkeys(name.removesuffix(_STATE) for name in names):
        yield Worktree(run_folder, name, environ)


def unmerged(run_folder: Path, environ: Mapping[str, str] = os.environ) -> list[Path]:
    """Return the worktrees of a run whose removal would lose something; nothing is changed."""
    return [worktree.path for worktree in worktrees(run_folder, environ) if worktree.left()]


def remove_spent(
    run_folder: Path, environ: Mapping[str, str] = os.environ, *, only: Collection[str] | None = None
) -> list[Path]:
    """Remove the worktrees of a run from which nothing would be lost, and return those that stay for what is in them.

    ``only`` are the ids of the attempts that are over; without it all of the run's are.
    """
    over = [each for each in worktrees(run_folder, environ) if only is None or each.id in only]
    return [each.path for each in over if not each.remove_if_spent()]


def merged_to_json(merged: Merged) -> dict[str, Any]:
    """Return what the verdict tells of a worktree."""
    return dict(to_wire(merged))


def _delete(folder: Path, *, last: str) -> None:
    """Delete a folder, and in it last the file that tells what it is: one that was cut short is still known."""
    for entry in folder.iterdir() if folder.is_dir() else ():
        if entry.name != last:
            remove_tree(entry)
    remove_tree(folder)


def _log_of(admin: str) -> str:
    return hashlib.sha256(Path(admin, "logs/HEAD").read_bytes()).hexdigest() if _has_log(admin) else ""


def _has_log(admin: str) -> bool:
    return Path(admin, "logs/HEAD").is_file()


def _identity(path: Path) -> list[int]:
    found = path.lstat()
    return [found.st_dev, found.st_ino]


def _admin_of(path: Path, record: Mapping[str, Any]) -> str | None:
    """Find what git made of a worktree whose making was cut short: the one folder that names it."""
    try:
        common = Repository.from_json(record["repository"]).common
        found = [str(entry) for entry in Path(common, "worktrees").iterdir() if _is_of(str(entry), path)]
    except (KeyError, TypeError, OSError):
        return None
    return found[0] if found else None


def _is_of(admin: str, path: Path) -> bool:
    try:
        named = Path(admin, "gitdir").read_text("utf-8", "surrogateescape").rstrip("\n")
    except OSError:
        return False
    return os.path.realpath(os.path.join(admin, named)) == os.path.realpath(path / ".git")  # noqa: PTH118 - a name


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
