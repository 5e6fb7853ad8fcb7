"""Asking a vendor: the token goes to the address that was meant, the time is bounded, and no error text holds a secret."""

from __future__ import annotations

import socket
import threading
import time
import traceback
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.meters.endpoint import Answer, endpoint

from bullswarm_core.errors import MeterError
from bullswarm_core.fast import VERSION
from bullswarm_core.meters.http import LARGEST_BYTES, address_of, fetch_json, is_loopback, retry_after

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECRET = "sk-SECRET-0123456789"
HEADERS = {"Authorization": f"Bearer {SECRET}"}


def ask(url: str, headers: dict[str, str] | None = None, **options: Any) -> Any:
    return fetch_json(url, HEADERS if headers is None else headers, environ=options.pop("environ", {}), **options)


def refused(url: str, headers: dict[str, str] | None = None, **options: Any) -> MeterError:
    """What the request fails with; neither its text nor its trace tells the token."""
    with pytest.raises(MeterError) as caught:
        ask(url, headers, **options)
    assert SECRET not in "".join(traceback.format_exception(caught.value, chain=True)).replace(repr(headers), "")
    assert SECRET not in str(caught.value) and SECRET not in repr(caught.value)
    return caught.value


def test_an_answer_comes_back_as_it_is_and_the_request_says_who_asks() -> None:
    with endpoint(Answer(b'{"used": 31.5, "name": "\xc3\xa9"}')) as vendor:
        assert ask(f"{vendor.url}/usage?format=x") == {"used": 31.5, "name": "é"}
        assert ask(vendor.url, {"user-agent": "cli/2.1"}) == {"used": 31.5, "name": "é"}
        assert ask(vendor.url, body={"project": "p"}) == {"used": 31.5, "name": "é"}
    first, second, third = vendor.asked
    assert (first.method, first.path, first.headers["authorization"]) == ("GET", "/usage?format=x", f"Bearer {SECRET}")
    assert first.headers["user-agent"] == f"bullswarm/{VERSION}"
    assert (second.headers["user-agent"], second.path) == ("cli/2.1", "/")
    assert (third.method, third.body, third.headers["content-type"]) == (
        "POST",
        b'{"project": "p"}',
        "application/json",
    )


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, "sign-in"),
        (403, "refused"),
        (404, "refused"),
        (429, "limited"),
        (500, "unreachable"),
        (503, "unreachable"),
    ],
)
def test_a_status_is_a_kind_of_trouble(status: int, kind: str) -> None:
    with endpoint(Answer(SECRET.encode(), status, {"Retry-After": "17", "X-Echo": SECRET})) as vendor:
        error = refused(vendor.url)
    assert (error.kind, error.retry_after_sec) == (kind, 17.0)
    assert error.message == f"127.0.0.1 answered {status}"


def test_a_redirect_to_another_host_never_carries_the_token() -> None:
    with endpoint() as other, endpoint() as vendor:
        for status in (301, 302, 303, 307, 308):
            vendor.answer = Answer(b"", status, {"Location": f"{other.url}/steal"})
            assert refused(vendor.url).kind == "unreadable"
        assert len(vendor.asked) == 5 and other.asked == []


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b'{"used": NaN}', b"\xff\xfe", b"[" * 100_000, b"x" * (LARGEST_BYTES + 1)]
)
def test_an_answer_that_is_no_json_or_too_large_is_unreadable(body: bytes) -> None:
    with endpoint(Answer(body)) as vendor:
        assert refused(vendor.url).kind == "unreadable"


def test_an_answer_that_breaks_off_is_unreachable() -> None:
    with endpoint(Answer(b'{"used": 3', headers={"Content-Length": "500", "Connection": "close"})) as vendor:
        assert refused(vendor.url, timeout_sec=5).kind == "unreachable"


def test_nobody_listening_is_unreachable() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        error = refused(f"http://127.0.0.1:{free.getsockname()[1]}")
    assert error.kind == "unreachable" and "127.0.0.1" in error.message


