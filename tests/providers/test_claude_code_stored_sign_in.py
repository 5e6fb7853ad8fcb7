"""Which stored sign-in of Claude Code is used to read usage: a file's or the keychain's, and never one that has expired."""

import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from tests.providers.claude_metering import stored
from tests.providers.metering import NOW, TOKEN, odd, profile, with_binaries

from bullswarm_core.errors import MeterError
from bullswarm_providers.claude_code import stored_sign_in as storing


@pytest.fixture
def environ(own_home: Path, tmp_path: Path) -> dict[str, str]:
    return with_binaries(tmp_path / "bin", "claude")


def test_a_sign_in_never_shows_its_token() -> None:
    sign_in = storing.sign_in_of({"claudeAiOauth": {"accessToken": TOKEN}})
    assert sign_in is not None
    assert TOKEN not in repr(sign_in)


@given(document=odd({"claudeAiOauth": {"accessToken": TOKEN, "expiresAt": 1, "scopes": ["a"], "subscriptionType": "max",
                                       "rateLimitTier": "x_20x"}}))  # fmt: skip
def test_no_credentials_break_the_reader(document: Any) -> None:
    if isinstance(document, dict):
        storing.sign_in_of(document)


# --- the keychain


def security(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> Path:
    tool, said = tmp_path / "security", tmp_path / "said"
    tool.write_text(f'#!/bin/sh\necho "$@" >> {said}\n{script}\n', encoding="utf-8")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(storing, "SECURITY", str(tool))
    monkeypatch.setattr(sys, "platform", "darwin")
    return said


def in_keychain(document: Any) -> str:
    return f"echo '{json.dumps(document)}'"


def found(environ: dict[str, str], pool: str = "claude-code") -> storing.StoredSignIn:
    return storing.stored_sign_in(profile(pool, environ), environ, now=NOW)


def test_the_keychain_is_asked_where_no_file_holds_a_sign_in(
    environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = profile("claude-code", environ)
    said = security(
        tmp_path, monkeypatch, in_keychain({"claudeAiOauth": {"accessToken": TOKEN, "subscriptionType": "pro"}})
    )
    sign_in = storing.stored_sign_in(pool, environ, now=NOW)
    assert (sign_in.token, sign_in.plan) == (TOKEN, "pro")
    assert said.read_text() == "find-generic-password -s Claude Code-credentials -w\n"


def test_another_home_has_an_item_of_its_own(own_home: Path, environ: dict[str, str]) -> None:
    stored(own_home, place=".claude-work/.credentials.json")
    name = storing.keychain_service(profile("claude-code:work", environ))
    assert name.startswith("Claude Code-credentials-")
    assert len(name) == len("Claude Code-credentials-") + 8


@pytest.mark.parametrize(
    "script", ["exit 44", "echo no json", "echo '[]'", in_keychain({"mcpOAuth": {}}), "echo '{'", "kill -9 $$"]
)
def test_a_keychain_that_holds_nothing(
    environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    pool = profile("claude-code", environ)
    security(tmp_path, monkeypatch, script)
    with pytest.raises(MeterError, match="no stored sign-in"):
        storing.stored_sign_in(pool, environ, now=NOW)


def test_a_keychain_that_asks_the_person_is_not_waited_for(
    environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = profile("claude-code", environ)
    security(tmp_path, monkeypatch, "sleep 30")
    monkeypatch.setattr(storing, "_KEYCHAIN_SEC", 0.3)
    with pytest.raises(MeterError, match="no stored sign-in"):
        storing.stored_sign_in(pool, environ, now=NOW)


def test_a_missing_keychain_tool_is_no_sign_in(
    environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = profile("claude-code", environ)
    security(tmp_path, monkeypatch, "").unlink(missing_ok=True)
    monkeypatch.setattr(storing, "SECURITY", str(tmp_path / "nowhere"))
    with pytest.raises(MeterError, match="no stored sign-in"):
        storing.stored_sign_in(pool, environ, now=NOW)
