"""What each agent CLI needs to run against the scripted model: a home, an environment, its tools, its vendor's errors.

Everything here was tried with the versions that package.json pins.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.agents.scripted_model.scenario import Answer, Fail, call_tool, fail

_RETRY_SOON = {"retry-after-ms": "50"}
_FAKE_KEY = "stub-key"


@dataclass(frozen=True, slots=True)
class Setup:
    """One agent CLI. `prepare(home, url)` writes its settings into a fresh home and gives the environment it needs.

    The settings bound the agent's retries, so that every failure ends within seconds (44 with Grok, 37 with Command
    Code, which has no such setting). `write_file`, `run_shell` and `read_file` make an answer that calls the agent's
    own tool; give absolute paths, which Command Code insists on. `usage_limit`, `rate_limit`, `unauthorized` and
    `overloaded` make the error that its vendor sends; `usage_limit(None)` names no time of reset. `window_headers`
    go beside an answer and say that 83 % of the 5-hour window is used; only Claude's vendor tells that way. `by_key`
    tells that the sign-in is a key, which is used only where the person allowed it.
    """

    name: str
    binary: str
    model: str
    reads_stdin: bool
    prepare: Callable[[Path, str], dict[str, str]]
    write_file: Callable[[str, str], Answer]
    run_shell: Callable[[str], Answer]
    read_file: Callable[[str], Answer]
    usage_limit: Callable[[datetime | None], Fail]
    rate_limit: Callable[[], Fail]
    unauthorized: Callable[[], Fail]
    overloaded: Callable[[], Fail]
    window_headers: Callable[[datetime], dict[str, str]] = lambda reset: {}
    by_key: bool = False


# --- Claude Code


def _prepare_claude(home: Path, url: str) -> dict[str, str]:
    # A subscriber's token, not a key: only with it does Claude Code tell a used-up window from a passing 429.
    return {
        "ANTHROPIC_BASE_URL": url,
        "CLAUDE_CODE_OAUTH_TOKEN": _FAKE_KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "1",
        "DISABLE_AUTOUPDATER": "1",
        # Claude Code refuses to skip its permissions as root, as containers run it, unless it is told of a sandbox.
        "IS_SANDBOX": "1",
    }


def _anthropic_error(status: int, kind: str, message: str, headers: Mapping[str, str] | None = None) -> Fail:
    return fail(status, {"type": "error", "error": {"type": kind, "message": message}}, headers)


def _claude_usage_limit(reset: datetime | None) -> Fail:
    headers = _claude_windows("rejected", 1.0, reset)
    return _anthropic_error(429, "rate_limit_error", "This request would exceed your account's rate limit.", headers)


def _claude_windows(status: str, used: float, reset: datetime | None) -> dict[str, str]:
    windows = {
        "status": status,
        "representative-claim": "five_hour",
        "5h-status": status,
        "5h-utilization": str(used),
        "7d-status": "allowed",
        "7d-utilization": "0.62",
    }
    if reset is not None:
        windows |= {"reset": _unix(reset), "5h-reset": _unix(reset), "7d-reset": _unix(reset + timedelta(days=3))}
    if status == "allowed_warning":
        windows["5h-surpassed-threshold"] = "0.75"
    return {f"anthropic-ratelimit-unified-{name}": value for name, value in windows.items()}


CLAUDE = Setup(
    name="claude-code",
    binary="claude",
    model="claude-sonnet-5",
    reads_stdin=True,
    prepare=_prepare_claude,
    write_file=lambda path, text: call_tool("Write", file_path=path, content=text),
    run_shell=lambda command: call_tool("Bash", command=command, description="Run a command"),
    read_file=lambda path: call_tool("Read", file_path=path),
    usage_limit=_claude_usage_limit,
    rate_limit=lambda: _anthropic_error(
        429, "rate_limit_error", "This request would exceed your account's rate limit. Please try again later."
    ),
    unauthorized=lambda: _anthropic_error(401, "authentication_error", "Invalid bearer token"),
    overloaded=lambda: _anthropic_error(529, "overloaded_error", "Overloaded"),
    window_headers=lambda reset: _claude_windows("allowed_warning", 0.83, reset),
)


# --- Codex

_CODEX_CONFIG = """\
model = "stub-model"
model_provider = "stub"

