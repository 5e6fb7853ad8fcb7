"""Names of runs: a long id that sorts by time, and a short one that people can type."""

from __future__ import annotations

import secrets
from datetime import datetime

_BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz"
# Without 0 1 i l o, so that a short id read aloud or copied by hand can't be mistaken.
_SHORT_ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"
SHORT_ID_LENGTH = 6


def new_run_id(now: datetime) -> str:
    """Return ``wf-<base36 milliseconds>-<6 hex>``."""
    number, digits = int(now.timestamp() * 1000), ""
    while number:
        number, digit = divmod(number, 36)
        digits = _BASE36[digit] + digits
    return f"wf-{digits}-{secrets.token_hex(3)}"


def new_short_id() -> str:
    """Return six characters of an alphabet without look-alikes; the journal refuses one that is taken."""
    return "".join(secrets.choice(_SHORT_ALPHABET) for _ in range(SHORT_ID_LENGTH))
