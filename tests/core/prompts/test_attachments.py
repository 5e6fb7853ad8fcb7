"""No at sign of a task attaches a file; mail addresses and versions stay as they are."""

import pytest

from bullswarm_core.prompts.attachments import without_attachments


@pytest.mark.parametrize("text", ["", "ask a@b.example", "git@host:x", "pkg@1.2", "no sign"])
def test_text_that_attaches_nothing_stays(text: str) -> None:
    assert without_attachments(text) == text


@pytest.mark.parametrize(
    "text", ["@/a", "see @a", "x:@/a", "(@~/a)", "\t@ /a", "@@/a", "\n@../a", ".@a", "\\@/a", "é@/a"]
)
def test_each_other_sign_is_written_otherwise_and_the_reader_is_told(text: str) -> None:
    changed = without_attachments(text)
    assert "@" not in changed and changed.startswith("In this text, ＠ is written")
    assert changed.endswith(text.replace("@", "＠"))
