"""What git says about a working tree, asked so that nothing of the repository runs and nothing of it is written.

A worker may have edited the repository's configuration. So no hook, no file-system monitor, no filter of the
repository's own, no transport and no pager is ever started by these questions, and the index is never written.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Mapping, Sequence
from typing import Protocol

from bullswarm_core._dataclasses import dataclass, field
from bullswarm_core.errors import WorkerStartError

# One question takes milliseconds on an ordinary repository and some seconds on the largest ones.
_TIMEOUT_SEC = 60.0
# Commits named in a verdict; a worker that made more has made enough.
_MOST_COMMITS = 100
# Committers' clocks and ours may differ by this much on one machine (whole seconds against nanoseconds).
_CLOCK_SLACK_SEC = 2
SAFE_SETTINGS = (
    "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.pager=cat", "-c", "diff.external=",
    "-c", "core.untrackedCache=false", "-c", "protocol.allow=never", "-c", "submodule.recurse=false",
)  # fmt: skip
# The person's own configuration stays (excludes, safe.directory); every locator and switch of a caller's git goes.
_KEPT_GIT_VARIABLES = frozenset({"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH"})
_FILTER_KEYS = ("clean", "smudge", "process", "required")
_FILTER_PATTERN = r"^filter\..*\.(clean|smudge|process|required)$"


class Child(Protocol):
    """How a child process ended: what :class:`bullswarm_core.process.child.ChildResult` holds."""

    @property
    def exit_code(self) -> int | None: ...
    @property
    def stdout(self) -> bytes: ...
    @property
    def cut(self) -> bool: ...


class RunChild(Protocol):
    """The one spawn helper, :func:`bullswarm_core.process.child.run_child`."""

    def __call__(self, argv: Sequence[str], *, cwd: str, environ: Mapping[str, str], timeout_sec: float) -> Child: ...


@dataclass(slots=True)
class GitTree:
    """The part of a git working tree that lies under ``cwd``; all paths are relative to ``cwd``.

    ``cut`` becomes True when git said more than may be held; ``failed`` says why it gave no answer that is needed.
    """

    cwd: str
    run: RunChild
    environ: Mapping[str, str]
    prefix: str = ""
    cut: bool = False
    failed: str = ""
    _hung: bool = field(default=False, repr=False)
    _filters: dict[str, str] | None = field(default=None, repr=False)
    _filters_known: bool = field(default=False, repr=False)

    def find(self) -> bool:
        """Tell whether ``cwd`` lies in a working tree and is not itself ignored by it."""
        said = self._ask("rev-parse", "--is-inside-work-tree", "--show-prefix")
        lines = (said or "").split("\n")
        if lines[0] != "true":
            return False
        self.prefix = lines[1] if len(lines) > 1 else ""
        return not self.prefix or self._exit("check-ignore", "-q", "--", ".") != 0

    def head(self) -> str | None:
        """Return the commit that is checked out; None before the first commit."""
        said = self._ask("rev-parse", "--quiet", "--verify", "HEAD^{commit}")
        return said.strip() or None if said else None

    def status(self) -> list[tuple[str, str]]:
        """Return (two-letter state, path) of what differs from the commit; a path that ends in / is a folder."""
        said = self._needed(
            "status", "--porcelain=v1", "-z", "--untracked-files=normal", "--ignored=no", "--ignore-submodules=dirty",
            "--no-renames", "--", ".",
        )  # fmt: skip
        rows = [(row[:2], row[3:]) for row in said.split("\0") if len(row) > 3]
        return [(state, path[len(self.prefix) :]) for state, path in rows if path.startswith(self.prefix)]

    def ignored(self) -> list[str]:
        """Return the ignored files, and ignored folders (which end in /)."""
        said = self._needed("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory", "--", ".")
        return [path for path in said.split("\0") if path and path != "./"]

    def submodules(self) -> dict[str, str | None]:
        """Return the folder and checked-out commit of each submodule under ``cwd``, declared or only committed."""
        inside = {*self._declared_submodules(), *self._links()}
        return {path: self._head_of(path) for path in sorted(inside) if _stays_inside(path)}

    def _declared_submodules(self) -> list[str]:
        modules = f"{self.cwd}/{'../' * self.prefix.count('/')}.gitmodules"
        if not os.path.lexists(modules):
            return []
        said = self._ask("config", "-z", "--no-includes", "-f", modules, "--get-regexp", r"^submodule\..*\.path$") or ""
        paths = (posixpath.normpath(row.partition("\n")[2]) for row in said.split("\0") if "\n" in row)
        return [path[len(self.prefix) :] for path in paths if path.startswith(self.prefix)]

    def _links(self) -> list[str]:
        """Return the repositories that the commit holds as links: ``-d`` lists these and folders, but no files."""
        rows = (self._ask("ls-tree", "-r", "-d", "-z", "HEAD") or "").split("\0")
        return [row.partition("\t")[2] for row in rows if row.startswith("160000 ")]

    def changed_between(self, before: str | None, after: str) -> list[tuple[str, str]]:
        """Return (A, M or D, path) of what differs under ``cwd`` between two commits."""
        if before is None:
            said = self._needed("ls-tree", "-r", "-z", "--name-only", after)
            return [("A", path) for path in said.split("\0") if path]
        said = self._needed(
            "diff-tree", "-r", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", "--name-status", "--relative",
            before, after,
        )  # fmt: skip
        words = [word for word in said.split("\0") if word]
        return [(state[0], path) for state, path in zip(words[::2], words[1::2], strict=False)]

    def lines_changed(self, before: str, paths: Sequence[str]) -> dict[str, str]:
        """Return for each of these files that differs from the commit ``before`` how: ``+12 -3``, or ``binary``."""
        rows = (row.split("\t", 2) for row in self._difference(("--numstat", "-z"), before, paths).split("\0"))
        counted = {row[2]: row[:2] for row in rows if len(row) == 3}
        return {path: "binary" if added == "-" else f"+{added} -{gone}" for path, (added, gone) in counted.items()}

    def patch(self, before: str, paths: Sequence[str]) -> bytes:
        """Return how these files differ from the commit ``before``, as a patch; files that git doesn't know are not in it."""
        return os.fsencode(self._difference(("--no-color", "--src-prefix=a/", "--dst-prefix=b/"), before, paths))

    def _difference(self, switches: Sequence[str], before: str, paths: Sequence[str]) -> str:
        return self._needed(
            "--literal-pathspecs", "diff", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty",
            "--relative", *switches, before, "--", *paths,
        )  # fmt: skip

    def commits_made(self, before: str | None, after: str, *, since_sec: float) -> tuple[str, ...]:
        """Return the commits from ``before`` to ``after`` that were made since ``since_sec`` (Unix), newest first.

        Commits that were only fetched or switched to are older and don't count.
        """
        exclude = (f"^{before}",) if before else ()
        said = self._ask("rev-list", "--timestamp", f"--max-count={_MOST_COMMITS}", after, *exclude) or ""
        rows = (row.split() for row in said.splitlines())
        return tuple(row[1] for row in rows if len(row) == 2 and int(row[0]) >= since_sec - _CLOCK_SLACK_SEC)

    def contains(self, commit: str) -> bool:
        """Tell whether what is checked out is this commit or goes back to it."""
        return self._exit("merge-base", "--is-ancestor", commit, "HEAD") == 0

    def _head_of(self, path: str) -> str | None:
        if not os.path.lexists(f"{self.cwd}/{path}/.git"):
            return None
        said = self._ask("-C", path, "rev-parse", "--quiet", "--verify", "HEAD^{commit}")
        return said.strip() or None if said else None

    def _needed(self, *words: str) -> str:
        child = self._child(words, filters=True)
        if child is None or child.exit_code != 0:
            self.failed = self.failed or _failure(child)
            return ""
        self.cut = self.cut or child.cut
        return os.fsdecode(child.stdout)

    def _ask(self, *words: str) -> str | None:
        child = self._child(words, filters=False)
        if child is None or child.exit_code != 0:
            return None
        self.cut = self.cut or child.cut
        return os.fsdecode(child.stdout)

    def _exit(self, *words: str) -> int | None:
        child = self._child(words, filters=False)
        return child.exit_code if child else None

    def _child(self, words: Sequence[str], *, filters: bool) -> Child | None:
        off = self._filters_off() if filters else {}
        return None if off is None else self._run(words, off)

    def _run(self, words: Sequence[str], more: dict[str, str]) -> Child | None:
        if self._hung:
            return None
        argv = ["git", "--no-pager", "--no-optional-locks", *SAFE_SETTINGS, *words]
        environ = git_environment(self.environ) | more
        try:
            child = self.run(argv, cwd=self.cwd, environ=environ, timeout_sec=_TIMEOUT_SEC)
        except WorkerStartError:
            return None
        if child.exit_code is None:
            # A pipe in place of a .gitignore, say: git would wait as long at each further question, and a kernel with it.
            self._hung, self.failed = True, self.failed or _failure(child)
        return child

    def _filters_off(self) -> dict[str, str] | None:
        """Return the environment that silences the content filters of the repository's own configuration.

        ``git status`` runs a filter on every file whose times changed; a worker could have planted one there. Filters
        of the person's own configuration (git-lfs, say) are theirs and stay. None when it isn't sure that they are
        silent: then git must not be asked.
        """
        if not self._filters_known:
            self._filters_known = True
            names = self._own_filters()
            keys = [f"filter.{name}.{key}" for name in names or () for key in _FILTER_KEYS]
            off = settings_of_environment({key: "false" if key.endswith(".required") else "" for key in keys})
            self._filters = off if names is not None and self._are_silent(keys, off) else None
        return self._filters

    def _own_filters(self) -> list[str] | None:
        """Return the names of the filters that the repository itself configures; None when that can't be told."""
        words = self._listed({}, "--show-scope", "--name-only")
        if words is None:
            return None
        keys = [key for scope, key in zip(words[::2], words[1::2], strict=False) if scope not in ("system", "global")]
        return list(dict.fromkeys(key.partition(".")[2].rpartition(".")[0] for key in keys))

    def _are_silent(self, keys: Sequence[str], off: dict[str, str]) -> bool:
        """Ask back what holds now: a git before 2.31 doesn't know settings of the environment."""
        rows = self._listed(off) if keys else []
        if rows is None:
            return False
        now = {name: value for name, _, value in (row.partition("\n") for row in rows)}
        return all(now.get(key) == ("false" if key.endswith(".required") else "") for key in keys)

    def _listed(self, more: dict[str, str], *switches: str) -> list[str] | None:
        child = self._run(("config", "-z", *switches, "--get-regexp", _FILTER_PATTERN), more)
        # git's exit code 1 says that nothing matched.
        if child is None or child.cut or child.exit_code not in (0, 1):
            return None
        return os.fsdecode(child.stdout).split("\0")[:-1]


