"""The sign-in that Claude Code stored for one account, read and never refreshed: a file, or the macOS keychain."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bullswarm_core._dataclasses import dataclass, field
from bullswarm_core.errors import MeterError, WorkerStartError
from bullswarm_core.meters.normalize import moment
from bullswarm_providers.sign_in import read_object
from bullswarm_providers.vendor_asking import is_over, usable_token

if TYPE_CHECKING:
    from bullswarm_core.pools.connector import PoolProfile

SECURITY = "/usr/bin/security"
# Reading the keychain takes 0.1 to 0.3 s; longer means that it asks the person, who may not be there.
_KEYCHAIN_SEC = 3.0
_KEYCHAIN_SERVICE = "Claude Code-credentials"
_SCOPE = "user:profile"
_EXPIRED = "the stored sign-in of Claude Code has expired"
REFRESH = "open Claude Code to refresh it"


@dataclass(frozen=True, slots=True)
class StoredSignIn:
    """A bearer token with the plan that was stored beside it. The token is in no ``repr`` and in no message."""

    token: str = field(repr=False)
    expires_at: datetime | None = None
    plan: str | None = None
    may_read: bool = True


def stored_sign_in(profile: PoolProfile, environ: Mapping[str, str], *, now: datetime) -> StoredSignIn:
    """Return this account's sign-in, the first one that has not expired.

    Raises MeterError: ``sign-in`` when there is none or all have expired, ``unsupported`` when it may not read usage. A
    sign-in without a time of expiry is tried: the time is advice of the file, the endpoint decides.
    """
    found = False
    for sign_in in _candidates(profile, environ):
        found = True
        if is_over(sign_in.expires_at, now):
            continue
        if not sign_in.may_read:
            raise MeterError("the stored sign-in of Claude Code may not read usage", kind="unsupported")
        return sign_in
    if found:
        raise MeterError(_EXPIRED, kind="sign-in", hint=REFRESH)
    raise MeterError("no stored sign-in of Claude Code was found", kind="sign-in", hint="run claude and type /login")


def _candidates(profile: PoolProfile, environ: Mapping[str, str]) -> Iterator[StoredSignIn]:
    for file in _files(profile, environ):
        if sign_in := sign_in_of(read_object(file)):
            yield sign_in
    if sys.platform == "darwin" and (sign_in := sign_in_of(_keychain(profile, environ))):
        yield sign_in


def _files(profile: PoolProfile, environ: Mapping[str, str]) -> Iterator[Path]:
    folder = environ.get("CLAUDE_SECURESTORAGE_CONFIG_DIR") or profile.config_dir
    if folder:
        yield Path(folder) / ".credentials.json"
    if _is_default(profile) and environ.get("HOME"):
        yield Path(environ["HOME"]) / ".config" / "claude" / "credentials.json"


def sign_in_of(document: Mapping[str, Any]) -> StoredSignIn | None:
    """Read a credentials document; None where it holds no sign-in of a subscription (only MCP servers', say)."""
    stored = document.get("claudeAiOauth")
    token = usable_token(stored.get("accessToken")) if isinstance(stored, Mapping) else None
    if not isinstance(stored, Mapping) or token is None:
        return None
    scopes = stored.get("scopes")
    return StoredSignIn(
        token,
        moment(stored.get("expiresAt")),
        _plan(stored),
        not isinstance(scopes, list) or not scopes or _SCOPE in scopes,
    )


def _plan(stored: Mapping[str, Any]) -> str | None:
    plan, tier = stored.get("subscriptionType"), stored.get("rateLimitTier")
    if not isinstance(plan, str) or not plan:
        return None
    # `default_claude_max_20x` is what tells the two plans apart that are both called max.
    times = tier.rpartition("_")[2] if isinstance(tier, str) else ""
    return f"{plan} {times}" if times.endswith("x") and times[:-1].isdigit() else plan


def _keychain(profile: PoolProfile, environ: Mapping[str, str]) -> Mapping[str, Any]:
    """Read the item of this account's folder with the system's own tool; what it says on stderr is dropped."""
    from bullswarm_core.process.child import run_child

    words = [SECURITY, "find-generic-password", "-s", keychain_service(profile), "-w"]
    keep = {name: environ[name] for name in ("HOME", "USER", "LOGNAME", "PATH") if name in environ}
    try:
        said = run_child(words, cwd="/", environ=keep, timeout_sec=_KEYCHAIN_SEC, output_limit=1 << 20)
        document = json.loads(said.stdout) if said.ok else {}
    except (WorkerStartError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def keychain_service(profile: PoolProfile) -> str:
    """Return the name of the keychain item: other homes than the default one carry a hash of their folder."""
    if _is_default(profile) or profile.config_dir is None:
        return _KEYCHAIN_SERVICE
    import hashlib

    folder = str(Path(profile.config_dir).absolute())
    return f"{_KEYCHAIN_SERVICE}-{hashlib.sha256(folder.encode()).hexdigest()[:8]}"


def _is_default(profile: PoolProfile) -> bool:
    return "CLAUDE_CONFIG_DIR" not in profile.environment
