"""`bullswarm strategy`: what the person decided about pools, models and plans; shows it and changes it.

Every verb that changes something checks all of it first, does it at once, says what it did or that there was nothing to
do, and then shows what is in force. ``--yes`` is taken by all of them and needed only by the one that lets a project's settings
count: each other change is one call away from its opposite.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from bullswarm_core.pools import EFFORTS
from bullswarm_core.pools.connector import NO_REASONING
from bullswarm_core.pools.model import SANDBOXES
from bullswarm_core.pools.settings import DEFAULT_POLICY, QUOTA_WINDOWS
from bullswarm_core.routing.policies import POLICY_NAMES
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.cli.help_format import Parser

CLI_DEFAULT = "default"
OFF = "off"

if TYPE_CHECKING:
    Options = argparse.Namespace
    Verbs = argparse._SubParsersAction[Parser]


def run(arguments: list[str], context: CommandContext) -> int:
    """Show the decisions in force, or change one of them."""
    options = _parser().parse_args(arguments)
    module, name = options.action
    action: Callable[[Options, CommandContext], int | None] = getattr(
        import_module(f"bullswarm_server.cli.strategy_{module}"), name
    )
    return action(options, context) or 0


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="bullswarm strategy",
        description="What you decided. It never makes a pool eligible that a limit or a missing sign-in keeps out.",
    )
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    _add_views(verbs)
    _add_pool_verbs(verbs)
    _add_project_verbs(verbs)
    _add_model_verbs(verbs)
    _add_reasoning_verbs(verbs)
    _add_whole_verbs(verbs)
    return parser


def _add_views(verbs: Verbs) -> None:
    _verb(verbs, "show", "writing:show", "the decisions in force")
    verb = _verb(verbs, "inventory", "views:inventory", "every pool with the models that its CLI offers")
    verb.add_argument("--refresh", action="store_true", help="ask every CLI now (default: those not asked for a day)")
    _verb(verbs, "routes", "views:routes", "where work of each tier would go now, and what is left out")
    verb = _verb(verbs, "rungs", "views:rungs", "what each pool runs on each tier, and who said so")
    verb.add_argument("--pool", metavar="POOL")


def _add_pool_verbs(verbs: Verbs) -> None:
    verb = _verb(verbs, "set-provider", "pools:set_provider", "turn a pool on or off, choose what its workers may do")
    verb.add_argument("pool", metavar="POOL")
    verb.add_argument("state", nargs="?", choices=("on", "off"))
    verb.add_argument(
        "--sandbox", choices=SANDBOXES, help="where its workers may write and whether they have a network"
    )
    verb.add_argument("--inherits-config", choices=("on", "off"), help="start workers with your hooks and MCP servers")
    verb.add_argument(
        "--allow-billing", choices=("on", "off"), help="let work be billed beside the plan: an API key, or overage"
    )
    verb = _verb(
        verbs, "set-subscription", "pools:set_subscription", "the plan of a pool: its window, a reset, your own share"
    )
    verb.add_argument("pool", metavar="POOL")
    verb.add_argument("--quota-window", choices=(*QUOTA_WINDOWS, "unknown"), help="the window that paces the pool")
    verb.add_argument("--resets-at", metavar="ISO", help="any one reset (UTC unless it names its zone), or unknown")
    verb.add_argument("--plan", type=_name, metavar="NAME", help="its name, for you to read")
    verb.add_argument(
        "--reserve",
        type=_percent,
        metavar="PCT",
        help="the share of the pacing window kept for your own use (0 to 100)",
    )
    verb = _verb(verbs, "assign", "pools:assign", "prefer a pool for a tier, among those that can take the task")
    verb.add_argument("tier", choices=EFFORTS)
    verb.add_argument("--pool", required=True)
    verb.add_argument("--model", type=_name)
    verb = _verb(verbs, "clear-assignment", "pools:clear_assignment", "no preference for a tier any more")
    verb.add_argument("tier", choices=EFFORTS)


def _add_project_verbs(verbs: Verbs) -> None:
    verb = _verb(
        verbs, "allow-project-settings", "project:allow", "let the settings files of a repository count for its workers",
        approved=True,
    )  # fmt: skip
    verb.add_argument("folder", nargs="?", metavar="FOLDER", help="in the repository (default: the current folder)")
    verb.add_argument("--remove", action="store_true", help="let none of them count any more")


def _add_model_verbs(verbs: Verbs) -> None:
    verb = _verb(
        verbs, "set-rung", "models:set_rung", "the model of a pool on an effort tier; other tiers need one too"
    )
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
    verb = _verb(verbs, "clear-rungs", "models:clear_rungs", "back to the connector's models on every tier")
    verb.add_argument("pool", metavar="POOL")
    verb = _verb(verbs, "set-model", "models:set_model", "the tiers on which a pool runs a model, or none")
    verb.add_argument("pool", metavar="POOL")
    verb.add_argument("model", type=_name)
    verb.add_argument(
        "--tiers", required=True, type=_tiers, metavar="TIERS", help=f"such as high,medium; `{OFF}`: never on this pool"
    )
    verb = _verb(verbs, "reset-tier", "models:reset_tier", "take back all that you decided about a tier")
    verb.add_argument("tier", choices=EFFORTS)
    verb = _verb(verbs, "exclude-model", "models:exclude_model", "never run a model, whatever names it")
    verb.add_argument("model", type=_name)
    verb = _verb(
        verbs, "include-model", "models:include_model", "allow a model again that you or its provider ruled out"
    )
    verb.add_argument("model", type=_name, help=f"`{CLI_DEFAULT}`: the one that a CLI runs by itself")
    verb.add_argument("--pool", metavar="POOL", help="on this pool only")


def _add_reasoning_verbs(verbs: Verbs) -> None:
    verb = _verb(verbs, "set-reasoning", "models:set_reasoning", "the reasoning level of a tier; a step's own wins")
    verb.add_argument("--tier", required=True, choices=EFFORTS)
    verb.add_argument("--level", required=True, type=_name, help=f"`{NO_REASONING}` passes none")
    verb.add_argument("--pool", metavar="POOL", help="on this pool only")
    verb.add_argument("--model", type=_name, help="for this model of the pool only")
    verb = _verb(verbs, "reset-reasoning", "models:reset_reasoning", "take reasoning levels back, recommended ones too")
    verb.add_argument("--tier", choices=EFFORTS, help="on this tier only")
    verb.add_argument("--pool", metavar="POOL", help="of this pool only")


def _add_whole_verbs(verbs: Verbs) -> None:
    verb = _verb(
        verbs, "set-policy", "policy:set_policy", "the rules by which a pool is picked among those that can take a task"
    )
    verb.add_argument("policy", choices=POLICY_NAMES, help=f"default: {DEFAULT_POLICY}")
    verb = _verb(verbs, "configure", "configure:configure", "many decisions from one document, all of them or none")
    source = verb.add_mutually_exclusive_group(required=True)
    source.add_argument("--file", metavar="FILE", help="a document like that of `show --json`; - reads standard input")
    source.add_argument("--schema", action="store_true", help="print the JSON Schema of that document")
    _verb(verbs, "recommend", "recommending:recommend", "models and levels for each tier, and why; changes nothing")
    _verb(verbs, "apply", "recommending:apply", "write the recommendation as rungs and levels; assigns no pool")


def _verb(verbs: Verbs, name: str, action: str, description: str, *, approved: bool = False) -> argparse.ArgumentParser:
    """Declare a verb; ``action`` is ``module:function``, loaded when the verb is called. ``approved``: it needs --yes."""
    parser = verbs.add_parser(name, help=description, description=description)
    parser.set_defaults(action=action.split(":"))
    parser.add_argument("--json", action="store_true", help="print one JSON document with a schemaVersion")
    needless = "for scripts; nothing is asked without it either"
    parser.add_argument("--yes", action="store_true", help="without it, only show" if approved else needless)
    return parser


def _tiers(text: str) -> tuple[str, ...]:
    if text == OFF:
        return ()
    names = tuple(name.strip() for name in text.split(","))
    if not set(names) <= set(EFFORTS):
        raise argparse.ArgumentTypeError(f'"{text}" is neither {OFF} nor a list of {", ".join(EFFORTS)}')
    return tuple(tier for tier in EFFORTS if tier in names)


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
