"""Every clock of a keeper: as a rule over numbers, and on real children."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.keeper.keeping import LONG, Keeping, clocks

from bullswarm_core.keeper.clocks import CHATTER_SEC, LONGEST_TICK_SEC, AwakeClock, Clocks, Progress, due
from bullswarm_core.trees.activity import TreeWatch

RESULT = ({"path": "type", "equals": ["result"]},)
SAY_RESULT = """print('{"type":"result","result":"done"}', flush=True);"""
seconds = st.floats(0, 10_000, allow_nan=False)
limits = st.one_of(st.none(), st.floats(0, 10_000, allow_nan=False))
some_clocks = st.builds(
    Clocks, startup_sec=limits, silence_sec=limits, no_progress_sec=limits, wall_sec=limits, terminal_grace_sec=seconds
)


@pytest.mark.parametrize(
    ("limit", "progress", "now", "reason"),
    [
        (Clocks(startup_sec=5), Progress(), 4.9, None),
        (Clocks(startup_sec=5), Progress(), 5.0, "startup"),
        (Clocks(startup_sec=5), Progress(last_byte=1.0), 500.0, None),
        (Clocks(silence_sec=5), Progress(), 5.0, "silence"),
        (Clocks(silence_sec=5), Progress(last_byte=3.0), 7.9, None),
        (Clocks(silence_sec=5), Progress(last_byte=3.0), 8.0, "silence"),
        (Clocks(startup_sec=9, silence_sec=5), Progress(), 5.0, "silence"),
        (Clocks(startup_sec=5, silence_sec=9), Progress(), 5.0, "startup"),
        (Clocks(no_progress_sec=5), Progress(last_byte=99.0), 5.0, "no-progress"),
        (Clocks(no_progress_sec=5), Progress(last_change=2.0), 6.9, None),
        (Clocks(wall_sec=5), Progress(last_byte=4.9), 5.0, "wall"),
        (Clocks(wall_sec=5, silence_sec=5, startup_sec=5), Progress(), 5.0, "wall"),
        (Clocks(silence_sec=5, terminal_grace_sec=30), Progress(last_byte=1, terminal_at=1), 30.9, None),
        (Clocks(silence_sec=5, terminal_grace_sec=30), Progress(last_byte=1, terminal_at=1), 31.0, "after-terminal"),
        (Clocks(terminal_grace_sec=5), Progress(terminal_at=1, last_stdout=4), 8.9, None),
        (Clocks(terminal_grace_sec=5), Progress(terminal_at=1, last_stdout=CHATTER_SEC), CHATTER_SEC + 0.9, None),
        (Clocks(terminal_grace_sec=5), Progress(terminal_at=1, last_stdout=601), CHATTER_SEC + 1, "after-terminal"),
        (Clocks(wall_sec=9, terminal_grace_sec=5), Progress(terminal_at=8), 9.0, "wall"),
        (Clocks(), Progress(), 1e9, None),
        (Clocks(startup_sec=0, silence_sec=0, no_progress_sec=0, wall_sec=0), Progress(), 1e9, None),
    ],
)
def test_due(limit: Clocks, progress: Progress, now: float, reason: str | None) -> None:
    assert due(limit, progress, now) == reason


@given(some_clocks, seconds)
def test_a_reason_is_only_given_by_a_clock_that_is_on_and_has_run_out(limit: Clocks, now: float) -> None:
    reason = due(limit, Progress(), now)
    of = {"wall": limit.wall_sec, "startup": limit.startup_sec, "silence": limit.silence_sec}
    ran_out = {"no-progress": limit.no_progress_sec, **of}
    if reason is None:
        assert all(not value or now < value for value in ran_out.values())
    else:
        value = ran_out[reason]
        assert value
        assert now >= value


@given(some_clocks, seconds, seconds)
def test_a_byte_just_now_always_quiets_startup_and_silence(limit: Clocks, now: float, change: float) -> None:
    reason = due(limit, Progress(last_byte=now, last_change=change), now)
    assert reason not in ("startup", "silence") or not limit.silence_sec


@given(st.lists(st.floats(0, LONGEST_TICK_SEC)))
def test_awake_time_is_plain_time_while_the_keeper_runs(steps: list[float]) -> None:
    clock, now = AwakeClock(last=100.0), 100.0
    for step in steps:
        now += step
        clock.tick(now)
    assert clock.awake == pytest.approx(now - 100.0)


def test_a_sleep_of_the_machine_is_not_silence() -> None:
    clock = AwakeClock(last=100.0)
    clock.tick(100.25)
    assert clock.tick(100.25 + 20 * 60) == 0.25 + LONGEST_TICK_SEC
    assert due(Clocks(silence_sec=60), Progress(last_byte=0.25), clock.awake) is None


def test_a_clock_that_goes_back_takes_nothing_away() -> None:
    clock = AwakeClock(last=100.0)
    clock.tick(101.0)
    assert clock.tick(50.0) == 1.0
    assert clock.tick(50.5) == 1.5


def test_no_byte_within_the_startup_clock(keeping: Keeping) -> None:
    facts = keeping.run(LONG, clocks=clocks(startup_sec=0.5, silence_sec=30))
    assert (facts.reason, facts.signal, facts.output_bytes) == ("startup", "SIGTERM", 0)
    assert 0.5 <= facts.wall_sec < 3


def test_silence_begins_anew_with_every_byte_on_either_stream(keeping: Keeping) -> None:
    code = (
        "import sys, time\n"
        "for n in range(6): time.sleep(0.3); (sys.stdout, sys.stderr)[n % 2].write('.'); sys.stdout.flush()\n" + LONG
    )
    facts = keeping.run(code, clocks=clocks(silence_sec=1.0))
    assert facts.reason == "silence"
    assert facts.wall_sec >= 2.4
    assert facts.silent_sec is not None
    assert 1.0 <= facts.silent_sec < 2.5


def test_the_wall_clock_holds_against_a_worker_that_never_is_quiet(keeping: Keeping) -> None:
    code = "import time\nwhile True: print('.', flush=True); time.sleep(0.01)"
    facts = keeping.run(code, clocks=clocks(wall_sec=0.6, silence_sec=0.5))
    assert facts.reason == "wall"
    assert facts.wall_sec < 3


def test_the_wall_clock_covers_a_worker_that_closed_its_output(keeping: Keeping) -> None:
    facts = keeping.run(
        "import os; print(1, flush=True); os.close(1); os.close(2);" + LONG, clocks=clocks(wall_sec=0.6)
    )
    assert facts.reason == "wall"


def test_no_file_change_within_the_progress_clock(keeping: Keeping, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "deep" / "er").mkdir(parents=True)
    code = (
        "import time, pathlib\n"
        f"for n in range(5): time.sleep(0.3); pathlib.Path({str(tree)!r}, 'deep', 'er', 'f').write_text(str(n))\n"
        "while True: print('busy', flush=True); time.sleep(0.05)"
    )
    facts = keeping.run(code, clocks=clocks(no_progress_sec=1.0), watch_tree=str(tree))
    assert facts.reason == "no-progress"
    assert 2.4 <= facts.wall_sec < 6


def test_without_a_tree_there_is_no_progress_clock(keeping: Keeping) -> None:
    code = "import time\nfor n in range(9): time.sleep(0.1); print(n, flush=True)"
    assert keeping.run(code, clocks=clocks(no_progress_sec=0.3)).reason == "exited"


def test_a_short_grace_after_the_terminal_event(keeping: Keeping) -> None:
    facts = keeping.run(SAY_RESULT + LONG, terminal=RESULT, clocks=clocks(silence_sec=30))
    assert facts.reason == "after-terminal"
    assert 0.3 <= facts.wall_sec < 3


def test_a_worker_that_ends_within_the_grace_has_just_ended(keeping: Keeping) -> None:
    facts = keeping.run(
        SAY_RESULT + "import time; time.sleep(0.1)", terminal=RESULT, clocks=clocks(terminal_grace_sec=9)
    )
    assert (facts.reason, facts.exit_code) == ("exited", 0)


def test_a_worker_that_goes_to_work_again_after_its_terminal_event_is_left_alone(keeping: Keeping) -> None:
    more = "import time\nfor n in range(8): time.sleep(0.2); print('{}', flush=True)\n" + SAY_RESULT
    facts = keeping.run(SAY_RESULT + "\n" + more, terminal=RESULT, clocks=clocks(terminal_grace_sec=0.8))
    assert (facts.reason, facts.exit_code) == ("exited", 0)


def test_a_quoted_terminal_event_is_none(keeping: Keeping) -> None:
    said = json.dumps({"type": "text", "text": '{"type":"result"}'})
    facts = keeping.run(f"print({said!r}, flush=True);" + LONG, terminal=RESULT, clocks=clocks(silence_sec=0.6))
    assert facts.reason == "silence"


def test_tree_watch_sees_what_changes_and_skips_what_tools_fill(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / ".git").mkdir()
    old = tmp_path / "src" / "old.py"
    old.write_text("1")
    watch = TreeWatch(str(tmp_path), every_sec=10)
    assert not watch.changed(0.0), "the first look is only the base"
    assert watch.looked_at == 0.0
    assert not watch.changed(5.0, at_once=True)
    time.sleep(0.02)
    (tmp_path / ".git" / "index").write_text("2")
    assert not watch.changed(6.0, at_once=True)
    old.write_text("2")
    import os

    os.utime(old, (1, 1))
    assert not watch.changed(7.0), "no look is due"
    assert watch.changed(20.0), "a file with an old date was changed all the same"
    time.sleep(0.02)
    old.unlink()
    assert watch.changed(40.0), "a deletion is a change"
    assert not watch.changed(60.0)


def test_tree_watch_is_not_deceived_by_a_sandbox_that_makes_and_removes_folders(tmp_path: Path) -> None:
    (tmp_path / "kept.py").write_text("1")
    watch = TreeWatch(str(tmp_path), every_sec=1)
    assert not watch.changed(0.0)
    time.sleep(0.02)
    (tmp_path / ".codex").mkdir()
    assert not watch.changed(1.0)
    (tmp_path / ".codex").rmdir()
    assert not watch.changed(2.0)


def test_tree_watch_works_in_slices_and_survives_a_vanished_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bullswarm_core.trees.activity.ENTRIES_PER_SLICE", 10)
    for number in range(35):
        (tmp_path / f"f{number}").touch()
    watch = TreeWatch(str(tmp_path), every_sec=1)
    slices = 0
    while watch.looked_at < 0:
        watch.changed(slices / 4)
        slices += 1
    assert slices == 4
    assert watch.looked_at == 0.0, "a look counts from its beginning"
    gone = TreeWatch(str(tmp_path / "gone"), every_sec=1)
    assert not gone.changed(0.0)
    assert gone.looked_at == 0.0
