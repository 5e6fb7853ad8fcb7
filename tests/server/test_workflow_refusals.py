"""`bullswarm workflow` with what can't be done: each is named, and nothing is started or changed."""

from __future__ import annotations

import pytest
from tests.core.runs.journals import document
from tests.server.site import SAY, Site
from tests.server.workflow_site import GATED, actors, assert_taken, goal, printed_commands, program_file


@pytest.fixture(autouse=True)
def two_pools(site: Site) -> None:
    actors(site)


@pytest.mark.parametrize(
    "words",
    [
        ("goal", "g", "--program", "missing.json"),
        ("goal", "", "--program", "PROGRAM"),
        ("goal", "x" * 5000, "--program", "PROGRAM"),
        ("goal", "g", "--program", "PROGRAM", "--cwd", "/no/such/folder"),
        ("goal", "g", "--program", "PROGRAM", "--worker-pool", "nobody"),
        ("goal", "g", "--program", "PROGRAM", "--concurrency", "0"),
        ("goal", "g", "--program", "PROGRAM", "--retry-attempts", "4"),
        ("goal", "g", "--program", "PROGRAM", "--isolation", "none"),
        ("goal", "g", "--program", "PROGRAM", "--worker-reasoning", "huge"),
        ("goal", "g", "--program", "PROGRAM", "--foreground", "--watch"),
        ("goal", "g", "--program", "/dev/zero"),
        ("goal", "g", "--program", "."),
        ("plan", "validate"),
        ("plan",),
        (),
        ("step", "rerun", "last"),
        ("step", "accept", "last", "a"),
        ("continue", "last"),
        ("add", "last"),
        ("add", "last", "--steps", "x", "--from-answer", "y"),
        ("steer", "last"),
        ("resume", "nothing"),
        ("dance",),
    ],
)
def test_a_wrong_call_ends_with_2_and_nothing_is_started(site: Site, words: tuple[str, ...]) -> None:
    file = program_file(site, document({"id": "a"}))
    said = site.say("workflow", *(str(file) if word == "PROGRAM" else word for word in words))
    assert (said.code, said.out) == (2, "") and said.err
    assert not site.home.database_file.exists()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "\ufeff{}", '{"a": NaN}', '{"steps": [], "steps": []}', "[" * 100_000, "\x00"]
)
def test_what_is_no_program_is_named(site: Site, text: str) -> None:
    file = site.root / "program.json"
    file.write_text(text, encoding="utf-8")
    for said in (
        site.say("workflow", "goal", "g", "--program", str(file)),
        site.say("workflow", "plan", "validate", "--program", str(file)),
    ):
        assert (said.code, said.out) == (2, "") and said.err and "Traceback" not in said.err
    file.write_bytes(b"\xff\xfe{}")
    assert "not UTF-8" in site.say("workflow", "plan", "validate", "--program", str(file)).err


def test_a_number_without_end_is_named_in_our_words(site: Site) -> None:
    file = site.root / "program.json"
    file.write_text('{"steps": [{"id": "a", "prompt": "x", "timeBox": ' + "9" * 5000 + "}]}")
    said = site.say("workflow", "plan", "validate", "--program", str(file))
    assert said.code == 2 and "a number has 5000 digits" in said.err and "sys." not in said.err


def test_every_issue_is_told_and_nothing_is_started(site: Site) -> None:
    program = {"schemaVersion": "x", "steps": [{"id": "A"}, {"id": "b", "prompt": "p", "dependsOn": ["c"]}], "odd": 1}
    said = goal(site, program, "--json")
    assert said.code == 2 and said.document["error"] == "invalid-program" and len(said.document["issues"]) >= 4
    told = goal(site, program)
    assert all(issue in told.err for issue in said.document["issues"]) and not site.home.database_file.exists()
    for command in printed_commands(said.out, told.err):
        assert_taken(command)


def test_wishes_that_make_no_sense_change_nothing(site: Site) -> None:
    goal(site, document({"id": "a", "prompt": "FAIL"}, {"id": "b", "dependsOn": ["a"]}), "--foreground")
    before = site.newest_events()
    for words in (
        ("continue", "last", "a"),
        ("continue", "last", "zzz"),
        ("pause", "last"),
        ("steer", "last", "--message", " "),
        ("step", "rerun", "last", "b"),
        ("step", "rerun", "last", "zzz"),
        ("step", "rerun", "last", "a", "--avoid", "nobody"),
        ("step", "accept", "last", "b", "--reason", "x"),
        ("step", "accept", "last", "a", "--reason", "two\nlines"),
        ("step", "restart", "last", "a"),
        ("step", "restart", "last", "a", "--pool", "nobody"),
    ):
        said = site.say("workflow", *words)
        assert (said.code, said.out) == (2, "") and said.err, words
        for command in printed_commands(said.err):
            assert_taken(command)
    assert site.newest_events() == before


@pytest.mark.parametrize("prompt", ["x\ud800", "x" * (8 * 1024 * 1024 + 1)], ids=["no text", "too large"])
def test_a_step_that_no_kernel_could_start_is_not_added(site: Site, prompt: str) -> None:
    site.worker("one", SAY)
    goal(site, document({"id": "a"}), "--foreground")
    before = site.newest_events()
    part = program_file(site, {"steps": [{"id": "b", "prompt": prompt}]}, "part.json")
    said = site.say("workflow", "add", "last", "--steps", str(part))
    assert said.code == 2 and "steps[1].prompt" in said.err
    assert site.newest_events() == before


def test_a_step_that_waits_is_neither_restarted_nor_sent_to_a_rerun(site: Site) -> None:
    actors(site)
    goal(site, GATED, "--foreground")
    before = site.newest_events()
    for words in (("step", "restart", "last", "b"), ("steer", "last", "--message", "x\udcff")):
        said = site.say("workflow", *words)
        assert (said.code, said.out) == (2, "") and said.err and "step rerun" not in said.err
    assert site.newest_events() == before
