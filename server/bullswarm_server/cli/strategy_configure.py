"""`bullswarm strategy configure`: many decisions from one document, all of them or none."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bullswarm_core.errors import UsageError
from bullswarm_core.pools.labels import Labels
from bullswarm_core.pools.settings import Document, Settings
from bullswarm_core.wire import repeated_key
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.cli.strategy_pools import declared_reset
from bullswarm_server.cli.strategy_writing import Options, change, check_level, registry
from bullswarm_server.ops import decisions as edits

# A document of every decision about a hundred pools is a tenth of this.
_LARGEST = 1 << 20


def configure(options: Options, context: CommandContext) -> None:
    """Decide everything that a document names, or print the schema of such a document."""
    from bullswarm_server.cli.strategy_document import SCHEMA_FILE, read_document

    if options.schema:
        context.print(SCHEMA_FILE.read_text(encoding="utf-8").rstrip("\n"))
        return
    content, source = _content(options.file)
    wanted = _resolved(read_document(content, source=source), context)
    _check_meaning(wanted, context)
    names = [name for name in wanted if name in _PARTS]
    change(
        lambda state: apply_document(state, wanted),
        options,
        context,
        done=f"decided as {source} says: {', '.join(names)}",
        nothing=f"everything is as {source} says already",
    )


def apply_document(state: Document, wanted: Mapping[str, Any]) -> None:
    """Change ``state`` so that it says what a checked document, with pools by id, says."""
    for name, part in _PARTS.items():
        if name in wanted:
            part(state, wanted[name])


def _pools(state: Document, wanted: Mapping[str, Any] | None) -> None:
    _entries(state, wanted, "pools")


def _rungs(state: Document, wanted: Mapping[str, Any] | None) -> None:
    if wanted is None:
        state.get("strategy", {}).pop("rungs", None)
        state.get("strategy", {}).pop("modelTiers", None)
    for pool, tiers in (wanted or {}).items():
        known = edits.rungs_in_force(state, pool)
        if tiers is None:
            edits.clear_rungs(state, pool)
        elif not tiers and known != {}:
            # As `show` prints a pool that is left out on every tier.
            edits.clear_rungs(state, pool)
            edits.section(state, "strategy", "modelTiers", pool)["default"] = []
        for tier, rung in (tiers or {}).items():
            _rung(state, pool, tier, rung, (known or {}).get(tier))


def _rung(
    state: Document, pool: str, tier: str, wanted: Mapping[str, Any] | None, known: Mapping[str, Any] | None
) -> None:
    if wanted is None:
        edits.set_rung(state, pool, tier, None)
    elif known is None or not _same_rung(known, wanted):
        free = wanted.get("free")
        entry = {"model": wanted["model"], "reasoning": wanted.get("reasoning")}
        edits.section(state, "strategy", "rungs", pool)[tier] = entry | ({} if free is None else {"free": free})


def _same_rung(known: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(known.get(key) == wanted.get(key) for key in ("model", "reasoning", "free"))


def _assignments(state: Document, wanted: Mapping[str, Any] | None) -> None:
    if wanted is None:
        state.get("strategy", {}).pop("assignments", None)
    for tier, entry in (wanted or {}).items():
        made = None if entry is None else {"pool": entry["pool"], "model": entry.get("model"), "source": "user"}
        known = edits.look(state, "strategy", "assignments").get(tier) or {}
        if made is None or any(known.get(key) != value for key, value in made.items()):
            edits.put(state, tier, made, "strategy", "assignments")


def _subscriptions(state: Document, wanted: Mapping[str, Any] | None) -> None:
    _entries(state, wanted, "strategy", "subscriptions")


def _reasoning(state: Document, wanted: Mapping[str, Any] | None) -> None:
    if wanted is None:
        state.get("strategy", {}).pop("reasoning", None)
        return
    place = ("strategy", "reasoning")
    if "tiers" in wanted:
        _levels(state, wanted["tiers"], *place, "tiers")
    if "pools" in wanted:
        _named_levels(state, wanted["pools"], *place, "pools")
    if "models" in wanted:
        if wanted["models"] is None:
            edits.drop(state, "models", *place)
        for pool, models in (wanted["models"] or {}).items():
            _named_levels(state, models, *place, "models", pool)


def _recommended(state: Document, wanted: Mapping[str, Any] | None) -> None:
    _named_levels(state, wanted, "strategy", "recommendedReasoning")


def _named_levels(state: Document, wanted: Mapping[str, Any] | None, *names: str) -> None:
    if wanted is None:
        edits.drop(state, names[-1], *names[:-1])
    for name, levels in (wanted or {}).items():
        _levels(state, levels, *names, name)


def _levels(state: Document, wanted: Mapping[str, Any] | None, *names: str) -> None:
    if wanted is None:
        edits.drop(state, names[-1], *names[:-1])
    for tier, level in (wanted or {}).items():
        edits.put(state, tier, level, *names)


def _excluded(state: Document, wanted: list[str] | None) -> None:
    known = edits.look(state, "strategy").get("excludedModels") or []
    disabled = edits.look(state, "strategy").get("disabledModels")
    if isinstance(disabled, list):
        known = [*known, *disabled]
    if sorted(set(known)) != sorted(set(wanted or ())):
        edits.section(state, "strategy")["excludedModels"] = list(dict.fromkeys(wanted or ()))
        if isinstance(disabled, list):
            state["strategy"]["disabledModels"] = {}


def _disabled(state: Document, wanted: Mapping[str, Any] | None) -> None:
    place = edits.look(state, "strategy")
    if wanted is None or isinstance(place.get("disabledModels"), list):
        if wanted is None:
            place.pop("disabledModels", None)
        if not wanted:
            return
        edits.exclude_models(state, place.pop("disabledModels"))
    for pool, models in wanted.items():
        known = edits.look(state, "strategy", "disabledModels").get(pool) or []
        if sorted(set(known)) != sorted(set(models or ())):
            edits.put(state, pool, list(dict.fromkeys(models or ())) or None, "strategy", "disabledModels")


def _config(state: Document, wanted: Mapping[str, Any] | None) -> None:
    defaults = Settings()
    standing = {
        "depthLimit": defaults.depth_limit,
        "totalLimit": defaults.total_limit,
        "inflightPenaltyPct": defaults.inflight_penalty_pct,
        "routingPolicy": defaults.routing_policy,
    }
    given = dict.fromkeys(standing) if wanted is None else wanted
    for key, value in given.items():
        known = edits.look(state, "config").get(key)
        if (standing[key] if known is None else known) != (standing[key] if value is None else value):
            edits.put(state, key, value, "config")


_PARTS: Mapping[str, Any] = {
    "pools": _pools,
    "rungs": _rungs,
    "assignments": _assignments,
    "subscriptions": _subscriptions,
    "reasoning": _reasoning,
    "recommendedReasoning": _recommended,
    "excludedModels": _excluded,
    "disabledModels": _disabled,
    "config": _config,
}
_STANDING: Mapping[str, Any] = {
    "enabled": True, "sandbox": "workspace", "workerInheritsConfig": False, "allowBilling": False, "reservePct": 0,
    "quotaWindow": "unknown", "resetsAt": "unknown", "plan": None,
}  # fmt: skip


def _entries(state: Document, wanted: Mapping[str, Any] | None, *names: str) -> None:
    """Set the fields of ``{pool: {field: value}}``; a field that says what holds without it is written only to change one."""
    if wanted is None:
        edits.drop(state, names[-1], *names[:-1])
    for pool, fields in (wanted or {}).items():
        if fields is None:
            edits.drop(state, pool, *names)
            continue
        entry = edits.section(state, *names, pool)
        for key, value in fields.items():
            known, standing = entry.get(key), _STANDING[key]
            if (standing if known is None else known) == (standing if value is None else value):
                continue
            edits.put(state, key, value, *names, pool)


def _content(file: str) -> tuple[Any, str]:
    """Read the document; return it with the name under which messages speak of it."""
    source = "standard input" if file == "-" else file
    try:
        if file == "-":
            data = sys.stdin.buffer.read(_LARGEST + 1)
        else:
            if not Path(file).is_file():
                raise UsageError(f"{file} is no file", hint="give the path of a JSON document, or - for standard input")
            with Path(file).open("rb") as opened:
                data = opened.read(_LARGEST + 1)
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror or error}") from error
    if len(data) > _LARGEST:
        raise UsageError(f"{source} is larger than {_LARGEST >> 20} MB", hint="nothing was changed")
    try:
        return json.loads(data.removeprefix(b"\xef\xbb\xbf").decode(), object_pairs_hook=_once), source
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{source} is not a JSON document: {error}", hint="nothing was changed") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a key that stands twice: one of the two decisions would be lost."""
    if (twice := repeated_key(pairs)) is not None:
        raise ValueError(f"{twice!r} stands twice in one object")
    return dict(pairs)


