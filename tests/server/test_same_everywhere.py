"""What is asked at the shell and what is asked over MCP gets one answer, and is refused for the same reason."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.server.mcp.calling import Answer, calling
from tests.server.site import SAY, Said, Site

# The same argument by its names at the two surfaces.
_NAMES = {"--add-dir": "cwd", "--independent-of": "independent_of"}


@dataclass(frozen=True)
class Question:
    """One use case, as a command and as a call; ``{home}``, ``{project}`` and ``{run}`` are filled in."""

    name: str
    words: Sequence[str]
    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


def filled(value: Any, places: Mapping[str, str]) -> Any:
    """Return the value with every name of a place replaced."""
    if isinstance(value, str):
        for name, place in places.items():
            value = value.replace(f"{{{name}}}", place)
        return value
    if isinstance(value, Mapping):
        return {key: filled(item, places) for key, item in value.items()}
    return [filled(item, places) for item in value] if isinstance(value, (list, tuple)) else value


async def ask(site: Site, question: Question, **places: str) -> tuple[Said, Answer]:
    """Ask at both surfaces, in the folder of the project at the shell."""
    known = {"home": str(site.root / "home"), "project": str(site.project), **places}
    with contextlib.chdir(site.project):
        typed = site.say(*filled(question.words, known))
    async with calling(site) as call:
        return typed, await call(question.tool, **filled(question.arguments, known))


def reason(text: str) -> str:
    """Return what a refusal says is wrong: neither who says it, nor the way out, nor a surface's name of an argument."""
    line = text.strip().splitlines()[0].removeprefix("bullswarm: ")
    for name, other in _NAMES.items():
        line = line.replace(name, other)
    return line


def route(name: str, *words: str, cwd: str = "{project}", **arguments: Any) -> Question:
    """Ask which pool a task would get."""
    return Question(
        name,
        ("route", "--json", "--lane", "analyze", "--add-dir", cwd, *words),
        "route",
        {"lane": "analyze", "cwd": cwd, **arguments},
    )


def run(name: str, *words: str, lane: str = "analyze", cwd: str = "{project}", **arguments: Any) -> Question:
    """Ask for a task to be done."""
    return Question(
        name,
        ("run", "--json", "--lane", lane, "--add-dir", cwd, *words, "Explain the parser."),
        "run",
        {"lane": lane, "cwd": cwd, "prompt": "Explain the parser.", **arguments},
    )


TURNED_OFF = "gamma is turned off: bullswarm provider enable gamma"

REFUSED = [
    (run("a folder that is away", cwd="/nowhere"), "cwd /nowhere does not exist"),
    (run("the whole machine", cwd="/"), "/ is the whole machine, no project"),
    (run("an excluded model", "--model", "old", model="old"), "you excluded the model old"),
    (run("a pool that is unknown", "--pool", "aplha", pool="aplha"), 'unknown pool "aplha"'),
    (run("a pool that is turned off", "--pool", "gamma", pool="gamma"), TURNED_OFF),
    (run("a provider that is turned off", "--use-provider", "gamma", use_providers=["gamma"]), TURNED_OFF),
    (
        run("work that nobody did", "--independent-of", "zzzz", independent_of=["zzzz"]),
        'independent_of "zzzz": nothing has been run yet',
    ),
    (route("a route that avoids an unknown pool", "--avoid-pool", "nobody", avoid_pools=["nobody"]), "nobody"),
    (
        Question("the label of a pool that is turned off", ("pools", "label", "gamma"), "label", {"pool": "gamma"}),
        TURNED_OFF,
    ),
    (
        Question(
            "a label for a pool that is turned off", ("label", "gamma", "g"), "label", {"pool": "gamma", "label": "g"}
        ),
        TURNED_OFF,
    ),
    (
        Question(
            "no label for a pool that is turned off",
            ("label", "gamma", "--clear"),
            "label",
            {"pool": "gamma", "clear": True},
        ),
        TURNED_OFF,
    ),
]


def machine(site: Site) -> None:
    """Give a site two pools, a provider that is turned off, and a model that is excluded."""
    for name in ("alpha", "beta", "gamma"):
        site.worker(name, SAY)
    assert site.say("provider", "disable", "gamma").code == 0
    assert site.say("strategy", "exclude-model", "old").code == 0


@pytest.mark.parametrize(
    ("question", "why"), REFUSED, ids=lambda value: str(value) if isinstance(value, Question) else ""
)
async def test_a_refusal_has_one_reason(site: Site, question: Question, why: str) -> None:
    machine(site)
    typed, called = await ask(site, question)
    assert typed.code == 2 and called.error
    assert reason(typed.err) == reason(called.text)
    assert why in reason(typed.err)
    assert not site.home.database_file.exists(), "nothing was started"


async def test_reading_in_the_home_folder_is_a_task_everywhere(site: Site) -> None:
    machine(site)
    question = route("the home folder", cwd="{home}")
    typed, called = await ask(site, question)
    assert (typed.code, called.error) == (0, False)
    assert typed.document["pool"] == called.document["pool"] == "alpha"


@pytest.mark.parametrize("lane", ["build", "chore"])
async def test_writing_in_the_home_folder_takes_a_person_who_names_it(site: Site, lane: str) -> None:
    machine(site)
    home = site.root / "home"
    with contextlib.chdir(home):
        typed = site.say("run", "--json", "--lane", lane, "Tidy up.")
    async with calling(site) as call:
        called = await call("run", lane=lane, cwd=str(home), prompt="Tidy up.")
    assert (typed.code, called.error) == (2, True)
    assert f"{home.resolve()} is your home folder, no project" in reason(typed.err)
    assert reason(typed.err) == reason(called.text)


@pytest.mark.parametrize(
    "question",
    [
        route("a route"),
        route("a route past a pool", "--avoid-pool", "alpha", avoid_pools=["alpha"]),
        route("a route to a provider", "--use-provider", "beta", use_providers=["beta"]),
        route("a route with an effort", "--effort", "low", effort="low"),
        route("a route that no pool can take", "--capability", "juggling", capabilities=["juggling"]),
    ],
    ids=str,
)
async def test_a_pick_is_the_same(site: Site, question: Question) -> None:
    machine(site)
    typed, called = await ask(site, question)
    same = ("schemaVersion", "lane", "effort", "cwd", "pool", "model", "failureKind", "reason")
    for key in same:
        assert typed.document.get(key) == called.document.get(key), key
    assert {row["pool"] for row in typed.document["excluded"]} == {
        row["pool"] for row in called.document.get("excluded", ())
    }
