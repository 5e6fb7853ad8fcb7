"""Where meters may be asked: the connector's addresses, changed by nobody but the person in their own home."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bullswarm_core.errors import MeterError
from bullswarm_core.store.home import Home, read_json

if TYPE_CHECKING:
    from bullswarm_core.pools.connector import Connector
    from bullswarm_core.quota.observation import Fetch, Post


def endpoints_of(home: Home, connector: Connector) -> dict[str, str]:
    """Return the addresses by name: the connector's, and over them ``endpoints.<provider>`` of the home's providers.json.

    Raises MeterError for an address of the person's that is neither https nor on this machine, StateError for a file that
    can't be read.
    """
    document = read_json(home.providers_file, default={})
    found = dict(connector.meter.endpoints)
    for name, address in _own(document, connector.name).items():
        if not isinstance(address, str):
            raise _bad(home, connector.name, name)
        found[name] = _checked(address, home, connector.name, name)
    return found


def guarded_fetch(endpoints: Mapping[str, str], environ: Mapping[str, str]) -> Fetch:
    """Return what asks by GET, and only where one of ``endpoints`` is."""

    def fetch(url: str, headers: Mapping[str, str]) -> Any:
        return _ask(endpoints, environ, url, headers, None)

    return fetch


def guarded_post(endpoints: Mapping[str, str], environ: Mapping[str, str]) -> Post:
    """Return what asks by POST, and only where one of ``endpoints`` is."""

    def post(url: str, headers: Mapping[str, str], body: Any) -> Any:
        return _ask(endpoints, environ, url, headers, {} if body is None else body)

    return post


def _ask(
    endpoints: Mapping[str, str], environ: Mapping[str, str], url: str, headers: Mapping[str, str], body: Any
) -> Any:
    from bullswarm_core.meters.http import address_of, fetch_json

    address = address_of(url)
    if address.origin not in {address_of(known).origin for known in endpoints.values()}:
        raise MeterError(f"{address.host} is no endpoint of this provider: no token goes there", kind="unsupported")
    return fetch_json(url, headers, environ=environ, body=body)


def _own(document: Any, provider: str) -> Mapping[str, Any]:
    for name in ("endpoints", provider):
        document = document.get(name) if isinstance(document, dict) else None
    return document if isinstance(document, dict) else {}


def _checked(address: str, home: Home, provider: str, name: str) -> str:
    from bullswarm_core.meters.http import address_of

    try:
        address_of(address)
    except MeterError as error:
        raise _bad(home, provider, name) from error
    return address


def _bad(home: Home, provider: str, name: str) -> MeterError:
    return MeterError(
        f"{home.providers_file} endpoints.{provider}.{name} is neither an https address nor one on this machine",
        kind="unsupported",
        hint="correct it",
    )