def _resolved(document: Mapping[str, Any], context: CommandContext) -> dict[str, Any]:
    """Return the document with every pool by id and every moment in the file's form."""
    wanted = dict(document)
    for name in ("pools", "rungs", "subscriptions", "recommendedReasoning", "disabledModels"):
        if wanted.get(name):
            wanted[name] = _by_id(wanted[name], name, context)
    reasoning = dict(wanted.get("reasoning") or {})
    for name in ("pools", "models"):
        if reasoning.get(name):
            reasoning[name] = _by_id(reasoning[name], f"reasoning.{name}", context)
    if reasoning:
        wanted["reasoning"] = reasoning
    if wanted.get("assignments"):
        wanted["assignments"] = {
            tier: entry and {**entry, "pool": _pool(entry["pool"], context)}
            for tier, entry in wanted["assignments"].items()
        }
    for fields in (wanted.get("subscriptions") or {}).values():
        if fields and fields.get("resetsAt"):
            fields["resetsAt"] = declared_reset(fields["resetsAt"])
    return wanted


def _by_id(entries: Mapping[str, Any], place: str, context: CommandContext) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, entry in entries.items():
        pool = _pool(name, context)
        if pool in found:
            raise UsageError(f"{place} names {pool} twice, by its id and by its label", hint="nothing was changed")
        found[pool] = entry
    return found


