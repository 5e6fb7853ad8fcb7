"""Whom a reader of Codex's usage asks, in which order, and what it says when none of them answers."""

import base64
import json
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.providers.metering import NOW, Vendor, body, profile, shown, with_binaries, write

from bullswarm_core.errors import MeterError
from bullswarm_core.process.json_rpc import Reply
from bullswarm_providers.codex.meter import refusal, token_expiry

Codex = Callable[[str], dict[str, str]]
SAID = """#!{python} -IS
import json, os, sys, time
HERE = {here!r}
with open(HERE + "/asked", "a") as log:
    def note(*what): print(json.dumps(what), file=log, flush=True)
    note("started", sys.argv[1:], os.getcwd(), os.listdir("."), dict(os.environ))
    def answer(asked, **said): print(json.dumps(dict(id=asked["id"], **said)), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        note(asked.get("method"), asked.get("params"))
        if asked["method"] == "initialize":
            answer(asked, result=dict(userAgent="codex"))
        elif asked["method"] == "account/rateLimits/read":
            {code}
"""


def jwt(expires_at: datetime) -> str:
    parts = ({"alg": "none"}, {"exp": int(expires_at.timestamp())})
    return ".".join(
        [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts] + ["sig"]
    )


TOKEN = jwt(NOW + timedelta(days=5))


def sign_in(home: Path, token: str = TOKEN, **more: Any) -> None:
    tokens = {"access_token": token, "refresh_token": "refresh-me-not", "account_id": "acct-1", **more}
    write(home / ".codex" / "auth.json", {"auth_mode": "chatgpt", "OPENAI_API_KEY": None, "tokens": tokens})


@pytest.fixture
def codex(tmp_path: Path, own_home: Path) -> Codex:
    """Install a Codex whose app-server answers the question for usage with the given code."""

    def install(code: str) -> dict[str, str]:
        environ = with_binaries(tmp_path / "bin", "codex")
        script = (
            SAID.replace("{python}", sys.executable).replace("{here!r}", repr(str(tmp_path))).replace("{code}", code)
        )
        (tmp_path / "bin" / "codex").write_text(script, encoding="utf-8")
        return environ

    sign_in(own_home)
    return install


def asked(tmp_path: Path) -> list[Any]:
    return [json.loads(line) for line in (tmp_path / "asked").read_text().splitlines()]


ANSWER = f"answer(asked, result=json.loads({json.dumps(body('codex-app-server'))!r}))"


def refused(code: int, message: str) -> str:
    return f"answer(asked, error=dict(code={code}, message={message!r}))"


def test_the_app_server_is_asked_and_nobody_else(codex: Codex, tmp_path: Path) -> None:
    environ = codex(ANSWER) | {"CODEX_THREAD_ID": "caller", "OPENAI_API_KEY": "sk-billed", "KEPT": "1"}
    vendor = Vendor(usage=body("codex-usage"))
    reading = vendor.read("codex", environ)
    assert (reading.read_by, reading.plan) == ("app-server", "plus")
    assert set(shown(reading)) == {"5h", "weekly", "weekly GPT-Other"}
    assert vendor.asked == []
    started, *questions = asked(tmp_path)
    assert questions == [
        ["initialize", {"clientInfo": {"name": "bullswarm", "version": questions[0][1]["clientInfo"]["version"]}}],
        ["initialized", None],
        ["account/rateLimits/read", {"excludeResetCreditDetails": True}],
    ]
    _, words, folder, content, variables = started
    assert words[0] == "app-server"
    assert (Path(folder).name.startswith("bullswarm-meter-"), content, Path(folder).exists()) == (True, [], False)
    assert variables["KEPT"] == "1"
    assert not {"CODEX_THREAD_ID", "OPENAI_API_KEY"} & variables.keys()


@pytest.mark.parametrize(
    ("message", "kind", "words"),
    [
        ("codex account authentication required to read rate limits", "sign-in", "run codex login"),
        ("chatgpt authentication required to read rate limits", "unsupported", "API key"),
        (
            "failed to fetch codex rate limits: GET http://h/x failed: 401 Unauthorized; body={}",
            "sign-in",
            "open Codex",
        ),
        ("failed to fetch codex rate limits: GET http://h/x failed: 403 Forbidden; body={}", "refused", "403"),
        ("failed to fetch codex rate limits: GET http://h/x failed: 429 Too Many Requests; body={}", "limited", "429"),
        ("failed to fetch codex rate limits: GET http://h/x failed: 500 Internal Server Error", "unreachable", "500"),
        ("failed to fetch codex rate limits: error sending request for url", "unreachable", "could not reach"),
    ],
)
def test_what_the_app_server_refuses_is_final(codex: Codex, message: str, kind: str, words: str) -> None:
    vendor = Vendor(usage=body("codex-usage"))
    with pytest.raises(MeterError, match=words) as raised:
        vendor.read("codex", codex(refused(-32600, message)))
    assert (raised.value.kind, vendor.asked) == (kind, [])


