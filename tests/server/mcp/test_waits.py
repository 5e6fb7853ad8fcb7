"""Every client is answered before it gives up, and otherwise with as few calls as it allows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_server.mcp.waits import UNKNOWN_SEC, Client, patience_of

CODEX = "codex-mcp-client"
# name, version, progress token, model, the client's own limit in seconds, environment
CLIENTS = [
    ("claude-code", "2.1.332", True, None, 1800, {}),
    ("claude-code", "2.1.332", True, None, 20, {"MCP_TOOL_TIMEOUT": "20000"}),
    ("opencode", "1.18.33", False, None, 60, {}),
    (CODEX, "0.171.0", True, "some-model", 300, {}),
    (CODEX, "0.172.3", True, "gpt-5.5", 300, {}),
    (CODEX, "0.171.0", True, "gpt-6-sol", 30, {}),
    (CODEX, "0.120.0", True, None, 60, {}),
    ("grok-shell-lab", "1.0.41", True, None, 6000, {}),
    ("commandcode", "0.1.0", False, None, 80, {}),
    ("commandcode", "0.1.0", False, None, 600, {"MCP_TOOL_TIMEOUT": "600000"}),
    ("gemini-cli-mcp-client", "0.61.0", False, None, 600, {}),
    ("mcp", "0.1.0", False, None, 60, {}),
    ("", "", False, None, 60, {}),
]


@pytest.mark.parametrize(("name", "version", "progress", "model", "limit", "environ"), CLIENTS)
def test_the_usual_wait_ends_before_the_client_does_and_uses_most_of_it(
    name: str, version: str, progress: bool, model: str | None, limit: float, environ: dict[str, str]
) -> None:
    usual = patience_of(Client(name, version, progress, model), environ).seconds(None)
    assert limit * 0.7 <= usual < limit


@pytest.mark.parametrize(("limit", "usual"), [(1, 0.4), (3, 1.2), (6, 4), (10, 8), (100, 85)])
def test_a_few_stated_seconds_leave_time_for_the_start_of_the_work(limit: int, usual: float) -> None:
    patience = patience_of(Client("claude-code", "2.1.332"), {"MCP_TOOL_TIMEOUT": str(limit * 1000)})
    assert patience.usual_sec == patience.most_sec == pytest.approx(usual)


def test_opencode_waits_long_only_where_progress_starts_its_limit_anew() -> None:
    assert patience_of(Client("opencode", "1", takes_progress=True), {}).usual_sec > 600
    assert patience_of(Client("opencode", "1"), {}).usual_sec == UNKNOWN_SEC


@pytest.mark.parametrize(
    ("model", "code_mode"),
    [
        ("gpt-6.2-sol", True), ("gpt-6-astra", True), ("gpt-5.6-terra", True), ("gpt-5.10", True), ("gpt-10", True),
        ("gpt-5.5", False), ("gpt-5", False), ("gpt-4.1", False), ("unknown", False), (None, False),
    ],
)  # fmt: skip
def test_codex_scripts_hand_control_back_after_half_a_minute(model: str | None, code_mode: bool) -> None:
    patience = patience_of(Client(CODEX, "0.171.0", True, model), {})
    assert (patience.usual_sec < 30) is code_mode
    assert patience.most_sec == 280


@given(
    name=st.sampled_from([row[0] for row in CLIENTS]) | st.text(max_size=20),
    version=st.text(max_size=12),
    asked=st.none() | st.floats(min_value=0, max_value=1e7),
    limit=st.none() | st.text(max_size=8) | st.integers().map(str) | st.sampled_from(["nan", "inf", "-1", "0", "999"]),
    spent=st.floats(min_value=0, max_value=1e4),
)
def test_a_wait_is_never_longer_than_allowed_or_asked_for(
    name: str, version: str, asked: float | None, limit: str | None, spent: float
) -> None:
    environ = {"MCP_TOOL_TIMEOUT": limit} if limit is not None else {}
    patience = patience_of(Client(name, version), environ)
    applied = patience.seconds(asked, spent_sec=spent)
    assert 0 <= applied <= max(0.0, patience.most_sec - spent)
    assert 0 < patience.usual_sec <= patience.most_sec <= 5400
    if asked is not None:
        assert applied <= asked


def test_the_time_since_the_request_came_is_taken_from_the_patience_not_from_the_wish() -> None:
    patience = patience_of(Client("unknown"), {})
    assert patience.seconds(None, spent_sec=1.25) == 43.7
    assert patience.seconds(10, spent_sec=1.25) == 10
    assert patience.seconds(100, spent_sec=1.25) == 43.7
    assert patience.seconds(100, spent_sec=60) == 0
