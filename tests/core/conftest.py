"""Fixtures of the worker tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.core.keeper.keeping import Keeping


@pytest.fixture
def keeping(tmp_path: Path) -> Iterator[Keeping]:
    """Give a place for keepers in which nothing may be left running."""
    place = Keeping(tmp_path)
    yield place
    place.close()
