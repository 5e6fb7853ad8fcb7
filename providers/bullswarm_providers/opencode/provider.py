"""OpenCode: workers load a small plug-in of ours that reports failing model calls and leaves MCP servers out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bullswarm_core.pools.connector import Account, Connector, PoolProfile
    from bullswarm_core.pools.model_catalog import Asking, ModelEntry
    from bullswarm_core.provider import LaunchAddition, LaunchContext
    from bullswarm_core.quota.observation import MeterContext, Observation

CONTENT_VARIABLE = "OPENCODE_CONFIG_CONTENT"
ISOLATED_VARIABLE = "BULLSWARM_OPENCODE_ISOLATED"
PLUGIN = Path(__file__).parent / "plugin" / "bullswarm.js"


def launch_addition(context: LaunchContext) -> LaunchAddition:
    """Add our plug-in to the configuration that is handed over in the environment, beside what the person put there.

    The person's plug-ins stay: OpenCode keeps sign-ins in them, and its switch to drop them drops ours too (measured).
    """
    from bullswarm_core.provider import LaunchAddition

    content, note = _content(context.environ)
    # Measured: OpenCode starts as if nothing had been said when the model has no variant of that name.
    unsure = f"OpenCode says nothing of a level that its model lacks: {context.reasoning} may not be in force"
    notes = (unsure,) if context.reasoning else ()
    if content is None:
        return LaunchAddition(notes=(*notes, note))
    plugins = content.get("plugin")
    content["plugin"] = [*(plugins if isinstance(plugins, list) else []), PLUGIN.as_uri()]
    if context.instructions_file is not None:
        named = content.get("instructions")
        content["instructions"] = [*(named if isinstance(named, list) else []), context.instructions_file]
    content["autoupdate"] = False
    content["share"] = "disabled"
    # A snapshot is a git repository whose settings and hooks run in the person's sessions; a worker's edits are in git.
    content["snapshot"] = False
    environment = {CONTENT_VARIABLE: json.dumps(content, separators=(",", ":"))}
    if context.isolated:
        environment[ISOLATED_VARIABLE] = "1"
    return LaunchAddition(environment=environment, notes=notes)


def has_meter(connector: Connector, account: Account, environ: Mapping[str, str]) -> bool:
    """Tell whether OpenCode's own vendor has a plan of this person to meter; other vendors' models tell no use here."""
    from bullswarm_providers.opencode.keys import own_key

    return own_key(environ) is not None


def live_reading(context: MeterContext) -> Observation:
    """Ask the vendor for the windows of the person's plan."""
    from bullswarm_providers.opencode import meter

    return meter.live_reading(context)


def models(profile: PoolProfile, asking: Asking) -> tuple[ModelEntry, ...]:
    """Ask OpenCode for the models of every provider that is signed in or free. Raises BullswarmError."""
    from bullswarm_providers.printed_models import from_lines

    return from_lines(asking.run(profile, "models"))


def _content(environ: Mapping[str, str]) -> tuple[dict[str, Any] | None, str]:
    text = environ.get(CONTENT_VARIABLE, "").strip()
    if not text:
        return {}, ""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = None
    if isinstance(content, dict):
        return content, ""
    return (
        None,
        f"{CONTENT_VARIABLE} is no JSON object: bullswarm's plug-in is left out, so a provider's refusal is seen late",
    )
