"""A machine in small for the tests that start workers."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.site import Site, make_site


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A machine in small; at the end nothing of it may still be running."""
    root = tmp_path / "site"
    root.mkdir()
    built = make_site(root)
    yield built
    built.close()
