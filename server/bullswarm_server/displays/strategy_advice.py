"""The recommendation as a document for programs and as lines for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from bullswarm_core.dispatch.advice import PoolAdvice, TierAdvice
from bullswarm_core.pools import Effort
from bullswarm_core.routing import Decision
from bullswarm_core.wire import iso
from bullswarm_server.displays.route import reason_line
from bullswarm_server.displays.text import one_line

SCHEMA_VERSION = "bullswarm.recommendation.v1"
_FOOT = "nothing was changed · bullswarm strategy apply writes this; which pool takes a task stays a matter of quota"


def document(
    advice: Sequence[PoolAdvice], firsts: Iterable[tuple[Effort, Decision]], *, now: datetime
) -> dict[str, Any]:
    """Return the recommendation for a program."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "at": iso(now),
        "tiers": [
            {
                "tier": tier,
                "first": decision.pool,
                "firstLabel": decision.labels.get(decision.pool or ""),
                "reason": decision.reason,
            }
            for tier, decision in firsts
        ],
        "pools": [
            {
                "pool": each.pool,
                "poolLabel": each.pool_label,
                "standing": each.standing,
                "kept": each.kept,
                "tiers": {
                    tier: {"model": of_tier.model, "reasoning": of_tier.level, "why": of_tier.why}
                    for tier, of_tier in each.tiers.items()
                },
                "hints": list(each.hints),
            }
            for each in advice
        ],
    }


def lines(advice: Sequence[PoolAdvice], firsts: Iterable[tuple[Effort, Decision]]) -> list[str]:
    """Return the recommendation for a person: where a task would go now, then each pool with its tiers."""
    found = [
        one_line(
            f"{tier}: a task would go to {decision.labels.get(decision.pool, decision.pool)} now · {reason_line(decision)}"
        )
        if decision.pool
        else one_line(f"{tier}: no pool now · {reason_line(decision)}")
        for tier, decision in firsts
    ]
    for each in advice:
        kept = f" · stays as it is: {each.kept}" if each.kept else ""
        found.append(one_line(f"{each.pool_label or each.pool}: {each.standing}{kept}"))
        if each.kept is None:
            found += [f"  {one_line(f'{tier}: {_words(of_tier)}')}" for tier, of_tier in each.tiers.items()]
        found += [f"  {one_line(f'hint: {hint}')}" for hint in each.hints]
    return [*found, _FOOT]


def _words(advice: TierAdvice) -> str:
    return f"{advice.model or 'the default of its CLI'} reasoning={advice.level or 'none passed'} · {advice.why}"
