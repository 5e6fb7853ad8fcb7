"""Files that a worker may have had in its hands are opened only when they are files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.alarms import nobody_waits

from bullswarm_core.fast.files import open_ordinary, read_json


def test_an_ordinary_file_is_read_also_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"{}")
    (tmp_path / "link").symlink_to("file")
    for name in ("file", "link"):
        with open_ordinary(tmp_path / name) as opened:
            assert opened.read() == b"{}"
        assert read_json(str(tmp_path / name)) == {}


@pytest.mark.parametrize("what", ["pipe", "folder", "device", "missing"])
def test_nothing_else_is_and_nobody_waits_for_it(tmp_path: Path, what: str) -> None:
    place = tmp_path / "place"
    if what == "pipe":
        os.mkfifo(place)
    elif what == "folder":
        place.mkdir()
    elif what == "device":
        place.symlink_to("/dev/zero")
    with nobody_waits(what), pytest.raises(OSError, match=r"no ordinary file|Is a directory|No such file"):
        open_ordinary(place)
    assert read_json(str(place)) is None
