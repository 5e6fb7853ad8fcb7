"""A console in another encoding turns no check mark into a crash, neither in an answer nor in an error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.server.site import Site

MARKED = "The parser is sound ✓ — every field that starts with a quote is unquoted: ü, 日本, 🐂."
ENCODINGS = ["cp1252", "ascii", "cp437:strict", "utf-16"]


def said(site: Site, encoding: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "bullswarm_server.cli.main", *words],
        env={**site.environ, "PYTHONIOENCODING": encoding, "LC_ALL": "C"}, cwd=site.project, capture_output=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_an_answer_with_any_letter_is_written(site: Site, encoding: str) -> None:
    site.worker("alpha", f"cat > /dev/null\necho '{MARKED}'")
    run = said(site, encoding, "run", "--lane", "analyze", "Look at the parser.")
    assert (run.returncode, b"Traceback" in run.stderr) == (0, False), run.stderr
    result = said(site, encoding, "runs", "result", "last")
    assert result.stdout.decode("utf-8").strip() == MARKED


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_an_error_about_any_letter_is_written(site: Site, encoding: str) -> None:
    done = said(site, encoding, "label", "✓-no-pool-日本")
    assert done.returncode == 2
    assert "✓-no-pool-日本" in done.stderr.decode("utf-8") and b"Traceback" not in done.stderr


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_status_line_is_written(site: Site, encoding: str, tmp_path: Path) -> None:
    site.worker("alpha", f"cat > /dev/null\necho '{MARKED}'")
    assert site.say("label", "alpha", "ochse✓").code == 0
    assert site.say("pools").code == 0
    done = said(site, encoding, "statusline")
    assert (done.returncode, done.stderr) == (0, b"")
    assert "ochse✓" in done.stdout.decode("utf-8")
