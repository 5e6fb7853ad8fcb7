"""A small version of the measurement: what holds of every policy in every month, quickly.

The whole table takes minutes: ``python -m tests.benchmarks.month --write``.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.benchmarks.month.families import FAMILIES, REPORTED_SEEDS, TUNING_SEEDS
from tests.benchmarks.month.measuring import TOLERANCE, Result, seasoned
from tests.benchmarks.month.optimum import optimum
from tests.benchmarks.month.table import BEGINS, ENDS, PAGE, tables, write_page
from tests.benchmarks.month.whole_pieces import optimum_of_whole_pieces

from bullswarm_core._dataclasses import replace
from bullswarm_simulation import Limit, Month, OwnUse, Subscription, Task, known_policies, simulate
from bullswarm_simulation.recipes import WEEK, Recipe, draw

SHORT = tuple(replace(recipe, minutes=WEEK) for recipe in FAMILIES)


def small(*tasks: Task, own: tuple[OwnUse, ...] = ()) -> Month:
    limits = (Limit("5h", 300, 300), Limit("weekly", WEEK, WEEK))
    return Month("small", WEEK, (Subscription("a", limits, {"build": {"5h": 1.0, "weekly": 0.1}}, own_use=own),), tasks)


@pytest.mark.parametrize(
    ("tasks", "own", "best"),
    [
        ([Task("t", 0, 60)], (), 60),
        ([Task("t", 0, 60), Task("u", 0, 60)], (), 100),  # one window, begun at once: no more than it holds
        ([Task("t", 0, 60), Task("u", 0, 60, patience=299)], (), 120),  # the second waits for the next window
        ([Task("t", 250, 120)], (), 120),  # half in one window, half in the next
        ([Task("t", 0, 80)], (OwnUse(100, 140),), 60),  # the person's forty minutes are left to him
        ([Task("t", 0, 9, "chore")], (), 0),  # nobody can do it
    ],
)
def test_the_optimum_of_a_month_that_can_be_reckoned_by_hand(
    tasks: list[Task], own: tuple[OwnUse, ...], best: float
) -> None:
    assert optimum(small(*tasks, own=own)) == pytest.approx(best)


@pytest.mark.parametrize(
    ("tasks", "own", "best"),
    [
        ([Task("t", 0, 60), Task("u", 0, 60)], (), 100),  # two thirds of the second: shares are of whole runs
        ([Task("t", 250, 120)], (), 120),  # half in one window, half in the next, in one piece
        ([Task("t", 0, 120)], (), 0),  # overfills its window wherever it begins
        ([Task("t", 0, 120, patience=240)], (), 120),  # begun late enough it spans the reset
        ([Task("t", 0, 80)], (OwnUse(100, 140),), 60),  # a share of the run, the rest of the window is the person's
    ],
)
def test_the_optimum_of_whole_pieces_by_hand(tasks: list[Task], own: tuple[OwnUse, ...], best: float) -> None:
    month = small(*tasks, own=own)
    assert optimum_of_whole_pieces(month) == pytest.approx(best)
    assert optimum_of_whole_pieces(month) <= optimum(month) + TOLERANCE


@pytest.mark.parametrize("recipe", SHORT, ids=lambda recipe: recipe.name)
def test_no_policy_beats_the_optimum_and_a_seed_tells_all(recipe: Recipe) -> None:
    month = draw(recipe, 1)
    best, whole = optimum(month), optimum_of_whole_pieces(month)
    assert whole <= best + TOLERANCE
    assert simulate(month, "foresight", told_lengths=True).value <= whole + TOLERANCE
    assert 0 < best <= sum(task.minutes for task in month.tasks) + TOLERANCE
    for policy in known_policies():
        score = simulate(month, policy)
        assert score.value <= best + TOLERANCE, policy
        assert score.value <= whole + TOLERANCE, policy
        assert max(use.before + use.completed + use.lost + use.own for use in score.windows) <= 100 + 1e-6
    assert simulate(draw(recipe, 1), "pace") == simulate(month, "pace")


def test_pace_beats_what_people_do_by_hand_and_foresight_loses_less_at_walls() -> None:
    months = [draw(recipe, seed) for recipe in SHORT for seed in (1, 2)]
    scores = {name: [simulate(month, name) for month in months] for name in ("first-until-wall", "pace", "foresight")}
    value = {name: sum(score.value for score in found) for name, found in scores.items()}
    assert value["foresight"] > value["first-until-wall"] < value["pace"]
    lost = {name: sum(score.lost_at_walls for score in found) for name, found in scores.items()}
    assert lost["foresight"] < lost["pace"] < lost["first-until-wall"]


def test_habits_are_known_at_the_begin_and_change_nothing_else() -> None:
    month, earlier = draw(SHORT[7], 1), draw(SHORT[7], 2)
    known = seasoned(month, earlier)
    assert known.tasks == month.tasks and optimum(known) == optimum(month)
    assert sum(map(len, known.known_minutes.values())) == len(earlier.tasks)
    rates = {item.pool: item.known_rates for item in known.subscriptions}
    assert rates["pool-b"]["weekly"].pct_per_minute == pytest.approx(1.05 * 100 / 1500)  # 1 and 1.1 by its two lanes
    assert simulate(known, "foresight") != simulate(month, "foresight")


def test_the_reported_months_are_held_out_and_the_families_enough() -> None:
    assert not set(REPORTED_SEEDS) & set(TUNING_SEEDS)
    assert len(FAMILIES) >= 8 and len(REPORTED_SEEDS) >= 10
    assert len({recipe.name for recipe in FAMILIES}) == len(FAMILIES)


def test_the_tables_go_between_the_marks_of_the_page(tmp_path: Path) -> None:
    results = [
        Result(recipe.name, seed, policy, 0.9 + place / 100, 0.01, 0.02, 0.0, 12.0, 3)
        for recipe in FAMILIES[:2]
        for seed in (1, 2)
        for place, policy in enumerate(("pace", "foresight"))
    ]
    text = tables(results)
    assert "| `pace` | 0.9000 | two equal weeks, 0.9000 | 1.0 % | 2.0 % | 0.0 % | 12.0 % |" in text
    assert "| two equal weeks | 0.9000 | 0.9100 |" in text
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGINS}old\n{ENDS}after\n")
    write_page(text, page)
    write_page(text, page)
    assert page.read_text() == f"before\n{BEGINS}\n{text}\n{ENDS}after\n"
    page.write_text("no marks\n")
    with pytest.raises(ValueError, match="has no marks"):
        write_page(text, page)
    assert BEGINS in PAGE.read_text()
