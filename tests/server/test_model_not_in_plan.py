"""A model that a plan doesn't include is refused once: the next task goes elsewhere, until the person says otherwise."""

import pytest
from tests.server.site import SAY, Site

REFUSE = "cat > /dev/null\necho 'Error: the model big is not available on your plan' >&2\nexit 1"


@pytest.fixture
def two(site: Site) -> Site:
    """Two workers: alpha, which comes first and whose plan lacks the model big, and beta."""
    site.worker("alpha", REFUSE, costRank=1, signatures={"modelNotInPlan": ["not available on your plan"]})
    site.worker("beta", SAY, costRank=2)
    assert site.say("strategy", "set-model", "alpha", "big", "--tiers", "high,medium,low").code == 0
    return site


def test_the_next_pick_passes_the_model_over_until_it_is_taken_back(two: Site) -> None:
    first = two.run("--pool", "alpha")
    assert first.code == 1
    assert first.document["failureKind"] == "model-not-in-plan"
    second = two.run()
    assert (second.code, second.document["meta"]["pool"]) == (0, "beta")
    pinned = two.run("--pool", "alpha")
    assert pinned.code == 1
    assert "may not run big: the plan doesn't include it" in pinned.document["why"]
    assert "bullswarm strategy include-model big --pool alpha" in pinned.document["why"]
    (entry,) = two.say("strategy", "show", "--json").document["modelsNotInPlan"]
    assert (entry["pool"], entry["model"]) == ("alpha", "big")
    assert "not available on your plan" in entry["why"]
    assert two.say("strategy", "include-model", "big", "--pool", "alpha").code == 0
    assert two.run("--pool", "alpha").document["failureKind"] == "model-not-in-plan"


def test_another_model_of_the_pool_is_still_run(two: Site) -> None:
    two.run("--pool", "alpha")
    two.worker("alpha", SAY, costRank=1)
    two.say("strategy", "set-rung", "alpha", "medium", "--model", "small")
    found = two.run("--pool", "alpha")
    assert (found.code, found.document["meta"]["model"]) == (0, "small")


def test_a_dry_run_remembers_nothing(two: Site) -> None:
    assert two.say("run", "--lane", "analyze", "--dry-run", "--pool", "alpha", "Explain.").code == 0
    assert two.say("strategy", "show", "--json").document["modelsNotInPlan"] == []