[model_providers.stub]
name = "stub"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "STUB_KEY"
request_max_retries = 1
stream_max_retries = 1

[features]
unbounded_connection_retries = false
"""


def _prepare_codex(home: Path, url: str) -> dict[str, str]:
    folder = home / ".codex"
    _write(folder / "config.toml", _CODEX_CONFIG.format(url=url))
    return {"CODEX_HOME": str(folder), "STUB_KEY": _FAKE_KEY, "TZ": "UTC"}


def _codex_write_file(path: str, text: str) -> Answer:
    added = "".join(f"+{line}\n" for line in text.splitlines())
    patch = f"*** Begin Patch\n*** Add File: {path}\n{added}*** End Patch\n"
    return call_tool("exec_command", cmd=f"apply_patch <<'END_OF_PATCH'\n{patch}END_OF_PATCH")


def _codex_usage_limit(reset: datetime | None) -> Fail:
    error: dict[str, Any] = {
        "type": "usage_limit_reached",
        "message": "The usage limit has been reached",
        "plan_type": "plus",
    }
    if reset is not None:
        error["resets_at"] = int(reset.timestamp())
    return fail(429, {"error": error})


CODEX = Setup(
    name="codex",
    binary="codex",
    model="stub-model",
    by_key=True,
    reads_stdin=True,
    prepare=_prepare_codex,
    write_file=_codex_write_file,
    run_shell=lambda command: call_tool("exec_command", cmd=command),
    read_file=lambda path: call_tool("exec_command", cmd=f"cat '{path}'"),
    usage_limit=_codex_usage_limit,
    rate_limit=lambda: _openai_error(429, "rate_limit_exceeded", "Rate limit reached for requests"),
    unauthorized=lambda: _openai_error(401, "invalid_api_key", "Incorrect API key provided"),
    overloaded=lambda: _openai_error(503, "server_is_overloaded", "The model is at capacity"),
)


# --- OpenCode


def _prepare_opencode(home: Path, url: str) -> dict[str, str]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "stub",
        "options": {"baseURL": f"{url}/v1", "apiKey": _FAKE_KEY},
        "models": {"stub-model": {"name": "stub"}},
    }
    config = {"provider": {"stub": provider}, "model": "stub/stub-model", "autoupdate": False, "share": "disabled"}
    folder = home / ".config" / "opencode"
    _write(folder / "opencode.json", json.dumps(config))
    # At its first start it installs a package of its own beside its settings; a test asks no registry, so the home is one
    # where that is done (measured: the vain try takes a sixth of the processor time of a whole run).
    package = {"dependencies": {"@opencode-ai/plugin": "*"}}
    _write(folder / "package.json", json.dumps(package))
    _write(folder / "package-lock.json", json.dumps({"packages": {"": package}}))
    (folder / "node_modules").mkdir(exist_ok=True)
    # It knows of no vendor's models but the stub's: to read and check its own list of all of them takes two fifths of the
    # processor time of a whole run (5.5 s in place of 8.9).
    models = folder / "models.json"
    _write(models, "{}")
    return {
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_MODELS_PATH": str(models),
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "npm_config_offline": "true",
    }


def _zen_usage_limit(reset: datetime | None) -> Fail:
    # OpenCode sleeps on `retry-after` however long it is; `retry-after-ms` wins over it and keeps a test short.
    metadata = {"workspace": "wrk_stub", "limitName": "Monthly"}
    error = {"type": "GoUsageLimitError", "message": "Monthly usage limit reached", "metadata": metadata}
    return fail(429, {"type": "error", "error": error}, _RETRY_SOON | _retry_after(reset))


OPENCODE = Setup(
    name="opencode",
    binary="opencode",
    model="stub/stub-model",
    reads_stdin=True,
    prepare=_prepare_opencode,
    write_file=lambda path, text: call_tool("write", filePath=path, content=text),
    run_shell=lambda command: call_tool("bash", command=command, description="Run a command"),
    read_file=lambda path: call_tool("read", filePath=path),
    usage_limit=_zen_usage_limit,
    rate_limit=lambda: _openai_error(429, "rate_limit_exceeded", "Rate limit reached for requests", _RETRY_SOON),
    unauthorized=lambda: _openai_error(401, "invalid_api_key", "Incorrect API key provided"),
    overloaded=lambda: _openai_error(503, "server_is_overloaded", "The model is at capacity", _RETRY_SOON),
)


# --- Grok

_GROK_CONFIG = """\
[models]
default = "stub-model"
session_summary = "stub-model"

