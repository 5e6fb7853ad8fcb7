"""A ``.env`` in the folder of work decides no account and no address of a worker's CLI."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core.launch.dot_env import LARGEST_BYTES, emptied, names_like, names_set_in
from bullswarm_core.launch.plan import LaunchPlan, plan_launch, shown_command
from bullswarm_core.pools import Rung
from bullswarm_core.pools.connector import PoolProfile, connector_from_json

NAMES = ("MINE_API_KEY", "MINE_API_URL")


def plan(cwd: Path, environ: dict[str, str], **more: Any) -> LaunchPlan:
    launch = {"prompt": {"way": "stdin"}, "lanes": {"build": {"workspace": {"confinement": "cli"}}}, "dotEnv": [*NAMES]}
    data = {"schemaVersion": "v", "name": "mine", "binary": "mine", "launch": launch}
    profile = PoolProfile("mine", connector_from_json(data), "/bin/mine", **more)
    return plan_launch(
        profile, rung=Rung(), lane="build", cwd=str(cwd), prompt_file="/r/task.md", private_tmp="/r/tmp", environ=environ
    )  # fmt: skip


def test_what_the_persons_environment_lacks_is_empty_so_that_no_file_fills_it(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("MINE_API_KEY=sk-of-the-project\nOTHER=1\n")
    made = plan(
        tmp_path, {"HOME": "/h", "MINE_API_KEY": "sk-stray"}, withheld=("MINE_API_KEY",), billing="subscription"
    )
    assert {name: made.environment[name] for name in NAMES} == {"MINE_API_KEY": "", "MINE_API_URL": ""}
    assert any(f"MINE_API_KEY of the .env in {tmp_path} kept from the worker's CLI" in note for note in made.notes)
    assert "MINE_API_KEY=''" in shown_command(made) and "sk-" not in shown_command(made)


def test_what_the_person_set_stays(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("MINE_API_KEY=sk-of-the-project\n")
    made = plan(tmp_path, {"HOME": "/h", "MINE_API_KEY": "sk-mine"}, billing="api-key")
    assert (made.environment["MINE_API_KEY"], made.environment["MINE_API_URL"]) == ("sk-mine", "")
    assert made.notes == ()
    chosen = plan(tmp_path, {"HOME": "/h"}, environment={"MINE_API_KEY": "of-the-account"})
    assert chosen.environment["MINE_API_KEY"] == "of-the-account"


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"MINE_API_KEY=x", NAMES[:1]),
        (b"A=1\r\n  export MINE_API_URL = 'x'\nMINE_API_KEY: y\n", NAMES),
        (b"# MINE_API_KEY=x\nNOT_MINE_API_KEY=1\nTEXT=MINE_API_URL=2\n", ()),
        (b"\xff\xfe\x00MINE_API_KEY", ()),
        (b"A=" + b"x" * LARGEST_BYTES + b"\nMINE_API_KEY=x", ()),
        (b"", ()),
    ],
)
def test_the_names_that_a_file_sets(tmp_path: Path, content: bytes, found: tuple[str, ...]) -> None:
    (tmp_path / ".env").write_bytes(content)
    assert names_set_in(str(tmp_path), NAMES) == found


def test_what_is_no_file_sets_nothing_and_is_not_waited_for(tmp_path: Path) -> None:
    assert names_set_in(str(tmp_path), NAMES) == ()
    os.mkfifo(tmp_path / ".env")
    assert names_set_in(str(tmp_path), NAMES) == ()
    (tmp_path / "folder" / ".env").mkdir(parents=True)
    assert names_set_in(str(tmp_path / "folder"), NAMES) == ()
    assert names_set_in("/no/such\0folder", NAMES) == ()


@given(st.binary(max_size=200))
def test_no_content_breaks_the_look(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    folder = tmp_path_factory.getbasetemp()
    (folder / ".env").write_bytes(content)
    assert set(names_set_in(str(folder), NAMES)) <= set(NAMES)


def test_only_missing_and_removed_ones_are_emptied() -> None:
    assert emptied(NAMES, {"MINE_API_KEY": "x"}, []) == {"MINE_API_URL": ""}
    assert emptied(NAMES, {"MINE_API_KEY": "x"}, ["MINE_API_KEY"]) == dict.fromkeys(NAMES, "")


def test_a_pattern_finds_names_in_the_files_above_the_folder_whatever_repository_it_is(tmp_path: Path) -> None:
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "repo" / "pkg").mkdir()
    (tmp_path / ".env").write_text("MINE_ABOVE=1\n")
    (tmp_path / "repo" / ".env").write_text("\ufeff\x0bexport MINE_PROXY = x\nDATABASE_URL=y\n", encoding="utf-8")
    (tmp_path / "repo" / "pkg" / ".env").write_text("A=1\rMINE_MODEL: z\n")
    assert names_like(str(tmp_path / "repo" / "pkg"), "^MINE") == ("MINE_MODEL", "MINE_PROXY", "MINE_ABOVE")
    assert names_like(str(tmp_path / "repo" / "pkg"), "") == ()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / ".env").unlink()
    (tmp_path / ".env").symlink_to(tmp_path / "pipe")
    assert names_like(str(tmp_path), "^MINE") == ()


def test_a_pattern_finds_names_above_a_folder_without_a_repository_and_not_in_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x" / "pkg").mkdir(parents=True)
    (tmp_path / "x" / ".env").write_text("MINE_PROXY=x\n")
    (tmp_path / ".env").write_text("MINE_OWN=x\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert names_like(str(tmp_path / "x" / "pkg"), "^MINE") == ("MINE_PROXY",)