def _failure(child: Child | None) -> str:
    if child is None:
        return "git could not be asked safely"
    if child.exit_code is None:
        return f"git gave no answer within {_TIMEOUT_SEC:.0f} s"
    return f"git could not read the repository (exit {child.exit_code})"


def settings_of_environment(values: Mapping[str, str]) -> dict[str, str]:
    """Return ``values`` as git takes them from the environment, where a name may hold any character.

    ``-c name=value`` is cut at its first ``=``, which the name of a filter may contain.
    """
    if not values:
        return {}
    rows = list(enumerate(values.items()))
    named = {f"GIT_CONFIG_KEY_{at}": key for at, (key, _) in rows}
    return named | {f"GIT_CONFIG_VALUE_{at}": value for at, (_, value) in rows} | {"GIT_CONFIG_COUNT": str(len(rows))}


def git_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return ``environ`` as git gets it here: no caller's repository, no prompt, no needless lock, no network.

    A place of PATH that is relative (``.``, or an empty one) means the folder asked about: a ``git`` in there is no git.
    """
    kept = {
        name: value for name, value in environ.items() if not name.startswith("GIT_") or name in _KEPT_GIT_VARIABLES
    }
    places = [place for place in kept.get("PATH", os.defpath).split(os.pathsep) if place.startswith("/")]
    return kept | {
        "PATH": os.pathsep.join(places) or os.defpath,
        "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1", "LC_ALL": "C",
    }  # fmt: skip


def _stays_inside(path: str) -> bool:
    return bool(path) and not path.startswith(("/", "..")) and path != "."
