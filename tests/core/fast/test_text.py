"""Worker text as it is shown to a person: nothing that a terminal obeys, nothing that hides or turns; letters stay."""

from __future__ import annotations

import json
from unicodedata import category

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bullswarm_core.fast.text import one_line, plain
from bullswarm_server.displays.verdict import verdict_lines

TURNING = "".join(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C)))
HIDDEN = TURNING + "\u200b\ufeff\u00ad\u180e\u2060\u2061\u206f\ufff9\U000e0041\U000e007f"
BREAKS = "\u2028\u2029"
JOINERS = "\u200c\u200d"
CONTROLS = "".join(chr(code) for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n")
PIECES = st.text(
    st.one_of(
        st.sampled_from(HIDDEN + BREAKS + JOINERS + CONTROLS + "[31m\\ ab\t\né漢👩❤\ufe0fक\u094dمی"), st.characters()
    )
)
# Each of these is spelled with a joiner: without it another emoji, or another word, is read.
SPELLED = ("👩\u200d💻", "👩🏽\u200d🚀", "❤\ufe0f\u200d🔥", "🏳\ufe0f\u200d🌈", "می\u200cخواهم", "क्\u200dष", "ශ්\u200dරී")


@given(PIECES)
@example("\u202egnp.exe")
@example(f"a{JOINERS}b")
def test_nothing_hidden_and_nothing_obeyed_gets_through(text: str) -> None:
    for clean in (plain(text), one_line(text)):
        assert not set(clean) & set(HIDDEN + BREAKS + CONTROLS)
        for before, letter, after in zip(f" {clean}", clean, f"{clean[1:]} ", strict=False):
            if letter in JOINERS:
                assert not before.isascii() and category(before) != "Cf"
                assert not after.isascii() or before in "\u094d\u0dca" or category(before) == "Mn"


@given(PIECES)
def test_cleaning_twice_is_cleaning_once(text: str) -> None:
    assert plain(plain(text)) == plain(text)
    assert one_line(one_line(text)) == one_line(text)


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Mn"])))
def test_what_can_be_seen_stays(text: str) -> None:
    assert plain(text) == text and one_line(text) == text


@pytest.mark.parametrize("word", SPELLED)
def test_a_joiner_that_spells_a_word_or_an_emoji_stays(word: str) -> None:
    assert plain(word) == word and one_line(f"so {word} it is") == f"so {word} it is"


@pytest.mark.parametrize(
    "text", ["ab\u200dcd", "pool\u200c", "\u200d👩", "👩\u200d", "👩\u200d\u200d💻", "o\u200dо", "1\u200c2"]
)
def test_a_joiner_that_joins_nothing_goes(text: str) -> None:
    assert not set(plain(text)) & set(JOINERS)


def test_a_line_separator_parts_words_as_a_space_does() -> None:
    assert plain("one\u2028two\u2029three") == "one two three"


@given(st.text(st.sampled_from(HIDDEN + BREAKS + JOINERS + CONTROLS + "done \n")))
def test_a_verdict_shows_none_of_it_and_its_document_keeps_what_was_said(said: str) -> None:
    document = {
        "state": "finished", "ok": True, "why": said, "excerpt": f"a{said}z", "outFile": f"/w/{said}.md", "outBytes": 3,
        "changedFiles": [said], "notes": [{"text": said}], "launchNotes": [said], "routeWhy": f"{said} and",
        "pick": {"pool": "codex", "poolLabel": f"c{said}"}, "answer": said,
        "answerCheck": {"ok": True, "source": "reply", "file": said},
        "meta": {},
    }  # fmt: skip
    shown = "\n".join(verdict_lines(document))
    assert not set(shown) & set(HIDDEN + BREAKS + JOINERS + CONTROLS)
    assert json.loads(json.dumps(document, ensure_ascii=False)) == document
