"""Foreign text made harmless: control sequences out, one line, bounded."""

from __future__ import annotations

# Terminal control, by its code points after decoding. Never by byte value: 0x90-0x9F are ordinary continuation bytes in
# UTF-8, so that stripping bytes would break letters (bug report B34). A string sequence (OSC, DCS, APC, PM, SOS) that begins
# with ESC and is never closed ends at the end of its line. One that begins with a single C1 character counts only when it is
# closed: a quotation mark that was decoded wrongly is `â€` and U+009D, and must lose no more than that. Its body holds no
# other introducer, so that a line full of them is still read in one pass.
_INTRODUCERS = r"\x90\x98\x9d-\x9f"
_CLOSED = r"(?:\x07|\x1b\\|\x9c)"
_CONTROL = (
    rf"\x1b[\]PX^_][^\x07\x1b\x9c\n]*{_CLOSED}?"
    rf"|[{_INTRODUCERS}][^\x07\x1b\x9c\n{_INTRODUCERS}]*{_CLOSED}"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # CSI
    r"|\x1b[ -/]*[0-~]?"  # every other escape
    r"|[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]"  # C0 but tab and newline, DEL, C1
)

# What turns the direction of writing (embeddings, overrides, isolates) and, never closed, the rest of a line of ours too: a
# goal could make its outcome read as another. The marks that right-to-left text needs (U+200E, U+200F, U+061C) stay.
_TURNS = dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)))


def plain(text: str) -> str:
    """Return ``text`` without a single control sequence (CSI, OSC, DCS, APC, PM, SOS, C0, C1); tabs and newlines stay."""
    if text.isprintable():
        return text
    import re

    return re.sub(_CONTROL, "", text)


def one_line(text: str) -> str:
    """Return ``text`` without control sequences, on one line, with single spaces, in the direction in which it stands."""
    if not text.isprintable():
        text = plain(text).translate(_TURNS)
    return " ".join(text.split())


def clipped(text: str, most: int) -> str:
    """Return ``text`` with at most ``most`` characters; an ellipsis says that there was more."""
    return text if len(text) <= most else text[: most - 1] + "…"
