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


def plain(text: str) -> str:
    """Return ``text`` without a single control sequence (CSI, OSC, DCS, APC, PM, SOS, C0, C1); tabs and newlines stay."""
    if text.isprintable():
        return text
    import re

    return re.sub(_CONTROL, "", text)


def one_line(text: str) -> str:
    """Return ``text`` without control sequences, on one line, with single spaces."""
    return " ".join(plain(text).split())


def clipped(text: str, most: int) -> str:
    """Return ``text`` with at most ``most`` characters; an ellipsis says that there was more."""
    return text if len(text) <= most else text[: most - 1] + "…"
