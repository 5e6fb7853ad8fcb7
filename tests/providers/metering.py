"""What the tests of the usage readers share: a pool of the test's own, recorded bodies, and a vendor that answers them."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from bullswarm_core.errors import MeterError
from bullswarm_core.pools.connector import PoolProfile
from bullswarm_core.quota.observation import MeterContext, Observation
from bullswarm_core.store.home import Home
from bullswarm_providers import registry

NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
TOKEN = "secret-token-4711"
_BODIES = Path(__file__).parents[1] / "recordings" / "meters"

Answer = Any | Exception
"""What one address answers: a body, or the error that asking it ends in."""


def body(name: str) -> Any:
    """Read a recorded body."""
    return json.loads((_BODIES / f"{name}.json").read_text(encoding="utf-8"))


def with_binaries(folder: Path, *names: str) -> dict[str, str]:
    """Put executables that do nothing on a PATH of their own and give the environment of a person with them."""
    folder.mkdir(exist_ok=True)
    for name in names:
        file = folder / name
        file.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
        file.chmod(0o755)
    return {"HOME": str(Path.home()), "PATH": str(folder)}


def enable(*names: str) -> None:
    """Turn optional providers on, as a person does."""
    home = Home().ensure()
    home.providers_file.write_text(json.dumps({"enabled": list(names)}), encoding="utf-8")


def profile(pool_id: str, environ: Mapping[str, str]) -> PoolProfile:
    """Give a pool as the registry finds it."""
    found = registry.load(Home(), environ)
    assert found.problems == ()
    return found.profile(pool_id)


class Vendor:
    """Answers each address with what it was given, and keeps who asked what with which headers."""

    def __init__(self, **answers: Answer) -> None:
        self.answers = answers
        self.asked: list[tuple[str, dict[str, str], Any]] = []

    def answer(self, url: str, headers: Mapping[str, str], sent: Any = None) -> Any:
        name = url.removeprefix("http://127.0.0.1/")
        self.asked.append((name, dict(headers), sent))
        found = self.answers.get(name, MeterError("HTTP 404", kind="refused"))
        if isinstance(found, Exception):
            raise found
        return found

    def read(self, pool_id: str, environ: Mapping[str, str], *, now: datetime = NOW) -> Observation:
        """Take the live reading of a pool from this vendor."""
        pool = profile(pool_id, environ)
        endpoints = {name: f"http://127.0.0.1/{name}" for name in pool.connector.meter.endpoints}
        context = MeterContext(pool, environ, now, self.answer, endpoints, self.answer)
        reading: Observation = pool.provider.live_reading(context)
        return reading


def shown(observation: Observation) -> dict[str, tuple[float | None, str | None]]:
    """Give each window as its used percent and its reset; one of a model is named after it, too."""
    return {
        f"{window.kind} {window.scope}" if window.scope else window.kind: (
            window.used_pct,
            window.resets_at.isoformat().replace("+00:00", "Z") if window.resets_at else None,
        )
        for window in observation.windows
    }


def write(file: Path, content: Any) -> None:
    """Write a file of another program, as text or as JSON."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


NUMBERS = st.one_of(
    st.integers(),
    st.floats(),
    st.sampled_from([0, 1, 100, -1, 1e308, "12", "", "NaN", "-5", None, True, 1796041800000]),
)
TIMES = st.one_of(
    NUMBERS,
    st.datetimes(timezones=st.just(UTC)).map(datetime.isoformat),
    st.sampled_from(["2026-12-01", "2026-12-04T00:00:00Z", "2026-12-04T00:00:00.123456789Z", "soon"]),
)
JUNK = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def odd(recorded: Any) -> st.SearchStrategy[Any]:
    """Make bodies like a recorded one, in which anything may be odd, missing, or of another kind."""
    if isinstance(recorded, dict):
        fields = {key: odd(value) for key, value in recorded.items()}
        made: st.SearchStrategy[Any] = st.fixed_dictionaries({}, optional=fields)
    elif isinstance(recorded, list):
        made = st.lists(odd(recorded[0]) if recorded else JUNK, max_size=4)
    else:
        made = st.one_of(st.just(recorded), TIMES)
    return st.one_of(made, made, made, JUNK)


def assert_sane(parse: Callable[[], Observation], *, now: datetime = NOW) -> None:
    """Let a parser only ever give windows that are in range, or end in a MeterError."""
    try:
        found = parse()
    except MeterError as error:
        assert error.kind in ("unreadable", "unsupported", "sign-in", "refused")
        return
    assert found.windows
    assert len({(window.kind, window.scope) for window in found.windows}) == len(found.windows)
    for window in found.windows:
        assert window.used_pct is not None and 0 <= window.used_pct <= 1000
        assert window.captured_at == found.captured_at == now
        if window.resets_at is not None:
            assert window.resets_at > now
            assert window.reset_source == "provider"
            assert (window.resets_at - now).days <= (3660 if window.length else 32)
