"""Asks a vendor's usage endpoint: JSON over https, within seconds and a megabyte, and never anywhere else.

No redirect is followed, a proxy carries the encrypted tunnel only, and no error text holds a header: the token goes to the
address that was meant and to nobody else. Loaded only when something is really asked.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import SplitResult, urlsplit

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.errors import MeterError
from bullswarm_core.fast import VERSION

TIMEOUT_SEC = 10.0
"""A usage endpoint answers within one or two seconds; more is an outage."""
LARGEST_BYTES = 1 << 20
"""The largest usage answers are some 20 KB."""
_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Address:
    """Where a request goes: scheme, host and port, and the target after them."""

    scheme: str
    host: str
    port: int
    target: str

    @property
    def origin(self) -> tuple[str, str, int]:
        """What decides who gets the token."""
        return (self.scheme, self.host, self.port)


def address_of(url: str) -> Address:
    """Take a URL apart. Raises MeterError for one that is neither https nor http on this machine itself."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise MeterError("an endpoint is no address at all", kind="unsupported") from None
    if parts.username is not None or parts.password is not None or not host or not _is_plain(parts):
        raise MeterError("an endpoint is no plain address", kind="unsupported", hint="give https://host/path")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(host)):
        raise MeterError(
            f"the endpoint at {host} is neither https nor on this machine",
            kind="unsupported",
            hint="give an https address",
        )
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Address(parts.scheme, host, port or (443 if parts.scheme == "https" else 80), target)


def is_loopback(host: str) -> bool:
    """Tell whether ``host`` names this machine itself, so that nobody on the way can read what is sent."""
    numbers = host.split(".")
    if len(numbers) == 4 and numbers[0] == "127":
        return all(number.isascii() and number.isdigit() and int(number) < 256 for number in numbers)
    return host in _LOOPBACK_NAMES


def _is_plain(parts: SplitResult) -> bool:
    return all(" " < letter < "\x7f" for letter in parts.netloc + parts.path + parts.query)


def fetch_json(
    url: str,
    headers: Mapping[str, str],
    *,
    environ: Mapping[str, str],
    body: Any = None,
    timeout_sec: float = TIMEOUT_SEC,
) -> Any:
    """Return the JSON that ``url`` answers; POST with ``body`` as JSON where it isn't None, else GET.

    The whole exchange takes at most ``timeout_sec`` seconds, but for the look-up of the host's name. ``environ`` names the
    proxy. Raises MeterError: ``sign-in`` (401), ``limited`` (429), ``refused`` (another 4xx), ``unreachable``, ``unreadable``.
    """
    address = address_of(url)
    started = time.monotonic()
    connection = _connection(address, environ, timeout_sec)
    try:
        with _ended_by(connection, started + timeout_sec):
            status, answer_headers, data = _exchange(connection, address, headers, body)
    except (ValueError, UnicodeError):
        # What http.client says here repeats the header, which is the token.
        raise MeterError(f"what {address.host} should be sent can't be sent", kind="unreadable") from None
    except (OSError, http.client.HTTPException) as error:
        late = time.monotonic() - started >= timeout_sec
        why = f"gave no answer within {timeout_sec:g} s" if late else f"can't be reached ({_words(error)})"
        raise MeterError(f"{address.host} {why}", kind="unreachable") from None
    finally:
        _close(connection)
    _refuse(address.host, status, answer_headers)
    return _parsed(data, address.host)


def _connection(address: Address, environ: Mapping[str, str], timeout_sec: float) -> http.client.HTTPConnection:
    if address.scheme == "http":
        return http.client.HTTPConnection(address.host, address.port, timeout=timeout_sec)
    context = ssl.create_default_context()
    proxy = _proxy_for(address.host, environ)
    if proxy is None:
        return http.client.HTTPSConnection(address.host, address.port, timeout=timeout_sec, context=context)
    via, proxy_headers = proxy
    tunnelled = http.client.HTTPSConnection(via.host, via.port, timeout=timeout_sec, context=context)
    tunnelled.set_tunnel(address.host, address.port, headers=proxy_headers)
    return tunnelled


