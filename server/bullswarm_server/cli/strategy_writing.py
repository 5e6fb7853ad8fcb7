"""What every changing verb of `bullswarm strategy` shares: names resolved, one change made under the lock, and told."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable
from copy import deepcopy
from typing import TYPE_CHECKING

from bullswarm_core.errors import UsageError
from bullswarm_core.pools import Effort
from bullswarm_core.pools.connector import NO_REASONING, REASONING_LEVELS, PoolProfile
from bullswarm_core.pools.labels import Labels
from bullswarm_core.pools.model import DEFAULT_MODEL
from bullswarm_core.pools.reasoning import Level, level_of
from bullswarm_core.pools.settings import Document, Settings, update_settings
from bullswarm_core.quota.refusals import load_plan_refusals
from bullswarm_core.store.home import read_json
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.displays.strategy import document, lines
from bullswarm_server.displays.text import one_line

if TYPE_CHECKING:
    from bullswarm_providers.registry import Registry

Options = argparse.Namespace


def show(options: Options, context: CommandContext) -> None:
    """Print the decisions in force."""
    show_settings(Settings.load(context.home), options, context)


def show_settings(settings: Settings, options: Options, context: CommandContext) -> None:
    """Print these decisions, for a program or for a person."""
    refusals = load_plan_refusals(context.home)
    if options.json:
        context.print_json(document(settings, refusals))
    else:
        asked = bool(settings.rungs or settings.subscriptions)
        profiles = {profile.id: profile for profile in registry(context).profiles} if asked else {}
        context.print(*lines(settings, Labels.load(context.home), profiles, refusals))


def change(
    change: Callable[[Document], object],
    options: Options,
    context: CommandContext,
    *,
    done: str | Callable[[Settings, Settings], str],
    nothing: str,
    changed_otherwise: bool = False,
) -> Settings:
    """Apply a change and say so, or say that there was ``nothing`` to do; then nothing is written.

    ``done`` may be a function of the decisions before and after.
    ``changed_otherwise``: the call has changed something beside the decisions, so that it is ``done`` in any case.
    """
    former = settings = Settings.load(context.home)
    before = read_json(context.home.state_file, default={})
    after = deepcopy(before)
    change(after)
    changed = after != before
    if changed:

        def apply(state: Document) -> None:
            change(state)

        settings = update_settings(context.home, apply)
    if changed or changed_otherwise:
        say(done if isinstance(done, str) else done(former, settings), options, context)
    else:
        say(f"nothing to do: {nothing}", options, context)
    show_settings(settings, options, context)
    return settings


def say(text: str, options: Options, context: CommandContext) -> None:
    """Say what was done; in the machine form only the document stands on standard output."""
    (context.note if options.json else context.print)(one_line(Labels.load(context.home).in_text(text)))


def note(text: str, context: CommandContext) -> None:
    """Say on standard error what else the person should know."""
    context.note(one_line(Labels.load(context.home).in_text(text)))


def registry(context: CommandContext) -> Registry:
    """Return the pools of this machine."""
    from bullswarm_providers.registry import load

    return load(context.home, context.environ)


def profile_of(pool_id: str, context: CommandContext) -> PoolProfile | None:
    """Return the pool as it exists on this machine, None for one that is away."""
    return next((each for each in registry(context).profiles if each.id == pool_id), None)


def pool_named(name: str, context: CommandContext) -> str:
    """Return the id of the pool with this label or id; raise UsageError for a name that no pool has."""
    # A pool that was decided about stays known while its CLI is away, so that it can still be turned off.
    found, decided = registry(context), Settings.load(context.home).pools
    ids = found.pool_ids() | set(decided)
    return Labels.load(context.home).resolve(name, ids, why_no_pool=found.why_no_pool)


def check_level(level: str, pool_id: str | None, context: CommandContext) -> None:
    """Raise UsageError for a reasoning level that the pool's CLI (None: any CLI) doesn't know."""
    profile = profile_of(pool_id, context) if pool_id else None
    levels = profile.connector.launch.reasoning.levels if profile else ()
    known = tuple(dict.fromkeys((NO_REASONING, *REASONING_LEVELS, *(levels or ()))))
    if levels is not None and level not in known:
        who = pool_id or "bullswarm"
        raise UsageError(f'unknown reasoning level "{level}"', hint=f"{who} knows {', '.join(known)}")


def level_in_force(
    pool_id: str, tier: Effort, settings: Settings, context: CommandContext, *, model: str | None = None
) -> Level:
    """Return the reasoning level that a task on this tier of the pool would run with; ``model`` None: its rung's."""
    profile = profile_of(pool_id, context)
    default = profile.connector.tiers.get(tier) if profile else None
    rung = settings.rungs.get(pool_id, {}).get(tier)
    same = rung is not None and model in (None, rung.model)
    return level_of(
        tier,
        pool=pool_id,
        model=rung.model if rung and same else model,
        layers=settings.reasoning,
        rung=rung.reasoning if rung and same else None,
        connector=default.reasoning if default else None,
    )


def note_unnamed(model: str, settings: Settings, context: CommandContext) -> None:
    """Say it when no pool of this machine names a model, which may be misspelt, or one that is to come."""
    known = _named_models(settings, context)
    if model in known:
        return
    from difflib import get_close_matches

    near = get_close_matches(model, sorted(known), n=1)
    meant = f"; did you mean {near[0]}?" if near else ""
    note(f"no pool names the model {model} now{meant}", context)


def _named_models(settings: Settings, context: CommandContext) -> set[str]:
    """Return every model that a rung, a decision or a CLI's own list names, as far as it is remembered; asks nobody."""
    from bullswarm_core.dispatch.assemble import rungs_of
    from bullswarm_core.pools.model_catalog import load_model_lists

    rungs = [rung for profile in registry(context).profiles for rung in rungs_of(profile, settings).values()]
    lists = load_model_lists(context.home).values()
    assigned = [assignment.model for assignment in settings.assignments.values()]
    named = {rung.model for rung in rungs} | {entry.id for each in lists for entry in each.models} | set(assigned)
    named |= {model for models in settings.reasoning.models.values() for model in models}
    named |= {model for refused in load_plan_refusals(context.home).values() for model in refused}
    return {DEFAULT_MODEL, *(model for model in named if model is not None)}


def note_refused(pool_id: str, model: str | None, settings: Settings, context: CommandContext) -> None:
    """Say it when a model that was just named may not be run, and how that is taken back."""
    name = model or "default"
    refusal = load_plan_refusals(context.home).get(pool_id, {}).get(name)
    back = f"bullswarm strategy include-model {shlex.quote(name)}"
    if name in settings.excluded_models:
        note(f"{name} is not run: you excluded it · {back} takes it back in", context)
    elif name in settings.disabled_models.get(pool_id, ()):
        note(f"{name} is not run on {pool_id}: you turned it off there · {back} --pool {pool_id}", context)
    elif refusal is not None:
        note(f"{name} is not run on {pool_id}: {refusal.reason}", context)
