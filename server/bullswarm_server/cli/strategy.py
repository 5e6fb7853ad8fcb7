"""`bullswarm strategy`: what the person decided about pools, models and plans; shows it and changes it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from bullswarm_core.connector import NO_REASONING, REASONING_LEVELS, SANDBOXES, PoolProfile
from bullswarm_core.errors import UsageError
from bullswarm_core.labels import Labels
from bullswarm_core.pools import EFFORTS
from bullswarm_core.settings import QUOTA_WINDOWS, Document, RungChoice, Settings, update_settings
from bullswarm_core.wire import iso, parse_iso
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.displays.text import one_line

SCHEMA_VERSION = "bullswarm.strategy.v1"
CLI_DEFAULT = "default"

Options = argparse.Namespace
Action = Callable[[Options, CommandContext], None]


def run(arguments: list[str], context: CommandContext) -> int:
    """Show the decisions in force, or change one of them."""
    options = _parser().parse_args(arguments)
    action: Action = options.action
    action(options, context)
    return 0


def document(settings: Settings) -> dict[str, Any]:
    """Return the decisions as one JSON document; pools by id."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "configured": settings.configured,
        "pools": {
            pool_id: {
                "enabled": choice.enabled,
                "sandbox": choice.sandbox,
                "workerInheritsConfig": choice.worker_inherits_config,
            }
            for pool_id, choice in settings.pools.items()
        },
        "rungs": {
            pool_id: {tier: _rung_document(rungs[tier]) for tier in EFFORTS if tier in rungs}
            for pool_id, rungs in settings.rungs.items()
        },
        "assignments": {
            tier: {"pool": choice.pool, "model": choice.model} for tier, choice in settings.assignments.items()
        },
        "subscriptions": {
            pool_id: {
                "quotaWindow": plan.quota_window,
                "resetsAt": iso(plan.resets_at) if plan.resets_at else None,
            }
            for pool_id, plan in settings.subscriptions.items()
        },
        "excludedModels": sorted(settings.excluded_models),
        "config": {
            "depthLimit": settings.depth_limit,
            "totalLimit": settings.total_limit,
            "inflightPenaltyPct": settings.inflight_penalty_pct,
            "routingPolicy": settings.routing_policy,
        },
    }


def lines(settings: Settings, labels: Labels) -> list[str]:
    """Return the decisions as lines for people, in the order in which routing asks for them."""
    found = []
    for pool_id, choice in sorted(settings.pools.items()):
        state = "on" if choice.enabled else "off"
        inherits = " inherits-config" if choice.worker_inherits_config else ""
        found.append(f"pool {labels.shown(pool_id)} {state} sandbox={choice.sandbox}{inherits}")
    for pool_id, rungs in sorted(settings.rungs.items()):
        found += [f"rung {labels.shown(pool_id)} {tier}: {_rung_words(rungs.get(tier))}" for tier in EFFORTS]
    for tier, assigned in settings.assignments.items():
        found.append(f"assigned {tier}: {labels.shown(assigned.pool)} {assigned.model or ''}".rstrip())
    for pool_id, plan in sorted(settings.subscriptions.items()):
        reset = iso(plan.resets_at) if plan.resets_at else "unknown"
        found.append(f"subscription {labels.shown(pool_id)} window={plan.quota_window or 'unknown'} resets={reset}")
    found += [f"excluded model {model}" for model in sorted(settings.excluded_models)]
    found.append(
        f"policy={settings.routing_policy} inflight-penalty={settings.inflight_penalty_pct:g}"
        f" depth-limit={settings.depth_limit} total-limit={settings.total_limit}"
    )
    return [one_line(line) for line in found]


def _rung_document(choice: RungChoice) -> dict[str, Any]:
    return {"model": choice.model, "reasoning": choice.reasoning, "free": choice.free}


def _rung_words(choice: RungChoice | None) -> str:
    if choice is None:
        return "no model, the pool is left out"
    free = "" if choice.free is None else " free" if choice.free else " not free"
    return f"{choice.model or 'the default of its CLI'} reasoning={choice.reasoning or 'default'}{free}"


def _show(options: Options, context: CommandContext) -> None:
    _print(Settings.load(context.home), options, context)


def _print(settings: Settings, options: Options, context: CommandContext) -> None:
    if options.json:
        context.print_json(document(settings))
    else:
        context.print(*lines(settings, Labels.load(context.home)))


