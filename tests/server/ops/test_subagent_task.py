"""What a hook asks for is checked by its form, and never by the way of a command line."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from tests.server.site import SAY, Site

COMMAND = [sys.executable, "-P", "-m", "bullswarm_server.delegate"]


def give(site: Site, **changes: Any) -> tuple[int, list[dict[str, Any]]]:
    """Give a task as a hook does; return the exit code and what was said of it."""
    request = {
        "prompt": "Explain the parser.", "lane": "analyze", "cwd": str(site.project), "waitSec": 30, "provider": "other",
        **changes,
    }  # fmt: skip
    done = subprocess.run(
        COMMAND, input=json.dumps(request), env=site.environ, capture_output=True, text=True, check=False
    )
    assert not done.stderr, done.stderr
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"lane": "dig"}, 'unknown lane "dig" · give one of analyze, build, chore'),
        ({"cwd": "project"}, "the folder 'project' is not absolute"),
        ({"cwd": 5}, "the folder 5 is not absolute"),
        ({"cwd": "/nowhere"}, "cwd /nowhere does not exist"),
        ({"cwd": "/"}, "/ is the whole machine, no project"),
        ({"prompt": ""}, "the task is empty"),
        ({"prompt": ["x"]}, "the task is empty"),
    ],
)
def test_a_wrong_request_is_refused_with_its_reason(site: Site, changes: dict[str, Any], why: str) -> None:
    site.worker("alpha", SAY)
    code, (event,) = give(site, **changes)
    assert (code, event["event"]) == (2, "refused") and why in event["why"]
    assert not site.home.database_file.exists()


def test_a_task_that_looks_like_an_option_is_a_task(site: Site) -> None:
    site.worker("alpha", SAY)
    code, events = give(site, prompt="--lane=build --pool nobody")
    assert (code, [event["event"] for event in events]) == (0, ["created", "ended"])
