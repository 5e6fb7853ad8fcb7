"""`bullswarm strategy`: what the person decided about pools, models and plans; shows it and changes it.

Every verb that changes something does it at once, says what it did or that there was nothing to do, and then shows what
is in force. ``--yes`` is taken by all of them and needed by none: each change is one call away from its opposite.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from copy import deepcopy
from typing import TYPE_CHECKING

from bullswarm_core.connector import NO_REASONING, REASONING_LEVELS, SANDBOXES
from bullswarm_core.errors import UsageError
from bullswarm_core.home import read_json
from bullswarm_core.labels import Labels
from bullswarm_core.pools import EFFORTS
from bullswarm_core.settings import QUOTA_WINDOWS, Document, Settings, update_settings
from bullswarm_core.wire import iso, parse_iso
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.cli.help_format import Parser
from bullswarm_server.displays.strategy import SCHEMA_VERSION, connector_levels, document, lines, reasoning_words
from bullswarm_server.displays.text import one_line

if TYPE_CHECKING:
    from bullswarm_providers.registry import Registry

CLI_DEFAULT = "default"

Options = argparse.Namespace
Action = Callable[[Options, CommandContext], None]


def run(arguments: list[str], context: CommandContext) -> int:
    """Show the decisions in force, or change one of them."""
    options = _parser().parse_args(arguments)
    action: Action = options.action
    action(options, context)
    return 0


def _show(options: Options, context: CommandContext) -> None:
    _print(Settings.load(context.home), options, context)


def _print(settings: Settings, options: Options, context: CommandContext) -> None:
    if options.json:
        context.print_json(document(settings))
    else:
        profiles = {profile.id: profile for profile in _registry(context).profiles} if settings.rungs else {}
        context.print(*lines(settings, Labels.load(context.home), profiles))


def _set_provider(options: Options, context: CommandContext) -> None:
    wanted = {
        "enabled": None if options.state is None else options.state == "on",
        "sandbox": options.sandbox,
        "workerInheritsConfig": None if options.inherits_config is None else options.inherits_config == "on",
        "allowBilling": None if options.allow_billing is None else options.allow_billing == "on",
    }
    wanted = {key: value for key, value in wanted.items() if value is not None}
    if not wanted:
        raise UsageError("nothing to set", hint="give on, off, --sandbox, --inherits-config or --allow-billing")
    pool_id = _pool_id(options.pool, context)
    said = {
        "": options.state,
        "sandbox ": options.sandbox,
        "inherits-config ": options.inherits_config,
        "allow-billing ": options.allow_billing,
    }
    now = ", ".join(f"{name}{value}" for name, value in said.items() if value)

    def change(state: Document) -> None:
        _section(state, "pools", pool_id).update(wanted)

    _change(change, options, context, done=f"{pool_id} is now {now}", nothing=f"{pool_id} is {now} already")


def _set_rung(options: Options, context: CommandContext) -> None:
    pool_id = _pool_id(options.pool, context)
    if options.reasoning is not None:
        _check_reasoning(options.reasoning, pool_id, context)
    model = None if options.model == CLI_DEFAULT else options.model
    rung: Document = {"model": model, "reasoning": options.reasoning}
    if options.free is not None:
        rung["free"] = options.free == "yes"

    def change(state: Document) -> None:
        _section(state, "strategy", "rungs", pool_id)[options.tier] = rung

    runs = f"{pool_id} runs {model or 'the default of its CLI'} on the {options.tier} tier"
    levels = _levels(pool_id, options.tier, options.reasoning, context)
    settings = _change(change, options, context, done=f"{runs}{levels}", nothing=f"{runs} already")
    if without := [tier for tier in EFFORTS if tier not in settings.rungs[pool_id]]:
        context.note(
            f"{pool_id} is now left out on the tiers without a rung: {', '.join(without)}"
            f" · set-rung adds one, clear-rungs brings the defaults back"
        )


def _levels(pool_id: str, tier: str, chosen: str | None, context: CommandContext) -> str:
    """Say the reasoning level that a new rung has, and the one that it had where that changes."""
    profile = next((each for each in _registry(context).profiles if each.id == pool_id), None)
    default = connector_levels(profile).get(tier)
    rungs = Settings.load(context.home).rungs.get(pool_id, {})
    before = next((rung.reasoning for name, rung in rungs.items() if name == tier), None)
    was, now = reasoning_words(before, default), reasoning_words(chosen, default)
    return f", reasoning {now}" if was == now else f", reasoning {now}; it was {was}"


def _clear_rungs(options: Options, context: CommandContext) -> None:
    pool_id = _pool_id(options.pool, context)

    def change(state: Document) -> None:
        for section in ("rungs", "modelTiers"):
            _drop(state, pool_id, "strategy", section)

    done = f"{pool_id} is back to the models of its connector on every tier"
    _change(change, options, context, done=done, nothing=f"{pool_id} has no rungs of yours")


def _assign(options: Options, context: CommandContext) -> None:
    pool_id = _pool_id(options.pool, context)
    entry = {"pool": pool_id, "model": options.model, "source": "user"}

    def change(state: Document) -> None:
        _section(state, "strategy", "assignments")[options.tier] = entry

    what = f"the {options.tier} tier is assigned to {pool_id}" + (f" with {options.model}" if options.model else "")
    _change(change, options, context, done=f"{what}, where it can take the task", nothing=f"{what} already")


def _clear_assignment(options: Options, context: CommandContext) -> None:
    assigned = Settings.load(context.home).assignments.get(options.tier)
    was = f" (it was {assigned.pool})" if assigned else ""

    def change(state: Document) -> None:
        _drop(state, options.tier, "strategy", "assignments")

    what = f"the {options.tier} tier is assigned to no pool"
    _change(change, options, context, done=f"{what} any more{was}", nothing=what)


def _set_subscription(options: Options, context: CommandContext) -> None:
    pool_id = _pool_id(options.pool, context)
    wanted: Document = {}
    if options.quota_window is not None:
        wanted["quotaWindow"] = options.quota_window
    if options.resets_at is not None:
        wanted["resetsAt"] = _declared_reset(options.resets_at)
    if options.plan is not None:
        wanted["plan"] = options.plan
    if options.reserve is not None:
        wanted["reservePct"] = options.reserve
    if not wanted:
        raise UsageError("nothing to set", hint="give --plan, --quota-window, --resets-at or --reserve")

    def change(state: Document) -> None:
        _section(state, "strategy", "subscriptions", pool_id).update(wanted)

    words = {"quotaWindow": "window {}", "resetsAt": "reset {}", "plan": "name {}", "reservePct": "reserve {:g} %"}
    what = f"the plan of {pool_id} has " + ", ".join(words[key].format(value) for key, value in wanted.items())
    _change(change, options, context, done=what, nothing=f"{what} already")


def _exclude_model(options: Options, context: CommandContext) -> None:
    def change(state: Document) -> None:
        strategy = _section(state, "strategy")
        names = strategy.get("excludedModels") or []
        strategy["excludedModels"] = names if options.model in names else [*names, options.model]

    done = f"the model {options.model} is excluded: it is never run, whatever names it"
    _change(change, options, context, done=done, nothing=f"the model {options.model} is excluded already")


def _include_model(options: Options, context: CommandContext) -> None:
    excluded = Settings.load(context.home).excluded_models

    def change(state: Document) -> None:
        if options.model in excluded:
            names = _section(state, "strategy").get("excludedModels") or []
            state["strategy"]["excludedModels"] = [name for name in names if name != options.model]

    others = f" (excluded: {', '.join(sorted(excluded))})" if excluded else ""
    nothing = f"the model {options.model} is not excluded{others}"
    _change(change, options, context, done=f"the model {options.model} may be run again", nothing=nothing)


def _change(
    change: Callable[[Document], object], options: Options, context: CommandContext, *, done: str, nothing: str
) -> Settings:
    """Apply a change and say so, or say that there was ``nothing`` to do; then nothing is written."""
    settings = Settings.load(context.home)
    before = read_json(context.home.state_file, default={})
    after = deepcopy(before)
    change(after)
    said = f"nothing to do: {nothing}"
    if after != before:

        def apply(state: Document) -> None:
            change(state)

        settings, said = update_settings(context.home, apply), done
    # In the machine form only the document stands on standard output.
    (context.note if options.json else context.print)(one_line(Labels.load(context.home).in_text(said)))
    _print(settings, options, context)
    return settings


def _drop(state: Document, key: str, *names: str) -> None:
    """Take ``key`` out of the object under ``names``, where there is one."""
    for name in names:
        state = state.get(name) or {}
    state.pop(key, None)


def _section(state: Document, *names: str) -> Document:
    """Return the object under ``names``, made where it is missing or null."""
    for name in names:
        if state.get(name) is None:
            state[name] = {}
        state = state[name]
    return state


def _declared_reset(text: str) -> str:
    if text == "unknown":
        return text
    try:
        return iso(parse_iso(text))
    except (ValueError, OverflowError) as error:
        raise UsageError(
            f'--resets-at "{text}" is not an ISO-8601 time', hint="for example 2026-03-01T00:00:00Z, or unknown"
        ) from error


def _registry(context: CommandContext) -> Registry:
    from bullswarm_providers.registry import load

    return load(context.home, context.environ)


def _pool_id(name: str, context: CommandContext) -> str:
    # A pool that was decided about stays known while its CLI is away, so that it can still be turned off.
    registry, decided = _registry(context), Settings.load(context.home).pools
    ids = registry.pool_ids() | set(decided)
    return Labels.load(context.home).resolve(name, ids, why_no_pool=registry.why_no_pool)


def _check_reasoning(level: str, pool_id: str, context: CommandContext) -> None:
    profiles = _registry(context).profiles
    levels = next((p.connector.launch.reasoning.levels for p in profiles if p.id == pool_id), None)
    known = (NO_REASONING, *REASONING_LEVELS, *(levels or ()))
    if levels is not None and level not in known:
        raise UsageError(f'unknown reasoning level "{level}"', hint=f"{pool_id} knows {', '.join(known)}")


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="bullswarm strategy",
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
    verb.add_argument(
        "--allow-billing", choices=("on", "off"), help="let work be billed beside the plan: an API key, or overage"
    )
    verb = _verb(verbs, "set-rung", _set_rung, "the model of a pool on an effort tier; other tiers need one too")
    verb.add_argument("pool", metavar="POOL")
    verb.add_argument("tier", choices=EFFORTS)
    verb.add_argument("--model", required=True, type=_name, help=f"`{CLI_DEFAULT}`: the CLI's own, with no flag")
    verb.add_argument(
        "--reasoning",
        type=_name,
        metavar="LEVEL",
        help=f"`{NO_REASONING}` passes none; left out: the connector's for the tier",
    )
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
    verb.add_argument("--plan", type=_name, metavar="NAME", help="its name, for you to read")
    verb.add_argument(
        "--reserve",
        type=_percent,
        metavar="PCT",
        help="the share of the pacing window kept for your own use (0 to 100)",
    )
    verb = _verb(verbs, "exclude-model", _exclude_model, "never run a model, whatever names it")
    verb.add_argument("model", type=_name)
    verb = _verb(verbs, "include-model", _include_model, "allow an excluded model again")
    verb.add_argument("model", type=_name)
    return parser


def _verb(
    verbs: argparse._SubParsersAction[Parser], name: str, action: Action, description: str
) -> argparse.ArgumentParser:
    parser = verbs.add_parser(name, help=description, description=description)
    parser.set_defaults(action=action)
    parser.add_argument("--json", action="store_true", help=f"print one JSON document ({SCHEMA_VERSION})")
    parser.add_argument("--yes", action="store_true", help="for scripts; nothing is asked without it either")
    return parser


def _percent(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 100:
        raise argparse.ArgumentTypeError(f'"{text}" is not a percentage from 0 to 100')
    return number


def _name(text: str) -> str:
    if not text or not text.isprintable() or text != text.strip():
        raise argparse.ArgumentTypeError(f'"{text}" is not a name')
    return text
