"""The models that each agent CLI offers, as it tells them itself, and the memory of what it told.

A provider that can be asked has a function ``models(profile, asking)`` in its provider.py, which returns ModelEntry values
and raises BullswarmError when the CLI gives no list. Asking starts no turn and costs nothing. The lists lie in the cache;
a live list always wins over an older one, and a CLI that fails leaves its last list in place, with the reason beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from bullswarm_core._dataclasses import dataclass, field
from bullswarm_core.errors import BullswarmError, ModelListError, StateError
from bullswarm_core.fast.text import one_line
from bullswarm_core.fast.tree import temporary_folder
from bullswarm_core.pools.connector import PoolProfile
from bullswarm_core.pools.model import has_free_name
from bullswarm_core.store.home import Home, file_lock, read_json, write_json
from bullswarm_core.wire import iso, parse_iso

ASK_SEC = 40.0
"""Measured: Codex 0.3 s, Claude Code 0.8, OpenCode 3; Command Code 1.5, but up to 20 where its vendor can't be reached."""
KEPT = timedelta(days=1)
"""A list younger than this is not asked for again: vendors change theirs every few weeks."""
# OpenCode with many providers signed in lists a few hundred.
MOST_MODELS = 1000
_SHOWN_CHARS = 200
# A shorter value may stand in an answer by chance; replacing it would hide plain words, not a secret.
_SHORTEST_SECRET = 8


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """One model of a CLI. ``id`` is what its model flag takes; ``levels`` () says nothing about reasoning levels.

    ``default`` True: the CLI runs it when no model is named. ``note`` is what its vendor says of it.
    """

    id: str
    name: str = ""
    note: str = ""
    default: bool = False
    levels: tuple[str, ...] = ()
    free: bool = False


@dataclass(frozen=True, slots=True)
class ModelList:
    """What is known of the models of a pool: ``asked_at`` None says that its CLI never gave a list.

    ``problem`` is why the last question at ``tried_at`` failed; None when it didn't.
    """

    models: tuple[ModelEntry, ...] = ()
    asked_at: datetime | None = None
    problem: str | None = None
    tried_at: datetime | None = None

    def is_due(self, now: datetime) -> bool:
        """Say whether the CLI is to be asked without being told to: never asked, or longer ago than KEPT."""
        last = self.tried_at or self.asked_at
        return last is None or not timedelta(0) <= now - last < KEPT


@dataclass(frozen=True, slots=True)
class Asking:
    """What a provider may use to ask its CLI: an empty folder, the complete environment, and a time limit in seconds."""

    folder: str
    environ: Mapping[str, str] = field(repr=False)
    timeout_sec: float = ASK_SEC

    def run(self, profile: PoolProfile, *arguments: str, say: str | None = None) -> str:
        """Run the CLI with these arguments to its end and return what it printed.

        Raises ModelListError when it is too slow or fails, WorkerStartError when it can't be started.
        """
        from bullswarm_core.process.child import run_child

        result = run_child(
            [str(profile.binary), *arguments],
            cwd=self.folder,
            environ=self.environ,
            timeout_sec=self.timeout_sec,
            input=say.encode() if say is not None else None,
        )
        command = " ".join([profile.connector.binary, *arguments[:1]])
        if result.timed_out:
            raise ModelListError(f"{command} gave no list within {self.timeout_sec:g} s")
        if not result.ok:
            said = (result.stderr.strip() or result.stdout.strip()).decode("utf-8", "replace").splitlines()
            raise ModelListError(
                f"{command} ended with {result.exit_code}" + (f": {self.plain(said[-1])}" if said else "")
            )
        return result.stdout.decode("utf-8", "replace")

    def plain(self, text: str) -> str:
        """Return a line that a CLI said, without a secret of its environment, fit to be shown."""
        from bullswarm_core.process.secrets import is_secret

        for name, value in self.environ.items():
            if len(value) >= _SHORTEST_SECRET and is_secret(name, value):
                text = text.replace(value, "…")
        return one_line(text)[:_SHOWN_CHARS]


