"""What stands in the place of the database and is no file is told, and nobody waits for it."""

from __future__ import annotations

import os

import pytest
from tests.alarms import nobody_waits

from bullswarm_core.errors import StorageError
from bullswarm_core.store.database import open_database
from bullswarm_core.store.home import Home


@pytest.mark.parametrize("readonly", [False, True])
@pytest.mark.parametrize("what", ["pipe", "folder", "device"])
def test_no_file_in_its_place_is_told_at_once(what: str, readonly: bool) -> None:
    home = Home().ensure()
    if what == "pipe":
        os.mkfifo(home.database_file)
    elif what == "folder":
        home.database_file.mkdir()
    else:
        home.database_file.symlink_to("/dev/zero")
    with nobody_waits(what), pytest.raises(StorageError, match="it is no ordinary file"):
        open_database(home, readonly=readonly)
