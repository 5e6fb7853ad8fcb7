"""Inventory, routes and rungs as documents for programs and lines for people."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from bullswarm_core.errors import UsageError
from bullswarm_core.launch.plan import choose_reasoning
from bullswarm_core.pools import EFFORTS, Effort, Lane, Pool, Rung
from bullswarm_core.pools.connector import PoolProfile
from bullswarm_core.pools.model_catalog import ModelList, to_json
from bullswarm_core.pools.settings import Settings
from bullswarm_core.routing import Decision
from bullswarm_core.routing.reasons import surplus
from bullswarm_core.wire import iso
from bullswarm_server.displays.route import reason_line
from bullswarm_server.displays.strategy import connector_levels, level_words, rung_level
from bullswarm_server.displays.text import duration, one_line

Row = dict[str, Any]
INVENTORY_VERSION = "bullswarm.inventory.v1"
ROUTES_VERSION = "bullswarm.routes.v1"
RUNGS_VERSION = "bullswarm.rungs.v1"


def inventory_rows(
    pools: Iterable[Pool],
    profiles: Iterable[PoolProfile],
    lists: Mapping[str, ModelList],
    live: Collection[str],
    settings: Settings,
    *,
    now: datetime,
) -> list[Row]:
    """Return one row per pool; ``live`` are the pools whose CLI was asked just now."""
    return [
        _inventory_row(pool, profile, lists.get(pool.id, ModelList()), pool.id in live, settings, now)
        for pool, profile in zip(pools, profiles, strict=True)
    ]


def _inventory_row(
    pool: Pool, profile: PoolProfile, known: ModelList, live: bool, settings: Settings, now: datetime
) -> Row:
    told = to_json(known)
    subscription = settings.subscriptions.get(pool.id)
    fresh = live and known.problem is None
    source = "live" if fresh else "cache" if known.asked_at else None
    on = {
        model["id"]: [tier for tier, rung in pool.tiers.items() if rung.model == model["id"]]
        for model in told["models"]
    }
    return {
        "pool": pool.id,
        "poolLabel": pool.label,
        "provider": pool.provider,
        "enabled": pool.enabled,
        "unavailable": pool.unavailable,
        "billing": profile.billing,
        "plan": (subscription.plan if subscription else None) or pool.plan,
        "source": source,
        "askedAt": told["askedAt"],
        "ageSec": round((now - known.asked_at).total_seconds()) if known.asked_at else None,
        "problem": known.problem,
        "models": [
            {**model, "tiers": on[model["id"]], "refused": pool.refused_models.get(model["id"])}
            for model in told["models"]
        ],
        "unlisted": sorted({rung.model for rung in pool.tiers.values() if rung.model} - set(on)) if on else [],
    }


def inventory_document(rows: Sequence[Row], *, now: datetime) -> Row:
    """Return the inventory for a program."""
    return {"schemaVersion": INVENTORY_VERSION, "at": iso(now), "pools": list(rows)}


def inventory_lines(rows: Iterable[Row]) -> list[str]:
    """Return the inventory for a person: a line per pool, and one per model below it."""
    lines = []
    for row in rows:
        lines.append(one_line(f"{_name(row)} {_about(row)}"))
        lines += _indented(_model_words(model) for model in row["models"])
        lines += _indented(f"{name} is on a rung and not in this list" for name in row["unlisted"])
    return lines or ["no pool: no agent CLI was found · bullswarm doctor says where it looked"]


def _about(row: Row) -> str:
    state = "" if row["enabled"] else "disabled, not asked · "
    plan = f"plan={row['plan']} " if row["plan"] else ""
    count = f"{len(row['models'])} models" if row["models"] else "models unknown"
    if row["source"] == "live":
        return f"{state}{plan}{count} [live]"
    age = f" [{duration(row['ageSec'] / 60)} old]" if row["ageSec"] is not None else ""
    if row["problem"]:
        return f"{state}{plan}{count}{age}: {row['problem']} · bullswarm strategy inventory --refresh asks again"
    if row["unavailable"] and not row["models"]:
        return f"{state}{plan}{count}: {row['unavailable']}"
    return f"{state}{plan}{count}{age}"


def _model_words(model: Row) -> str:
    words = [model["id"]]
    words += ["(default)"] if model["default"] else []
    words += ["free"] if model["free"] else []
    words += [f"levels={model['levels'][0]}..{model['levels'][-1]}"] if model["levels"] else []
    words += [f"runs on {', '.join(model['tiers'])}"] if model["tiers"] else []
    notes = [note for note in (model["name"], model["note"], model["refused"]) if note and note != model["id"]]
    return " ".join(words) + "".join(f" · {note}" for note in notes)


def route_rows(found: Iterable[tuple[Effort, Lane, Decision]]) -> list[Row]:
    """Return a row per tier and answer, with the lanes that get it."""
    rows: list[tuple[Effort, list[Lane], Decision]] = []
    for tier, lane, decision in found:
        same = next((row for row in rows if row[0] == tier and _answer(row[2]) == _answer(decision)), None)
        if same is None:
            rows.append((tier, [lane], decision))
        else:
            same[1].append(lane)
    return [_route_row(tier, lanes, decision) for tier, lanes, decision in rows]


def _answer(decision: Decision) -> tuple[object, ...]:
    return decision.pool, decision.rung, decision.reason, tuple(row.pool for row in decision.candidates)


def _route_row(tier: Effort, lanes: Sequence[Lane], decision: Decision) -> Row:
    document = decision.to_json()
    kept = ("pool", "poolLabel", "model", "reasoning", "reason", "failureKind", "backAt")
    return {
        "tier": tier,
        "lanes": list(lanes),
        **{key: document[key] for key in kept},
        "shownReason": reason_line(decision),
        "order": [
            {
                "pool": row.pool,
                "poolLabel": row.pool_label,
                "model": row.model,
                "reasoning": row.reasoning,
                "effectiveSurplus": row.effective_surplus,
                "shownSurplus": surplus(row),
            }
            for row in decision.candidates
        ],
        "excluded": [
            {"pool": entry.pool, "poolLabel": entry.pool_label, "reason": entry.reason} for entry in decision.excluded
        ],
    }


def routes_document(rows: Iterable[Row], *, now: datetime) -> Row:
    """Return the routes for a program."""
    plain = [{**_unshown(row), "order": [_unshown(each) for each in row["order"]]} for row in rows]
    return {"schemaVersion": ROUTES_VERSION, "at": iso(now), "routes": plain}


def _unshown(row: Row) -> Row:
    return {key: value for key, value in row.items() if not key.startswith("shown")}


def route_lines(rows: Iterable[Row]) -> list[str]:
    """Return the routes for a person."""
    lines = []
    for row in rows:
        pick = f"[{_name(row)}] " if row["pool"] else "no pool: "
        lines.append(one_line(f"{row['tier']} ({', '.join(row['lanes'])}): {pick}{row['shownReason']}"))
        lines += _indented(
            f"{place}. {_name(each)} {_runs(each)} surplus {each['shownSurplus']}"
            for place, each in enumerate(row["order"], 1)
        )
        lines += _indented(f"-  {_name(each)} {each['reason']}" for each in row["excluded"])
    return lines


def rung_row(pool: Pool, profile: PoolProfile, settings: Settings) -> Row:
    """Return what one pool runs on each tier, who set its level, and the level that is really passed."""
    return {
        "pool": pool.id,
        "poolLabel": pool.label,
        "enabled": pool.enabled,
        "tiers": {tier: _rung(pool, tier, profile, settings) for tier in EFFORTS},
    }


def _rung(pool: Pool, tier: Effort, profile: PoolProfile, settings: Settings) -> Row | None:
    rung = pool.tiers.get(tier)
    if rung is None:
        return None
    chosen = settings.rungs.get(pool.id, {}).get(tier)
    level = rung_level(pool.id, tier, chosen, settings, connector_levels(profile))
    applied, problem = _applied(profile, rung)
    return {
        "model": rung.model,
        "source": rung.source,
        "reasoning": level.level,
        "reasoningLayer": level.layer,
        "appliedReasoning": applied,
        "reasoningProblem": problem,
        "free": rung.free,
        "refused": rung.refused,
        "words": level_words(level),
    }


def _applied(profile: PoolProfile, rung: Rung) -> tuple[str | None, str | None]:
    try:
        return choose_reasoning(profile.connector.launch.reasoning, rung).applied, None
    except UsageError as error:
        return None, str(error)


def rungs_document(rows: Iterable[Row]) -> Row:
    """Return the rungs for a program."""
    plain = [
        {
            **row,
            "tiers": {
                tier: rung and {key: value for key, value in rung.items() if key != "words"}
                for tier, rung in row["tiers"].items()
            },
        }
        for row in rows
    ]
    return {"schemaVersion": RUNGS_VERSION, "pools": plain}


def rung_lines(rows: Iterable[Row]) -> list[str]:
    """Return the rungs for a person."""
    lines = []
    for row in rows:
        lines.append(one_line(_name(row)) + ("" if row["enabled"] else " disabled"))
        lines += _indented(f"{tier}: {_rung_line(rung)}" for tier, rung in row["tiers"].items())
    return lines


def _rung_line(rung: Row | None) -> str:
    if rung is None:
        return "no model, the pool is left out"
    applied = rung["appliedReasoning"]
    clamped = f", passed as {applied}" if applied and applied != rung["reasoning"] else ""
    words = f"{rung['model'] or 'the default of its CLI'} reasoning={rung['words']}{clamped}"
    words += " free" if rung["free"] else ""
    return words + "".join(f" · {rung[key]}" for key in ("refused", "reasoningProblem") if rung[key])


def _runs(row: Row) -> str:
    level = f" at {row['reasoning']}" if row["reasoning"] else ""
    return f"{row['model'] or 'the default of its CLI'}{level}"


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {one_line(line)}" for line in lines]


def _name(row: Row) -> str:
    return str(row["poolLabel"] or row["pool"])
