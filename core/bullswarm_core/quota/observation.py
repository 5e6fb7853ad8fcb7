"""What a source told of an account's quota windows, and what a provider's reader needs to ask one.

A provider that can be read has two functions in its provider.py, both taking a :class:`MeterContext`:
``passive_readings`` returns what lies about on this machine free of charge (files that the CLI wrote, newest or not);
``live_reading`` asks the CLI or the vendor's endpoint, once. Neither refreshes a token, writes a file of another program,
starts a paid turn or opens a window.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from bullswarm_core._dataclasses import dataclass, field
from bullswarm_core.errors import MeterError
from bullswarm_core.pools.model import Window

if TYPE_CHECKING:
    from bullswarm_core.pools.connector import PoolProfile

Fetch = Callable[[str, Mapping[str, str]], Any]
"""Asks one URL with these headers and returns the JSON of the answer; raises MeterError, which never holds a token."""

Post = Callable[[str, Mapping[str, str], Any], Any]
"""As Fetch, with a body that is sent as JSON: for the endpoints that read usage by POST."""


@dataclass(frozen=True, slots=True)
class Observation:
    """The windows of one account as one source told them at ``captured_at``, the moment the vendor said so.

    ``read_by`` names the source in a few words, for people: ``status line``, ``rollout``, ``app-server``, ``usage endpoint``.
    ``overage`` True says that work beyond the included quota is switched on and would be billed: the pool stops at
    100 % all the same. None is unknown, as with ``plan``. ``partial`` True says that a part of the answer could not be had or
    understood: a window that is missing from it may be open all the same.
    """

    captured_at: datetime
    windows: tuple[Window, ...] = ()
    read_by: str = ""
    plan: str | None = None
    overage: bool | None = None
    partial: bool = False


def _no_post(url: str, headers: Mapping[str, str], body: Any) -> Any:
    raise MeterError("nothing can be posted here", kind="unsupported")


@dataclass(frozen=True, slots=True)
class MeterContext:
    """What a reader may use: the pool, the variables of its CLI's environment, a clock and a way to ask a URL.

    ``endpoints`` are full addresses by name, from the packaged connector or the person's home and from nowhere else: a
    token is never sent to an address that a project or the environment names. ``fetch`` and ``post`` ask
    only hosts of ``endpoints``; the path and the query are the reader's.
    """

    profile: PoolProfile
    environ: Mapping[str, str]
    now: datetime
    fetch: Fetch
    endpoints: Mapping[str, str] = field(default_factory=dict)
    post: Post = _no_post