def _set_provider(options: Options, context: CommandContext) -> None:
    wanted = {
        "enabled": None if options.state is None else options.state == "on",
        "sandbox": options.sandbox,
        "workerInheritsConfig": None if options.inherits_config is None else options.inherits_config == "on",
    }
    wanted = {key: value for key, value in wanted.items() if value is not None}
    if not wanted:
        raise UsageError("nothing to set", hint="give on, off, --sandbox or --inherits-config")
    pool_id = _pool_id(options.pool, context)
    said = {"": options.state, "sandbox ": options.sandbox, "inherits-config ": options.inherits_config}
    _confirmed(options, f"{pool_id} {', '.join(f'{name}{value}' for name, value in said.items() if value)}")
    _change(lambda state: _section(state, "pools", pool_id).update(wanted), options, context)


def _set_rung(options: Options, context: CommandContext) -> None:
    pool_id = _pool_id(options.pool, context)
    if options.reasoning is not None:
        _check_reasoning(options.reasoning, pool_id, context)
    model = None if options.model == CLI_DEFAULT else options.model
    rung: Document = {"model": model, "reasoning": options.reasoning}
    if options.free is not None:
        rung["free"] = options.free == "yes"
    _confirmed(options, f"{pool_id} runs {model or 'the default of its CLI'} on the {options.tier} tier")

    def change(state: Document) -> None:
        _section(state, "strategy", "rungs", pool_id)[options.tier] = rung

    settings = _change(change, options, context)
    if without := [tier for tier in EFFORTS if tier not in settings.rungs[pool_id]]:
        context.note(
            f"{pool_id} is now left out on the tiers without a rung: {', '.join(without)}"
            f" · set-rung adds one, clear-rungs brings the defaults back"
        )


def _clear_rungs(options: Options, context: CommandContext) -> None:
    pool_id = _pool_id(options.pool, context)
    _confirmed(options, f"{pool_id} goes back to the models of its connector on every tier")

    def change(state: Document) -> None:
        for section in ("rungs", "modelTiers"):
            _section(state, "strategy", section).pop(pool_id, None)

    _change(change, options, context)


def _assign(options: Options, context: CommandContext) -> None:
    pool_id = _pool_id(options.pool, context)
    entry = {"pool": pool_id, "model": options.model, "source": "user"}
    _change(lambda state: _section(state, "strategy", "assignments").update({options.tier: entry}), options, context)


def _clear_assignment(options: Options, context: CommandContext) -> None:
    _change(lambda state: _section(state, "strategy", "assignments").pop(options.tier, None), options, context)


def _set_subscription(options: Options, context: CommandContext) -> None:
    pool_id = _pool_id(options.pool, context)
    wanted: Document = {}
    if options.quota_window is not None:
        wanted["quotaWindow"] = options.quota_window
    if options.resets_at is not None:
        wanted["resetsAt"] = _declared_reset(options.resets_at)
    if not wanted:
        raise UsageError("nothing to set", hint="give --quota-window, --resets-at or both")
    _change(lambda state: _section(state, "strategy", "subscriptions", pool_id).update(wanted), options, context)


def _exclude_model(options: Options, context: CommandContext) -> None:
    def change(state: Document) -> None:
        strategy = _section(state, "strategy")
        names = strategy.get("excludedModels") or []
        strategy["excludedModels"] = names if options.model in names else [*names, options.model]

    _change(change, options, context)


def _include_model(options: Options, context: CommandContext) -> None:
    if options.model not in Settings.load(context.home).excluded_models:
        raise UsageError(
            f'model "{options.model}" is not excluded', hint="bullswarm strategy show lists those that are"
        )

    def change(state: Document) -> None:
        strategy = _section(state, "strategy")
        strategy["excludedModels"] = [name for name in strategy.get("excludedModels") or [] if name != options.model]

    _change(change, options, context)


def _change(change: Callable[[Document], object], options: Options, context: CommandContext) -> Settings:
    def apply(state: Document) -> None:
        change(state)

    settings = update_settings(context.home, apply)
    _print(settings, options, context)
    return settings


def _section(state: Document, *names: str) -> Document:
    """Return the object under ``names``, made where it is missing or null."""
    for name in names:
        if state.get(name) is None:
            state[name] = {}
        state = state[name]
    return state


def _confirmed(options: Options, what: str) -> None:
    """Refuse a change of what workers may run or do until the caller said --yes."""
    if not options.yes:
        raise UsageError(f"not changed: {what}", hint="add --yes to do it")


