"""What is asked at the shell and what is asked over MCP gets one answer, and is refused for the same reason."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.server.mcp.calling import Answer, calling
from tests.server.site import SAY, WAIT_FOR_GO, Said, Site

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


PROGRAM: dict[str, Any] = {
    "schemaVersion": "bullswarm.workflow.program.v3",
    "steps": [{"id": "explain", "prompt": "Explain the parser.", "lane": "analyze"}],
}
WRITING: dict[str, Any] = {**PROGRAM, "steps": [{"id": "write", "prompt": "Write the parser.", "lane": "build"}]}


def goal(
    name: str, program: str, *words: str, text: str = "Know the parser", cwd: str = "{project}", **more: Any
) -> Question:
    """Ask for a workflow whose program is in a file; the call returns at once."""
    return Question(
        name,
        ("workflow", "goal", text, "--program", program, "--cwd", cwd, *words),
        "workflow_goal",
        {"goal": text, "program": program, "cwd": cwd, "wait_s": 0, **more},
    )


def programs(site: Site) -> None:
    """Put programs into the root of a site: good ones, and ones that are wrong in one way each."""
    key = json.dumps(PROGRAM)[:-1] + ', "steps": []}'
    for name, text in (
        ("good", json.dumps(PROGRAM)),
        ("writing", json.dumps(WRITING)),
        ("twice", key),
        ("nan", '{"steps": NaN}'),
        ("utf16", json.dumps(PROGRAM)),
        ("empty", "{}"),
    ):
        (site.root / f"{name}.json").write_bytes(text.encode("utf-16" if name == "utf16" else "utf-8"))


BAD_PROGRAMS = [
    (goal("a key twice", "{root}/twice.json"), 'is not JSON: the key "steps" stands twice in one object'),
    (goal("no number", "{root}/nan.json"), "is not JSON: NaN is not a JSON number"),
    (goal("another encoding", "{root}/utf16.json"), "is not UTF-8 (byte 0)"),
    (goal("no file", "{root}/away.json"), "No such file"),
    (goal("a device", "/dev/zero"), "is no regular file"),
    (goal("a goal that is too long", "{root}/good.json", text="g" * 4001), "the goal must have 1 to 4000 characters"),
    (goal("a goal of nothing", "{root}/good.json", text=" "), "the goal must have 1 to 4000 characters"),
    (goal("the whole machine", "{root}/good.json", cwd="/"), "/ is the whole machine, no project"),
]


@pytest.mark.parametrize(
    ("question", "why"), BAD_PROGRAMS, ids=lambda each: str(each) if isinstance(each, Question) else ""
)
async def test_a_workflow_is_refused_for_one_reason(site: Site, question: Question, why: str) -> None:
    machine(site)
    programs(site)
    typed, called = await ask(site, question, root=str(site.root))
    assert typed.code == 2 and called.error
    assert why in reason(typed.err)
    same = [text.replace("--program", "program").replace("--cwd", "cwd") for text in (typed.err, called.text)]
    assert reason(same[0]).split(" · ")[0] == reason(same[1]).split(" · ")[0]
    assert not site.home.database_file.exists(), "nothing was started"


async def test_a_program_that_is_wrong_has_the_same_issues(site: Site) -> None:
    machine(site)
    programs(site)
    typed, called = await ask(site, goal("no steps", "{root}/empty.json", "--json"), root=str(site.root))
    assert (typed.code, called.error) == (2, True)
    assert typed.document["issues"] == called.document["issues"] != []


async def test_reading_in_the_home_folder_is_a_workflow_everywhere(site: Site) -> None:
    machine(site)
    programs(site)
    question = goal(
        "the home folder", "{root}/good.json", "--json", "--foreground", cwd="{home}", wait_s=30, again=True
    )
    typed, called = await ask(site, question, root=str(site.root))
    assert (typed.code, called.error) == (0, False), called.text
    assert called.document["state"] == "completed"


async def test_a_goal_under_way_is_not_started_twice(site: Site) -> None:
    site.worker("alpha", WAIT_FOR_GO)
    programs(site)
    question = goal("a twin", "{root}/good.json")
    first, called = await ask(site, question, root=str(site.root))
    second, _ = await ask(site, question, root=str(site.root))
    assert (first.code, called.error, second.code) == (0, True, 2)
    assert "the same goal is under way in" in called.text and '"again": true' in called.text
    assert reason(second.err).split(" · ")[0] == reason(called.text).split(" · ")[0]
    _, again = await ask(site, goal("again", "{root}/good.json", again=True), root=str(site.root))
    assert not again.error
    site.go()


async def test_a_workflow_is_no_second_writer(site: Site) -> None:
    site.worker("alpha", WAIT_FOR_GO)
    programs(site)
    site.start_run(lane="build")
    site.happened("attempt.launched")
    typed, called = await ask(site, goal("a writer", "{root}/writing.json"), root=str(site.root))
    assert (typed.code, called.error) == (1, True)
    said = "already writes in"
    assert said in typed.err and said in called.text
    assert '"shared_tree": true' in called.text
    shared = goal("a shared tree", "{root}/writing.json", "--shared-tree", "--again", shared_tree=True, again=True)
    typed, called = await ask(site, shared, root=str(site.root))
    assert (typed.code, called.error) == (0, False)
    site.go()


async def test_one_key_is_one_workflow_also_while_it_is_under_way(site: Site) -> None:
    site.worker("alpha", WAIT_FOR_GO)
    programs(site)
    asked = {"goal": "Know", "program": PROGRAM, "cwd": str(site.project), "wait_s": 0, "idempotency_key": "k"}
    async with calling(site) as call:
        answers = [await call("workflow_goal", **asked) for _ in range(2)]
    assert [answer.error for answer in answers] == [False, False]
    assert answers[0].document["runId"] == answers[1].document["runId"]
    site.go()


def act(name: str, words: Sequence[str], **arguments: Any) -> Question:
    """Ask something of what was started."""
    return Question(name, ("runs", *words), "runs", arguments)


def step(name: str, operation: str, node: str, *words: str, **arguments: Any) -> Question:
    """Ask something of a step of the newest run."""
    return act(name, ("step", operation, "last", node, *words), op=operation, run_id="last", node=node, **arguments)


ACTS = [
    (step("a step that is unknown", "rerun", "z"), '"z" is no step'),
    (step("a step that did not fail", "accept", "a", "--reason", "x", reason="x"), "only what failed is accepted"),
    (act("a step that is over", ("continue", "last", "a"), op="continue", run_id="last", node="a"), "is over"),
    (act("a pause at the end", ("pause", "last"), op="pause", run_id="last"), "is over"),
    (act("nothing to retry", ("resume", "last"), op="resume", run_id="last"), "nothing to retry"),
    (step("a rerun past a pool that is turned off", "rerun", "a", "--avoid", "gamma", avoid=["gamma"]), TURNED_OFF),
    (step("a restart on a pool that is turned off", "restart", "a", "--pool", "gamma", pool="gamma"), TURNED_OFF),
    (act("a run that is unknown", ("show", "zzzzzz"), op="show", run_id="zzzzzz"), 'unknown run "zzzzzz"'),
]


@pytest.mark.parametrize(("question", "why"), ACTS, ids=lambda each: str(each) if isinstance(each, Question) else "")
async def test_what_makes_no_sense_of_a_run_is_refused_for_one_reason(site: Site, question: Question, why: str) -> None:
    machine(site)
    program = site.root / "program.json"
    program.write_text(json.dumps({**PROGRAM, "steps": [{**PROGRAM["steps"][0], "id": "a"}]}))
    done = site.say("workflow", "goal", "Know", "--program", str(program), "--cwd", str(site.project), "--foreground")
    assert done.code == 0, done.err
    before = site.events()
    typed, called = await ask(site, question)
    assert typed.code in (1, 2) and called.error
    assert why in reason(typed.err)
    assert reason(typed.err).split(" · ")[0] == reason(called.text).split(" · ")[0]
    assert site.events() == before, "nothing happened"


async def test_a_run_is_listed_and_shown_alike(site: Site) -> None:
    machine(site)
    assert site.run().code == 0
    typed, called = await ask(site, act("the list", ("list", "--json"), op="list"))
    (row,), (short,) = typed.document["runs"], called.document["runs"]
    assert short.items() <= row.items()
    typed, called = await ask(site, act("the newest", ("show", "last", "--json"), op="show", run_id="last"))
    assert {key: typed.document[key] for key in ("runId", "ok", "state", "cwd", "outFile")} == {
        key: called.document[key] for key in ("runId", "ok", "state", "cwd", "outFile")
    }


async def test_a_workflow_that_went_well_is_good_in_either_list(site: Site) -> None:
    machine(site)
    programs(site)
    words = ("--program", str(site.root / "good.json"), "--cwd", str(site.project), "--foreground")
    assert site.say("workflow", "goal", "Know", *words).code == 0
    typed, called = await ask(site, act("the list", ("list", "--json"), op="list"))
    assert [row["ok"] for row in typed.document["runs"]] == [row["ok"] for row in called.document["runs"]] == [True]


async def test_the_pools_are_the_same(site: Site) -> None:
    machine(site)
    typed, called = await ask(site, Question("the pools", ("pools", "--json"), "pools"))
    assert {"alpha", "beta"} < {row["pool"] for row in typed.document["pools"]}
    for whole, slim in zip(typed.document["pools"], called.document["pools"], strict=True):
        same = ("pool", "provider", "state", "enabled")
        assert {key: whole[key] for key in same} == {key: slim[key] for key in same}


async def test_a_label_that_one_surface_sets_the_other_shows(site: Site) -> None:
    machine(site)
    question = Question("a label", ("label", "alpha", "first", "--json"), "label", {"pool": "first"})
    typed, called = await ask(site, question)
    assert typed.document == called.document
    cleared = Question("no label", ("label", "alpha", "--json"), "label", {"pool": "alpha"})
    async with calling(site) as call:
        await call("label", pool="first", clear=True)
    typed, called = await ask(site, cleared)
    assert typed.document == called.document
