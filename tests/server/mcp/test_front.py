"""The front says exactly what the SDK server would say, keeps what only the SDK can answer, and forgets what is cancelled."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from bullswarm_server.mcp import catalogue
from bullswarm_server.mcp.front import PRIVATE_ID, Front, catalogue_file

CATALOGUE = json.loads(Path(catalogue_file()).read_text())
INTRODUCTION = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
CALL = {"name": "pools", "arguments": {}}


class Spoken:
    """A front whose two sides are lists."""

    def __init__(self) -> None:
        self.said: list[Any] = []
        self.passed: list[Any] = []
        self.front = Front(CATALOGUE, self.said.append)

    def take(self, method: str, identity: Any = None, params: Any = None) -> None:
        message = {"jsonrpc": "2.0", "method": method}
        if identity is not None:
            message["id"] = identity
        if params is not None:
            message["params"] = params
        self.front.take(json.dumps(message).encode())

    def load(self) -> None:
        self.front.connect(lambda line: self.passed.append(json.loads(line)))


@pytest.fixture
def spoken() -> Spoken:
    return Spoken()


def test_the_catalogue_is_what_the_sdk_server_says() -> None:
    made = catalogue.text_of(anyio.run(catalogue.make))
    assert Path(catalogue_file()).read_text() == made, "python -m bullswarm_server.mcp.catalogue writes it anew"


@pytest.mark.parametrize("version", [*HANDSHAKE_PROTOCOL_VERSIONS, "1999-01-01", "2026-07-28"])
def test_an_introduction_is_answered_at_once_and_passed_on(spoken: Spoken, version: str) -> None:
    spoken.take("initialize", 0, {**INTRODUCTION, "protocolVersion": version})
    spoken.take("notifications/initialized")
    for number, method in enumerate(catalogue.LISTS, 1):
        spoken.take(method, number, {"_meta": {"progressToken": number}} if number % 2 else None)
    spoken.take("ping", "last")
    real = version if version in HANDSHAKE_PROTOCOL_VERSIONS else "2025-11-25"
    first, *rest, last = spoken.said
    assert (first["id"], first["result"]["protocolVersion"]) == (0, real)
    asked = [
        ("initialize", {**INTRODUCTION, "protocolVersion": version}),
        *((method, None) for method in catalogue.LISTS),
    ]
    assert [answer["result"] for answer in (first, *rest)] == [
        answer["result"] for answer in anyio.run(catalogue.ask, asked)
    ]
    assert last == {"jsonrpc": "2.0", "id": "last", "result": {}}
    spoken.load()
    assert [message.get("id") for message in spoken.passed] == [f"{PRIVATE_ID}0", None]


def test_the_stateless_era_is_answered_at_once_and_decided_for_the_sdk_too(spoken: Spoken) -> None:
    (version,) = MODERN_PROTOCOL_VERSIONS
    methods = ("server/discover", *catalogue.LISTS)
    for number, method in enumerate(methods):
        spoken.take(method, f"probe-{number}", catalogue.envelope(version))
    asked: list[tuple[str, Any]] = [(method, catalogue.envelope(version)) for method in methods]
    real = anyio.run(catalogue.ask, asked)
    assert [answer["result"] for answer in spoken.said] == [answer["result"] for answer in real]
    spoken.load()
    assert [(message["id"], message["method"]) for message in spoken.passed] == [
        (f"{PRIVATE_ID}probe-0", "server/discover")
    ]


UNKNOWN: list[tuple[str, Any]] = [
    ("tools/list", {"cursor": "x"}),
    ("tools/call", CALL),
    ("resources/read", {"uri": "bullswarm://pools"}),
    ("initialize", INTRODUCTION),
    ("tools/list", catalogue.envelope(MODERN_PROTOCOL_VERSIONS[0])),
    ("no/such/method", None),
]


@pytest.mark.parametrize(("method", "params"), UNKNOWN)
def test_what_only_the_sdk_can_answer_waits_for_it(spoken: Spoken, method: str, params: Any) -> None:
    spoken.take("initialize", 0, INTRODUCTION)
    spoken.take(method, 7, params)
    assert len(spoken.said) == 1
    assert spoken.front.wanted.is_set()
    spoken.load()
    assert [message["id"] for message in spoken.passed] == [f"{PRIVATE_ID}0", 7]
    spoken.take("tools/list", 8)
    assert spoken.passed[-1]["id"] == 8
    assert len(spoken.said) == 1


def test_the_moment_a_request_came_is_kept_while_it_waits(spoken: Spoken) -> None:
    before = time.monotonic()
    for identity in (1, "1", 2):
        spoken.take("tools/call", identity, CALL)
    spoken.take("notifications/cancelled", params={"requestId": 2})
    spoken.load()
    spoken.take("tools/call", 3, CALL)
    first, second = spoken.front.arrival(1), spoken.front.arrival("1")
    assert first is not None and second is not None and before <= first <= second <= time.monotonic()
    # Cancelled, asked for before, and never kept waiting.
    assert [spoken.front.arrival(identity) for identity in (2, 1, 3, None)] == [None] * 4


@pytest.mark.parametrize(
    "params",
    [
        None,
        {},
        {"protocolVersion": 3, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}},
        {"clientInfo": 1},
    ],
)
def test_an_introduction_that_is_wrong_is_the_sdks_to_refuse(spoken: Spoken, params: Any) -> None:
    spoken.take("initialize", 0, params)
    spoken.take("tools/list", 1)
    assert spoken.said == []
    spoken.load()
    assert [message["id"] for message in spoken.passed] == [0, 1]


@pytest.mark.parametrize("part", ["protocolVersion", "clientCapabilities", "clientInfo"])
def test_an_envelope_that_is_wrong_is_the_sdks_to_refuse(spoken: Spoken, part: str) -> None:
    params = catalogue.envelope(MODERN_PROTOCOL_VERSIONS[0])
    params["_meta"][f"io.modelcontextprotocol/{part}"] = 3
    spoken.take("tools/list", 1, params)
    assert spoken.said == []


def test_a_request_that_is_cancelled_while_it_waits_never_happened(spoken: Spoken) -> None:
    spoken.take("initialize", 0, INTRODUCTION)
    for identity in (1, "1", 2):
        spoken.take("tools/call", identity, CALL)
    spoken.take("notifications/cancelled", params={"requestId": 1})
    spoken.take("notifications/cancelled", params={"requestId": "unknown"})
    spoken.load()
    assert [message.get("id") for message in spoken.passed] == [f"{PRIVATE_ID}0", "1", 2, None]
    spoken.take("notifications/cancelled", params={"requestId": 2})
    assert spoken.passed[-1]["params"] == {"requestId": 2}


def test_a_server_that_cannot_load_says_so_to_everyone(spoken: Spoken) -> None:
    spoken.take("initialize", 0, INTRODUCTION)
    spoken.take("tools/call", 1, CALL)
    spoken.front.fail("bullswarm could not load")
    spoken.take("tools/call", 2, CALL)
    spoken.take("tools/list", 3)
    errors = [(said["id"], said["error"]) for said in spoken.said if "error" in said]
    assert errors == [
        (1, {"code": -32603, "message": "bullswarm could not load"}),
        (2, {"code": -32603, "message": "bullswarm could not load"}),
    ]
    assert spoken.said[-1]["result"]["tools"]


@pytest.mark.parametrize("loaded", [False, True])
@pytest.mark.parametrize(
    ("line", "identity", "code"),
    [
        (b"{", None, -32700),
        (b"\xff\xfe", None, -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping\xff"}', None, -32700),
        (b"[" * 100_000, None, -32700),
        (b"[]", None, -32600),
        (b"null", None, -32600),
        (b"123", None, -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":3}', 1, -32600),
        (b'{"jsonrpc":"2.0","id":"a"}', "a", -32600),
        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', None, -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', None, -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', None, -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', None, -32600),
        (b'{"id":1,"method":"ping"}', 1, -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}', 1, -32602),
        (b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"arguments":{"prompt":"\\ud800"}}}', 2, -32602),
        (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', None, -32600),
    ],
)
def test_what_is_no_message_is_answered(spoken: Spoken, line: bytes, identity: object, code: int, loaded: bool) -> None:
    if loaded:
        spoken.load()
    spoken.front.take(line)
    spoken.load()
    assert [(said["id"], said["error"]["code"]) for said in spoken.said] == [(identity, code)]
    assert spoken.passed == []


LONG = b"1" * 4_301
DEEP = b'{"a":' * 5_000 + b"[" + b"]" + b"}" * 5_000


@pytest.mark.parametrize("loaded", [False, True])
@pytest.mark.parametrize(
    ("line", "identity", "what"),
    [
        (
            b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"id":1,"n":%s}}' % LONG,
            7,
            "a number has 4301 digits",
        ),
        (b'{"jsonrpc":"2.0","params":{"n":-%s},"method":"x","id":"a\\"b"}' % LONG, 'a"b', "a number has 4301 digits"),
        (b'{"params":%s,"id" : 7 ,"method":"x"}' % DEEP, 7, "it is nested too deeply"),
        (b'{"id":7,"params":%s,"method":"id"}' % DEEP, 7, "it is nested too deeply"),
        (b'{"id":6,"params":%s,"id":7}' % DEEP, 7, "it is nested too deeply"),
        (b'{"id":%s,"method":"x"}' % LONG, None, "a number has 4301 digits"),
        (b'{"method":"x","params":{"id":1,"n":%s}}' % LONG, None, "a number has 4301 digits"),
        (b'{"id":%s,"method":"x"}' % DEEP, None, "it is nested too deeply"),
        (b'{"id":7,"params":%s' % DEEP, None, "it is nested too deeply"),
        (b'{"id":7,"params":%s}}' % DEEP, None, "it is nested too deeply"),
        (b'{"id":7,"params":%s]' % DEEP, None, "it is nested too deeply"),
        (b'[{"id":7,"params":%s}]' % DEEP, None, "it is nested too deeply"),
    ],
)
def test_a_request_that_holds_too_much_gets_an_answer_with_its_id(
    spoken: Spoken, line: bytes, identity: object, what: str, loaded: bool
) -> None:
    if loaded:
        spoken.load()
    spoken.front.take(line)
    spoken.load()
    assert [(said["id"], said["error"]["code"]) for said in spoken.said] == [(identity, -32700)]
    assert spoken.said[0]["error"]["message"] == f"the message can't be read: {what}"
    assert spoken.passed == []


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}',
        b'{"jsonrpc":"2.0","method":"notifications/x","params":[]}',
        b'{"jsonrpc":"2.0","method":"notifications/x","params":{"a":"\\udfff"}}',
    ],
)
def test_an_answer_or_a_malformed_notification_is_passed_over(spoken: Spoken, line: bytes) -> None:
    spoken.front.take(line)
    spoken.load()
    assert (spoken.said, spoken.passed) == ([], [])