def _pool(name: str, context: CommandContext) -> str:
    """Resolve a pool, also one that only an earlier decision knows."""
    found, settings = registry(context), Settings.load(context.home)
    decided = {*settings.pools, *settings.rungs, *settings.subscriptions, *settings.disabled_models}
    decided |= {*settings.reasoning.pools, *settings.reasoning.models, *settings.reasoning.recommended}
    decided |= {assigned.pool for assigned in settings.assignments.values()}
    return Labels.load(context.home).resolve(name, found.pool_ids() | decided, why_no_pool=found.why_no_pool)


def _check_meaning(wanted: Mapping[str, Any], context: CommandContext) -> None:
    """Refuse what the schema can't see: levels that a CLI doesn't know, and a policy that there isn't."""
    for pool, level in _named(wanted):
        check_level(level, pool, context)
    policy = (wanted.get("config") or {}).get("routingPolicy")
    if policy is not None:
        from bullswarm_core.routing.policies import policy_named

        policy_named(policy)


def _named(wanted: Mapping[str, Any]) -> Iterator[tuple[str | None, str]]:
    """Give each reasoning level of the document with its pool, None for one that holds for every pool."""
    for pool, tiers in (wanted.get("rungs") or {}).items():
        yield from ((pool, rung["reasoning"]) for rung in (tiers or {}).values() if rung and rung.get("reasoning"))
    reasoning = wanted.get("reasoning") or {}
    by_pool: list[tuple[str | None, Any]] = [(None, reasoning.get("tiers"))]
    by_pool += list((reasoning.get("pools") or {}).items())
    by_pool += list((wanted.get("recommendedReasoning") or {}).items())
    for pool, models in (reasoning.get("models") or {}).items():
        by_pool += [(pool, levels) for levels in (models or {}).values()]
    for name, levels in by_pool:
        yield from ((name, level) for level in (levels or {}).values() if level)
