"""Who is calling: explicit word, then the MCP client's name, then markers; and the account by its folder."""

import os
from pathlib import Path

import pytest

from bullswarm_core.errors import UsageError
from bullswarm_core.pools.caller import Caller, check_depth, find_caller, process_names_above, provider_of_client
from bullswarm_core.pools.connector import ConfigFolder, Connector, PoolProfile

CLAUDE = Connector("claude-code", "Claude Code", "claude", config_folder=ConfigFolder("CLAUDE_CONFIG_DIR", "~/.claude"))
ECHO = Connector("echo", "Echo", "python")


@pytest.fixture
def profiles(own_home: Path) -> list[PoolProfile]:
    return [
        PoolProfile("claude-code", CLAUDE, "/bin/claude", config_dir=str(own_home / ".claude")),
        PoolProfile("claude-code:acme", CLAUDE, "/bin/claude", config_dir=str(own_home / ".claude-acme")),
        PoolProfile("echo", ECHO, "/bin/python"),
    ]


def home_and(**more: str) -> dict[str, str]:
    return {"HOME": os.environ["HOME"], **more}


def test_nobody_calls_from_a_plain_shell(profiles: list[PoolProfile]) -> None:
    assert find_caller(home_and(), profiles=profiles) == Caller()


def test_an_explicit_word_wins_over_everything(profiles: list[PoolProfile]) -> None:
    environ = home_and(BULLSWARM_CALLER="claude-code:acme", CODEX_THREAD_ID="1")
    caller = find_caller(environ, client_name="opencode", profiles=profiles)
    assert (caller.provider, caller.pool_id) == ("claude-code", "claude-code:acme")
    assert find_caller(home_and(BULLSWARM_CALLER="none", CLAUDECODE="1"), profiles=profiles).provider is None


def test_the_mcp_clients_name_wins_over_inherited_markers(profiles: list[PoolProfile]) -> None:
    caller = find_caller(home_and(CLAUDECODE="1"), client_name="codex-mcp-client", profiles=profiles)
    assert (caller.provider, caller.pool_id) == ("codex", None)


# What each client says of itself when it connects, and the variables that tell of it in a server or a shell that it starts,
# as captured from the real ones: Claude Code 2.1.332, Codex 0.171.0, OpenCode 1.18.33, Grok 1.0.41, Command Code 1.64.0.
CLAUDE_SERVER = {
    "AI_AGENT": "claude-code_2-1-332_harness",
    "CLAUDECODE": "1",
    "CLAUDE_CODE_ENTRYPOINT": "sdk-cli",
    "CLAUDE_CODE_SESSION_ID": "4883c97c",
}
CODEX_SERVER = {"LANG": "C.UTF-8", "PATH": "/usr/bin:/bin", "TMPDIR": "/tmp", "TZ": "UTC"}
CODEX_SHELL = {
    "CODEX_CI": "1",
    "CODEX_THREAD_ID": "01a22b66",
    "CODEX_SESSION_ID": "01a22b66",
    "CODEX_VERSION": "0.171.0",
}
OPENCODE_CHILD = {"AGENT": "1", "OPENCODE": "1", "OPENCODE_PID": "21369"}
HANDSHAKES: list[tuple[dict[str, str], dict[str, str], str | None]] = [
    ({"name": "claude-code", "title": "Claude Code", "version": "2.1.332"}, CLAUDE_SERVER, "claude-code"),
    ({"name": "codex-mcp-client", "title": "Codex", "version": "0.171.0"}, CODEX_SERVER, "codex"),
    ({"name": "opencode", "version": "1.18.33"}, OPENCODE_CHILD, "opencode"),
    ({"name": "grok-shell-bullswarm", "version": "1.0.41"}, {"GROK_SESSION_ID": "s"}, "grok"),
    ({"name": "commandcode", "version": "0.1.0"}, {"COMMANDCODE_SCRATCHPAD": "/tmp/s"}, "command-code"),
    # Clients that drive no pool of ours.
    ({"name": "gemini-cli-mcp-client", "version": "0.61.0"}, {"GEMINI_CLI": "1"}, None),
    ({"name": "mcp", "version": "0.1.0"}, {}, None),
    ({"name": "opencode-fork", "version": "1"}, {}, None),
]


def no_processes() -> tuple[str, ...]:
    return ()


@pytest.mark.parametrize(("client", "server", "provider"), HANDSHAKES, ids=lambda value: str(value)[:24])
def test_each_client_is_known_by_its_handshake_whatever_else_it_inherited(
    client: dict[str, str], server: dict[str, str], provider: str | None
) -> None:
    assert provider_of_client(client["name"]) == provider
    inherited: list[dict[str, str]] = [{}] if provider is None else [{}, CLAUDE_SERVER, CODEX_SHELL, OPENCODE_CHILD]
    for outer in inherited:
        environ = home_and(**outer, **{name: value for name, value in server.items() if name not in outer})
        found = find_caller(environ, client_name=client["name"], ancestors=no_processes)
        assert found.provider == provider


