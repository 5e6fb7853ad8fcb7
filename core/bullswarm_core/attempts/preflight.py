"""What is wrong with a valid program on this machine, now: found before anything is started.

Only what time does not heal is refused: a pool that is off, lacks the lane, the tier or the model, or is signed out, and a
tree that worktrees can't be made of. A spent window is no reason, since it comes back by itself; the engine hands such a step
back when it gets there.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from bullswarm_core._dataclasses import dataclass, replace
from bullswarm_core.pools.labels import Labels
from bullswarm_core.pools.model import Pool
from bullswarm_core.program.model import Program, Step, files_of
from bullswarm_core.routing import Decision, RoutingContext, decide
from bullswarm_core.runs.state import RunState
from bullswarm_core.runs.task import step_task
from bullswarm_core.trees.plumbing import GitRefusedError, Listing, Repository, ask, listing


@dataclass(frozen=True, slots=True)
class Machine:
    """The pools as they are now, what the person decided, and the caller's own pool."""

    pools: Sequence[Pool]
    context: RoutingContext
    policy: str
    labels: Labels
    now: datetime
    caller_pool: str | None = None


def precheck(state: RunState, machine: Machine, *, only: Collection[str] | None = None) -> list[str]:
    """Return what keeps the steps of a run that were not started yet from working: all of them, or the named ones.

    One issue per step: an unknown name first, since nothing else can be told then.
    """
    asked = [step for step in state.program.steps if only is None or step.id in only]
    issues = [issue for step in asked for issue in _unknown_names(step, machine)]
    unknown = {step.id for step in state.program.steps if any(_unknown_names(step, machine))}
    decisions = {step.id: _decision(state, step.id, machine) for step in state.program.steps if step.id not in unknown}
    for step in asked:
        decision = decisions.get(step.id)
        if decision is not None and decision.pool is None:
            issues.append(_nobody(state, step.id, decision, machine.labels))
    issues += _dependent_reviews(asked, decisions)
    return issues


def _decision(state: RunState, step_id: str, machine: Machine) -> Decision:
    """Ask routing as if every window were fresh and nothing were running."""
    fresh = [replace(pool, windows=(), inflight=(), rates={}) for pool in machine.pools]
    task = step_task(state, step_id)
    request = task.request(caller=machine.caller_pool, candidate_minutes=None)
    return decide(request, fresh, now=machine.now, policy=machine.policy, context=machine.context)


def _unknown_names(step: Step, machine: Machine) -> Iterator[str]:
    pools = {pool.id for pool in machine.pools}
    providers = {pool.provider for pool in machine.pools}
    by_label = {label: pool for pool, label in machine.labels.items() if pool in pools}
    route = step.route
    for place, names in (("use", route.use_pools), ("avoid", route.avoid_pools)):
        for name in names:
            if name not in pools:
                told = (
                    f"is the label of {by_label[name]}; a program names pools by id"
                    if name in by_label
                    else "is no pool"
                )
                yield f'step {step.id}: route.pools.{place} names "{name}", which {told} (pools: {", ".join(sorted(pools))})'
    for place, names in (("use", route.use_providers), ("avoid", route.avoid_providers)):
        for name in names:
            if name not in providers:
                known = ", ".join(sorted(providers))
                yield f'step {step.id}: route.providers.{place} names "{name}", of which there is no pool (providers: {known})'


def _nobody(state: RunState, step_id: str, decision: Decision, labels: Labels) -> str:
    """Say why no pool could ever take a step as things stand."""
    task = step_task(state, step_id)
    reasons = {entry.pool: entry.reason for entry in decision.excluded}
    if task.pool is not None:
        why = reasons.get(task.pool, decision.reason)
        return f"step {step_id}: the pinned pool {labels.shown(task.pool)} cannot run it: it {why}"
    told = "; ".join(f"{labels.shown(pool)} {reason}" for pool, reason in reasons.items()) or "there is no pool"
    if task.model is not None:
        return f"step {step_id}: no enabled pool can run the model {task.model}: {told}"
    return f"step {step_id}: no pool can take it: {told}"


def _dependent_reviews(steps: Sequence[Step], decisions: Mapping[str, Decision]) -> Iterator[str]:
    """Find steps that must be done by another provider than earlier ones where only one provider can do both."""
    for step in steps:
        mine = _providers(decisions.get(step.id))
        for other in step.route.independent_of:
            theirs = _providers(decisions.get(other))
            if len(theirs) == 1 and mine == theirs:
                (only,) = mine
                yield (
                    f"step {step.id}: route.independentOf names {other}, and only {only} can take either of them;"
                    " enable a pool of another provider or drop independentOf"
                )


def _providers(decision: Decision | None) -> frozenset[str]:
    return frozenset(row.provider for row in decision.candidates) if decision is not None else frozenset()


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
