"""The scripted model keeps to its script, whatever protocol it is asked in, and leaves no thread behind."""

import json
import threading
import urllib.error
import urllib.request
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.agents.scripted_model.request import ModelRequest, call_id, conversation_of
from tests.agents.scripted_model.scenario import (
    ToolCall,
    call_tool,
    call_tools,
    drop_connection,
    fail,
    hang_before_headers,
    hang_mid_stream,
    later,
    say,
    say_nothing,
)
from tests.agents.scripted_model.server import ScriptedModel

MESSAGES, RESPONSES, CHAT = "/v1/messages", "/v1/responses", "/v1/chat/completions"
TOOLS = [{"name": "Write"}]
# What Claude Code, Grok and Command Code put into the user's role by themselves.
REMINDERS = (
    "<system-reminder>Keep going.</system-reminder>",
    "[Your previous response had no visible output. Please continue and produce a user-visible response.]",
    "Please continue your response. Along with thinking, also tell the user what is happening.",
)


def ask(url: str, path: str, **body: Any) -> str:
    body = {"tools": TOOLS, **body}
    request = urllib.request.Request(url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return str(answer.read().decode())


def asks(path: str, conversation: list[dict[str, Any]]) -> dict[str, Any]:
    return {"input" if path == RESPONSES else "messages": conversation}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def called(path: str, *identities: str) -> list[dict[str, Any]]:
    """Build what an agent sends back after it ran the calls of one answer."""
    if path == MESSAGES:
        uses = [{"type": "tool_use", "id": one, "name": "Write", "input": {}} for one in identities]
        results = [{"type": "tool_result", "tool_use_id": one, "content": "ok"} for one in identities]
        return [{"role": "assistant", "content": uses}, {"role": "user", "content": results}]
    if path == RESPONSES:
        calls = [{"type": "function_call", "call_id": one, "name": "Write", "arguments": "{}"} for one in identities]
        return calls + [{"type": "function_call_output", "call_id": one, "output": "ok"} for one in identities]
    wished: list[Any] = [
        {"id": one, "type": "function", "function": {"name": "Write", "arguments": "{}"}} for one in identities
    ]
    results = [{"role": "tool", "tool_call_id": one, "content": "ok"} for one in identities]
    return [{"role": "assistant", "content": "", "tool_calls": wished}, *results]


@pytest.mark.parametrize("path", [MESSAGES, RESPONSES, CHAT])
@given(turns=st.lists(st.integers(1, 3), max_size=5), reminder=st.sampled_from(["", *REMINDERS]))
def test_the_turn_is_the_number_of_answers_since_the_prompt(path: str, turns: list[int], reminder: str) -> None:
    conversation = [user("an older task"), *called(path, call_id(0, 0, "old")), user("the task")]
    for turn, calls in enumerate(turns):
        conversation += called(path, *(call_id(turn, position, f"x{turn}") for position in range(calls)))
        if reminder:
            conversation.append(user(reminder))
    request = ModelRequest("POST", path, {}, {}, conversation_of(conversation))
    assert request.turn == len(turns)
    assert request.prompt == "the task"


@pytest.mark.parametrize("path", [MESSAGES, RESPONSES, CHAT])
@pytest.mark.parametrize("stream", [False, True])
def test_each_protocol_carries_text_and_calls(path: str, stream: bool) -> None:
    script = [
        call_tools(ToolCall("Write", {"path": "a.txt"}), call_tool("Read", path="b.txt"), text="I begin."),
        say("Done."),
    ]
    with ScriptedModel(script) as model:
        first = ask(model.url, path, stream=stream, **asks(path, [user("go")]))
        conversation = [user("go"), *called(path, call_id(0, 0, "x"), call_id(0, 1, "x"))]
        second = ask(model.url, path, stream=stream, **asks(path, conversation))
    assert all(text in first for text in ("I begin.", "Write", "Read", "a.txt", "b.txt"))
    assert "Done." in second
    assert "Write" not in second


def test_a_failure_goes_on_and_carries_its_headers() -> None:
    with ScriptedModel([fail(429, {"error": "full"}, {"retry-after": "7"})]) as model:
        for _ in range(2):
            with pytest.raises(urllib.error.HTTPError) as caught:
                ask(model.url, MESSAGES, messages=[user("go")])
            assert caught.value.code == 429
            assert caught.value.headers["retry-after"] == "7"
            assert json.loads(caught.value.read()) == {"error": "full"}
            caught.value.close()
        assert len(model.prompts()) == 2


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_may_carry_headers(stream: bool) -> None:
    with ScriptedModel([say("Done.", headers={"x-window": "0.4"})]) as model:
        body = json.dumps({"tools": TOOLS, "stream": stream, "messages": [user("go")]}).encode()
        with urllib.request.urlopen(urllib.request.Request(model.url + CHAT, body)) as answer:
            assert answer.headers["x-window"] == "0.4"


def test_an_empty_answer_holds_no_text() -> None:
    with ScriptedModel([say_nothing()]) as model:
        assert json.loads(ask(model.url, MESSAGES, messages=[user("go")]))["content"] == []


def test_a_tool_call_is_not_repeated_after_the_end_of_the_script() -> None:
    with ScriptedModel([call_tool("Write")]) as model:
        answer = ask(model.url, CHAT, messages=[user("go"), *called(CHAT, call_id(0, 0, "x"))])
    assert json.loads(answer)["choices"][0]["message"] == {"role": "assistant", "content": "The script is over."}


def test_a_side_request_does_not_use_the_script() -> None:
    with ScriptedModel([fail(500)]) as model:
        forced: dict[str, Any] = {
            "tools": [{"function": {"name": "session_title"}}],
            "tool_choice": {"type": "function"},
        }
        assert "A scripted run" in ask(model.url, CHAT, messages=[user("go")], **forced)
        assert "A scripted run" in ask(model.url, CHAT, messages=[user("go")], tools=[])
        assert model.prompts() == []


def test_the_script_may_depend_on_the_request() -> None:
    with ScriptedModel(lambda request: [say(request.prompt.upper()), lambda asked: say(asked.path)]) as model:
        assert "GO" in ask(model.url, CHAT, messages=[user("go")])
        assert CHAT in ask(model.url, CHAT, messages=[user("go"), {"role": "assistant", "content": "more"}])


@pytest.mark.parametrize("turn", [hang_before_headers(), hang_mid_stream("Let me"), later(600, say("late"))])
def test_closing_lets_hanging_requests_go(turn: Any) -> None:
    before = threading.active_count()
    model = ScriptedModel([turn])
    client = threading.Thread(target=_ask_in_vain, args=(model.url,))
    client.start()
    assert model.wait_for_prompts(1)
    model.close()
    model.close()
    client.join(5)
    assert not client.is_alive()
    assert threading.active_count() == before


def _ask_in_vain(url: str) -> None:
    with pytest.raises(OSError):
        answer = ask(url, CHAT, stream=True, messages=[user("go")])
        # A stream that was cut reads like one that ended: it must not hold the end of an answer.
        assert "[DONE]" not in answer
        raise ConnectionResetError


def test_a_dropped_connection_has_no_answer() -> None:
    with ScriptedModel([drop_connection()]) as model, pytest.raises(OSError):
        ask(model.url, CHAT, messages=[user("go")])


def test_pages_and_models_are_served_and_others_are_not() -> None:
    with ScriptedModel([], pages={"/usage": {"used": 3}}) as model:
        assert json.load(urllib.request.urlopen(model.url + "/usage")) == {"used": 3}
        assert json.load(urllib.request.urlopen(model.url + "/v1/models"))["data"][0]["id"] == "stub-model"
        with pytest.raises(urllib.error.HTTPError, match="404") as caught:
            urllib.request.urlopen(model.url + "/nowhere")
        caught.value.close()


def test_a_fault_in_a_script_is_raised_on_leaving() -> None:
    def broken(request: ModelRequest) -> Any:
        raise LookupError("no such turn")

    with pytest.raises(LookupError, match="no such turn"), ScriptedModel([broken]) as model, pytest.raises(OSError):
        ask(model.url, CHAT, messages=[user("go")])


def test_a_prompt_is_waited_for_by_its_words() -> None:
    with ScriptedModel([say("Done.")]) as model:
        assert not model.wait_for_prompt("the task", timeout=0.01)
        asking = threading.Thread(target=ask, args=(model.url, MESSAGES), kwargs=asks(MESSAGES, [user("Do the task")]))
        asking.start()
        assert model.wait_for_prompt("the task")
        assert not model.wait_for_prompt("another task", timeout=0.01)
        asking.join()
