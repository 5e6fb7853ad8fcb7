"""What CLIs tell of their models: names checked, failures beside the last list, memory that may be damaged or lost."""

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bullswarm_core.errors import MeterError, ModelListError
from bullswarm_core.pools.connector import Connector, PoolProfile
from bullswarm_core.pools.model_catalog import (
    MOST_MODELS,
    Asking,
    ModelEntry,
    ModelList,
    ask_models,
    checked,
    keep_model_lists,
    load_model_lists,
    to_json,
)
from bullswarm_core.store.home import Home

NOW = datetime(2026, 3, 1, 10, tzinfo=UTC)
LIST = ModelList((ModelEntry("big", "Big 5", "for hard work", True, ("low", "high"), True), ModelEntry("small")), NOW)


def profile(hook: Any, **more: Any) -> PoolProfile:
    connector = Connector("toy", "Toy", "toy", launch_data={"environment": {"QUIET": "1"}})
    return PoolProfile("toy", connector, sys.executable, provider=SimpleNamespace(models=hook), **more)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def test_lists_are_kept_by_pool_and_read_back(home: Home) -> None:
    assert load_model_lists(home) == {}
    keep_model_lists(home, {})
    assert not home.root.exists()
    failed = ModelList((), None, "no answer", NOW)
    keep_model_lists(home, {"a": LIST})
    keep_model_lists(home, {"b": failed})
    assert load_model_lists(home) == {"a": LIST, "b": failed}
    assert to_json(LIST)["models"][0]["levels"] == ["low", "high"]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b'{"pools": []}', b'{"pools": {"a": {"models": 3}}}'])
def test_a_damaged_memory_is_an_empty_one_and_is_written_anew(home: Home, content: bytes) -> None:
    file = home.cache_dir / "models.json"
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    assert load_model_lists(home) == {}
    keep_model_lists(home, {"b": LIST})
    assert load_model_lists(home) == {"b": LIST}


def test_one_damaged_entry_leaves_the_others(home: Home) -> None:
    keep_model_lists(home, {"a": LIST, "b": LIST})
    file = home.cache_dir / "models.json"
    document = json.loads(file.read_bytes())
    document["pools"]["a"]["askedAt"] = "soon"
    file.write_text(json.dumps(document))
    assert load_model_lists(home) == {"b": LIST}


def test_a_disk_that_refuses_costs_only_the_memory(home: Home) -> None:
    home.ensure()
    home.cache_dir.write_text("a file where the folder should be")
    keep_model_lists(home, {"a": LIST})
    assert load_model_lists(home) == {}


@pytest.mark.parametrize(
    ("known", "due"),
    [
        (ModelList(), True),
        (LIST, False),
        (ModelList((), NOW - timedelta(days=1, seconds=1)), True),
        (ModelList((), NOW - timedelta(days=9), "no", NOW - timedelta(hours=1)), False),
        (ModelList((), NOW + timedelta(hours=1)), True),
    ],
)
def test_a_list_is_asked_for_again_after_a_day(known: ModelList, due: bool) -> None:
    assert known.is_due(NOW) is due


def test_a_list_is_asked_with_the_accounts_environment_in_an_empty_folder() -> None:
    seen: dict[str, Any] = {}

    def hook(pool: PoolProfile, asking: Asking) -> tuple[ModelEntry, ...]:
        seen.update(environ=dict(asking.environ), files=list(Path(asking.folder).iterdir()), folder=asking.folder)
        return (ModelEntry("m"),)

    pool = profile(hook, environment={"TOY_HOME": "/there"}, withheld=("TOY_KEY",))
    found = ask_models(pool, {"TOY_KEY": "k", "CLAUDECODE": "1", "HOME": "/h"}, ModelList(), now=NOW)
    assert found == ModelList((ModelEntry("m"),), NOW, None, NOW)
    environ = seen["environ"]
    assert (environ["TOY_HOME"], environ["QUIET"], environ["HOME"]) == ("/there", "1", "/h")
    assert "TOY_KEY" not in environ and "CLAUDECODE" not in environ
    assert seen["files"] == [] and not Path(seen["folder"]).exists()


@pytest.mark.parametrize(
    ("raised", "problem"),
    [(ModelListError("no list"), "no list"), (MeterError("it ended", hint="try again"), "it ended · try again")],
)
def test_a_failure_stands_beside_the_list_that_was_known(raised: Exception, problem: str) -> None:
    def hook(pool: PoolProfile, asking: Asking) -> tuple[ModelEntry, ...]:
        raise raised

    later = NOW + timedelta(days=2)
    assert ask_models(profile(hook), {}, LIST, now=later) == ModelList(LIST.models, NOW, problem, later)


def test_a_pool_that_can_not_be_asked_says_so() -> None:
    nobody = PoolProfile("toy", Connector("toy", "Toy", "toy"), "/bin/toy")
    assert ask_models(nobody, {}, ModelList(), now=NOW).problem == "Toy can't be asked for its models"
    away = profile(lambda pool, asking: (), unavailable="toy was not found on PATH")
    gone = PoolProfile("toy", away.connector, None, provider=away.provider, unavailable=away.unavailable)
    assert ask_models(gone, {}, ModelList(), now=NOW).problem == "toy was not found on PATH"


def test_names_are_data() -> None:
    bad = [ModelEntry(name) for name in ("", "two words", "tab\tbed", "esc\x1b[31m", "x" * 201)]
    good = [ModelEntry("ok", note="a\x1b[31m red\nline"), ModelEntry("ok", name="again"), ModelEntry("x:free")]
    first, second = checked([*bad, *good])
    assert first.id == "ok" and "\x1b" not in first.note and "\n" not in first.note
    assert second == ModelEntry("x:free", free=True)
    assert len(checked([ModelEntry(f"m{n}") for n in range(MOST_MODELS + 9)])) == MOST_MODELS
    with pytest.raises(ModelListError, match="names no model"):
        checked(bad)


def ask(tmp_path: Path, code: str, *, environ: dict[str, str] | None = None, timeout: float = 20) -> str:
    return Asking(str(tmp_path), environ or {}, timeout).run(profile(None), "-c", code, say="hello")


def test_a_cli_that_is_run_is_heard_and_told(tmp_path: Path) -> None:
    assert ask(tmp_path, "import sys; print(sys.stdin.read() + '!')") == "hello!\n"


def test_a_cli_that_fails_is_quoted_without_secrets(tmp_path: Path) -> None:
    code = "import os, sys; sys.stderr.write('first\\nbad key ' + os.environ['TOY_KEY'] + '\\n'); sys.exit(3)"
    with pytest.raises(ModelListError) as caught:
        ask(tmp_path, code, environ={"TOY_KEY": "sk-very-secret"})
    assert str(caught.value) == "toy -c ended with 3: bad key …"


def test_a_cli_that_is_silent_is_ended(tmp_path: Path) -> None:
    with pytest.raises(ModelListError, match=r"toy -c gave no list within 0\.3 s"):
        ask(tmp_path, "import time; time.sleep(60)", timeout=0.3)
