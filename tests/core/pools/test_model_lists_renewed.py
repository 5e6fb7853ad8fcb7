"""What a CLI offers now is the list: nothing of an older one is mixed in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

from bullswarm_core.pools.connector import Connector, PoolProfile
from bullswarm_core.pools.model_catalog import ModelEntry, ModelList, ask_models, keep_model_lists, load_model_lists
from bullswarm_core.store.home import Home

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
OLD = ModelList((ModelEntry("gone"), ModelEntry("stays")), NOW, None, NOW)


def test_a_live_list_takes_the_place_of_the_older_one_whole(own_home: object) -> None:
    home = Home()
    home.ensure()
    keep_model_lists(home, {"mine": OLD, "other": OLD})
    hooks = SimpleNamespace(models=lambda profile, asking: (ModelEntry("stays"), ModelEntry("new")))
    pool = PoolProfile("mine", Connector("mine", "Mine", "mine"), "/bin/true", provider=hooks)
    later = NOW + timedelta(days=2)
    live = ask_models(pool, {}, load_model_lists(home)["mine"], now=later)
    assert [entry.id for entry in live.models] == ["stays", "new"] and live.asked_at == later
    keep_model_lists(home, {"mine": live})
    kept = load_model_lists(home)
    assert [entry.id for entry in kept["mine"].models] == ["stays", "new"]
    assert [entry.id for entry in kept["other"].models] == ["gone", "stays"]
