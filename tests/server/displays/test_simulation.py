"""What is said of a replay: whom to switch to, and never more than the records bear."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta

from bullswarm_core._dataclasses import replace
from bullswarm_core.pools import Window
from bullswarm_core.quota.observation import Observation
from bullswarm_core.quota.rates import Work
from bullswarm_server.displays.simulation import Played, conclusion, notes, simulation_lines
from bullswarm_server.displays.terminal import terminal_of
from bullswarm_simulation import Score, WindowUse
from bullswarm_simulation.recorded import Happened, Replay, replay_of
from bullswarm_simulation.recorded_tasks import RecordedAttempt

BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
TASKS = 25
IDS = tuple(f"{number:02}" for number in range(TASKS))


def recorded(*, walls: int = 0, days: float = 10) -> Replay:
    from bullswarm_core.pools import Rate
    from bullswarm_simulation.recorded import RecordedPool

    attempts = [
        RecordedAttempt(name, "ab"[place % 2], "build", "medium", begun, Work(begun, begun + timedelta(minutes=40)))
        for place, name in enumerate(IDS)
        for begun in [BEGIN + timedelta(hours=8 * place)]
    ]
    window = Window("weekly", 3.0, BEGIN + timedelta(days=5), reset_source="provider")
    pools = [RecordedPool(name, (Observation(BEGIN, (window,)),), {"weekly": Rate(0.5, "history", 5)}) for name in "ab"]
    replay = replay_of(pools, attempts, since=BEGIN, until=BEGIN + timedelta(days=days))
    return replace(replay, happened=replace(replay.happened, walls=walls))


def score(policy: str, completed: float, *, walls: int = 0, lost: float = 0.0, refused: float = 0.0) -> Score:
    done = frozenset(IDS[: int(completed / 40)])
    uses = (WindowUse("a", "weekly", 0, 7200, completed=10, lost=0, own=0),)
    return Score(policy, 1000, completed, 1000 - completed, lost, walls, refused, 90.0, {}, uses, done)


def played(*scores: Score, in_force: str = "pace", replay: Replay | None = None, **more: object) -> Played:
    ordered = tuple(sorted(scores, key=lambda each: -each.value))
    return Played(replay or recorded(), ordered, in_force, {}, **more)  # type: ignore[arg-type]


def test_a_gain_is_told_with_its_size_what_it_rests_on_and_how_to_switch() -> None:
    lines = conclusion(played(score("pace", 800, walls=3, lost=90), score("classic", 920, walls=1, lost=20)))
    assert lines == [
        "classic would have done about 2h00m more than pace, and lost 1h10m less at walls, on these"
        " 25 tasks of 10 days. That is one history and no promise. To switch: bullswarm strategy set-policy classic"
    ]


def test_what_nobody_would_notice_is_no_gain() -> None:
    (line,) = conclusion(played(score("pace", 800, walls=3), score("classic", 809)))
    assert line.startswith(
        "Switching from pace would have changed nothing worth speaking of on these 25 tasks of 10 days"
    )
    assert "set-policy" not in line


def test_of_what_does_as_much_that_which_loses_less_is_told() -> None:
    (line,) = conclusion(played(score("pace", 800, walls=3, lost=120), score("classic", 799, walls=1, lost=20)))
    assert line.startswith("classic would have done as much as pace, and lost 1h40m less at walls, on these 25 tasks")
    (line,) = conclusion(played(score("pace", 800, walls=3, lost=120), score("classic", 700, walls=1, lost=20)))
    assert line.startswith("Switching from pace would have changed nothing worth speaking of")


def test_a_rival_can_not_be_switched_to() -> None:
    (line,) = conclusion(played(score("pace", 500, walls=3), score("round-robin", 990), score("classic", 400)))
    assert "round-robin" not in line
    (line,) = conclusion(played(score("pace", 500, walls=3), score("round-robin", 990)))
    assert line == "No other policy that can be chosen was played beside pace."


def test_work_that_keeps_the_person_out_is_worth_less() -> None:
    (line,) = conclusion(played(score("pace", 800, walls=1), score("classic", 900, refused=200)))
    assert line.startswith("Switching from pace would have changed nothing")


def test_where_everything_was_done_nothing_can_be_better() -> None:
    (line,) = conclusion(played(score("classic", 1000), score("pace", 1000), in_force="classic"))
    assert line.startswith("classic would have done all of it without a wall:")


def test_a_play_far_from_what_was_is_called_rough() -> None:
    given = (score("pace", 500, walls=9), score("classic", 400))
    rough, _ = conclusion(played(*given, replay=recorded(walls=1)))
    assert rough.startswith("The play is rough: with pace it meets 9 walls, and there really was 1.")
    assert len(conclusion(played(*given, replay=recorded(walls=7)))) == 1


def test_the_table_marks_the_policy_in_force_and_ends_with_what_happened() -> None:
    seen = played(score("pace", 800, walls=3, lost=61, refused=30), score("classic", 920))
    terminal = terminal_of(io.StringIO(), {"LANG": "C.UTF-8"}, colour=False)
    lines = simulation_lines(seen, terminal)
    assert lines[2:6] == [
        "policy           worked   share   lost  walls  expired  given up  you kept out",
        "classic          15h20m  100.0%     0m      0      90%         2            0m",
        "pace (in force)  13h20m   83.7%  1h01m      3      90%         5           30m",
        "what happened    16h40m             0m      0      97%         0",
    ]
    ascii_terminal = terminal_of(io.StringIO(), {"LC_ALL": "C"}, colour=False)
    assert all(line.isascii() for line in simulation_lines(seen, ascii_terminal))


def test_notes_tell_what_was_left_out_and_what_is_supposed() -> None:
    replay = replace(recorded(), older_than_cap=7, pools_out={"echo": "no-readings"})
    told = notes(played(score("pace", 800), replay=replay, skipped_lines=2))
    assert told == [
        "only the newest 25 tasks are played, 7 older ones are not",
        "a: your own use 0m, weekly 0.5%/min",
        "b: your own use 0m, weekly 0.5%/min",
        "echo is left out: no reading of it is kept",
        "skipped as damaged: 2 lines of the readings' history",
    ]
    late = notes(played(score("pace", 800), asked_since=BEGIN - timedelta(days=18)))
    assert late[0] == "it begins on Mar 02, with the first reading that is kept"


def test_what_happened_is_a_value_of_its_own() -> None:
    assert recorded(walls=4).happened == Happened(25, 1000, 4, 0, 0, 97.0)
