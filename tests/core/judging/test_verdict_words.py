"""The words of a verdict: they name the pool and the place, and one is one."""

from dataclasses import replace

import pytest
from tests.core.judging.cases import GOOD, NOTHING, verdict

from bullswarm_core.streams.facts import Denial, ExitFacts
from bullswarm_core.trees.snapshot import DeliverableFacts


def test_a_denial_names_the_pool_to_open_and_what_was_refused_first() -> None:
    denials = (Denial("Bash", "no"), Denial("Write", "no", "/etc/hosts\x1b[2J"), Denial("Read", "no", "/etc/passwd"))
    found = verdict("build", deliverable=NOTHING, stream=replace(GOOD, denials=denials), pool="codex:work")
    assert found.why == (
        "denied: Bash, Write, Read (3 refusals; the first: Write /etc/hosts) and no file was changed"
        " · `bullswarm strategy set-provider codex:work --sandbox full` allows more"
    )
    alone = verdict("build", deliverable=NOTHING, stream=replace(GOOD, denials=(Denial("Bash"),)))
    assert alone.why.startswith("denied: Bash (1 refusal) and no file was changed · ") and "<" not in alone.why
    long = verdict("build", deliverable=NOTHING, stream=replace(GOOD, denials=(Denial("Bash", "", "x" * 9000),)))
    assert len(long.why) < 400


@pytest.mark.parametrize(("number", "words"), [(1, "1 tool call was refused"), (2, "2 tool calls were refused")])
def test_one_is_one(number: int, words: str) -> None:
    denials = tuple(Denial("Write", str(place)) for place in range(number))
    ended = ExitFacts("exited", exit_code=0, leftovers_killed=number, dropped_bytes=number)
    made = DeliverableFacts(modified=tuple("ab"[:number]), is_git=True, attribution="shared", unattributed=number)
    found = verdict("analyze", exit=ended, deliverable=made, stream=replace(GOOD, answer="x" * number, denials=denials))
    said = " | ".join((found.why, *(note.text for note in found.notes)))
    assert words in said and f"answered in {number} character" in said
    plural = {"tool calls", "characters", "processes", "bytes", "files", "things", " were "}
    assert all((word in said) is (number == 2) for word in plural), said
