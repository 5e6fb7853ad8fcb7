"""The command that is shown is the command that is run: one builder makes both."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest
from tests.server.site import ANSWER, CONNECTOR, Site

# The worker tells what it was really started with, as one JSON list.
TELL = f"""cat > /dev/null
python3 -c 'import json, sys; json.dump(sys.argv[1:], open("argv.json", "w"))' "$@"
echo '{ANSWER}'"""
LAUNCH: dict[str, Any] = {
    **CONNECTOR["launch"],
    "arguments": ["work", "--model", "its-own", "--dir", "{cwd}", "a b"],
    "modelFlag": "--model",
    "reasoning": {"arguments": ["--effort", "{reasoning}"], "levels": ["low", "high"]},
}
TIERS = {"high": {"model": "big", "reasoning": "high"}, "medium": {"model": "middle"}, "low": {"model": "small"}}


@pytest.mark.parametrize("options", [(), ("--effort", "high"), ("--model", "small", "--effort", "low")], ids=len)
def test_a_dry_run_shows_exactly_what_a_run_starts(site: Site, options: tuple[str, ...]) -> None:
    site.worker("alpha", TELL, launch=LAUNCH, tiers=TIERS)
    shown = site.run("--dry-run", *options, lane="build").document["pick"]["command"]
    verdict = site.run(*options, lane="build").document
    assert verdict["ok"], verdict
    started = json.loads((site.project / "argv.json").read_text())
    binary = str(site.root / "bin" / "alpha-cli")
    for command in (shown, verdict["pick"]["command"]):
        words = shlex.split(command)
        assert words[words.index(binary) + 1 :][: len(started)] == started, (command, started)
    assert started.count("--model") == 1 and "its-own" not in started
    assert started[started.index("--model") + 1] == {"high": "big", "low": "small"}.get(
        options[-1] if options else "", "middle"
    )
