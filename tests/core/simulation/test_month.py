"""The simulator: what is burnt is accounted for, walls waste it, and a policy sees only what a dispatcher could know."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bullswarm_core import routing
from bullswarm_core.errors import UsageError
from bullswarm_core.pools import Pool
from bullswarm_simulation import (
    RIVALS,
    Limit,
    Month,
    OwnUse,
    Score,
    Subscription,
    Task,
    known_policies,
    rivals,
    simulate,
)
from bullswarm_simulation.recipes import WEEK, Account, Recipe, draw
from bullswarm_simulation.scoring import expired_share

BURN = {"build": {"5h": 1.0, "weekly": 0.1}}


def account(name: str = "a", *, own_use: tuple[OwnUse, ...] = (), **more: Any) -> Subscription:
    limits = (Limit("5h", 300, 300), Limit("weekly", WEEK, WEEK))
    return Subscription(name, limits, BURN, own_use=own_use, **{"poll_minutes": 10, **more})  # type: ignore[arg-type]


def month(*tasks: Task, accounts: tuple[Subscription, ...] = (account(),), minutes: float = WEEK) -> Month:
    return Month("test", minutes, accounts, tasks)


def test_a_task_that_fits_is_completed_and_burns_what_it_takes() -> None:
    score = simulate(month(Task("t", 10, 40)), "pace")
    assert (score.completed, score.dropped, score.walls, score.picks) == (40, 0, 0, {"a": 1})
    assert {(use.kind, use.index): use.completed for use in score.windows if use.completed} == pytest.approx(
        {("5h", 0): 40.0, ("weekly", 0): 4.0}
    )
    assert score.expired_pct == pytest.approx(96.0)


def test_a_task_is_charged_to_each_window_for_the_time_that_it_ran_in_it() -> None:
    score = simulate(month(Task("t", 290, 40)), "pace")
    assert {use.index: use.completed for use in score.windows if use.kind == "5h" and use.completed} == pytest.approx(
        {0: 10.0, 1: 30.0}
    )


def test_a_wall_wastes_what_was_burnt_and_the_task_begins_anew_at_the_reset() -> None:
    own = account(own_use=(OwnUse(0, 40),))
    score = simulate(month(Task("t", 10, 80, patience=500), accounts=(own,)), "pace")
    assert (score.completed, score.lost_at_walls, score.walls) == pytest.approx((80, 60, 1))
    used = {
        use.index: (use.completed, use.lost, use.own) for use in score.windows if use.kind == "5h" and use.index < 2
    }
    assert used == {0: (0, pytest.approx(60), pytest.approx(40)), 1: (pytest.approx(80), 0, 0)}
    assert simulate(month(Task("t", 10, 80, patience=30), accounts=(own,)), "pace").dropped == 80


def test_a_wall_ends_everything_on_the_pool_and_each_task_goes_elsewhere() -> None:
    tasks = [Task(name, 0, 60, patience=100) for name in ("s", "t")]
    score = simulate(month(*tasks, accounts=(account("a"), account("b"))), "first-until-wall")
    assert (score.walls, score.picks) == (4, {"a": 2, "b": 2})
    assert score.lost_at_walls == pytest.approx(200)
    assert score.dropped == 120  # b, too, holds a hundred minutes of work and not 120


def test_nothing_is_placed_on_a_lane_that_a_pool_cannot_do() -> None:
    assert simulate(month(Task("t", 0, 5, "chore", patience=10)), "pace").dropped == 5


def test_the_person_fills_the_window_too_and_is_refused_once_the_work_has() -> None:
    own = account(own_use=(OwnUse(0, 60), OwnUse(100, 130)))
    score = simulate(month(Task("t", 0, 39), accounts=(own,)), "pace")
    assert score.completed == 39
    assert score.own_use_refused == pytest.approx(29)
    assert score.value == pytest.approx(10)


def test_a_pool_that_is_full_unseen_refuses_at_once_and_is_read_anew() -> None:
    own = account("a", own_use=(OwnUse(0.5, 150.5),), poll_minutes=200)
    score = simulate(month(Task("t", 140, 20, patience=0), accounts=(own, account("b"))), "first-until-wall")
    assert (score.picks, score.completed, score.lost_at_walls) == ({"a": 0, "b": 1}, 20, 0)


def test_the_meter_is_rounded_and_read_at_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Any, float | None]] = []
    real = routing.decide

    def watched(request: Any, pools: list[Pool], **given: Any) -> Any:
        seen.append((given["now"], pools[0].windows[0].used_pct if pools[0].windows else None))
        return real(request, pools, **given)

    monkeypatch.setattr(rivals, "decide", watched)
    accounts = (account(rounding_pct=5.0, poll_minutes=30, poll_phase=7.0),)
    simulate(month(Task("t", 1, 63), Task("u", 36, 1), Task("v", 50, 1), Task("w", 90, 1), accounts=accounts), "pace")
    assert [used for _, used in seen] == [None, 5.0, 35.0, 65.0]


def test_an_unknown_policy_is_named() -> None:
    with pytest.raises(UsageError, match="unknown routing policy best"):
        simulate(month(Task("t", 0, 5)), "best")


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Limit("5h", 300, 0),
        lambda: Limit("5h", 300, 301),
        lambda: Limit("5h", 300, 10, used_pct=101),
        lambda: OwnUse(5, 5),
        lambda: Task("t", -1, 5),
        lambda: Task("t", 0, 0),
        lambda: Task("t", 0, float("nan")),
        lambda: account(poll_minutes=0),
        lambda: Subscription("a", (Limit("5h", 300, 10),), {"build": {}}),
        lambda: month(Task("t", 0, 1), Task("t", 0, 1)),
        lambda: month(accounts=(account(), account())),
    ],
)
def test_a_month_that_cannot_be_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError):
        wrong()


SMALL = st.builds(
    Recipe,
    st.just("small"),
    st.lists(
        st.builds(
            Account,
            minutes=st.sampled_from([60.0, 150.0]),
            five_hours=st.sampled_from([0.0, 3.0]),
            own_share=st.sampled_from([0.0, 0.3]),
            rounding_pct=st.sampled_from([0.0, 1.0, 5.0]),
        ),
        min_size=1,
        max_size=3,
    ).map(tuple),
    load=st.sampled_from([0.5, 1.0, 2.0]),
    minutes=st.just(1.5 * WEEK),
)


@settings(max_examples=25, deadline=None)
@given(SMALL, st.integers(0, 50), st.sampled_from(known_policies()))
def test_all_work_and_all_quota_is_accounted_for(recipe: Recipe, seed: int, policy: str) -> None:
    played = draw(recipe, seed)
    score = simulate(played, policy)
    assert score.completed + score.dropped == pytest.approx(score.offered)
    assert score.completed == pytest.approx(
        sum(task.minutes for task in played.tasks if task.id in score.completed_tasks)
    )
    for use in score.windows:
        assert min(use.before, use.completed, use.lost, use.own) >= 0
        assert use.before + use.completed + use.lost + use.own <= 100 + 1e-6
    assert booked(score, played, "completed") == pytest.approx(score.completed)
    assert booked(score, played, "lost") == pytest.approx(score.lost_at_walls)
    assert simulate(draw(recipe, seed), policy) == score


def booked(score: Score, played: Month, part: str) -> float:
    """The worker-minutes that the pacing windows say were spent so; every lane of these accounts burns alike."""
    return sum(
        float(getattr(use, part)) / subscription.burn["build"][subscription.limits[0].kind]
        for subscription in played.subscriptions
        for use in score.windows
        if use.pool == subscription.pool and use.kind == subscription.limits[0].kind
    )


def test_quota_expires_only_in_windows_that_ended() -> None:
    score = simulate(month(Task("t", 10, 40), minutes=WEEK - 1), "pace")
    assert score.expired_pct == 0
    assert expired_share(score.windows, {"a": "5h"}) > 0


def test_each_rival_has_its_own_rule() -> None:
    tasks = [Task(f"t{number}", 5.0 * number, 4) for number in range(6)]
    accounts = (account("a"), account("b"), account("c"))
    picks = {name: simulate(month(*tasks, accounts=accounts), name).picks for name in RIVALS}
    assert picks["first-until-wall"] == {"a": 6, "b": 0, "c": 0}
    assert picks["round-robin"] == {"a": 2, "b": 2, "c": 2}
