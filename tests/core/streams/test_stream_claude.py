"""What Claude Code prints beyond the recordings."""

import json
from typing import Any

from tests.stream_tables import load_table

from bullswarm_core.streams.facts import StreamFacts
from bullswarm_core.streams.reader import StreamReader

TABLE = load_table("claude-code")


def read(*events: dict[str, Any]) -> StreamFacts:
    reader = StreamReader(TABLE)
    reader.feed(b"".join(json.dumps(event).encode() + b"\n" for event in events))
    return reader.finish()


def message(*content: dict[str, Any], identity: str = "m1", **more: Any) -> dict[str, Any]:
    body = {"id": identity, "model": "claude-sonnet-5", "content": list(content)}
    return {"type": "assistant", "message": body, "parent_tool_use_id": None, **more}


def said(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def used(name: str, identity: str, **given: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": identity, "name": name, "input": given}


def result(**more: Any) -> dict[str, Any]:
    return {"subtype": "success", "is_error": False, "num_turns": 1, **more, "type": "result"}


def test_too_many_turns_is_a_failure_without_an_answer() -> None:
    facts = read(
        message(said("I'll look"), used("Bash", "1", command="ls")),
        result(subtype="error_max_turns", is_error=True, errors=["Reached maximum"], terminal_reason="max_turns"),
    )
    assert (facts.terminal_error, facts.stop_reason, facts.answer_source) == (True, "max_turns", "messages")
    assert [error.text for error in facts.errors] == ["Reached maximum"]
    assert not facts.answered_after_tools


def test_the_structured_output_is_kept_as_json() -> None:
    value = {"ok": True, "names": ["é", "\u2028"], "n": 1.5}
    facts = read(message(used("StructuredOutput", "1")), result(result=json.dumps(value), structured_output=value))
    assert facts.structured is not None and json.loads(facts.structured) == value
    assert read(result(result="x")).structured is None
    assert read(result(result="x", structured_output=value), message(said("more"))).structured is None
    assert read(result(subtype="error_max_turns", is_error=True, structured_output=value)).structured is None


def test_success_with_is_error_is_a_failure() -> None:
    facts = read(result(is_error=True, api_error_status=402, result="Credit balance is too low"))
    assert (facts.terminal, facts.terminal_error, facts.answer) == (True, True, "")
    assert [(error.text, error.status, error.fatal) for error in facts.errors] == [
        ("Credit balance is too low", 402, True)
    ]


def test_an_error_that_did_not_end_the_run_is_not_fatal() -> None:
    facts = read(
        message(said("API Error: 529 Overloaded"), error="server_error", api_error_status=529),
        message(said("All good."), identity="m2"),
        result(result="All good."),
    )
    assert (facts.answer, facts.answer_source) == ("All good.", "terminal")
    assert [(error.status, error.fatal) for error in facts.errors] == [(529, False)]
    assert facts.openings == ("All good.",), "the CLI's own error message is nothing that the agent said"


def test_a_subagent_works_but_does_not_speak_for_the_agent() -> None:
    facts = read(
        message(used("Task", "1")),
        message(said("sub says"), used("Write", "2", file_path="/w/sub.txt"), identity="s1", parent_tool_use_id="1"),
        {"type": "user", "tool_use_result": {"type": "create", "filePath": "/w/sub.txt"}, "parent_tool_use_id": "1"},
        message(said("main says"), identity="m2"),
    )
    assert (facts.answer, facts.openings) == ("main says", ("main says",))
    assert (facts.tool_calls, facts.turns, facts.edits) == (2, 2, ("/w/sub.txt",))


def test_blocks_of_one_message_are_one_answer() -> None:
    facts = read(message(said("one")), message(said("two")), message(said("three"), identity="m2"))
    assert facts.answer == "three"
    assert read(message(said("one")), message(said("two"))).answer == "one\ntwo"


def test_a_command_that_the_system_refused() -> None:
    facts = read(
        message(used("Bash", "1", command="echo x > /etc/x")),
        {
            "type": "user",
            "message": {
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "1",
                        "is_error": True,
                        "content": "Exit code 1\nbash: /etc/x: Permission denied",
                    }
                ]
            },
        },
    )
    [denial] = facts.denials
    assert (denial.tool, denial.target, denial.by) == ("Bash", "echo x > /etc/x", "system")


def test_a_notebook_edit_and_a_file_that_was_only_read() -> None:
    facts = read(
        {"type": "user", "tool_use_result": {"notebook_path": "/w/a.ipynb", "cell_id": "1", "error": ""}},
        {"type": "user", "tool_use_result": {"notebook_path": "/w/b.ipynb", "error": "no such cell"}},
        {"type": "user", "tool_use_result": {"type": "text", "file": {"filePath": "/w/read.txt"}}},
        {"type": "user", "tool_use_result": "Error: no"},
    )
    assert facts.edits == ("/w/a.ipynb",)


def test_a_second_result_replaces_the_first() -> None:
    facts = read(result(result="first"), message(said("more")), result(result="second", num_turns=3))
    assert (facts.answer, facts.turns) == ("second", 3)
    assert not read(result(result="first"), message(said("more"))).terminal


def test_a_model_window_carries_its_scope() -> None:
    info = {"status": "rejected", "rateLimitType": "seven_day_opus", "resetsAt": 1796020371}
    warned = {"status": "allowed_warning", "rateLimitType": "five_hour", "resetsAt": 1796020371}
    facts = read(*({"type": "rate_limit_event", "rate_limit_info": one} for one in (info, warned, info)))
    assert [(one.window, one.scope) for one in facts.limits] == [("weekly", "opus")]
