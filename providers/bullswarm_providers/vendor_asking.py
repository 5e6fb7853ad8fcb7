"""What the readers of usage share: where a vendor is asked, with which token, and how an answer is looked into."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from bullswarm_core.errors import MeterError

if TYPE_CHECKING:
    from bullswarm_core.quota.observation import MeterContext

# One word of visible ASCII: anything else would end up in an error of the HTTP library together with the token.
_TOKEN = re.compile(r"[!-~]{1,16384}", re.ASCII)
EXPIRY_SKEW = timedelta(seconds=60)
"""A token that ends within a minute isn't sent any more: its answer would be a refusal."""


def usable_token(value: Any) -> str | None:
    """Return a token that can stand in a header; None for anything else."""
    return value if isinstance(value, str) and _TOKEN.fullmatch(value) else None


def bearer(token: str) -> dict[str, str]:
    """Give the headers that carry a token and want JSON back."""
    return {"Authorization": f"Bearer {token}", "Accept": "application/json"}


def address(context: MeterContext, name: str) -> str:
    """Give the address of an endpoint by its name; MeterError (unsupported) when the connector has none."""
    try:
        return context.endpoints[name]
    except KeyError:
        message = f"the connector of {context.profile.provider_name} names no endpoint {name!r}"
        raise MeterError(message, kind="unsupported") from None


def member(value: Any, *keys: str) -> Any:
    """Follow object keys into an answer; None where one is missing or where there is no object."""
    for key in keys:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def items(value: Any) -> list[dict[str, Any]]:
    """Give the objects of a list in an answer, at most a hundred; whatever else it is, or holds, is nothing."""
    return [entry for entry in value[:100] if isinstance(entry, dict)] if isinstance(value, list) else []


def is_over(ends_at: datetime | None, now: datetime) -> bool:
    """Tell whether a token that is good until ``ends_at`` is one no longer; without a date nobody knows, and it counts."""
    return ends_at is not None and ends_at - EXPIRY_SKEW <= now


def no_sign_in(display_name: str, hint: str) -> MeterError:
    """Say that there is no usable sign-in to read usage with; we never refresh one."""
    return MeterError(f"{display_name} has no usable sign-in to read its usage with", kind="sign-in", hint=hint)


def nothing_told(display_name: str) -> MeterError:
    """Say that an answer came and held no quota window that could be understood."""
    return MeterError(f"{display_name} answered without a quota window that can be understood", kind="unreadable")