@pytest.mark.parametrize(
    ("environ", "provider"),
    [
        (CLAUDE_SERVER, "claude-code"),
        (CODEX_SHELL, "codex"),
        (OPENCODE_CHILD, "opencode"),
        ({"GROK_AGENT": "1"}, "grok"),
        ({"COMMANDCODE_SESSION_ID": "s"}, "command-code"),
    ],
)
def test_in_a_shell_each_agent_is_known_by_its_markers(environ: dict[str, str], provider: str) -> None:
    assert find_caller(home_and(**environ), ancestors=no_processes).provider == provider


@pytest.mark.parametrize("name", ["", "a-client-of-tomorrow"])
def test_a_client_that_nothing_tells_is_known_by_the_processes_above(name: str) -> None:
    def above() -> tuple[str, ...]:
        return ("sh", "codex", "bash", "claude", "systemd")

    found = find_caller(home_and(**CODEX_SERVER), client_name=name, ancestors=above)
    assert (found.provider, found.why) == ("codex", "started by the process codex")
    # A person's shell is asked nothing of the kind: what stands above a terminal says little.
    assert find_caller(home_and(**CODEX_SERVER), ancestors=above).provider is None
    # A marker says more than a process.
    assert find_caller(home_and(**OPENCODE_CHILD), client_name=name, ancestors=above).provider == "opencode"
    assert find_caller(home_and(**CODEX_SERVER), client_name=name, ancestors=no_processes) == Caller()


def test_the_account_is_known_by_its_configuration_folder(profiles: list[PoolProfile]) -> None:
    default = find_caller(home_and(CLAUDECODE="1"), profiles=profiles)
    assert default == Caller("claude-code", "claude-code", "CLAUDECODE is set")
    folder = profiles[1].config_dir or ""
    acme = find_caller(home_and(CLAUDECODE="1", CLAUDE_CONFIG_DIR=folder + "/"), profiles=profiles)
    assert acme.pool_id == "claude-code:acme"
    other = find_caller(home_and(CLAUDECODE="1", CLAUDE_CONFIG_DIR="/elsewhere"), profiles=profiles)
    assert (other.provider, other.pool_id) == ("claude-code", None)


def test_of_two_inherited_markers_the_nearest_process_decides() -> None:
    environ = home_and(CLAUDECODE="1", CODEX_THREAD_ID="t")
    assert find_caller(environ, ancestors=lambda: ("sh", "claude", "sh", "codex")).provider == "claude-code"
    assert find_caller(environ, ancestors=lambda: ("sh", "codex", "claude")).provider == "codex"


def test_one_marker_needs_no_look_at_processes() -> None:
    def refuse() -> tuple[str, ...]:
        raise AssertionError("asked for processes")

    assert find_caller(home_and(OPENCODE="1"), ancestors=refuse).provider == "opencode"


def test_the_processes_above_are_named_nearest_first() -> None:
    if Path("/proc/self/stat").exists():
        assert process_names_above()[0] == Path(f"/proc/{os.getppid()}/comm").read_text(encoding="utf-8").strip()


def test_depth_is_counted_up_to_its_limit() -> None:
    assert check_depth({}) == 0
    assert check_depth({"BULLSWARM_DEPTH": "1"}, limit=2) == 1
    with pytest.raises(UsageError, match="BULLSWARM_DEPTH=2"):
        check_depth({"BULLSWARM_DEPTH": "2"}, limit=2)


@pytest.mark.parametrize("text", ["-1", "x", "1.5", "٣", "99999999999"])
def test_a_depth_that_is_no_number_is_refused_not_taken_for_zero(text: str) -> None:
    with pytest.raises(UsageError, match="BULLSWARM_DEPTH"):
        check_depth({"BULLSWARM_DEPTH": text})


@pytest.mark.parametrize(
    ("more", "folder"), [({}, ".config/opencode"), ({"XDG_CONFIG_HOME": "{home}/x"}, "x/opencode")]
)
def test_a_folder_that_depends_on_a_variable_is_the_callers_too(
    own_home: Path, more: dict[str, str], folder: str
) -> None:
    where = ConfigFolder("OPENCODE_CONFIG_DIR", "${XDG_CONFIG_HOME:-~/.config}/opencode")
    connector = Connector("opencode", "OpenCode", "opencode", config_folder=where)
    pool = PoolProfile("opencode", connector, "/bin/opencode", config_dir=str(own_home / folder))
    environ = home_and(**{name: value.format(home=own_home) for name, value in more.items()})
    assert find_caller(environ, client_name="opencode", profiles=[pool]).pool_id == "opencode"
