"""`bullswarm statusline`: one line for Claude Code's status line, and a free reading of the caller's own meter.

Claude Code starts this several times a minute with its status JSON on standard input. Like a hook it reads the cache alone,
imports next to nothing, and exits 0 in silence when anything is wrong.
"""

from __future__ import annotations

import os
import sys
import time

from bullswarm_core.fast import hook_state
from bullswarm_core.fast.files import file_name_of, home_folder, lock_at_once, read_json, write_private
from bullswarm_core.fast.moments import span
from bullswarm_core.fast.pool_text import shown, use_text
from bullswarm_core.fast.rate_limits import merged_meter, windows_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from typing import Any

    from bullswarm_core.fast.hook_state import HookState, Pool
    from bullswarm_server.cli.context import CommandContext

PROVIDER = "claude-code"
_LARGEST_INPUT_BYTES = 1 << 20


def run(arguments: list[str], context: CommandContext) -> int:
    """Print the line; there are no options but ``--help``."""
    if arguments:
        _parser().parse_args(arguments)
    return quick(context.environ)


def _parser() -> argparse.ArgumentParser:
    import argparse

    from bullswarm_server.cli.help_format import Parser

    return Parser(
        prog="bullswarm statusline",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=(
            "The line for Claude Code's status line: pools by label with their 5-hour and weekly use. It reads Claude\n"
            "Code's status JSON on standard input, and keeps what that tells of the session's own account as a reading."
        ),
        epilog='settings.json of Claude Code: "statusLine": {"type": "command", "command": "bullswarm statusline"}',
    )


def quick(environ: Mapping[str, str]) -> int:
    """Answer one call of Claude Code; nothing that goes wrong is the status line's business."""
    try:
        status = _status()
        state = hook_state.load(environ)
        if state is None:
            return 0
        now = time.time()
        own = state.own_pool(PROVIDER, environ)
        told = windows_in(status, now=now)
        text = line(state, own, told, now=now)
        if text:
            os.write(1, text.encode("utf-8", "replace") + b"\n")
        if own is not None and told:
            keep(environ, own.id, told, now=now)
    except (OSError, ValueError, RecursionError):
        return 0
    return 0


def line(state: HookState, own: Pool | None, told: list[dict[str, Any]], *, now: float) -> str:
    """Return the line: the session's own pool first, as it says itself, then the others; turned-off pools are left out."""
    if own is not None and told:
        kinds = {window["kind"] for window in told}
        fresh = [hook_state.Window(window["kind"], window["usedPct"], None) for window in told]
        own.windows = [*fresh, *(window for window in own.windows if window.kind not in kinds)]
    pools = [pool for pool in state.pools if pool.enabled and not pool.last_resort and pool.state != "unavailable"]
    parts = [_part(pool, now) for pool in sorted(pools, key=lambda pool: (pool is not own, pool.id))]
    old = state.age(now)
    if parts and hook_state.FRESH_SEC < old < hook_state.USEFUL_SEC:
        parts.append(f"{span(old)} old")
    return " · ".join(parts if old < hook_state.USEFUL_SEC else parts[: 1 if own in pools else 0])


def keep(environ: Mapping[str, str], pool: str, told: list[dict[str, Any]], *, now: float) -> bool:
    """Store what the session told as its pool's reading; tell whether the file had to be written.

    While another process rewrites the file nothing is stored: the session tells it again within seconds.
    """
    folder, name = f"{home_folder(environ)}/meters", file_name_of(pool)
    path = f"{folder}/{name}.json"
    if merged_meter(read_json(path), told, pool=pool, now=now) is None:
        return False
    with lock_at_once(f"{folder}/locks/{name}.lock") as alone:
        meter = merged_meter(read_json(path), told, pool=pool, now=now) if alone else None
        if meter is not None:
            write_private(path, meter)
    return meter is not None


def _part(pool: Pool, now: float) -> str:
    words = use_text(pool, now=now) or (["-"] if pool.metered else [])
    return " ".join((shown(pool.label), *words, *(("FULL",) if pool.state == "burst-gated" else ())))


def _status() -> Any:
    import json

    data = b""
    while len(data) <= _LARGEST_INPUT_BYTES and (chunk := os.read(sys.stdin.fileno(), 1 << 16)):
        data += chunk
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
