"""`bullswarm strategy`: decisions about models, tiers and reasoning levels."""

from __future__ import annotations

from bullswarm_core.errors import UsageError
from bullswarm_core.pools import EFFORTS, Effort
from bullswarm_core.pools.settings import Document, Settings
from bullswarm_core.quota.refusals import forget_plan_refusals
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.cli.strategy_writing import (
    Options,
    change,
    check_level,
    level_in_force,
    note,
    note_refused,
    note_unnamed,
    pool_named,
    registry,
)
from bullswarm_server.displays.strategy import level_words
from bullswarm_server.ops import decisions as edits

CLI_DEFAULT = "default"
OFF = "off"


def set_rung(options: Options, context: CommandContext) -> None:
    """Set the model of a pool on an effort tier."""
    pool_id = pool_named(options.pool, context)
    if options.reasoning is not None:
        check_level(options.reasoning, pool_id, context)
    model = None if options.model == CLI_DEFAULT else options.model
    rung: Document = {"model": model, "reasoning": options.reasoning}
    if options.free is not None:
        rung["free"] = options.free == "yes"

    def apply(state: Document) -> None:
        edits.set_rung(state, pool_id, options.tier, rung)

    runs = f"{pool_id} runs {model or 'the default of its CLI'} on the {options.tier} tier"

    def done(before: Settings, after: Settings) -> str:
        return runs + _level_change(pool_id, options.tier, before, after, context)

    settings = change(apply, options, context, done=done, nothing=f"{runs} already")
    _note_left_out(pool_id, settings, context)
    note_refused(pool_id, model, settings, context)


def clear_rungs(options: Options, context: CommandContext) -> None:
    """Bring the connector's models back on every tier."""
    pool_id = pool_named(options.pool, context)
    done = f"{pool_id} is back to the models of its connector on every tier"
    nothing = f"{pool_id} has no rungs of yours"
    change(lambda state: edits.clear_rungs(state, pool_id), options, context, done=done, nothing=nothing)


def set_model(options: Options, context: CommandContext) -> None:
    """Choose the tiers on which a pool runs a model, or turn it off there."""
    pool_id, model, tiers = pool_named(options.pool, context), options.model, options.tiers
    if tiers:
        done = f"{pool_id} runs {model} on {', '.join(tiers)} and on no other tier"
    else:
        done = f"{pool_id} doesn't run {model}, whatever names it"

    def apply(state: Document) -> None:
        edits.set_model(state, pool_id, model, tiers)

    settings = change(apply, options, context, done=done, nothing=f"{done} already")
    _note_left_out(pool_id, settings, context)
    if tiers:
        note_refused(pool_id, model, settings, context)


def reset_tier(options: Options, context: CommandContext) -> None:
    """Take back every decision about a tier."""
    defaults = {
        profile.id: {"model": rung.model, "reasoning": None}
        for profile in registry(context).profiles
        if (rung := profile.connector.tiers.get(options.tier))
    }
    done = f"nothing of yours is left on the {options.tier} tier: no assignment, rung or reasoning level"
    nothing = f"you decided nothing about the {options.tier} tier"
    change(lambda state: edits.reset_tier(state, options.tier, defaults), options, context, done=done, nothing=nothing)


def exclude_model(options: Options, context: CommandContext) -> None:
    """Never run a model."""
    done = f"the model {options.model} is excluded: it is never run, whatever names it"
    nothing = f"the model {options.model} is excluded already"
    settings = change(
        lambda state: edits.exclude_model(state, options.model), options, context, done=done, nothing=nothing
    )
    note_unnamed(options.model, settings, context)


def include_model(options: Options, context: CommandContext) -> None:
    """Let a model be run again: one that was excluded or turned off, or that a plan was said not to include."""
    model = options.model
    pool_id = pool_named(options.pool, context) if options.pool else None
    excluded = Settings.load(context.home).excluded_models

    def apply(state: Document) -> None:
        if pool_id is None:
            edits.include_model(state, model)
        edits.enable_model(state, model, pool_id)

    gone = forget_plan_refusals(context.home, pool=pool_id, model=model)
    where = f" on {pool_id}" if pool_id else ""
    done = f"the model {model} may be run again{where}"
    if pool_id:
        nothing = f"the model {model} is not turned off on {pool_id}, and no plan was said to lack it there"
    else:
        others = f" (excluded: {', '.join(sorted(excluded))})" if excluded else ""
        nothing = f"the model {model} is not excluded{others}"
    settings = change(apply, options, context, done=done, nothing=nothing, changed_otherwise=bool(gone))
    if pool_id and model in settings.excluded_models:
        note_refused(pool_id, model, settings, context)


def set_reasoning(options: Options, context: CommandContext) -> None:
    """Set the reasoning level of a tier, for every pool or for one."""
    if options.model and not options.pool:
        raise UsageError("--model needs --pool", hint="a level for one model is one for that model of one pool")
    pool_id = pool_named(options.pool, context) if options.pool else None
    check_level(options.level, pool_id, context)
    tier: Effort = options.tier

    def apply(state: Document) -> None:
        edits.set_reasoning(state, tier, options.level, pool=pool_id, model=options.model)

    who = f"{options.model} on {pool_id}" if options.model else pool_id or "every pool"
    what = f"{who} reasons at {options.level} on the {tier} tier"
    settings = change(apply, options, context, done=what, nothing=f"{what} already")
    for pool in [pool_id] if pool_id else sorted(registry(context).pool_ids()):
        level = level_in_force(pool, tier, settings, context, model=options.model)
        if level.level != options.level:
            note(f"{pool} keeps {level_words(level)} on the {tier} tier, which was set more closely", context)


def reset_reasoning(options: Options, context: CommandContext) -> None:
    """Take reasoning levels back."""
    pool_id = pool_named(options.pool, context) if options.pool else None
    where = (f" of {pool_id}" if pool_id else "") + (f" on the {options.tier} tier" if options.tier else "")
    change(
        lambda state: edits.reset_reasoning(state, tier=options.tier, pool=pool_id),
        options,
        context,
        done=f"the reasoning levels{where} that you set are taken back",
        nothing=f"no reasoning level{where} was set",
    )


def _level_change(pool_id: str, tier: Effort, before: Settings, after: Settings, context: CommandContext) -> str:
    """Say the reasoning level that a new rung has, and the one that it had where that changes."""
    was, now = (level_words(level_in_force(pool_id, tier, each, context)) for each in (before, after))
    return f", reasoning {now}" if was == now else f", reasoning {now}; it was {was}"


def _note_left_out(pool_id: str, settings: Settings, context: CommandContext) -> None:
    rungs = settings.rungs.get(pool_id)
    if rungs is None:
        return
    if without := [tier for tier in EFFORTS if tier not in rungs]:
        note(
            f"{pool_id} is now left out on the tiers without a rung: {', '.join(without)}"
            f" · set-rung adds one, clear-rungs brings the defaults back",
            context,
        )