def _proxy_for(host: str, environ: Mapping[str, str]) -> tuple[Address, dict[str, str]] | None:
    """Return the http proxy that the environment names for https, with its sign-in; None where there is none for ``host``."""
    named = ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
    text = next((environ[name] for name in named if environ.get(name)), "")
    if not text or _is_bypassed(host, environ.get("no_proxy") or environ.get("NO_PROXY") or ""):
        return None
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        via = Address(parts.scheme, parts.hostname or "", parts.port or 80, "")
    except ValueError:
        via = Address("", "", 0, "")
    if via.scheme != "http" or not via.host:
        raise MeterError(
            "the proxy of the environment is no http proxy", kind="unsupported", hint="set no_proxy or https_proxy"
        )
    return via, _proxy_sign_in(parts)


def _proxy_sign_in(parts: SplitResult) -> dict[str, str]:
    if parts.username is None:
        return {}
    from base64 import b64encode
    from urllib.parse import unquote

    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return {"Proxy-Authorization": f"Basic {b64encode(pair.encode()).decode()}"}


def _is_bypassed(host: str, names: str) -> bool:
    if is_loopback(host):
        return True
    for name in names.replace(",", " ").split():
        suffix = name.lower().lstrip("*").lstrip(".")
        if name == "*" or (suffix and (host == suffix or host.endswith(f".{suffix}"))):
            return True
    return False


@contextlib.contextmanager
def _ended_by(connection: http.client.HTTPConnection, deadline: float) -> Iterator[None]:
    """Cut the connection at the deadline: a server that sends a byte now and then outlives every time-out of a socket."""

    def cut() -> None:
        sock = connection.sock
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(max(0.0, deadline - time.monotonic()), cut)
    timer.daemon = True
    timer.start()
    try:
        yield
        if time.monotonic() >= deadline:
            raise TimeoutError("too late")
    finally:
        timer.cancel()


def _exchange(
    connection: http.client.HTTPConnection, address: Address, headers: Mapping[str, str], body: Any
) -> tuple[int, Mapping[str, str], bytes]:
    sent = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": f"bullswarm/{VERSION}"}
    given = {name.lower() for name in headers}
    sent = {name: value for name, value in sent.items() if name.lower() not in given} | dict(headers)
    data = None
    if body is not None:
        data = json.dumps(body).encode()
        sent.setdefault("Content-Type", "application/json")
    connection.request("GET" if data is None else "POST", address.target, body=data, headers=sent)
    with connection.getresponse() as response:
        parts, size = [], 0
        while chunk := response.read1(_CHUNK):
            size += len(chunk)
            if size > LARGEST_BYTES:
                raise MeterError(f"{address.host} answered with more than {LARGEST_BYTES >> 20} MB", kind="unreadable")
            parts.append(chunk)
        if response.length:  # announced, and never came
            raise http.client.IncompleteRead(b"", response.length)
        return response.status, {name.lower(): value for name, value in response.getheaders()}, b"".join(parts)


def _close(connection: http.client.HTTPConnection) -> None:
    """Close the socket itself, too: an answer that broke off in its first line still holds it open."""
    sock = connection.sock
    connection.close()
    if sock is not None and (handle := sock.detach()) >= 0:
        os.close(handle)


def _refuse(host: str, status: int, headers: Mapping[str, str]) -> None:
    if 200 <= status < 300:
        return
    wait = retry_after(headers.get("retry-after"), now=datetime.now(UTC))
    if 300 <= status < 400:
        raise MeterError(f"{host} answered {status} and sends elsewhere, where no token goes", kind="unreadable")
    kinds = {401: "sign-in", 429: "limited", 408: "unreachable"}
    kind = kinds.get(status, "refused" if 400 <= status < 500 else "unreachable")
    raise MeterError(f"{host} answered {status}", kind=kind, retry_after_sec=wait)


def retry_after(text: str | None, *, now: datetime) -> float | None:
    """Read a Retry-After header, seconds or an HTTP date, as seconds from ``now``, 0 or more; None where it says nothing."""
    if text is None:
        return None
    text = text.strip()
    if text.isascii() and text.isdigit():
        return float(text[:12])
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(text)
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())


def _parsed(data: bytes, host: str) -> Any:
    def refuse(name: str) -> Any:
        raise ValueError(name)

    try:
        return json.loads(data, parse_constant=refuse)
    except (ValueError, RecursionError):
        raise MeterError(f"{host} answered something that is no JSON", kind="unreadable") from None


def _words(error: BaseException) -> str:
    """Name a failure by its kind: texts of other libraries may repeat what was sent."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return "its certificate is not trusted"
    if isinstance(error, TimeoutError):
        return "it takes too long"
    if isinstance(error, socket.gaierror):
        return "its name is unknown"
    return error.strerror or type(error).__name__ if isinstance(error, OSError) else type(error).__name__
