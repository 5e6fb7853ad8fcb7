"""A test never sees who runs it: no home, no session, no key, no terminal settings of the developer's."""

import os
from pathlib import Path

from bullswarm_core.store.home import Home
from bullswarm_providers import registry


def test_home_is_a_folder_of_this_test(own_home: Path, tmp_path_factory: object) -> None:
    assert os.environ["HOME"] == str(own_home) and list(own_home.iterdir()) == []
    assert Home().root == own_home / ".bullswarm"


def test_no_agent_and_no_key_of_the_developer_is_seen() -> None:
    for name in ("CLAUDECODE", "CODEX_THREAD_ID", "OPENCODE", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "XDG_CONFIG_HOME"):
        assert name not in os.environ
    assert (os.environ["BULLSWARM_METERS"], os.environ["GIT_CONFIG_GLOBAL"]) == ("off", os.devnull)


def test_no_account_of_the_developer_is_found(own_home: Path) -> None:
    for profile in registry.load(Home(), os.environ).profiles:
        assert profile.config_dir is None or Path(profile.config_dir).is_relative_to(own_home), profile.id
        assert profile.account is None and not (profile.signed_in and profile.billing == "subscription"), profile.id
