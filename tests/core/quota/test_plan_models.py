"""What a plan doesn't include is remembered per pool and model, and forgotten on the person's word only."""

import os
import stat
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bullswarm_core.quota.refusals import PlanRefusal, forget_plan_refusals, load_plan_refusals, note_plan_refusal
from bullswarm_core.store.home import Home

NOW = datetime(2026, 3, 1, 10, tzinfo=UTC)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def cache_file(home: Home) -> Path:
    return home.cache_dir / "models-not-in-plan.json"


def test_nothing_is_remembered_at_first_and_looking_makes_nothing(home: Home) -> None:
    assert load_plan_refusals(home) == {}
    assert forget_plan_refusals(home, model="m") == []
    assert not home.root.exists()


def test_a_refusal_is_kept_with_when_and_why_and_forgotten_with_the_way_back(home: Home) -> None:
    note_plan_refusal(home, "codex", "gpt", "not  available\non your plan", now=NOW)
    note_plan_refusal(home, "codex", None, "x" * 900, now=NOW)
    note_plan_refusal(home, "grok", "gpt", "no", now=NOW)
    entry = PlanRefusal("codex", "gpt", NOW, "not available on your plan")
    assert load_plan_refusals(home)["codex"]["gpt"] == entry
    assert len(load_plan_refusals(home)["codex"]["default"].why) == 200
    assert entry.way_back == "bullswarm strategy include-model gpt --pool codex"
    assert entry.way_back in entry.reason and "2026-03-01T10:00:00Z" in entry.reason
    assert forget_plan_refusals(home, pool="codex", model="gpt") == [entry]
    assert set(load_plan_refusals(home)["codex"]) == {"default"}
    assert [gone.pool for gone in forget_plan_refusals(home, model="gpt")] == ["grok"]
    assert [gone.model for gone in forget_plan_refusals(home, pool="codex")] == ["default"]
    assert load_plan_refusals(home) == {}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b'{"pools": []}',
        b'{"pools": {"codex": []}}',
        b'{"pools": {"codex": {"gpt": 1}}}',
        b'{"pools": {"codex": {"gpt": {"at": "soon", "why": "x"}}}}',
        b'{"pools": {"codex": {"gpt": {"at": "2026-03-01T10:00:00Z"}}}}',
    ],
)
def test_a_damaged_memory_is_an_empty_one_and_is_written_anew(home: Home, content: bytes) -> None:
    cache_file(home).parent.mkdir(parents=True)
    cache_file(home).write_bytes(content)
    assert load_plan_refusals(home) == {}
    note_plan_refusal(home, "codex", "new", "no", now=NOW)
    assert load_plan_refusals(home)["codex"].keys() == {"new"}


def test_writers_at_once_lose_nothing(home: Home) -> None:
    threads = [
        threading.Thread(target=note_plan_refusal, args=(home, "codex", f"m{n}", "no"), kwargs={"now": NOW})
        for n in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(load_plan_refusals(home)["codex"]) == {f"m{n}" for n in range(16)}
    assert stat.S_IMODE(cache_file(home).stat().st_mode) == 0o600


def test_a_folder_that_refuses_costs_only_the_memory(home: Home) -> None:
    home.ensure()
    home.cache_dir.write_text("a file where the folder should be")
    note_plan_refusal(home, "codex", "m", "no", now=NOW)
    assert load_plan_refusals(home) == {}
    assert os.listdir(home.root) == ["cache"]  # noqa: PTH208
