"""Where a typed answer is looked for, and what comes of what is found."""

import os
import socket
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core.answers.answer import (
    MOST_ANSWER_BYTES,
    AnswerNotCheckedError,
    AnswerProblem,
    Found,
    in_file,
    in_output,
    in_reply,
    judge_answer,
    text_of,
    validator,
)
from bullswarm_core.answers.strict_json import read_value
from bullswarm_core.process.child import run_child

SCHEMA = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
CHECK = validator(run_child, environ=os.environ)
NOBODY = 65534


def takes_all(schema: Mapping[str, Any], value: Any) -> tuple[AnswerProblem, ...]:
    return ()


def refuses(schema: Mapping[str, Any], value: Any) -> tuple[AnswerProblem, ...]:
    return (AnswerProblem("#/ok", "is wrong"),)


def refused(kind: str) -> Found:
    return Found("answer-file", problem=f"answer.json is {kind}, and has to be a regular file")


# --- the answer file


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    assert not in_file(path).given
    assert not in_file(tmp_path / "none" / "answer.json").given
    path.write_bytes(b'\xef\xbb\xbf{"ok": true}\n')
    assert in_file(path) == Found("answer-file", '{"ok": true}\n', 16)
    path.write_bytes(b" " * MOST_ANSWER_BYTES)
    assert in_file(path).text is not None


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"x" * (MOST_ANSWER_BYTES + 1), "it has 262145 bytes and may have 262144"),
        (b"\xff\xfe1\x00", "it is not UTF-8 (byte 0)"),
    ],
)
def test_a_file_that_is_no_text_of_its_size_is_told(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "answer.json"
    path.write_bytes(data)
    found = in_file(path)
    assert (found.text, found.problem, found.size) == (None, words, len(data))


def test_a_sparse_file_of_a_terabyte_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    path.touch()
    os.truncate(path, 1 << 40)
    assert in_file(path).problem == f"it has {1 << 40} bytes and may have 262144"


def test_what_is_no_regular_file_is_never_opened(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text('{"ok": true}')
    path = tmp_path / "answer.json"
    path.symlink_to(secret)
    assert in_file(path) == refused("a symbolic link")
    path.unlink()
    os.mkfifo(path)
    assert in_file(path) == refused("a FIFO")
    path.unlink()
    path.mkdir()
    assert in_file(path) == refused("a folder")
    path.rmdir()
    path.symlink_to("/dev/zero")
    assert "a symbolic link" in (in_file(path).problem or "")
    assert "a device or a socket" in (in_file(Path("/dev/zero")).problem or "")


def test_a_socket_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("answer.json")
        assert "a device or a socket" in (in_file(tmp_path / "answer.json").problem or "")


def test_a_folder_behind_a_link_holds_no_answer(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (real / "answer.json").write_text("1")
    (tmp_path / "link").symlink_to(real)
    assert not in_file(tmp_path / "link" / "answer.json").given


@pytest.fixture
def anybody() -> Iterator[Path]:
    """A folder of somebody who is not root, who reads every file; below it whoever made it may do as it likes."""
    root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        if root:
            os.chown(folder, NOBODY, -1)
            os.seteuid(NOBODY)
        try:
            yield folder
        finally:
            for path in (folder, *folder.glob("*")):
                path.chmod(0o700)
            if root:
                os.seteuid(0)


def test_a_file_that_may_not_be_read_is_told(anybody: Path) -> None:
    path = anybody / "answer.json"
    path.write_text("1")
    path.chmod(0)
    assert in_file(path).problem == "answer.json cannot be read: Permission denied"


@pytest.mark.parametrize("mode", [0o000, 0o600, 0o400])
@pytest.mark.parametrize("below", ["", "deep/deeper"])
@pytest.mark.parametrize("written", [True, False])
def test_a_folder_that_may_not_be_entered_is_named_with_its_mode(
    anybody: Path, mode: int, below: str, written: bool
) -> None:
    folder = anybody / "locked"
    path = folder / below / "answer.json"
    path.parent.mkdir(parents=True)
    if written:
        path.write_text("1")
    folder.chmod(mode)
    found = in_file(path)
    told = f"answer.json cannot be read: the folder {folder} may not be entered (its mode is {mode:04o})"
    assert (found.given, found.text, found.problem) == (True, None, told)
    _, check, _ = judge_answer({}, (found, Found("final-reply")), validate=takes_all)
    assert (check.ok, check.source, check.problems) == (False, "answer-file", (AnswerProblem("#", told),))


@pytest.mark.skipif(not hasattr(os, "O_PATH"), reason="this system opens a folder only to list it")
def test_a_folder_that_may_be_entered_and_not_listed_holds_its_answer(anybody: Path) -> None:
    path = anybody / "closed" / "answer.json"
    path.parent.mkdir()
    path.write_text("1")
    path.parent.chmod(0o100)
    assert in_file(path).text == "1"


def test_where_there_is_no_folder_there_is_no_answer(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("1")
    assert not in_file(tmp_path / "nowhere" / "answer.json").given
    assert not in_file(tmp_path / "file" / "answer.json").given


# --- the other sources


def test_a_reply_is_taken_out_of_its_fence() -> None:
    assert in_reply('Done.\n```json\n{"ok": true}\n```').text == '{"ok": true}'
    assert not in_reply(" \n").given and not in_output(None).given
    assert in_reply("```\n1").problem == "its code fence is never closed"
    assert in_reply('"' + "x" * MOST_ANSWER_BYTES + '"').problem == "it has 262146 bytes and may have 262144"
    assert in_output("1").source == "structured-output"


def test_the_first_source_that_holds_anything_counts() -> None:
    file, output, reply = Found("answer-file", "1", 1), Found("structured-output", "2", 1), Found("final-reply", "3", 1)
    nothing = Found("answer-file")
    assert judge_answer({}, (file, output, reply), validate=takes_all)[0] == 1
    assert judge_answer({}, (nothing, output, reply), validate=takes_all)[0] == 2
    assert judge_answer({}, (nothing, Found("structured-output"), reply), validate=takes_all)[0] == 3
    value, check, found = judge_answer({}, (Found("answer-file", "x", 1), output), validate=takes_all)
    assert (value, check.ok, check.source) == (None, False, "answer-file") and found is not None
    assert check.problems[0].problem.startswith("it is not JSON")


def test_no_answer_anywhere_is_said() -> None:
    value, check, found = judge_answer({}, (Found("answer-file"), Found("final-reply")), validate=takes_all)
    assert (value, check.ok, check.source, found) == (None, False, None, None)
    assert check.problems == (AnswerProblem("#", "no answer was given"),) and check.where == "no answer"


def test_a_null_is_an_answer() -> None:
    value, check, _ = judge_answer({}, (Found("final-reply", "null", 4),), validate=takes_all)
    assert value is None and check.ok


def test_a_value_that_is_refused_is_not_handed_on() -> None:
    value, check, _ = judge_answer({}, (Found("final-reply", '{"ok": 1}', 9),), validate=refuses)
    assert value is None and check.problems == (AnswerProblem("#/ok", "is wrong"),) and check.bytes == 9


sources = st.lists(
    st.builds(
        Found,
        source=st.sampled_from(["answer-file", "structured-output", "final-reply"]),
        text=st.none() | st.sampled_from(["1", "", "[", "NaN", '{"a": 1}']),
        problem=st.none(),
    )
    | st.builds(Found, source=st.just("answer-file"), problem=st.sampled_from(["a symbolic link"])),
    max_size=3,
)


@given(given_=sources, valid=st.booleans())
def test_a_value_comes_only_with_a_good_check(given_: list[Found], valid: bool) -> None:
    value, check, found = judge_answer({}, tuple(given_), validate=takes_all if valid else refuses)
    assert check.ok == (not check.problems)
    assert check.ok or value is None
    assert found is next((source for source in given_ if source.given), None)
    if check.ok:
        assert found is not None and found.text is not None and valid
        assert value == read_value(found.text) and read_value(text_of(value).decode()) == value


# --- the check in a process of its own


def test_a_value_is_checked_by_the_library() -> None:
    assert CHECK(SCHEMA, {"ok": True}) == ()
    assert CHECK(SCHEMA, {"ok": "yes"}) == (AnswerProblem("#/ok", "'yes' is not of type 'boolean'"),)
    assert CHECK(SCHEMA, {}) == (AnswerProblem("#", "'ok' is a required property"),)
    assert CHECK({"type": "array", "items": {"multipleOf": 0.01}}, [19.99, 0.3, 1e300]) == ()
    assert CHECK({"multipleOf": 0.01}, 19.995) == (AnswerProblem("#", "19.995 is not a multiple of 0.01"),)


def test_many_and_long_problems_are_bounded() -> None:
    found = CHECK({"items": {"type": "null"}}, ["x" * 1000] * 200)
    assert len(found) == 100
    assert found[3] == AnswerProblem("#/3", 'it does not satisfy type "null"')
    (long,) = CHECK({"additionalProperties": False, "properties": {"k" * 999: False}}, {"k" * 999: 1})
    assert len(long.path) <= 102 and len(long.problem) <= 400


def test_a_value_as_deep_as_any_is_checked_through_references() -> None:
    value: Any = 1
    for _ in range(64):
        value = [value]
    schema = {
        "anyOf": [{"type": "string"}, {"allOf": [{"$ref": "#/$defs/list"}]}],
        "$defs": {"list": {"items": {"$ref": "#"}}},
    }
    (problem,) = CHECK({**schema, "type": "array"}, value)
    assert problem.path.count("/0") >= 1


def test_a_check_that_takes_too_long_is_ended() -> None:
    quick = validator(run_child, environ=os.environ, timeout_sec=1.5)
    with pytest.raises(AnswerNotCheckedError, match="took more than 2 s"):
        quick({"pattern": "^(a+)+$"}, "a" * 40 + "!")
    value, check, _ = judge_answer({"pattern": "^(a+)+$"}, (in_reply('"' + "a" * 40 + '!"'),), validate=quick)
    assert value is None and not check.ok and not check.checked


def test_a_check_that_cannot_be_started_is_told() -> None:
    def broken(argv: list[str], **options: Any) -> Any:
        return run_child(["/nowhere/python"], **options)

    with pytest.raises(AnswerNotCheckedError, match="could not be checked"):
        validator(broken, environ={})({}, 1)


def test_a_check_that_dies_is_told() -> None:
    def dying(argv: list[str], **options: Any) -> Any:
        return run_child(["/bin/false"], **options)

    with pytest.raises(AnswerNotCheckedError, match="the check itself failed"):
        validator(dying, environ={})({}, 1)
