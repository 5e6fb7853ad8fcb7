"""A step that failed is begun anew from the dashboard, by a real kernel and a real worker, and what comes of it is seen."""

from __future__ import annotations

import asyncio

from tests.core.runs.journals import document
from tests.server.dashboard.screens import Screens
from tests.server.site import ANSWER, Site
from tests.server.workflow_site import actors, goal

from bullswarm_server.cli.main import dispatch
from bullswarm_server.dashboard.app import Dashboard
from bullswarm_server.dashboard.rows import Place
from bullswarm_server.dashboard.source import Source

PATIENCE_SEC = 60


async def test_a_rerun_from_home_runs_to_its_end(site: Site) -> None:
    actors(site)
    program = document({"id": "mend", "prompt": "FAIL", "lane": "analyze"})
    failed = goal(site, program, "--foreground", "--retry-attempts", "0")
    assert failed.code == 1, failed
    (site.project / "mended").touch()
    app = Dashboard(Source(site.home, site.environ), call=dispatch, read_sec=None)
    async with app.run_test(size=(120, 40)) as pilot:
        screens = Screens(app, pilot)
        await screens.read()
        assert "mend needs you" in screens.text
        await screens.press("r", "enter")
        assert "done: bullswarm workflow step rerun" in screens.text
        async with asyncio.timeout(PATIENCE_SEC):
            while "completed" not in screens.text:
                await screens.read()
                await asyncio.sleep(0.1)
        assert "needs you" not in screens.text
        assert app.runs is not None
        await screens.open(Place("step", app.runs.rows[0].run_id, "mend"))
        await screens.press("tab")
        assert ANSWER[:40] in screens.text
