"""The reasoning level of a task: the first layer that names one wins; what a CLI doesn't accept goes down, never up."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core.pools import EFFORTS
from bullswarm_core.pools.connector import REASONING_LEVELS
from bullswarm_core.pools.reasoning import Level, clamped, level_of, levels_of
from bullswarm_core.pools.settings import ReasoningLayers

# From the narrowest layer to the widest, each with the argument or the layer of the person's decisions that sets it.
ORDER = ("step", "run", "model", "rung", "pool", "recommended", "tier", "connector")


def asked(set_layers: dict[str, str], *, model: str | None = "m") -> Level:
    """Ask for the level of pool p, tier high, with exactly these layers set."""
    get = set_layers.get

    def tier(name: str) -> dict[Any, str]:
        return {"high": set_layers[name]} if name in set_layers else {}

    layers = ReasoningLayers(
        tiers=tier("tier"),
        pools={"p": tier("pool"), "other": {"high": "max"}},
        models={"p": {"m": tier("model"), "other": {"high": "max"}}},
        recommended={"p": tier("recommended")},
    )
    return level_of(
        "high",
        pool="p",
        model=model,
        layers=layers,
        step=get("step"),
        run_wide=get("run"),
        rung=get("rung"),
        connector=get("connector"),
    )


@pytest.mark.parametrize(
    ("set_layers", "wanted"),
    [
        ({}, Level(None, "none")),
        ({"connector": "max"}, Level("max", "connector")),
        ({"tier": "low", "connector": "max"}, Level("low", "tier")),
        ({"recommended": "minimal", "tier": "low"}, Level("minimal", "recommended")),
        ({"pool": "medium", "recommended": "max"}, Level("medium", "pool")),
        ({"rung": "high", "pool": "medium"}, Level("high", "model")),
        ({"model": "low", "rung": "high"}, Level("low", "model")),
        ({"run": "minimal", "model": "low"}, Level("minimal", "run")),
        ({"step": "default", "run": "minimal"}, Level("default", "step")),
        ({"pool": "default", "connector": "max"}, Level("default", "pool")),
    ],
)
def test_the_first_layer_that_names_a_level_wins(set_layers: dict[str, str], wanted: Level) -> None:
    assert asked(set_layers) == wanted


def test_a_level_of_one_model_says_nothing_of_the_default_model() -> None:
    assert asked({"model": "low", "connector": "high"}, model=None) == Level("high", "connector")


LEVELS = st.sampled_from((*REASONING_LEVELS, "default"))


@given(st.dictionaries(st.sampled_from(ORDER), LEVELS))
def test_it_is_always_the_narrowest_layer_and_no_other(set_layers: dict[str, str]) -> None:
    found = asked(set_layers)
    first = next((name for name in ORDER if name in set_layers), None)
    assert found.level == (set_layers[first] if first else None)
    assert found.layer == {"rung": "model", None: "none"}.get(first, first)


@given(st.dictionaries(st.sampled_from(ORDER), LEVELS, min_size=1), LEVELS)
def test_wider_layers_change_nothing_below_a_set_one(set_layers: dict[str, str], other: str) -> None:
    first = next(name for name in ORDER if name in set_layers)
    wider = dict.fromkeys(ORDER[ORDER.index(first) + 1 :], other)
    assert asked({**set_layers, **wider}) == asked(set_layers)


def test_levels_of_a_pool_by_tier_and_by_model() -> None:
    layers = ReasoningLayers(
        tiers={"medium": "low"}, pools={"p": {"high": "max"}}, models={"p": {"m": {"low": "none"}}, "q": {"n": {}}}
    )
    assert levels_of("p", layers=layers, connector={"high": "high", "low": "minimal"}) == (
        {"high": "max", "medium": "low", "low": "minimal"},
        {"m": {"low": "none"}},
    )


@pytest.mark.parametrize(
    ("level", "accepted", "wanted"),
    [
        ("high", ("low", "medium", "high"), "high"),
        ("max", ("low", "medium", "high"), "high"),
        ("xhigh", ("high", "low"), "high"),
        ("medium", ("low", "xhigh"), "low"),
        ("minimal", ("low", "medium"), "low"),
        ("none", ("medium", "high"), "medium"),
        ("hyper", ("hyper", "low"), "hyper"),
        ("hyper", ("low",), None),
        ("low", ("hyper",), None),
        ("low", (), None),
    ],
)
def test_a_level_is_clamped_down_and_below_the_minimum_to_the_lowest(
    level: str, accepted: tuple[str, ...], wanted: str | None
) -> None:
    assert clamped(level, accepted) == wanted


@given(st.sampled_from(REASONING_LEVELS), st.lists(st.sampled_from(REASONING_LEVELS), min_size=1, unique=True))
def test_a_clamped_level_is_accepted_and_never_above_unless_all_are(level: str, accepted: list[str]) -> None:
    rank = REASONING_LEVELS.index
    found = clamped(level, accepted)
    assert found in accepted
    if any(rank(each) <= rank(level) for each in accepted):
        assert rank(found) == max(rank(each) for each in accepted if rank(each) <= rank(level))
    else:
        assert rank(found) == min(map(rank, accepted))


def test_every_tier_is_known() -> None:
    assert set(levels_of("p", layers=ReasoningLayers(tiers=dict.fromkeys(EFFORTS, "low")), connector={})[0]) == set(
        EFFORTS
    )
