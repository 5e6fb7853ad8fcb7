"""Where a use case works: the home, the environment, a clock, and the client that calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.store.home import Home

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence
    from datetime import datetime

    from bullswarm_core.dispatch.services import Services
    from bullswarm_core.pools.caller import Caller
    from bullswarm_core.pools.connector import PoolProfile


def utc_now() -> datetime:
    """Return the present time, in UTC."""
    # Every command imports this module, and most commands need no clock.
    from datetime import UTC, datetime

    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Context:
    """Where a use case works.

    ``client_name`` is the name that an MCP client gives itself, possibly empty; None where no MCP client calls.
    """

    home: Home
    environ: Mapping[str, str]
    now: Callable[[], datetime] = utc_now
    client_name: str | None = None

    def services(self, *, write_cache: bool = True) -> Services:
        """Return what the engine needs from this machine; with ``write_cache`` False nothing is written."""
        from bullswarm_server.ops.services import services_for

        return services_for(self.home, self.environ, write_cache=write_cache, now=self.now)

    def caller(self, profiles: Sequence[PoolProfile] = ()) -> Caller:
        """Return the calling agent: from BULLSWARM_CALLER, the client's name, or the environment."""
        from bullswarm_core.pools.caller import find_caller

        return find_caller(self.environ, client_name=self.client_name, profiles=profiles)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection | None]:
        """Open the home's database to read only; None while there is none."""
        from bullswarm_core.store.database import open_database

        connection = open_database(self.home, readonly=True)
        try:
            yield connection
        finally:
            # SQLite removes its own files only when the connection is closed.
            if connection is not None:
                connection.close()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Open the home's database, which is created where there is none."""
        from bullswarm_core.store.database import open_database

        connection = open_database(self.home)
        try:
            yield connection
        finally:
            connection.close()
