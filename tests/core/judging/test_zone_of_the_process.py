"""No time is read in whatever zone a process happens to have."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

CODE = """
import json
from datetime import UTC, datetime
from bullswarm_core.fast.moments import epoch_of, iso_of
from bullswarm_core.judging.reset_times import parse_reset
from bullswarm_core.wire import iso, parse_iso
written = datetime(2026, 11, 30, 5, 0, 30, tzinfo=UTC)
texts = ["try again at 6:02 AM", "resets 8am (Europe/Berlin)", "will reset at 2026-12-01 00:35:41", "resets in 2h"]
said = [iso(parse_reset(text, written_at=written)) for text in texts]
print(json.dumps([said, iso(parse_iso("2026-11-30T06:03:00Z")), epoch_of("2026-11-30T06:03:00Z"), iso_of(1796020371)]))
"""


@pytest.mark.parametrize("zone", ["Asia/Kathmandu", "America/New_York", "XYZ-14", "no/such"])
def test_a_process_in_any_zone_reads_the_same_moments(zone: str) -> None:
    path = os.pathsep.join(entry for entry in sys.path if entry)
    said = [
        json.loads(
            subprocess.run(
                [sys.executable, "-c", CODE], env={"PYTHONPATH": path, "TZ": name}, capture_output=True, check=True
            ).stdout
        )
        for name in ("UTC", zone)
    ]
    assert said[0] == said[1]
    assert said[0][0][0] == "2026-11-30T06:03:00Z"
