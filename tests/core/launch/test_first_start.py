"""Starts of a CLI that has never run overlap only once its first start is through."""

import threading
import time
from pathlib import Path

import pytest

from bullswarm_core.launch import first_start
from bullswarm_core.launch.first_start import take_turn
from bullswarm_core.store.home import Home


def test_with_the_marker_nobody_waits(own_home: Path) -> None:
    home, marker = Home(own_home / ".bullswarm"), own_home / "db"
    marker.touch()
    for _ in range(2):
        take_turn(home, "opencode", str(marker))
    take_turn(home, "codex", None)
    assert not home.cache_dir.exists()


def test_the_second_waits_for_the_first(own_home: Path) -> None:
    home, marker = Home(own_home / ".bullswarm"), own_home / "db"
    leave = take_turn(home, "opencode", str(marker))
    began: list[float] = []

    def second() -> None:
        take_turn(home, "opencode", str(marker))()
        began.append(time.monotonic())

    thread = threading.Thread(target=second)
    thread.start()
    time.sleep(0.3)
    assert not began
    marker.touch()
    ended = time.monotonic()
    leave()
    thread.join(10)
    assert began[0] >= ended
    take_turn(home, "opencode", str(own_home / "another-that-is-missing"))()


def test_another_pool_does_not_wait(own_home: Path) -> None:
    home = Home(own_home / ".bullswarm")
    leave = take_turn(home, "opencode", str(own_home / "db"))
    take_turn(home, "opencode2", str(own_home / "db2"))()
    leave()


def test_a_start_that_is_stuck_holds_nobody_for_ever(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_start, "LONGEST_WAIT_SEC", 0.2)
    home, marker = Home(own_home / ".bullswarm"), own_home / "db"
    leave = take_turn(home, "opencode", str(marker))
    take_turn(home, "opencode", str(marker))()
    leave()