def test_silence_ends_after_the_time_out() -> None:
    with endpoint() as vendor:
        vendor.answer = Answer(before=lambda: vendor.closing.wait(30))
        started = time.monotonic()
        error = refused(vendor.url, timeout_sec=0.3)
    assert (error.kind, error.message) == ("unreachable", "127.0.0.1 gave no answer within 0.3 s")
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    "said", [b"H", b"HTTP/1.1 200 OK\r\nX-A: ", b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n"]
)
def test_a_drip_that_outlives_every_time_out_of_a_socket_is_cut(said: bytes) -> None:
    """A byte every 50 ms keeps a socket's own time-out from ever passing."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def drip() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(said)
                while not over.wait(0.05):
                    try:
                        connection.sendall(b"x")
                    except OSError:
                        return

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            started = time.monotonic()
            assert refused(f"http://127.0.0.1:{listener.getsockname()[1]}", timeout_sec=0.5).kind == "unreachable"
            assert time.monotonic() - started < 5
        finally:
            over.set()
            thread.join()


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/usage", "http://127.0.0.1.example.com/", "http://[::ffff:1.2.3.4]/", "ftp://127.0.0.1/", "file:///etc/passwd",
        "https://user:word@example.com/", "https://", "", "nonsense", "http://127.0.0.1:99999/", "https://exa mple.com/",
        "https://example.com/a\r\nHost: other", "http://127.1/", "http://0.0.0.0/",
    ],
)  # fmt: skip
def test_only_https_or_this_machine_is_asked(url: str) -> None:
    assert refused(url).kind == "unsupported"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.9.10", "::1"])
def test_what_is_this_machine(host: str) -> None:
    assert is_loopback(host)


@given(st.text(max_size=40))
def test_any_text_is_an_address_or_a_clear_refusal(text: str) -> None:
    for url in (text, f"https://{text}", f"http://localhost{text}"):
        try:
            address = address_of(url)
        except MeterError:
            continue
        assert address.scheme == "https" or is_loopback(address.host)
        assert "\r" not in address.target and "\n" not in address.target


def test_a_header_that_cannot_be_sent_is_not_repeated() -> None:
    with endpoint() as vendor:
        for value in (f"{SECRET}\r\nX: y", f"{SECRET}\n", f"{SECRET}\u2603"):
            assert refused(vendor.url, {"Authorization": value}).kind == "unreadable"
        assert vendor.asked == []


def test_a_proxy_is_a_tunnel_only() -> None:
    """The proxy learns the name of the host and nothing else: the token stays inside of the encrypted tunnel."""
    with endpoint(Answer(b"", 403)) as proxy:
        address = proxy.url.replace("http://", "http://me:word@")
        error = refused("https://api.example.invalid/usage", environ={"HTTPS_PROXY": address})
        assert error.kind == "unreachable"
        (asked,) = proxy.asked
    assert (asked.method, asked.path) == ("CONNECT", "api.example.invalid:443")
    assert SECRET not in repr(asked) and asked.headers["proxy-authorization"].startswith("Basic ")


@pytest.mark.parametrize("names", ["*", "example.invalid", ".example.invalid", "a, api.example.invalid"])
def test_no_proxy_is_heeded(names: str) -> None:
    with endpoint() as proxy:
        environ = {"https_proxy": proxy.url, "no_proxy": names}
        refused("https://api.example.invalid/", environ=environ, timeout_sec=2)
        assert proxy.asked == []


def test_this_machine_is_asked_without_a_proxy_and_another_kind_of_proxy_is_refused() -> None:
    with endpoint() as vendor, endpoint() as proxy:
        ask(vendor.url, environ={"HTTPS_PROXY": proxy.url, "ALL_PROXY": proxy.url, "http_proxy": proxy.url})
        assert (len(vendor.asked), proxy.asked) == (1, [])
    error = refused("https://api.example.invalid/", environ={"ALL_PROXY": "socks5://127.0.0.1:1"})
    assert error.kind == "unsupported"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (None, None), ("0", 0.0), ("120", 120.0), (" 7 ", 7.0), ("Sun, 01 Mar 2026 12:05:00 GMT", 300.0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0.0), ("soon", None), ("-5", None), ("1.5", None), ("", None), ("٣", None),
    ],
)  # fmt: skip
def test_retry_after_is_seconds_or_a_date(text: str | None, seconds: float | None) -> None:
    assert retry_after(text, now=NOW) == seconds


@given(st.text(max_size=30))
def test_any_retry_after_is_borne(text: str) -> None:
    found = retry_after(text, now=NOW)
    assert found is None or found >= 0


def test_a_date_that_is_named_by_the_vendor_reaches_the_error() -> None:
    at = (datetime.now(UTC) + timedelta(minutes=20)).strftime("%a, %d %b %Y %H:%M:%S GMT")
    with endpoint(Answer(b"", 429, {"Retry-After": at})) as vendor:
        error = refused(vendor.url)
    assert error.retry_after_sec is not None and 1100 < error.retry_after_sec <= 1200
