"""Asks what a Codex account has used: its own rollouts first, then Codex's app-server, then the vendor's endpoint.

The app-server needs no token of ours and knows a sign-in that lies in a keyring; it opens no session (measured with 0.171).
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from bullswarm_core.errors import BullswarmError, MeterError, WorkerStartError
from bullswarm_core.fast import VERSION
from bullswarm_core.fast.tree import temporary_folder
from bullswarm_core.meters.normalize import moment
from bullswarm_core.process.environment import child_environment
from bullswarm_core.process.json_rpc import LineRpc, Reply
from bullswarm_core.quota.observation import MeterContext, Observation
from bullswarm_providers.codex.usage import app_server_reading, http_reading
from bullswarm_providers.sign_in import read_object
from bullswarm_providers.vendor_asking import bearer, is_over, usable_token

ENDPOINT = "usage"
# An answer takes 0.2 s, a first start 1 s; on a loaded machine, or with the vendor slow, some seconds.
_ASK_SEC = 15.0
# Without them it asks the vendor for the list of plug-ins, too.
_QUIET = ("--disable", "hooks", "--disable", "plugins", "--disable", "apps")
_METHOD_NOT_FOUND = -32601
_STATUS = re.compile(r"\bfailed: ([1-5][0-9]{2})\b")
_LOGIN = "run codex login"
_REFRESH = "open Codex to refresh it"


def live_reading(context: MeterContext) -> Observation:
    """Ask Codex's app-server, and the usage endpoint only where there is no app-server that answers. Raises MeterError."""
    if context.profile.billing == "api-key":
        raise MeterError("work by an API key has no usage windows", kind="unsupported")
    try:
        reply = ask_app_server(context)
    except (MeterError, WorkerStartError) as error:
        return _by_http(context, instead_of=error)
    if reply.code == _METHOD_NOT_FOUND:
        return _by_http(context, instead_of=MeterError("this Codex can't be asked for usage", kind="unsupported"))
    if reply.code is not None:
        raise refusal(reply)
    reading = app_server_reading(reply.result, now=context.now)
    if reading is None:
        return _by_http(context, instead_of=MeterError("Codex's app-server told no usage", kind="unreadable"))
    return reading


def ask_app_server(context: MeterContext) -> Reply:
    """Start the app-server in an empty folder and ask it once, for at most 15 s; nothing of it is left behind.

    Raises MeterError or WorkerStartError when it can't be asked.
    """
    profile = context.profile
    if profile.binary is None:
        raise WorkerStartError("codex was not found on PATH")
    with temporary_folder("bullswarm-meter-") as folder:
        environ = child_environment(
            context.environ,
            cwd=folder,
            private_tmp=folder,
            pool_id=profile.id,
            remove=profile.withheld,
            add=profile.environment,
        )
        words = [profile.binary, "app-server", *_QUIET]
        with LineRpc(words, cwd=folder, environ=environ, timeout_sec=_ASK_SEC) as server:
            hello = server.ask("initialize", {"clientInfo": {"name": "bullswarm", "version": VERSION}})
            if hello.code is not None:
                raise MeterError("Codex's app-server refused to begin", kind="unsupported")
            server.tell("initialized")
            return server.ask("account/rateLimits/read", {"excludeResetCreditDetails": True})


def refusal(reply: Reply) -> MeterError:
    """Say why the app-server gave no reading. Its words repeat the vendor's whole answer, so none of them are shown."""
    said = reply.message.casefold()
    if "chatgpt authentication required" in said:
        return MeterError("Codex is signed in by an API key, which has no usage windows", kind="unsupported")
    if "authentication required" in said:
        return MeterError("Codex is not signed in", kind="sign-in", hint=_LOGIN)
    status = _STATUS.search(reply.message)
    if status is None:
        return MeterError("Codex could not reach its usage endpoint", kind="unreachable")
    told = f"Codex's usage endpoint answered {status[1]}"
    if status[1] == "401":
        return MeterError(told, kind="sign-in", hint=_REFRESH)
    if status[1] == "429":
        return MeterError(told, kind="limited")
    return MeterError(told, kind="refused" if status[1] < "500" else "unreachable")


def _by_http(context: MeterContext, *, instead_of: BullswarmError) -> Observation:
    address = context.endpoints.get(ENDPOINT)
    if not address:
        raise _as_meter_error(instead_of)
    headers = _headers(context, instead_of)
    try:
        answer = context.fetch(address, headers)
    except MeterError as error:
        error.hint = error.hint or (_REFRESH if error.kind == "sign-in" else None)
        raise
    reading = http_reading(answer, now=context.now)
    if reading is None:
        raise MeterError("the usage endpoint of Codex gave an answer without any window", kind="unreadable")
    return reading


def _headers(context: MeterContext, instead_of: BullswarmError) -> dict[str, str]:
    """Return the headers with the stored token, or raise; a token about to expire isn't worth a request."""
    tokens = read_object(Path(context.profile.config_dir or "") / "auth.json").get("tokens")
    stored: Mapping[str, Any] = tokens if isinstance(tokens, dict) else {}
    token, account = usable_token(stored.get("access_token")), usable_token(stored.get("account_id"))
    if token is None:
        raise _as_meter_error(instead_of)
    if is_over(token_expiry(token), context.now):
        raise MeterError("the stored sign-in of Codex has expired", kind="sign-in", hint=_REFRESH)
    return bearer(token) | ({"ChatGPT-Account-Id": account} if account else {})


def token_expiry(token: str) -> datetime | None:
    """Return when a JSON web token expires; None for one that can't be read. Nobody's signature is checked."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, RecursionError):
        return None
    return moment(claims.get("exp")) if isinstance(claims, dict) else None


def _as_meter_error(error: BullswarmError) -> MeterError:
    if isinstance(error, MeterError):
        return error
    return MeterError(error.message, kind="unreachable", hint=error.hint)