[model.stub-model]
model = "stub-model"
base_url = "{url}/v1"
api_key = "{key}"
api_backend = "chat_completions"
context_window = 128000
max_retries = 1
"""


def _prepare_grok(home: Path, url: str) -> dict[str, str]:
    folder = home / ".grok"
    _write(folder / "config.toml", _GROK_CONFIG.format(url=url, key=_FAKE_KEY))
    return {
        "GROK_HOME": str(folder),
        "GROK_DISABLE_AUTOUPDATER": "1",
        "GROK_TELEMETRY_ENABLED": "false",
        "GROK_TURN_SUMMARY": "0",
        "GROK_SESSION_RECAP": "0",
    }


GROK = Setup(
    name="grok",
    binary="grok",
    model="stub-model",
    reads_stdin=False,
    prepare=_prepare_grok,
    write_file=lambda path, text: call_tool("write", file_path=path, content=text),
    run_shell=lambda command: call_tool("run_terminal_command", command=command, description="Run a command"),
    read_file=lambda path: call_tool("read_file", target_file=path),
    usage_limit=lambda reset: _openai_error(
        429, "usage_limit_reached", "The usage limit has been reached", _retry_after(reset)
    ),
    rate_limit=lambda: _openai_error(429, "rate_limit_exceeded", "Rate limit reached for requests"),
    unauthorized=lambda: _openai_error(401, "invalid_request_error", "Incorrect API key provided"),
    overloaded=lambda: _openai_error(503, "server_is_overloaded", "The model is at capacity"),
)


# --- Command Code


def _prepare_command_code(home: Path, url: str) -> dict[str, str]:
    provider = {
        "name": "stub",
        "api": "openai-completions",
        "baseURL": f"{url}/v1",
        "apiKey": "$STUB_KEY",
        "models": {"stub-model": {"name": "stub", "contextWindow": 128_000}},
    }
    _write(home / ".commandcode" / "providers.json", json.dumps({"provider": {"stub": provider}}))
    # It wants a login of its own before it uses another provider's key; any key does, and the address leads back here.
    return {"STUB_KEY": _FAKE_KEY, "COMMAND_CODE_API_KEY": _FAKE_KEY, "COMMANDCODE_API_URL": url}


COMMAND_CODE = Setup(
    name="command-code",
    binary="command-code",
    model="stub/stub-model",
    by_key=True,
    reads_stdin=True,
    prepare=_prepare_command_code,
    write_file=lambda path, text: call_tool("write_file", file_path=path, content=text),
    run_shell=lambda command: call_tool("shell_command", command=command),
    read_file=lambda path: call_tool("read_file", file_path=path),
    usage_limit=lambda reset: _openai_error(402, "insufficient_credits", "Insufficient credits", _retry_after(reset)),
    rate_limit=lambda: _openai_error(429, "rate_limit_exceeded", "Rate limit reached for requests"),
    unauthorized=lambda: _openai_error(401, "invalid_api_key", "Incorrect API key provided"),
    overloaded=lambda: _openai_error(503, "server_is_overloaded", "The model is at capacity"),
)


SETUPS = {setup.name: setup for setup in (CLAUDE, CODEX, OPENCODE, GROK, COMMAND_CODE)}


def _openai_error(status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> Fail:
    return fail(status, {"error": {"message": message, "type": code, "code": code}}, headers)


def _retry_after(reset: datetime | None) -> dict[str, str]:
    if reset is None:
        return {}
    return {"retry-after": str(max(1, round((reset - datetime.now(reset.tzinfo)).total_seconds())))}


def _unix(moment: datetime) -> str:
    return str(int(moment.timestamp()))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