def _declared_reset(text: str) -> str:
    if text == "unknown":
        return text
    try:
        return iso(parse_iso(text))
    except (ValueError, OverflowError) as error:
        raise UsageError(
            f'--resets-at "{text}" is not an ISO-8601 time', hint="for example 2026-03-01T00:00:00Z, or unknown"
        ) from error


def _profiles(context: CommandContext) -> tuple[PoolProfile, ...]:
    from bullswarm_providers.registry import load

    return tuple(load(context.home, context.environ).profiles)


def _pool_id(name: str, context: CommandContext) -> str:
    # A pool that was decided about stays known while its CLI is away, so that it can still be turned off.
    ids = {profile.id for profile in _profiles(context)} | set(Settings.load(context.home).pools)
    return Labels.load(context.home).resolve(name, ids)


def _check_reasoning(level: str, pool_id: str, context: CommandContext) -> None:
    levels = next((p.connector.launch.reasoning.levels for p in _profiles(context) if p.id == pool_id), None)
    known = (NO_REASONING, *REASONING_LEVELS, *(levels or ()))
    if levels is not None and level not in known:
        raise UsageError(f'unknown reasoning level "{level}"', hint=f"{pool_id} knows {', '.join(known)}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bullswarm strategy",
        allow_abbrev=False,
        description="What you decided. It never makes a pool eligible that a limit or a missing sign-in keeps out.",
    )
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    _verb(verbs, "show", _show, "the decisions in force")
    verb = _verb(verbs, "set-provider", _set_provider, "turn a pool on or off, choose what its workers may do")
    verb.add_argument("pool", metavar="POOL")
    verb.add_argument("state", nargs="?", choices=("on", "off"))
    verb.add_argument(
        "--sandbox", choices=SANDBOXES, help="where its workers may write and whether they have a network"
    )
    verb.add_argument("--inherits-config", choices=("on", "off"), help="start workers with your hooks and MCP servers")
    verb = _verb(verbs, "set-rung", _set_rung, "the model of a pool on an effort tier; other tiers need one too")
    verb.add_argument("pool", metavar="POOL")
    verb.add_argument("tier", choices=EFFORTS)
    verb.add_argument("--model", required=True, type=_name, help=f"`{CLI_DEFAULT}`: the CLI's own, with no flag")
    verb.add_argument("--reasoning", type=_name, metavar="LEVEL", help=f"`{NO_REASONING}` passes none")
    verb.add_argument("--free", choices=("yes", "no"), help="whether it costs no quota (default: by the model's name)")
    verb = _verb(verbs, "clear-rungs", _clear_rungs, "back to the connector's models on every tier")
    verb.add_argument("pool", metavar="POOL")
    verb = _verb(verbs, "assign", _assign, "prefer a pool for a tier, among those that can take the task")
    verb.add_argument("tier", choices=EFFORTS)
    verb.add_argument("--pool", required=True)
    verb.add_argument("--model", type=_name)
    verb = _verb(verbs, "clear-assignment", _clear_assignment, "no preference for a tier any more")
    verb.add_argument("tier", choices=EFFORTS)
    verb = _verb(verbs, "set-subscription", _set_subscription, "the window that paces a pool, and a moment it resets")
    verb.add_argument("pool", metavar="POOL")
    verb.add_argument("--quota-window", choices=(*QUOTA_WINDOWS, "unknown"))
    verb.add_argument("--resets-at", metavar="ISO", help="any one reset, or unknown")
    verb = _verb(verbs, "exclude-model", _exclude_model, "never run a model, whatever names it")
    verb.add_argument("model", type=_name)
    verb = _verb(verbs, "include-model", _include_model, "allow an excluded model again")
    verb.add_argument("model", type=_name)
    return parser


def _verb(
    verbs: argparse._SubParsersAction[argparse.ArgumentParser], name: str, action: Action, description: str
) -> argparse.ArgumentParser:
    parser = verbs.add_parser(name, help=description, description=description, allow_abbrev=False)
    parser.set_defaults(action=action)
    parser.add_argument("--json", action="store_true", help=f"print one JSON document ({SCHEMA_VERSION})")
    parser.add_argument("--yes", action="store_true", help="do it without asking")
    return parser


def _name(text: str) -> str:
    if not text or not text.isprintable() or text != text.strip():
        raise argparse.ArgumentTypeError(f'"{text}" is not a name')
    return text
