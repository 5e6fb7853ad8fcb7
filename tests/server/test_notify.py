"""`config.notify`: the person's command is told of a run that needs them or has ended, and can neither hold nor fail it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.core.runs.journals import document
from tests.processes import until
from tests.server.site import SAY, Site
from tests.server.workflow_site import GATED, actors, goal

from bullswarm_core.errors import StateError
from bullswarm_core.pools.settings import settings_from
from bullswarm_core.store.home import write_json


def notify_by(site: Site, command: Any) -> None:
    write_json(site.home.state_file, {"version": 1, "config": {"notify": command}})


def noted(site: Site) -> list[dict[str, str]]:
    file = site.root / "noted"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@pytest.fixture
def noting(site: Site) -> Site:
    """A command that writes a line for each call."""
    script = site.root / "bin" / "tell"
    line = '{"outcome": "%s", "id": "%s", "short": "%s", "line": "%s", "word": "%s"}\\n'
    names = ("OUTCOME", "ID", "SHORT_ID", "LINE")
    values = " ".join(f'"$BULLSWARM_RUN_{name}"' for name in names)
    script.write_text(f"#!/bin/sh\nprintf '{line}' {values} \"$1\" >> {site.root}/noted\n")
    script.chmod(0o755)
    notify_by(site, "tell 'one word'")
    return site


def test_the_end_of_a_single_run_is_told(noting: Site) -> None:
    noting.worker("one", SAY)
    run = noting.run().document
    (told,) = until(lambda: noted(noting), "the command has run")
    assert (told["outcome"], told["id"], told["short"]) == ("completed", run["runId"], run["shortId"])
    assert told["line"].startswith(f"{run['shortId']} completed: answered in") and told["word"] == "one word"


def test_a_workflow_that_waits_and_then_ends_is_told_of_twice(noting: Site) -> None:
    actors(noting, "one")
    goal(noting, GATED, "--foreground")
    until(lambda: len(noted(noting)) == 1, "the command has run")
    noting.say("workflow", "continue", "last", "g")
    noting.say("workflow", "wait", "last")
    until(lambda: len(noted(noting)) == 2, "the command has run again")
    assert [each["outcome"] for each in noted(noting)] == ["waiting", "completed"]
    assert "waiting for you at g · bullswarm runs show" in noted(noting)[0]["line"]


def test_a_step_that_comes_back_while_others_work_is_told_of_at_once(noting: Site) -> None:
    actors(noting, "one")
    noting.say("label", "one", "first")
    goal(noting, document({"id": "a", "prompt": "FAIL"}, {"id": "b", "prompt": "WAIT"}), "--retry-attempts", "0")
    until(lambda: noted(noting), "the command has run while b works")
    assert noted(noting)[0]["outcome"] == "needs-you" and "a failed (process)" in noted(noting)[0]["line"]
    noting.go()
    noting.say("workflow", "wait", "last")
    until(lambda: len(noted(noting)) == 2, "the end is told")
    assert noted(noting)[1]["outcome"] == "partial"


@pytest.mark.parametrize("command", ["no-such-command", ["false"], ["/"]])
def test_a_command_that_fails_fails_no_run(site: Site, command: Any) -> None:
    site.worker("one", SAY)
    notify_by(site, command)
    assert site.run().document["ok"] is True
    log = site.run_folder() / "kernel.log"
    until(lambda: "config.notify" in log.read_text(), "the kernel's log says so")


def test_a_command_that_never_ends_is_ended(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    from bullswarm_core._dataclasses import replace
    from bullswarm_core.dispatch.services import utc_now
    from bullswarm_core.process.identity import current
    from bullswarm_server.notify import Notifier

    site.worker("one", SAY)
    run = site.run().document
    notify_by(site, ["sh", "-c", "sleep 1000 & sleep 1000"])
    state = site.state_of(run["runId"])
    assert state.kernel is not None and utc_now() is not None
    mine = replace(state, kernel=replace(state.kernel, identity=current().to_json()))
    said: list[str] = []
    Notifier(site.home, mine, environ=site.environ, say=said.append, timeout_sec=0.2).rest(mine)
    assert said == ["config.notify: sh took longer than 0.2 s and was ended"]
    Notifier(site.home, mine, environ={**site.environ, "BULLSWARM_NOTIFYING": "1"}, say=said.append).rest(mine)
    Notifier(site.home, mine, environ=site.environ, say=said.append).rest(state)  # another kernel's end
    assert len(said) == 1


@pytest.mark.parametrize("wrong", [3, {}, [1], [""], "'", ["a\0"], "  "])
def test_what_is_no_command_is_named(site: Site, wrong: Any) -> None:
    with pytest.raises(StateError, match=r"config\.notify"):
        settings_from({"version": 1, "config": {"notify": wrong}}, file=site.home.state_file)
    assert settings_from({"config": {"notify": None}}, file=site.home.state_file).notify == ()
