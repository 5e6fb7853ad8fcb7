"""`bullswarm label` (and `bullswarm pools label`): the display label of a pool."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from bullswarm_core.errors import UsageError
from bullswarm_core.pools.labels import Labels
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.cli.help_format import Parser
from bullswarm_server.ops.labels import SCHEMA_VERSION, clear_label, find_pool, set_label

if TYPE_CHECKING:
    pass


def run(arguments: list[str], context: CommandContext) -> int:
    """Set, clear, show or list labels."""
    options = _parser().parse_args(arguments)
    if options.pool is None:
        if options.clear:
            raise UsageError("--clear needs a pool", hint="bullswarm label <pool> --clear")
        _list(options.json, context)
    elif options.list:
        raise UsageError(f'--list takes no pool, and "{options.pool}" was given', hint="bullswarm label --list")
    elif options.clear and options.label is not None:
        import shlex

        raise UsageError("--clear takes no label", hint=f"bullswarm label {shlex.quote(options.pool)} --clear")
    elif options.clear:
        _clear(options.pool, options.json, context)
    elif options.label is None:
        _show(options.pool, options.json, context)
    else:
        _set(options.pool, options.label, options.json, context)
    return 0


def _list(as_json: bool, context: CommandContext) -> None:
    pairs, shown = Labels.kept(context.home).items(), Labels.load(context.home)
    if as_json:
        entries = [{"pool": pool_id, "poolLabel": label} for pool_id, label in pairs]
        context.print_json({"schemaVersion": SCHEMA_VERSION, "labels": entries})
        return
    width = max((len(pool_id) for pool_id, _ in pairs), default=0)
    context.print(*(f"{pool_id.ljust(width)}  {label}{_hidden(pool_id, shown)}" for pool_id, label in pairs))
    if not pairs:
        context.note("no labels · bullswarm label <pool> <label> sets one")


def _show(name: str, as_json: bool, context: CommandContext) -> None:
    labels, kept = Labels.load(context.home), Labels.kept(context.home)
    pool_id = find_pool(context.ops, name)
    label = kept.of(pool_id)
    line = f"{pool_id} {label}{_hidden(pool_id, labels)}" if label else f"{pool_id} has no label"
    _answer(pool_id, label, line, as_json, context)


def _hidden(pool_id: str, shown: Labels) -> str:
    """Say that a label is not shown now; nothing where it is."""
    return "" if shown.of(pool_id) else " (not shown: it is another pool's id)"


def _set(name: str, label: str, as_json: bool, context: CommandContext) -> None:
    pool_id = set_label(context.ops, name, label)
    _answer(pool_id, label, f"{pool_id} is shown as {label}", as_json, context)


def _clear(name: str, as_json: bool, context: CommandContext) -> None:
    pool_id, label = clear_label(context.ops, name)
    line = f"{pool_id} had no label" if label is None else f"{pool_id} is shown by its id (its label was {label})"
    _answer(pool_id, None, line, as_json, context)


def _answer(pool_id: str, label: str | None, line: str, as_json: bool, context: CommandContext) -> None:
    if as_json:
        entries = [{"pool": pool_id, "poolLabel": label}]
        context.print_json({"schemaVersion": SCHEMA_VERSION, "labels": entries})
    else:
        context.print(line)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="bullswarm label",
        description="What people see and may type instead of a pool id. Ids never change; JSON keeps them.",
    )
    parser.add_argument("pool", nargs="?", metavar="POOL", help="a pool, by id or label")
    parser.add_argument(
        "label", nargs="?", metavar="LABEL", help="its new label: no spaces or commas, used by no other pool"
    )
    parser.add_argument("--list", action="store_true", help="list every label")
    parser.add_argument("--clear", action="store_true", help="take the pool's label away")
    parser.add_argument("--json", action="store_true", help="print one JSON document (bullswarm.labels.v1)")
    return parser
