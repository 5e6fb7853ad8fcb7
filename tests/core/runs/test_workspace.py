"""Which folder a run works in, and when another one in its place stops it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.runs.journals import Written, document
from tests.core.trees.snapshots import git

from bullswarm_core.errors import RunConflictError
from bullswarm_core.runs.attempt_result import JudgementRecord, LaunchRecord, MetaRecord
from bullswarm_core.runs.events import AttemptFinished, AttemptLaunched
from bullswarm_core.runs.workspace import Workspace, left_in, read_workspace, refuse_another, replaced, workspace_of
from bullswarm_core.wire import to_wire

PLAIN, REPOSITORY = Workspace((1, 5), boot="x"), Workspace((1, 5), (1, 7), boot="x")
numbers = st.one_of(st.just(()), st.tuples(st.integers(0, 3), st.integers(1, 3)))
workspaces = st.builds(Workspace, st.tuples(st.integers(0, 3), st.integers(1, 3)), numbers, st.sampled_from(["x", "y"]))


def test_a_folder_is_known_by_itself_and_its_repository(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    plain = workspace_of(str(place))
    assert plain is not None and plain.repository == () and plain == workspace_of(str(place))
    git(place, "init", "-q")
    (place / "sub").mkdir()
    made, below = workspace_of(str(place)), workspace_of(str(place / "sub"))
    assert made is not None and below is not None
    assert made.folder == plain.folder and made.repository == below.repository != ()
    place.rename(tmp_path / "moved")
    assert workspace_of(str(place)) is None
    assert workspace_of(str(tmp_path / "moved")) == made
    assert read_workspace(to_wire(made)) == made and read_workspace(None) is None
    assert read_workspace({"folder": None}) is not None and read_workspace({}) is None


@pytest.mark.parametrize(
    ("known", "now", "said"),
    [
        ([PLAIN], PLAIN, None),
        ([], PLAIN, None),
        ([PLAIN], Workspace((1, 6), boot="x"), "another folder is in its place"),
        ([PLAIN], Workspace((2, 5), boot="x"), "another folder is in its place"),
        # After a reboot a device may have another number.
        ([PLAIN], Workspace((2, 5), boot="y"), None),
        ([PLAIN], REPOSITORY, "it became a git repository"),
        ([REPOSITORY], PLAIN, "it is no git repository any more"),
        ([REPOSITORY], Workspace((1, 5), (1, 8), boot="x"), "another git repository is in it"),
        ([PLAIN, REPOSITORY], PLAIN, None),
        ([PLAIN, REPOSITORY], REPOSITORY, None),
    ],
)
def test_what_is_another_workspace(known: list[Workspace], now: Workspace, said: str | None) -> None:
    assert replaced(known, now, writer_at_work=False) == said


@given(known=st.lists(workspaces, max_size=4), now=workspaces, busy=st.booleans())
def test_a_workspace_that_was_seen_is_never_another_and_a_writer_at_work_only_excuses(
    known: list[Workspace], now: Workspace, busy: bool
) -> None:
    assert replaced([*known, now], now, writer_at_work=busy) is None
    if replaced(known, now, writer_at_work=False) is None:
        assert replaced(known, now, writer_at_work=True) is None


def begun(*steps: str, workspace: Workspace | None = PLAIN) -> Written:
    written = Written(document(*({"id": name} for name in steps)))
    created = written.state.created
    object.__setattr__(created, "workspace", to_wire(workspace))
    return written


def launch(written: Written, step: str, workspace: Workspace, *, lane: str) -> int:
    ordinal = written.pick(step, lane=lane)
    written.write(
        AttemptLaunched(
            step=step, ordinal=ordinal, keeper={}, launch=LaunchRecord.from_wire({"workspace": to_wire(workspace)})
        )
    )
    return ordinal


def finish(written: Written, step: str, ordinal: int, workspace: Workspace | None) -> None:
    written.write(
        AttemptFinished(
            step=step, ordinal=ordinal, ok=True, why="done", failure_kind=None, judgement=JudgementRecord(),
            meta=MetaRecord(),
            workspace=to_wire(workspace),
        )
    )  # fmt: skip


def test_a_repository_that_a_step_made_is_the_runs_and_one_that_came_between_is_not() -> None:
    written = begun("a", "b")
    finish(written, "a", launch(written, "a", PLAIN, lane="build"), PLAIN)
    with pytest.raises(RunConflictError, match=r"^/project is not what it was .* it became a git repository"):
        refuse_another(written.state, "b", REPOSITORY)
    refuse_another(written.state, "b", PLAIN)
    finish(written, "a", launch(written, "a", PLAIN, lane="build"), REPOSITORY)
    refuse_another(written.state, "b", REPOSITORY)


@pytest.mark.parametrize(("lane", "refused"), [("build", False), ("analyze", True)])
def test_a_repository_that_comes_while_a_writer_is_at_work_may_be_its(lane: str, refused: bool) -> None:
    written = begun("a", "b")
    launch(written, "a", PLAIN, lane=lane)
    if refused:
        with pytest.raises(RunConflictError):
            refuse_another(written.state, "b", REPOSITORY)
    else:
        refuse_another(written.state, "b", REPOSITORY)
    with pytest.raises(RunConflictError, match="another folder"):
        refuse_another(written.state, "b", Workspace((1, 6), boot="x"))


def test_a_run_of_which_no_folder_is_on_record_goes_on() -> None:
    refuse_another(begun("a", workspace=None).state, "a", PLAIN)
    refuse_another(begun("a").state, "a", None)


def test_an_attempt_that_ends_in_another_folder_leaves_none() -> None:
    assert left_in(PLAIN, REPOSITORY) == REPOSITORY
    assert left_in(PLAIN, Workspace((1, 6), boot="x")) is None
    assert left_in(None, PLAIN) is None and left_in(PLAIN, None) is None
