"""Edits of the person's TOML: comments and layout stay, and taking out undoes putting in, exactly."""

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_server.integrate.errors import TextError
from bullswarm_server.integrate.toml_edit import insert, parse, remove, update, written

PATH = ("mcp_servers", "bullswarm")
ENTRY = {"command": "/opt/bin/bullswarm", "args": ["mcp"], "tool_timeout_sec": 600, "env_vars": ["BULLSWARM_HOME"]}

# Whole lines and tables of every kind that people have in such files; any order of them is a file.
ROOT_LINES = (
    'model = "gpt" # mine\n', "# a note\n", "\n", "number = 1_000\n", 'text = """\n[mcp_servers.bullswarm]\n"""\n',
    "list = [\n  1, # one\n  2,\n]\n", "'quoted key' = 'x'\n", "dotted.key = 1\n",
)  # fmt: skip
TABLES = (
    "[a]\nx = 1\n", '[mcp_servers.other]\ncommand = "a"\n\n[mcp_servers.other.env]\nK = "v"\n', "  [b] # indented\n",
    "[[list_of_tables]]\nx = 1\n\n[[list_of_tables]]\nx = 2\n", '[projects."/home/me/x.y"]\ntrust_level = "trusted"\n',
    "\n\n# only a comment\n",
)  # fmt: skip


@st.composite
def files(draw: st.DrawFn) -> str:
    lines = draw(st.lists(st.sampled_from(ROOT_LINES), unique=True, max_size=5))
    tables = draw(st.lists(st.sampled_from(TABLES), unique=True, max_size=4))
    text = "".join([*lines, *tables])
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    if draw(st.booleans()):
        text = text.rstrip("\r\n")
    return text


@given(files())
def test_taking_out_what_was_put_in_gives_the_original_bytes(text: str) -> None:
    done = insert(text, PATH, ENTRY)
    before = tomllib.loads(text)
    assert tomllib.loads(done.text) == {**before, "mcp_servers": {**before.get("mcp_servers", {}), "bullswarm": ENTRY}}
    assert remove(done.text, PATH, glue=done.glue) == text


@given(files(), st.sampled_from(TABLES))
def test_what_the_person_wrote_below_it_stays(text: str, theirs: str) -> None:
    done = insert(text, PATH, ENTRY)
    after = done.text + theirs
    try:
        expected: dict[str, Any] = tomllib.loads(after)
    except tomllib.TOMLDecodeError:  # the same table twice
        return
    left = remove(after, PATH, glue=done.glue)
    expected["mcp_servers"].pop("bullswarm")
    said = tomllib.loads(left)
    said.setdefault("mcp_servers", {})
    assert said == expected
    assert theirs.strip() in left.replace("\r\n", "\n")


def test_it_is_written_as_codex_writes_it() -> None:
    assert written(PATH, {"command": "/opt/bin/bullswarm", "args": ["mcp"]}) == (
        '[mcp_servers.bullswarm]\ncommand = "/opt/bin/bullswarm"\nargs = ["mcp"]'
    )
    key = "/home/me/.codex/hooks.json:stop:0:0"
    assert written(("hooks", "state", key), {"trusted_hash": "sha256:0"}) == (
        f'[hooks.state."{key}"]\ntrusted_hash = "sha256:0"'
    )


def test_values_are_set_and_the_rest_of_the_table_stays() -> None:
    text = (
        '# top\n[mcp_servers.bullswarm] # mine\ncommand = "/old/bullswarm" # was here\ntool_timeout_sec = 900\n\n[z]\n'
    )
    after = update(text, PATH, {"command": "/new/bullswarm", "args": ["mcp"]})
    assert after.startswith('# top\n[mcp_servers.bullswarm] # mine\ncommand = "/new/bullswarm" # was here\n')
    assert tomllib.loads(after)["mcp_servers"]["bullswarm"]["tool_timeout_sec"] == 900
    assert after.endswith("\n[z]\n")


def test_an_inline_table_takes_it_too() -> None:
    text = '# top\nmcp_servers = { other = { command = "a" } } # mine\nmodel = "x"\n'
    done = insert(text, PATH, ENTRY)
    assert tomllib.loads(done.text)["mcp_servers"] == {"other": {"command": "a"}, "bullswarm": ENTRY}
    assert "# mine" in done.text
    assert tomllib.loads(remove(done.text, PATH)) == tomllib.loads(text)


def test_tables_inside_it_and_another_spelling_go_too() -> None:
    text = '[mcp_servers . "bullswarm"]\ncommand = "x"\n# tail\n\n[mcp_servers.bullswarm.env]\nA = "b"\n[z]\ny = 1\n'
    assert remove(text, PATH) == "# tail\n[z]\ny = 1\n"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [("a = 1\nb = \n", 2, "Invalid value"), ("[x\n", 1, "Expected ']'"), ("a = 1\na = 2\n", 2, "overwrite")],
)
def test_a_broken_text_is_refused_with_its_line(text: str, line: int, message: str) -> None:
    with pytest.raises(TextError) as caught:
        parse(text)
    assert caught.value.line == line
    assert message in caught.value.message


def test_what_stands_in_the_way_is_named() -> None:
    with pytest.raises(TextError, match="mcp_servers is not a table"):
        insert("mcp_servers = 1\n", PATH, ENTRY)
    with pytest.raises(TextError, match=r"mcp_servers\.bullswarm is there already"):
        insert("[mcp_servers.bullswarm]\n", PATH, ENTRY)
    with pytest.raises(TextError, match=r"mcp_servers\.bullswarm is not there"):
        remove("[mcp_servers.x]\n", PATH)
