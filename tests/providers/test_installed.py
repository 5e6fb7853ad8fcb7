"""What installed packages bring is asked once for each import path, whoever else shares the home."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from bullswarm_core.store.home import Home, write_json
from bullswarm_providers import installed


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Each time that the installation is asked, with the answer that names how often it was."""
    times: list[str] = []

    def ask() -> tuple[tuple[str, str], ...]:
        times.append("asked")
        return (("mine", f"module_{len(times)}"),)

    monkeypatch.setattr(installed, "_ask", ask)
    return times


def test_two_installations_do_not_undo_each_others_answer(
    asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home()
    folders = [tmp_path / "one", tmp_path / "two"]
    original = list(sys.path)
    for _ in range(3):
        for number, folder in enumerate(folders, start=1):
            folder.mkdir(exist_ok=True)
            monkeypatch.setattr(sys, "path", [str(folder), *original])
            assert installed.entry_points(home, write_cache=True) == (("mine", f"module_{number}"),)
    assert len(asked) == 2


def test_a_package_that_comes_or_goes_is_noticed(
    asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    home = Home()
    installed.entry_points(home, write_cache=True)
    os.utime(tmp_path, ns=(1, 1))
    assert installed.entry_points(home, write_cache=True) == (("mine", "module_2"),)


def test_old_answers_make_room(asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    home = Home()
    for moment in range(20):
        os.utime(tmp_path, ns=(moment, moment))
        installed.entry_points(home, write_cache=True)
    kept = json.loads((home.cache_dir / "entry-points.json").read_bytes())
    assert [answer["entries"][0][1] for answer in kept] == [f"module_{number}" for number in range(20, 12, -1)]


def test_a_dry_run_writes_nothing(asked: list[str]) -> None:
    installed.entry_points(Home(), write_cache=False)
    assert not Home().cache_dir.exists()


@pytest.mark.parametrize(
    "damage", [None, 3, {}, {"key": "older form", "entries": []}, [1], [{}], [{"key": [], "entries": 3}], [{"key": []}]]
)
def test_a_cache_that_says_nothing_is_replaced(asked: list[str], damage: Any) -> None:
    home = Home()
    write_json(home.cache_dir / "entry-points.json", damage)
    for _ in range(2):
        assert installed.entry_points(home, write_cache=True) == (("mine", "module_1"),)


def test_an_answer_of_a_wrong_shape_is_not_believed(asked: list[str]) -> None:
    home = Home()
    installed.entry_points(home, write_cache=True)
    file = home.cache_dir / "entry-points.json"
    kept = json.loads(file.read_bytes())
    kept[0]["entries"] = [["only a name"]]
    file.write_text(json.dumps(kept), encoding="utf-8")
    assert installed.entry_points(home, write_cache=True) == (("mine", "module_2"),)
    file.write_bytes(b"{")
    assert installed.entry_points(home, write_cache=True) == (("mine", "module_3"),)