@pytest.mark.parametrize(
    "code",
    [
        refused(-32601, "method not found"),
        "sys.exit(3)",
        "answer(asked, result={})",
        "answer(asked, result=[])",
        "answer(asked, result=dict(rateLimits='x'))",
        "print('token=sk-oops', file=sys.stderr); os.abort()",
    ],
)
def test_the_endpoint_is_asked_where_the_app_server_has_no_answer(codex: Codex, code: str) -> None:
    vendor = Vendor(usage=body("codex-usage"))
    reading = vendor.read("codex", codex(code))
    assert reading.read_by == "usage endpoint"
    ((name, headers, sent),) = vendor.asked
    assert (name, sent) == ("usage", None)
    assert headers["Authorization"] == f"Bearer {TOKEN}"
    assert headers["ChatGPT-Account-Id"] == "acct-1"


def test_an_app_server_that_is_silent_is_not_waited_for(codex: Codex, monkeypatch: pytest.MonkeyPatch) -> None:
    from bullswarm_providers.codex import meter

    monkeypatch.setattr(meter, "_ASK_SEC", 1.0)
    assert Vendor(usage=body("codex-usage")).read("codex", codex("time.sleep(60)")).read_by == "usage endpoint"


def test_an_older_codex_without_an_app_server(tmp_path: Path, own_home: Path) -> None:
    sign_in(own_home)
    reading = Vendor(usage=body("codex-usage")).read("codex", with_binaries(tmp_path / "bin", "codex"))
    assert reading.read_by == "usage endpoint"


@pytest.mark.parametrize(
    "tokens", [{}, {"access_token": ""}, {"access_token": "a b"}, {"access_token": "a\nX: 1"}, {"access_token": 5}]
)
def test_without_a_token_the_app_servers_failure_is_told(codex: Codex, own_home: Path, tokens: Any) -> None:
    environ = codex("sys.exit(3)")
    write(own_home / ".codex" / "auth.json", {"tokens": {"refresh_token": "r", **tokens}})
    vendor = Vendor(usage=body("codex-usage"))
    with pytest.raises(MeterError, match="ended before it answered") as raised:
        vendor.read("codex", environ)
    assert (raised.value.kind, vendor.asked) == ("unreachable", [])


@pytest.mark.parametrize(("seconds", "asks"), [(-3600, False), (59, False), (61, True)])
def test_a_token_about_to_expire_is_not_sent(codex: Codex, own_home: Path, seconds: int, asks: bool) -> None:
    environ = codex("sys.exit(3)")
    sign_in(own_home, jwt(NOW + timedelta(seconds=seconds)))
    vendor = Vendor(usage=body("codex-usage"))
    if asks:
        assert vendor.read("codex", environ).windows
        return
    with pytest.raises(MeterError, match="open Codex to refresh it") as raised:
        vendor.read("codex", environ)
    assert (raised.value.kind, vendor.asked) == ("sign-in", [])


@pytest.mark.parametrize("kind", ["sign-in", "limited", "refused", "unreachable"])
def test_what_the_endpoint_refuses_passes_without_a_token(codex: Codex, kind: str) -> None:
    with pytest.raises(MeterError) as raised:
        Vendor(usage=MeterError("chatgpt.com answered 4xx", kind=kind, retry_after_sec=7)).read(
            "codex", codex("sys.exit(3)")
        )
    assert (raised.value.kind, raised.value.retry_after_sec) == (kind, 7)
    assert ("open Codex" in str(raised.value)) == (kind == "sign-in")
    assert TOKEN not in str(raised.value)


@pytest.mark.parametrize("answer", [{}, [], None, "x", {"rate_limit": 5}])
def test_an_answer_about_something_else_is_unreadable(codex: Codex, answer: Any) -> None:
    with pytest.raises(MeterError) as raised:
        Vendor(usage=answer).read("codex", codex("sys.exit(3)"))
    assert raised.value.kind == "unreadable"


def test_work_by_a_key_has_no_windows(codex: Codex, own_home: Path, tmp_path: Path) -> None:
    environ = codex(ANSWER)
    write(own_home / ".codex" / "auth.json", {"OPENAI_API_KEY": "sk-x"})
    vendor = Vendor(usage=body("codex-usage"))
    with pytest.raises(MeterError) as raised:
        vendor.read("codex", environ)
    assert (raised.value.kind, vendor.asked) == ("unsupported", [])
    assert not (tmp_path / "asked").exists()


def test_another_home_of_codex_is_the_one_that_is_asked_for(codex: Codex, tmp_path: Path, own_home: Path) -> None:
    environ = codex(ANSWER) | {"CODEX_HOME": str(own_home / "elsewhere")}
    write(own_home / "elsewhere" / "auth.json", {"tokens": {"access_token": TOKEN}})
    Vendor().read("codex", environ)
    assert asked(tmp_path)[0][4]["CODEX_HOME"] == str(own_home / "elsewhere")
    assert profile("codex", environ).config_dir == str(own_home / "elsewhere")


@given(message=st.text(), code=st.integers())
def test_no_refusal_repeats_what_was_said(message: str, code: int) -> None:
    told = str(refusal(Reply(None, code, f"Bearer {TOKEN} {message} failed: 503; body=secret-{TOKEN}")))
    assert TOKEN not in told
    assert "secret" not in told


@given(
    token=st.text()
    | st.sampled_from(["a.b.c", "a.e30.c", "a.W10.c", "a.eyJleHAiOiAiMSJ9.c", f"{TOKEN}.x", "..", "a.=.c"])
)
def test_no_token_breaks_the_reader(token: str) -> None:
    assert token_expiry(token) is None


def test_when_a_token_expires() -> None:
    assert token_expiry(TOKEN) == NOW + timedelta(days=5)
