"""Which commands of a shell line are ours: rather too few than a wrong one."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_hooks.shell import bullswarm_commands, quoted, with_variable


def told(text: str) -> str:
    return with_variable(text, bullswarm_commands(text), "BULLSWARM_CALLER", "claude-code:acme")


SET = "BULLSWARM_CALLER=claude-code:acme"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bullswarm run --lane build x", f"{SET} bullswarm run --lane build x"),
        ("A=1 B='2 3' /opt/x/bullswarm route --lane build", f"{SET} A=1 B='2 3' /opt/x/bullswarm route --lane build"),
        ("cd /srv && bullswarm run x; echo done", f"cd /srv && {SET} bullswarm run x; echo done"),
        ("(bullswarm run x) > out 2>&1 &", f"({SET} bullswarm run x) > out 2>&1 &"),
        ("if true; then bullswarm workflow goal x; fi", f"if true; then {SET} bullswarm workflow goal x; fi"),
        ("bullswarm run a | tee log\nbullswarm run b", f"{SET} bullswarm run a | tee log\n{SET} bullswarm run b"),
        ("'bullswarm' run x", f"{SET} 'bullswarm' run x"),
        (">out bullswarm run x", f">out {SET} bullswarm run x"),
        ("bullswarm \\\n  run x", f"{SET} bullswarm \\\n  run x"),
        ('bullswarm run --prompt "$(cat task.md)"', f'{SET} bullswarm run --prompt "$(cat task.md)"'),
        ("bullswarm run --task-file - <<'EOF'\nbullswarm run in text\nEOF",
         f"{SET} bullswarm run --task-file - <<'EOF'\nbullswarm run in text\nEOF"),
        ("bullswarm run x # bullswarm run y", f"{SET} bullswarm run x # bullswarm run y"),
    ],
)  # fmt: skip
def test_the_caller_is_told_to_our_commands(text: str, expected: str) -> None:
    assert told(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "echo bullswarm run x",
        "echo 'a; bullswarm run x'",
        'git commit -m "bullswarm run x"',
        "bullswarm pools",
        "bullswarm",
        "mybullswarm run x",
        "bullswarm$X run x",
        "$BIN/bullswarm run x",
        "`bullswarm run x`",
        "grep bullswarm run",
        "cat <<EOF\nbullswarm run x\nEOF",
        "for x in bullswarm run; do echo; done",
        "env bullswarm run x",
        "bullswarm-hook run x",
        '"bullswarm run" x',
        "a=$(bullswarm run x)",
        "",
        "\0",
    ],
)
def test_nothing_else_is_touched(text: str) -> None:
    assert bullswarm_commands(text) == []
    assert told(text) == text


@pytest.mark.parametrize(
    ("text", "pin"),
    [
        ("bullswarm run --pool me x", "me"),
        ("bullswarm run --pool=me x", "me"),
        ("bullswarm run --pool 'a b' x", "a b"),
        ('bullswarm run "--pool" "me" x', "me"),
        ("bullswarm run --pool $P x", None),
        ("bullswarm run --pool", None),
        ("bullswarm run -- --pool me", None),
        ("bullswarm run x && echo --pool me", None),
        ("bullswarm run --use-pool me", None),
    ],
)
def test_a_pin_is_read_only_where_it_is_certain(text: str, pin: str | None) -> None:
    (command,) = bullswarm_commands(text)
    assert command.option("--pool") == pin


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12), max_size=6))
def test_words_are_read_as_a_shell_reads_them(words: list[str]) -> None:
    line = shlex.join(["bullswarm", "run", *words])
    (command,) = bullswarm_commands(line)
    assert command.words == ["bullswarm", "run", *words]
    assert shlex.split(told(line)) == [SET, "bullswarm", "run", *words]


@given(st.text(alphabet="bullswarm run'\"\\$`;&|<>(){}#=\n\t -", max_size=80))
def test_any_text_is_read_to_an_end_and_only_added_to(text: str) -> None:
    added = told(text)
    assert added.replace(f"{SET} ", "") == text


@given(st.text(max_size=30))
def test_a_quoted_value_is_one_word(value: str) -> None:
    assert shlex.split(quoted(value)) == [value]
