"""Foreign text made harmless: what a terminal obeys and what no eye sees goes out; one line, bounded.

This is the one rule for every text of a worker, a vendor or a file that a person is shown.
"""

from __future__ import annotations

MINUTES_PER_HOUR = 60
MINUTES_PER_DAY = 1440


# Terminal control, by its code points after decoding. Never by byte value: 0x90-0x9F are ordinary continuation bytes in
# UTF-8, so that stripping bytes would break letters. A string sequence (OSC, DCS, APC, PM, SOS) that begins
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

# What has no shape of its own. Marks, embeddings, overrides and isolates turn the direction of writing and, never closed, the
# rest of a line of ours too: a goal could make its outcome read as another. Characters without a width let two different
# names look alike, and tags (U+E0000) carry whole sentences unseen. Right-to-left letters need none of them to be read.
HIDDEN = dict.fromkeys((
    0x00AD, 0x061C, 0x180E, 0x200B, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0xFEFF,
    *range(0xFFF9, 0xFFFC), *range(0x1BCA0, 0x1BCA4), *range(0x1D173, 0x1D17B), *range(0xE0000, 0xE0080),
))  # fmt: skip
# A line of its own may begin at these in one program and not in the next: for us they part words.
SPACED = dict.fromkeys((0x2028, 0x2029), " ")

# Joiners are spelling where they join: between two emoji, behind a virama, between Arabic letters (RFC 5892, appendix A.1 and
# A.2, and the emoji sequences of UTS 51). Anywhere else they are as unseen as the rest.
_VIRAMA = "\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca\u1039\u17d2"
_EMOJI = "\u2190-\u21ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
_ARABIC = "\u0620-\u065f\u066e-\u06d3\u06d5\u06fa-\u06ff\u0750-\u077f"
_STRAY_JOINER = (
    f"(?<![{_VIRAMA}])(?:(?<![{_EMOJI}\ufe0f])\u200d|\u200d(?![{_EMOJI}])|(?<![{_ARABIC}])\u200c|\u200c(?![{_ARABIC}]))"
)


def plain(text: str) -> str:
    """Return ``text`` without control sequences (CSI, OSC, DCS, APC, PM, SOS, C0, C1) and without unseen characters.

    Tabs and newlines stay; so do joiners that spell an emoji or a word. U+2028 and U+2029 become spaces.
    """
    if text.isprintable():
        return text
    import re

    seen = re.sub(_CONTROL, "", text).translate(HIDDEN | SPACED)
    return re.sub(_STRAY_JOINER, "", seen) if "\u200c" in seen or "\u200d" in seen else seen


def one_line(text: str) -> str:
    """Return ``text`` as ``plain`` leaves it, on one line, with single spaces."""
    return " ".join(plain(text).split())


def clipped(text: str, most: int) -> str:
    """Return ``text`` with at most ``most`` characters; an ellipsis says that there was more."""
    return text if len(text) <= most else text[: most - 1] + "…"


def is_text(value: str) -> bool:
    """Tell whether a text can be written as UTF-8; bytes that are no UTF-8 come in as half a surrogate pair."""
    return value.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in value)


def number(value: float) -> str:
    """``30`` for 30.0, ``-4.7`` for -4.72: at most one decimal, never ``-0``."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def duration(minutes: float) -> str:
    """``5d22h``, ``2h02m`` or ``45m``: whole minutes, rounded down; nothing below 0."""
    whole = max(0, int(minutes))
    days, rest = divmod(whole, MINUTES_PER_DAY)
    hours, rest_minutes = divmod(rest, MINUTES_PER_HOUR)
    if days:
        return f"{days}d{hours:02d}h"
    return f"{hours}h{rest_minutes:02d}m" if hours else f"{rest_minutes}m"


def minutes_and_seconds(seconds: float) -> str:
    """``11m00s`` below an hour, else as every duration stands: ``2h02m``."""
    whole = max(0, int(seconds))
    return f"{whole // 60}m{whole % 60:02d}s" if whole < 3600 else duration(whole / 60)
