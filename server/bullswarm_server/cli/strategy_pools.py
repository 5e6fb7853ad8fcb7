"""`bullswarm strategy`: decisions about pools and plans, and which pool is preferred for a tier."""

from __future__ import annotations

from bullswarm_core.errors import UsageError
from bullswarm_core.pools.settings import Document, Settings
from bullswarm_core.quota.refusals import forget_plan_refusals
from bullswarm_core.wire import iso, parse_iso
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.cli.strategy_writing import Options, change, note, note_refused, pool_named, profile_of
from bullswarm_server.ops.decisions import drop, section


def set_provider(options: Options, context: CommandContext) -> None:
    """Turn a pool on or off, and choose what its workers may do."""
    wanted = {
        "enabled": None if options.state is None else options.state == "on",
        "sandbox": options.sandbox,
        "workerInheritsConfig": None if options.inherits_config is None else options.inherits_config == "on",
        "allowBilling": None if options.allow_billing is None else options.allow_billing == "on",
    }
    wanted = {key: value for key, value in wanted.items() if value is not None}
    if not wanted:
        raise UsageError("nothing to set", hint="give on, off, --sandbox, --inherits-config or --allow-billing")
    pool_id = pool_named(options.pool, context)
    said = {
        "": options.state,
        "sandbox ": options.sandbox,
        "inherits-config ": options.inherits_config,
        "allow-billing ": options.allow_billing,
    }
    now = ", ".join(f"{name}{value}" for name, value in said.items() if value)

    def apply(state: Document) -> None:
        section(state, "pools", pool_id).update(wanted)

    change(apply, options, context, done=f"{pool_id} is now {now}", nothing=f"{pool_id} is {now} already")


def set_subscription(options: Options, context: CommandContext) -> None:
    """Declare what a pool's plan is; a plan of another name may include other models."""
    pool_id = pool_named(options.pool, context)
    wanted: Document = {
        "quotaWindow": options.quota_window,
        "resetsAt": None if options.resets_at is None else declared_reset(options.resets_at),
        "plan": options.plan,
        "reservePct": options.reserve,
    }
    wanted = {key: value for key, value in wanted.items() if value is not None}
    if not wanted:
        raise UsageError("nothing to set", hint="give --plan, --quota-window, --resets-at or --reserve")
    before = Settings.load(context.home).subscriptions.get(pool_id)

    def apply(state: Document) -> None:
        section(state, "strategy", "subscriptions", pool_id).update(wanted)

    words = {"quotaWindow": "window {}", "resetsAt": "reset {}", "plan": "name {}", "reservePct": "reserve {:g} %"}
    what = f"the plan of {pool_id} has " + ", ".join(words[key].format(value) for key, value in wanted.items())
    change(apply, options, context, done=what, nothing=f"{what} already")
    profile = profile_of(pool_id, context)
    if options.reserve and profile is not None and profile.connector.meter.type == "none":
        note(f"{pool_id} has no meter, so that nobody can tell when its reserve is reached", context)
    if options.plan is not None and options.plan != (before.plan if before else None):
        gone = forget_plan_refusals(context.home, pool=pool_id)
        if gone:
            names = ", ".join(refusal.model for refusal in gone)
            note(f"{pool_id} may run again what its former plan lacked: {names}", context)


def assign(options: Options, context: CommandContext) -> None:
    """Prefer a pool for a tier."""
    pool_id = pool_named(options.pool, context)
    entry = {"pool": pool_id, "model": options.model, "source": "user"}

    def apply(state: Document) -> None:
        section(state, "strategy", "assignments")[options.tier] = entry

    what = f"the {options.tier} tier is assigned to {pool_id}" + (f" with {options.model}" if options.model else "")
    done, nothing = f"{what}, where it can take the task", f"{what} already"
    settings = change(apply, options, context, done=done, nothing=nothing)
    if options.model:
        note_refused(pool_id, options.model, settings, context)


def clear_assignment(options: Options, context: CommandContext) -> None:
    """Prefer no pool for a tier any more."""
    assigned = Settings.load(context.home).assignments.get(options.tier)
    was = f" (it was {assigned.pool})" if assigned else ""

    def apply(state: Document) -> None:
        drop(state, options.tier, "strategy", "assignments")

    what = f"the {options.tier} tier is assigned to no pool"
    change(apply, options, context, done=f"{what} any more{was}", nothing=what)


def declared_reset(text: str) -> str:
    """Return a moment in the file's own form; raise UsageError for a text that is none."""
    if text == "unknown":
        return text
    try:
        return iso(parse_iso(text))
    except (ValueError, OverflowError) as error:
        raise UsageError(
            f'--resets-at "{text}" is not an ISO-8601 time', hint="for example 2026-03-01T00:00:00Z, or unknown"
        ) from error
