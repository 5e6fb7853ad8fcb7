"""What a step of a program has to leave behind, by the type of its deliverable."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.judging.cases import CHANGED, COMMITTED, DENIED, GOOD, NOTHING, verdict

from bullswarm_core.answers.answer import AnswerCheck, AnswerProblem
from bullswarm_core.judging.expected import NamedFile, Wanted, is_there, missing_files, missing_words
from bullswarm_core.pools import Lane
from bullswarm_core.program.model import DeliverableType
from bullswarm_core.streams.facts import StreamFacts
from bullswarm_core.trees.snapshot import DeliverableFacts

ABSENT = NamedFile("a.md")
OLD = NamedFile("a.md", exists=True)
AGAIN = NamedFile("a.md", exists=True, written=True)
NEW = NamedFile("a.md", exists=True, changed=True, written=True)
GONE = NamedFile("a.md", changed=True)
OTHER = NamedFile("b.md", exists=True)
BAD = AnswerCheck(False, "final-reply", None, 3, (AnswerProblem("#", "it is wrong"),))
FINE = AnswerCheck(True, "final-reply", None, 3)
SILENT = StreamFacts(answer=" \n", answer_source="terminal", terminal=True)
ASKS = StreamFacts(answer="Which file should I change?", answer_source="terminal", terminal=True)


@pytest.mark.parametrize(
    ("kind", "files", "made", "words"),
    [
        ("files", (), CHANGED, None),
        ("files", (), COMMITTED, None),
        ("files", (NEW,), NOTHING, None),
        ("files", (GONE,), NOTHING, None),
        ("files", (OLD, NEW), NOTHING, None),
        ("files", (OLD,), COMMITTED, None),
        ("files", (OLD,), CHANGED, "a.md did not change"),
        ("files", (AGAIN,), CHANGED, "a.md did not change"),
        ("files", (ABSENT, OTHER), CHANGED, "none of the step's files changed: a.md, b.md"),
        ("data", (NEW, OTHER), NOTHING, None),
        ("data", (AGAIN,), NOTHING, None),
        ("media", (AGAIN,), None, None),
        ("data", (ABSENT, NEW), CHANGED, "a.md is missing"),
        ("media", (ABSENT, GONE), COMMITTED, "a.md, a.md are missing"),
        ("data", (OLD,), CHANGED, "a.md was there already and not written during the step"),
        ("data", (OLD, OTHER), COMMITTED, "a.md, b.md were there already and not written during the step"),
        ("report", (ABSENT,), NOTHING, None),
        ("outward", (), None, None),
        ("none", (), None, None),
    ],
)
def test_what_is_missing(
    kind: DeliverableType, files: tuple[NamedFile, ...], made: DeliverableFacts | None, words: str | None
) -> None:
    wanted = Wanted(kind, files)
    assert missing_words(wanted, made) == words and bool(missing_files(wanted, made)) == (words is not None)


@pytest.mark.parametrize(
    ("lane", "wanted", "parts", "kind", "why"),
    [
        ("build", Wanted("files"), {"deliverable": CHANGED}, None, "1 file changed"),
        ("build", Wanted("files"), {"deliverable": NOTHING}, "not-produced", "not produced: no file was changed"),
        ("build", Wanted("files", (OLD,)), {"deliverable": CHANGED}, "not-produced", "not produced: a.md did not change"),
        ("build", Wanted("files", (NEW,)), {"deliverable": NOTHING}, None, "1 file written"),
        ("build", Wanted("files", (NEW,)), {"deliverable": None}, "not-produced", "not produced: the working tree"),
        ("build", Wanted("files", (NEW,)), {"deliverable": DeliverableFacts(gone=True)}, "not-produced", "not produced: the f"),
        ("build", Wanted("data", (AGAIN,)), {"deliverable": NOTHING}, None, "1 file written"),
        ("build", Wanted("data", (ABSENT,)), {"deliverable": CHANGED}, "not-produced", "not produced: a.md is missing"),
        (
            "build", Wanted("data", (ABSENT,)), {"deliverable": CHANGED, "stream": ASKS}, "needs-input",
            "needs input, and a.md is missing: Which file should I change?",
        ),
        (
            "build", Wanted("files", (NEW,), carried=True), {"deliverable": CHANGED}, None,
            "1 file changed, done by an earlier attempt of the step",
        ),
        (
            "build", Wanted("files", (OLD,)), {"deliverable": CHANGED, "stream": StreamFacts(
                answer=GOOD.answer, answer_source="terminal", terminal=True, denials=DENIED, denial_count=3
            )}, "denied", "denied: Write, Bash (3 refusals) and a.md did not change",
        ),
        ("build", Wanted("files"), {"deliverable": CHANGED, "answer": BAD}, "schema", "the answer does not match"),
        ("analyze", Wanted("report"), {}, None, "answered in"),
        ("analyze", Wanted("report"), {"stream": SILENT}, "not-produced", "not produced: the final reply is empty"),
        ("analyze", Wanted("report"), {"stream": SILENT, "free": True}, "provider", "empty output"),
        ("analyze", Wanted("report"), {"stream": SILENT, "answer": FINE}, "not-produced", "not produced: the final reply"),
        ("analyze", Wanted("report"), {"answer": BAD}, "schema", "the answer does not match"),
        ("analyze", Wanted("none"), {"stream": SILENT, "answer": FINE}, None, "answer checked"),
        ("analyze", Wanted("none"), {"answer": BAD}, "schema", "the answer does not match"),
        ("analyze", Wanted("none"), {"stream": ASKS, "answer": BAD}, "needs-input", "needs input"),
        ("analyze", Wanted("outward"), {"stream": SILENT}, None, "ended well; what an outward step does is not checked"),
        ("analyze", Wanted("outward"), {"stream": ASKS}, None, "answered in"),
        ("analyze", Wanted("outward"), {"code": 1, "stream": SILENT}, "process", "exit 1"),
    ],
)  # fmt: skip
def test_the_verdict_on_a_step(lane: Lane, wanted: Wanted, parts: dict[str, Any], kind: str | None, why: str) -> None:
    found = verdict(lane, wanted=wanted, **parts)
    assert (found.failure_kind, found.ok) == (kind, kind is None) and found.why.startswith(why)


files = st.builds(NamedFile, st.sampled_from("abcdefgh"), st.booleans(), st.booleans(), st.booleans())
facts = st.sampled_from([None, CHANGED, COMMITTED, NOTHING, DeliverableFacts(gone=True)])


@given(kind=st.sampled_from(["files", "data", "media"]), named=st.lists(files, min_size=1, max_size=8), made=facts)
def test_work_is_there_exactly_where_nothing_named_is_missing(
    kind: DeliverableType, named: list[NamedFile], made: DeliverableFacts | None
) -> None:
    wanted = Wanted(kind, tuple(named))
    missing = missing_files(wanted, made)
    assert is_there(wanted, made) == (not missing and not (made is not None and made.gone))
    assert set(missing) <= {file.path for file in named} and (missing_words(wanted, made) is None) == (not missing)
    if kind != "files" and not missing:
        assert all(file.exists for file in named) and any(file.written for file in named)


@given(made=facts, named=st.lists(files, max_size=3))
def test_without_a_step_nothing_but_a_change_counts(made: DeliverableFacts | None, named: list[NamedFile]) -> None:
    assert is_there(None, made) == (made is not None and made.produced)
    assert is_there(Wanted("files"), made) == is_there(None, made)
