"""A worker's environment: an exact list goes, everything else passes, the worker's own places are set."""

from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core.process.environment import GIT_LOCATORS, child_environment, is_session_variable

# The variables of an agent's session that no worker may see, written out once more.
SESSION = [
    "CLAUDECODE", "AI_AGENT", "CLAUDE_PID", "CLAUDE_EFFORT", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_SESSION_ATTENDED", "CLAUDE_CODE_EXECPATH", "CLAUDE_CODE_CHILD_NOTES_DIR",
    "CLAUDE_CODE_MESSAGING_SOCKET", "CLAUDE_CODE_MESSAGING_TOKEN", "CODEX_THREAD_ID", "CODEX_SESSION_ID",
    "CODEX_TOOL_CALL_ID", "CODEX_CI", "OPENCODE", "OPENCODE_PID", "GROK_AGENT", "GROK_SESSION_ID",
]  # fmt: skip
KEPT = [
    "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_OAUTH_TOKEN", "CODEX_HOME", "OPENCODE_CONFIG_CONTENT",
    "GROK_HOME", "GIT_AUTHOR_NAME", "GIT_CONFIG_GLOBAL", "GIT_SSH_COMMAND", "PATH", "HOME", "MY_PROJECT_KEY",
]  # fmt: skip


def child(environ: dict[str, str], **more: object) -> dict[str, str]:
    return child_environment(environ, cwd="/w", private_tmp="/t", pool_id="codex", **more)  # type: ignore[arg-type]


def test_the_callers_session_and_git_locators_are_gone_and_the_rest_is_not() -> None:
    made = child(dict.fromkeys([*SESSION, *GIT_LOCATORS, *KEPT], "x"))
    assert not set(SESSION) & set(made)
    assert not set(GIT_LOCATORS) & set(made)
    assert {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"} <= GIT_LOCATORS
    assert all(made[name] == "x" for name in KEPT)


def test_the_workers_own_places_are_set() -> None:
    made = child({"PWD": "/other", "TMPDIR": "/tmp", "TMP": "/tmp", "BULLSWARM_DEPTH": "1", "BULLSWARM_CALLER": "me"})
    assert made == {
        "PWD": "/w", "TMPDIR": "/t", "TMP": "/t", "BULLSWARM_DEPTH": "2", "BULLSWARM_CALLER": "codex",
    }  # fmt: skip


def test_keys_are_removed_and_what_is_added_wins() -> None:
    made = child({"KEY": "secret", "A": "1"}, remove=["KEY"], add={"A": "2", "KEY": "own"})
    assert made["A"] == "2"
    assert made["KEY"] == "own"


@given(st.dictionaries(st.text(min_size=1, max_size=8), st.text(max_size=8), max_size=6))
def test_the_given_environment_is_never_changed_and_unknown_names_pass(environ: dict[str, str]) -> None:
    before = dict(environ)
    made = child(environ)
    assert environ == before
    ours = {"PWD", "TMPDIR", "TMP", "TEMP", "BULLSWARM_DEPTH", "BULLSWARM_CALLER"}
    for name, value in before.items():
        if name not in ours and name not in GIT_LOCATORS and not is_session_variable(name):
            assert made[name] == value
