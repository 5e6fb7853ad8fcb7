"""`bullswarm simulate`: play the person's own recorded days again with each policy of routing. Writes nothing."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from bullswarm_core.errors import UsageError
from bullswarm_core.pools.labels import Labels
from bullswarm_core.pools.settings import Settings
from bullswarm_core.routing.policies import POLICY_NAMES, policy_named
from bullswarm_core.wire import iso, parse_iso, to_wire
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.cli.help_format import Parser
from bullswarm_server.cli.simulate_records import read_records
from bullswarm_server.displays.simulation import Played, conclusion, has_ended, simulation_lines, too_little
from bullswarm_server.displays.terminal import terminal_of
from bullswarm_simulation import Score, known_policies, simulate
from bullswarm_simulation.recorded import MIN_DAYS, MIN_POOLS, MIN_TASKS, MOST_TASKS, PlayedPool, replay_of

SCHEMA_VERSION = "bullswarm.simulation.v1"
DEFAULT_DAYS, MOST_DAYS = 28.0, 366.0
LONG_TASKS = 300
"""From so many tasks on the play takes seconds on any machine, and says that it is at work."""


def run(arguments: list[str], context: CommandContext) -> int:
    """Print what each policy would have done; exit 0 also where there is too little history to say.

    Raises UsageError for a time that can't be meant, or when the policy in force is unknown.
    """
    options = _parser().parse_args(arguments)
    now = datetime.now(UTC)
    until = min(now, _moment(options.until)) if options.until else now
    played = play(context, since=_since(until, options.days), until=until, now=now, policies=options.policy)
    if options.json:
        context.print_json(document(played, now=now))
    else:
        context.print(*simulation_lines(played, terminal_of(context.out, context.environ, colour=context.colour)))
    return 0


def play(
    context: CommandContext, *, since: datetime, until: datetime, now: datetime, policies: Sequence[str]
) -> Played:
    """Return the records from ``since`` to ``until`` played with each of ``policies`` (none: all) and the one in force."""
    from bullswarm_providers.registry import load

    settings, registry = Settings.load(context.home), load(context.home, context.environ, write_cache=False)
    in_force = settings.routing_policy
    policy_named(in_force)
    records = read_records(context.home, registry.profiles, settings, since=since, until=until, now=now)
    replay = replay_of(records.pools, records.attempts, since=since, until=until)
    scores: list[Score] = []
    if replay.enough():
        names = dict.fromkeys([*policies, in_force] if policies else known_policies())
        tasks = len(replay.month.tasks)
        if tasks >= LONG_TASKS:
            context.note(f"playing {tasks} tasks with {len(names)} policies; this may take a minute")
        scores = [simulate(replay.month, name) for name in names]
    return Played(
        replay,
        tuple(sorted(scores, key=lambda score: (-round(score.value), score.lost_at_walls))),
        in_force,
        dict(Labels.load(context.home).items()),
        records.skipped_lines,
        records.skipped_rows,
        since,
    )


def document(played: Played, *, now: datetime) -> dict[str, Any]:
    """Return the machine form: what was played, what it rests on, what really happened, and each score, best first."""
    replay = played.replay
    enough = replay.enough()
    return {
        "schemaVersion": SCHEMA_VERSION,
        "at": iso(now),
        "begins": iso(replay.begins),
        "until": iso(replay.until),
        "days": round(replay.days, 3),
        "policyInForce": played.in_force,
        "enough": enough,
        "needed": {"tasks": MIN_TASKS, "days": MIN_DAYS, "pools": MIN_POOLS},
        "tasks": len(replay.log.played),
        "tasksLeftOut": dict(sorted(replay.log.left_out.items())),
        "tasksOverCap": replay.older_than_cap,
        "skippedLines": played.skipped_lines,
        "skippedRows": played.skipped_rows,
        "pools": [_pool(played, item) for item in replay.pools],
        "poolsLeftOut": [
            {"pool": pool, "poolLabel": played.labels.get(pool), "why": why}
            for pool, why in sorted(replay.pools_out.items())
        ],
        "recorded": to_wire(replay.happened),
        "policies": [_score(played, score) for score in played.scores],
        "conclusion": " ".join(conclusion(played)) if enough else too_little(replay),
    }


def _pool(played: Played, item: PlayedPool) -> dict[str, Any]:
    limits = {
        limit.kind: limit
        for subscription in played.replay.month.subscriptions
        if subscription.pool == item.pool
        for limit in subscription.limits
    }
    return {
        "pool": item.pool,
        "poolLabel": played.labels.get(item.pool),
        "firstReading": iso(item.first_reading),
        "ownUseMinutes": round(item.own_minutes, 1),
        "tasksBeyondTiers": item.beyond_tiers,
        "windows": [
            {
                "kind": record.kind,
                "pctPerMinute": record.burn,
                "comparedWith": record.compared_with,
                "lengthMinutes": record.minutes,
                "firstResetMinutes": round(limits[record.kind].first_reset, 3),
                "usedAtBeginPct": round(limits[record.kind].used_pct, 1),
                "readings": len(record.readings),
            }
            for record in item.windows
        ],
        "windowsLeftOut": {kind: why for kind, why in item.fates.items() if why in ("no-rate", "no-reset")},
    }


def _score(played: Played, score: Score) -> dict[str, Any]:
    return {
        "policy": score.policy,
        "choosable": score.policy in POLICY_NAMES,
        "inForce": score.policy == played.in_force,
        "completedMinutes": round(score.completed, 1),
        "completedTasks": len(score.completed_tasks),
        "sharePct": round(played.share(score), 2),
        "lostMinutes": round(score.lost_at_walls, 1),
        "walls": score.walls,
        "expiredPct": round(score.expired_pct, 1) if has_ended(score) else None,
        "givenUpTasks": len(played.replay.month.tasks) - len(score.completed_tasks),
        "givenUpMinutes": round(score.dropped, 1),
        "ownUseRefusedMinutes": round(score.own_use_refused, 1),
        "picks": dict(score.picks),
    }


def _since(until: datetime, days: float) -> datetime:
    try:
        return until - timedelta(days=days)
    except OverflowError as error:
        raise UsageError(
            f"--until {iso(until)} is too early for --days {days}", hint="give a time of this history"
        ) from error


def _moment(text: str) -> datetime:
    try:
        return parse_iso(text).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise UsageError(f'--until "{text}" is no ISO-8601 time', hint="for example 2026-12-01T08:00:00Z") from error


def _days(text: str) -> float:
    days = float(text)
    if not 0 < days <= MOST_DAYS:
        raise argparse.ArgumentTypeError(f"{text} is not above 0 and at most {MOST_DAYS:.0f}")
    return days


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="bullswarm simulate",
        description=(
            "Play your own recorded tasks again with each policy of routing, and with the simple rules that people go by:"
            " what each would have done with the same accounts, windows and use of your own. Writes nothing, decides"
            f" nothing. Of more than {MOST_TASKS} tasks the newest are played."
        ),
    )
    parser.add_argument(
        "--days", type=_days, default=DEFAULT_DAYS, metavar="N", help=f"how many days (default {DEFAULT_DAYS:.0f})"
    )
    parser.add_argument("--until", metavar="ISO", help="when they end (default: now)")
    parser.add_argument(
        "--policy",
        action="append",
        default=[],
        choices=known_policies(),
        help="play only this one, beside the policy in force (repeatable)",
    )
    parser.add_argument("--json", action="store_true", help=f"print one document ({SCHEMA_VERSION})")
    return parser
