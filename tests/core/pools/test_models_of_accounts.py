"""What one account's plan lacks is another matter for another account of the same CLI."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.core.dispatch.test_assemble_models import CODEX, NOW, PROFILE

from bullswarm_core.dispatch.assemble import assemble_pools, routing_context
from bullswarm_core.pools import Effort
from bullswarm_core.pools.settings import RungChoice, Settings
from bullswarm_core.quota.refusals import load_plan_refusals, note_plan_refusal
from bullswarm_core.routing import Request, decide
from bullswarm_core.store.home import Home

WORK = replace(PROFILE, id="codex:work")
BIG: dict[Effort, RungChoice] = {"high": RungChoice("big")}


def test_a_model_that_one_account_lacks_is_run_on_the_other(tmp_path: Path) -> None:
    home, settings = Home(tmp_path / "home"), Settings(rungs={"codex": BIG, "codex:work": BIG})
    assert WORK.connector is CODEX
    for lacking, other in (("codex", "codex:work"), ("codex:work", "codex")):
        note_plan_refusal(home, lacking, "big", "not supported with this plan", now=NOW)
        refusals = {lacking: load_plan_refusals(home)[lacking]}
        pools = assemble_pools([PROFILE, WORK], settings, now=NOW, plan_refusals=refusals)
        decision = decide(Request("build", effort="high"), pools, now=NOW, context=routing_context(settings))
        assert (decision.pool, decision.rung and decision.rung.model) == (other, "big")
        assert [entry.pool for entry in decision.excluded] == [lacking]
    assert set(load_plan_refusals(home)) == {"codex", "codex:work"}