def ask_models(profile: PoolProfile, environ: Mapping[str, str], known: ModelList, *, now: datetime) -> ModelList:
    """Ask a pool's CLI for its models; a failure is kept beside the list that was known before. Starts a process."""
    from bullswarm_core.process.environment import child_environment

    hook = getattr(profile.provider, "models", None)
    try:
        if hook is None:
            raise ModelListError(f"{profile.connector.display_name} can't be asked for its models")
        if (reason := profile.why_not()) and profile.binary is None:
            raise ModelListError(reason)
        with temporary_folder("bullswarm-models-") as folder:
            launch = profile.connector.launch
            child = child_environment(
                environ,
                cwd=folder,
                private_tmp=folder,
                pool_id=profile.id,
                remove=profile.withheld,
                add={**launch.environment, **launch.isolation_environment, **profile.environment},
            )
            models = checked(hook(profile, Asking(folder, child)))
    except BullswarmError as error:
        return ModelList(known.models, known.asked_at, str(error), now)
    return ModelList(models, now, None, now)


def checked(models: Iterable[ModelEntry]) -> tuple[ModelEntry, ...]:
    """Return the models with usable names, each once, at most MOST_MODELS; raise ModelListError where none is left.

    What a CLI prints is data: a name with a space or a control character in it is no name.
    """
    found: dict[str, ModelEntry] = {}
    for entry in models:
        if (
            entry.id.isprintable()
            and entry.id
            and not any(each.isspace() for each in entry.id)
            and len(entry.id) <= 200
        ):
            found.setdefault(
                entry.id,
                ModelEntry(
                    entry.id,
                    one_line(entry.name)[:_SHOWN_CHARS],
                    one_line(entry.note)[:_SHOWN_CHARS],
                    entry.default,
                    entry.levels,
                    entry.free or has_free_name(entry.id),
                ),
            )
    if not found:
        raise ModelListError("its answer names no model")
    return tuple(found.values())[:MOST_MODELS]


def load_model_lists(home: Home) -> dict[str, ModelList]:
    """Return what is remembered, by pool; a file or an entry that is missing or damaged is no list."""
    try:
        document: Any = read_json(_file(home), default={})
        pools = document["pools"]
        entries = pools.items()
    except (StateError, KeyError, TypeError, AttributeError):
        return {}
    found = {}
    for pool, entry in entries:
        try:
            found[pool] = _from_json(entry)
        except (KeyError, TypeError, ValueError, AttributeError):
            continue
    return found


def keep_model_lists(home: Home, lists: Mapping[str, ModelList]) -> None:
    """Remember these lists beside those of other pools; a disk that refuses costs only the memory."""
    if not lists:
        return
    try:
        home.ensure()
        with file_lock(_file(home).with_suffix(".lock")):
            merged = {**load_model_lists(home), **lists}
            write_json(_file(home), {"pools": {pool: to_json(each) for pool, each in sorted(merged.items())}})
    except BullswarmError:
        return


def to_json(known: ModelList) -> dict[str, Any]:
    """Return a list as the cache and programs have it."""
    return {
        "askedAt": iso(known.asked_at) if known.asked_at else None,
        "problem": known.problem,
        "triedAt": iso(known.tried_at) if known.tried_at else None,
        "models": [
            {
                "id": each.id,
                "name": each.name or None,
                "note": each.note or None,
                "default": each.default,
                "levels": list(each.levels),
                "free": each.free,
            }
            for each in known.models
        ],
    }


def texts(value: Any) -> tuple[str, ...]:
    """Return the texts of a list in an answer; whatever else it is, or holds, is nothing."""
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, Sequence) else ()


def _from_json(entry: Mapping[str, Any]) -> ModelList:
    asked, tried = entry["askedAt"], entry["triedAt"]
    return ModelList(
        models=tuple(
            ModelEntry(
                str(each["id"]),
                each["name"] or "",
                each["note"] or "",
                bool(each["default"]),
                texts(each["levels"]),
                bool(each["free"]),
            )
            for each in entry["models"]
        ),
        asked_at=parse_iso(asked) if asked else None,
        problem=entry["problem"],
        tried_at=parse_iso(tried) if tried else None,
    )


def _file(home: Home) -> Path:
    return home.cache_dir / "models.json"
