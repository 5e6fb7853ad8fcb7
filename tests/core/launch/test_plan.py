"""A launch plan: the exact command, who confines it, which keys are kept from it, and what a person is shown."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core.errors import UsageError
from bullswarm_core.launch.plan import (
    Confinement,
    LaunchPlan,
    choose_reasoning,
    plan_launch,
    shown_command,
    with_option,
)
from bullswarm_core.pools import Rung
from bullswarm_core.pools.connector import REASONING_LEVELS, PoolProfile, connector_from_json
from bullswarm_core.pools.launch_rules import Reasoning
from bullswarm_core.process.environment import expand_path
from bullswarm_core.provider import LaunchAddition, LaunchContext

LAUNCH: dict[str, Any] = {
    "arguments": ["work", "--dir", "{cwd}", '{"a":{}}'],
    "environment": {"QUIET": "1"},
    "isolation": {"arguments": ["--bare"], "environment": {"BARE": "1"}},
    "modelFlag": "--model",
    "reasoning": {
        "arguments": ["--effort", "{reasoning}"], "levels": ["low", "medium", "high"], "skipModels": ["^mini-"]
    },
    "prompt": {"way": "stdin", "arguments": ["-"]},
    "lanes": {
        "analyze": {"workspace": {"arguments": ["--read"], "confinement": "cli"}},
        "build": {
            "workspace": {
                "arguments": ["--bypass"], "environment": {"IS_SANDBOX": "1"}, "confinement": "bullswarm",
                "unconfined": {"arguments": ["--ask"]},
            },
            "full": {"arguments": ["--all"], "confinement": "none"},
        },
    },
    "stateFolders": ["{configFolder}/", "~/.mine.json", "${XDG_CACHE_HOME:-~/.cache}/mine/", "relative"],
    "terminal": [{"path": "type", "equals": ["result"]}],
}  # fmt: skip


def profile(launch: Mapping[str, Any] | None = None, **more: Any) -> PoolProfile:
    data = {"schemaVersion": "v", "name": "mine", "binary": "mine", "launch": {**LAUNCH, **(launch or {})}}
    return PoolProfile(more.pop("id", "mine"), connector_from_json(data), "/bin/mine", config_dir="/h/.mine", **more)


def plan(the_profile: PoolProfile | None = None, **more: Any) -> LaunchPlan:
    options: dict[str, Any] = {
        "rung": Rung(), "lane": "build", "cwd": "/w", "prompt_file": "/r/task.md", "private_tmp": "/r/tmp",
        "environ": {"HOME": "/h"},
    } | more  # fmt: skip
    return plan_launch(the_profile or profile(), **options)


def test_the_command_is_built_in_order_and_json_braces_are_left_alone() -> None:
    made = plan(rung=Rung("big", "high"))
    assert made.argv == (
        "/bin/mine", "work", "--dir", "/w", '{"a":{}}', "--bypass", "--bare", "--model", "big", "--effort", "high", "-",
    )  # fmt: skip
    assert made.stdin_file == "/r/task.md"
    assert made.terminal == ({"path": "type", "equals": ["result"]},)
    assert made.environment["PWD"] == "/w"
    assert made.environment["TMPDIR"] == "/r/tmp"
    assert (made.environment["QUIET"], made.environment["BARE"]) == ("1", "1")


def test_no_model_means_no_flag() -> None:
    assert "--model" not in plan().argv


@pytest.mark.parametrize("name", ["--share", "-x", "a\nb"])
def test_an_option_in_place_of_a_model_never_reaches_a_cli(name: str) -> None:
    with pytest.raises(UsageError, match="is no name of a model"):
        plan(rung=Rung(name, "high"))


def test_a_file_prompt_leaves_stdin_closed() -> None:
    made = plan(profile({"prompt": {"way": "file", "arguments": ["--prompt-file", "{promptFile}"]}}))
    assert made.argv[-2:] == ("--prompt-file", "/r/task.md")
    assert made.stdin_file is None


def test_a_confined_build_may_write_its_target_its_tmp_and_the_clis_state_and_nothing_else() -> None:
    made = plan()
    folders = ("/w", "/dev/shm", "/r/tmp", "/h/.mine/", "/h/.mine.json", "/h/.cache/mine/")
    assert made.confinement == Confinement(folders)
    assert made.confinement_kind == "bullswarm"
    assert made.environment["IS_SANDBOX"] == "1"


def test_a_confined_analyze_may_not_write_its_target() -> None:
    lanes = LAUNCH["lanes"] | {"analyze": {"workspace": {"confinement": "bullswarm"}}}
    made = plan(profile({"lanes": lanes}), lane="analyze")
    assert made.confinement is not None
    assert not {"/w", "/dev/shm"} & set(made.confinement.writable)
    assert "/r/tmp" in made.confinement.writable


def test_a_cli_that_confines_itself_is_left_to_it() -> None:
    made = plan(lane="analyze")
    assert (made.confinement, made.confinement_kind) == (None, "cli")


def test_without_a_way_to_confine_the_worker_gets_no_bypass_and_a_note() -> None:
    made = plan(can_confine=False)
    assert "--bypass" not in made.argv
    assert "--ask" in made.argv
    assert "IS_SANDBOX" not in made.environment
    assert (made.confinement, made.confinement_kind) == (None, "none")
    assert any("no way to confine" in note for note in made.notes)


def test_full_is_the_persons_way_out() -> None:
    made = plan(sandbox="full")
    assert "--all" in made.argv
    assert (made.confinement, made.confinement_kind) == (None, "none")
    assert made.notes == ()


def test_inherited_configuration_drops_isolation() -> None:
    made = plan(inherit_config=True)
    assert "--bare" not in made.argv
    assert "BARE" not in made.environment


def test_withheld_variables_are_kept_from_the_worker_and_named() -> None:
    the_profile = profile(withheld=("API_KEY", "NOT_SET"), billing="subscription", environment={"ACCOUNT": "/h/.mine"})
    made = plan(the_profile, environ={"HOME": "/h", "API_KEY": "sk-1234567890", "ACCOUNT": "/other"})
    assert "API_KEY" not in made.environment
    assert made.environment["ACCOUNT"] == "/h/.mine"
    assert made.removed == ("API_KEY",)
    assert any("API_KEY" in note for note in made.notes)
    assert made.billing == "subscription"


def test_a_provider_adds_to_the_launch() -> None:
    class Module:
        @staticmethod
        def launch_addition(context: LaunchContext) -> LaunchAddition:
            return LaunchAddition(("--isolated", str(context.isolated)), {"EXTRA": context.lane}, ("a note",))

    made = plan(profile(provider=Module))
    assert made.argv[made.argv.index("--isolated") + 1] == "True"
    assert made.environment["EXTRA"] == "build"
    assert "a note" in made.notes


def test_a_missing_binary_and_an_unknown_sandbox_are_usage_errors() -> None:
    missing = PoolProfile("mine", profile().connector, None, unavailable="mine was not found on PATH")
    with pytest.raises(UsageError, match="not found"):
        plan(missing)
    with pytest.raises(UsageError, match="sandbox 'none'"):
        plan(sandbox="none")


@pytest.mark.parametrize(
    ("argv", "result"),
    [
        (["a"], ["a", "--model", "x"]),
        (["--model", "y", "b"], ["--model", "x", "b"]),
        (["--model=y"], ["--model=x"]),
        (["--model"], ["--model", "--model", "x"]),
        (["--models", "y"], ["--models", "y", "--model", "x"]),
    ],
)
def test_an_option_is_replaced_where_it_stands_or_appended(argv: list[str], result: list[str]) -> None:
    assert with_option(argv, "--model", "x") == result


def test_a_repeated_config_flag_is_replaced_by_its_own_key_only() -> None:
    reasoning = {"arguments": ["-c", "effort={reasoning}"], "levels": ["low", "high"]}
    made = plan(
        profile({"arguments": ["-c", "other=1", "-c", "effort=low"], "reasoning": reasoning}), rung=Rung(None, "high")
    )
    assert made.argv[1:5] == ("-c", "other=1", "-c", "effort=high")
    assert sum(word.startswith("effort=") for word in made.argv) == 1


# --- reasoning

ACCEPTED = Reasoning(("--effort", "{reasoning}"), ("low", "medium", "high"), ("^mini-",))


@pytest.mark.parametrize(
    ("asked", "applied", "clamped"),
    [
        ("medium", "medium", False),
        ("max", "high", True),
        ("xhigh", "high", True),
        ("minimal", "low", True),
        ("default", None, False),
        (None, None, False),
    ],
)
def test_a_level_is_clamped_down_and_below_the_lowest_up(asked: str | None, applied: str | None, clamped: bool) -> None:
    choice = choose_reasoning(ACCEPTED, Rung("m", asked, level_source="request"))
    assert (choice.requested, choice.applied, choice.clamped, choice.source) == (asked, applied, clamped, "request")


def test_a_model_without_reasoning_gets_none_and_an_unknown_level_is_refused() -> None:
    assert choose_reasoning(ACCEPTED, Rung("mini-1", "high")).applied is None
    with pytest.raises(UsageError, match="'banana' is none of low, medium, high"):
        choose_reasoning(ACCEPTED, Rung("m", "banana"))
    assert choose_reasoning(Reasoning(("-v", "{reasoning}"), None), Rung("m", "banana")).applied == "banana"
    assert choose_reasoning(Reasoning(), Rung("m", "high")).applied is None


@given(st.sampled_from(REASONING_LEVELS), st.sets(st.sampled_from(REASONING_LEVELS), min_size=1))
def test_a_clamped_level_is_never_above_the_asked_one_unless_all_are(asked: str, accepted: set[str]) -> None:
    applied = choose_reasoning(Reasoning(("-e", "{reasoning}"), tuple(accepted)), Rung(None, asked)).applied
    assert applied in accepted
    rank = REASONING_LEVELS.index
    below = [level for level in accepted if rank(level) <= rank(asked)]
    assert applied == (max(below, key=rank) if below else min(accepted, key=rank))


# --- paths and what is shown


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("~/.a", "/h/.a"),
        ("~", "/h"),
        ("${XDG_CACHE_HOME:-~/.cache}/a/", "/h/.cache/a/"),
        ("${SET:-~/.cache}/a", "/set/a"),
        ("/a/../b", "/b"),
        ("a/b", None),
        ("", None),
    ],
)
def test_paths_are_expanded_with_the_given_environment(text: str, result: str | None) -> None:
    assert expand_path(text, {"HOME": "/h", "SET": "/set"}) == result


def test_the_shown_command_can_be_typed_and_shows_no_secret() -> None:
    the_profile = profile(withheld=("API_KEY",), environment={"MY_TOKEN": "tok-123456789", "ACCOUNT": "/h/a b"})
    launch = plan(
        the_profile,
        rung=Rung("it's"),
        environ={"HOME": "/h", "API_KEY": "sk-1234567890", "OTHER_SECRET": "/bin/mine-secret-x"},
    )
    shown = shown_command(launch)
    assert "sk-1234567890" not in shown
    assert "tok-123456789" not in shown
    assert "env -u API_KEY" in shown
    assert "ACCOUNT='/h/a b'" in shown
    assert "MY_TOKEN=…" in shown
    assert """--model 'it'"'"'s'""" in shown
    assert shown.endswith("< /r/task.md")


def test_a_secret_that_stands_in_an_argument_is_hidden() -> None:
    launch = plan(
        profile({"arguments": ["--header", "bearer sk-1234567890"]}), environ={"HOME": "/h", "A_KEY": "sk-1234567890"}
    )
    assert "sk-1234567890" not in shown_command(launch)
