"""A task that the Claude Mod hands over begins soon or not at all, with real processes on both sides of the claim."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.agents.test_mod_rules import FAKE, compiled, run
from tests.processes import until
from tests.server.site import SAY, Site, make_site

from bullswarm_core.runs.journal import Journal

__all__ = ("compiled", "run")
pytestmark = pytest.mark.real_cli
Run = Callable[[str], Any]

# Processes are real ones, in the environment of the site; `late` is what the half minute to begin waits for instead.
HOST = """
const { spawn } = require('node:child_process'), { existsSync } = require('node:fs')
const running = (argv, { stdin = '' }) => new Promise((done, failed) => {
  const child = spawn(argv[0], argv.slice(1), { env: SITE, stdio: ['pipe', 'pipe', 'ignore'] })
  let stdout = ''
  child.on('error', failed)
  child.stdout.on('data', piece => { stdout += piece })
  child.on('close', exitCode => done({ exitCode, stdout, stderr: '' }))
  child.stdin.on('error', () => undefined)
  child.stdin.end(stdin)
})
const $ = fake([], { run: running, env: name => SITE[name] ?? '', cwd: SITE.PROJECT })
$.session.cwd = async () => SITE.PROJECT
$.clock.sleep = async () => { while (!existsSync(SITE.LATE)) await new Promise(done => setTimeout(done, 20)) }
const { newSession, handedOver } = require('./session')
const session = newSession()
session.isAwake = true
host.atom({ key: 'state' }, null)
await host.update(null, 'state', () => ({ delegation: true }))
const given = await handedOver($, session, { prompt: 'Explain the parser.', subagent_type: 'Explore' })
// Claude Code goes on at once, too, whatever the process does that it gave up.
process.stdout.write(JSON.stringify(given), () => process.exit(0))
await new Promise(() => undefined)
"""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    root = tmp_path / "site"
    root.mkdir()
    built = make_site(root)
    built.worker("talker", SAY)
    built.home.ensure()
    built.home.cache_dir.mkdir(exist_ok=True)
    yield built
    built.close()


def command(site: Site, script: str) -> None:
    """Let `bullswarm` be this shell script; `$GIVE` is the real thing."""
    file = site.root / "bin/bullswarm"
    file.write_text(f"#!/bin/sh\nGIVE='{sys.executable} -P -m bullswarm_server.delegate'\n{script}\n")
    file.chmod(0o755)


def handed_over(run: Run, site: Site) -> dict[str, Any]:
    environ = {**site.environ, "PROJECT": str(site.project), "LATE": str(site.root / "late")}
    found: dict[str, Any] = run(f"const SITE = {json.dumps(environ)}; {FAKE} {HOST}")["outcome"]
    return found


def runs(site: Site) -> int:
    if not site.home.database_file.exists():
        return 0
    with site.database() as connection:
        return len(Journal(connection).rows())


def test_a_process_that_hangs_before_it_begins_loses_the_task_for_good(run: Run, site: Site) -> None:
    later = site.root / "later"
    waiting = f"n=0; while [ ! -e {later} ] && [ $n -lt 1200 ]; do sleep 0.05; n=$((n+1)); done"
    # What it was asked is kept, and done when nobody waits for it any more.
    command(site, f"cat > {site.root}/asked; touch {site.root}/late; ({waiting}; "
            f"$GIVE < {site.root}/asked > {site.root}/told.part; mv {site.root}/told.part {site.root}/told) "
            "> /dev/null 2>&1 & sleep 600 > /dev/null & echo $! > "
            f"{site.root}/sleeper; wait $!")  # fmt: skip
    try:
        assert handed_over(run, site) == {"kind": "not started", "why": "bullswarm did not begin within 30 s"}
    finally:
        site.kill(int((site.root / "sleeper").read_text()))
    later.touch()
    until((site.root / "told").exists, "the process has gone on")
    told = json.loads((site.root / "told").read_text())
    assert told["event"] == "refused" and told["why"].startswith("it took too long to begin")
    assert runs(site) == 0


def test_a_process_that_has_begun_is_waited_for_however_late_it_is(run: Run, site: Site) -> None:
    site.worker("talker", f"touch {site.root}/late\nn=0; while [ ! -e {site.root}/withdrawn ] && [ $n -lt 1200 ]; do"
                f" sleep 0.05; n=$((n+1)); done\n{SAY}")  # fmt: skip
    # The mod's own try to take the task back comes while the worker works.
    mkdir = site.root / "bin/mkdir"
    mkdir.write_text(f'#!/bin/sh\n/bin/mkdir "$@"; code=$?; echo $code > {site.root}/withdrawn; exit $code\n')
    mkdir.chmod(0o755)
    command(site, "exec $GIVE")
    outcome = handed_over(run, site)
    assert (site.root / "withdrawn").read_text().strip() != "0"
    assert (outcome["kind"], outcome["ok"]) == ("ended", True) and runs(site) == 1


def test_a_task_that_is_refused_at_once_goes_back_at_once(run: Run, site: Site) -> None:
    site.say("strategy", "set-provider", "talker", "off", "--yes")
    command(site, "exec $GIVE")
    outcome = handed_over(run, site)
    assert outcome["kind"] == "not started" and outcome["why"].startswith("no ")
    assert runs(site) == 0
