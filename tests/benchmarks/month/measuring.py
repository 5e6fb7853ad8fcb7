"""Plays every policy in every month and keeps the results in a file, so that a long measurement can go on where it stopped."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.benchmarks.month.families import FAMILIES
from tests.benchmarks.month.optimum import optimum

from bullswarm_core._dataclasses import dataclass, replace
from bullswarm_core.pools import Lane, Rate, WindowKind
from bullswarm_simulation import Month, Score, Subscription, simulate
from bullswarm_simulation.recipes import draw

TOLD = "+lengths"
"""What a policy's name ends with here when it is told the lengths of tasks."""
SEASONED = "+habits"
"""What it ends with when rates and earlier tasks' lengths are known from the first minute, as after some months of use."""
EARLIER = 1_000_000
"""What is added to a month's seed to draw the tasks that were before it."""
TOLERANCE = 1e-3
"""Worker-minutes by which the solver's optimum may be short of the truth, of some ten thousand."""


@dataclass(frozen=True, slots=True)
class Result:
    """One policy in one month; everything but ``expired_pct`` as a share of the optimum."""

    family: str
    seed: int
    policy: str
    share: float
    lost: float
    dropped: float
    refused: float
    expired_pct: float
    walls: int


def measured(family: str, seed: int, policies: Iterable[str]) -> list[Result]:
    """Play the month of that family and seed with each policy; AssertionError if one beats the optimum."""
    recipe = next(recipe for recipe in FAMILIES if recipe.name == family)
    month = draw(recipe, seed)
    best = optimum(month)
    months = {False: month, True: seasoned(month, draw(recipe, seed + EARLIER))}
    return [
        _result(family, seed, policy, _played(months[policy.endswith(SEASONED)], policy), best) for policy in policies
    ]


def seasoned(month: Month, earlier: Month) -> Month:
    """The same month with true rates and the lengths of ``earlier``'s tasks known at its begin."""
    lengths: dict[Lane, tuple[float, ...]] = {}
    for task in earlier.tasks:
        lengths[task.lane] = (*lengths.get(task.lane, ()), task.minutes)
    subscriptions = [replace(item, known_rates=_true_rates(item)) for item in month.subscriptions]
    return replace(month, subscriptions=tuple(subscriptions), known_minutes=lengths)


def _true_rates(subscription: Subscription) -> dict[WindowKind, Rate]:
    """What a worker-minute burns on average over the lanes."""
    burns = list(subscription.burn.values())
    return {
        limit.kind: Rate(sum(burn[limit.kind] for burn in burns) / len(burns), "history")
        for limit in subscription.limits
    }


def _played(month: Month, policy: str) -> Score:
    """Play a month; ``foresight+lengths`` is ``foresight`` that is told how long each task truly takes."""
    return simulate(month, policy.removesuffix(TOLD).removesuffix(SEASONED), told_lengths=policy.endswith(TOLD))


def _result(family: str, seed: int, policy: str, score: Score, best: float) -> Result:
    assert score.value <= best + TOLERANCE, f"{policy} beats the optimum of {family}/{seed}: {score.value} > {best}"
    return Result(
        family,
        seed,
        policy,
        share=score.value / best,
        lost=score.lost_at_walls / best,
        dropped=score.dropped / best,
        refused=score.own_use_refused / best,
        expired_pct=score.expired_pct,
        walls=score.walls,
    )


def measure_all(policies: Iterable[str], seeds: Iterable[int], kept: Path | None, processes: int) -> list[Result]:
    """Return the results of all families; ``kept`` (JSON lines) holds those that are known already and takes new ones."""
    wanted = list(policies)
    found = list(_read(kept)) if kept else []
    known = {(result.family, result.seed, result.policy) for result in found}
    seeds = list(seeds)
    jobs = [
        (recipe.name, seed, missing)
        for seed in seeds
        for recipe in FAMILIES
        if (missing := [policy for policy in wanted if (recipe.name, seed, policy) not in known])
    ]
    with ProcessPoolExecutor(processes) as executor:
        for results in executor.map(_measured, jobs):
            found += results
            if kept:
                with kept.open("a") as file:
                    file.writelines(json.dumps(_document(result)) + "\n" for result in results)
    return [result for result in found if result.policy in wanted and result.seed in seeds]


def _measured(job: tuple[str, int, list[str]]) -> list[Result]:
    return measured(*job)


def _document(result: Result) -> dict[str, object]:
    return {name: getattr(result, name) for name in Result.__match_args__}


def _read(path: Path) -> Iterator[Result]:
    if path.exists():
        for line in path.read_text().splitlines():
            yield Result(**json.loads(line))
