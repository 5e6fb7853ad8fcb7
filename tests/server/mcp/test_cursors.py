"""Any whole number may be a cursor: beyond the end there is nothing, and that is no fault."""

from __future__ import annotations

import pytest
from tests.server.mcp.calling import calling
from tests.server.site import SAY, Site


@pytest.mark.parametrize("cursor", [10_000, 2**63, 10**30])
async def test_beyond_the_end_there_is_nothing(site: Site, cursor: int) -> None:
    site.worker("alpha", SAY)
    async with calling(site) as call:
        said = await call("run", prompt="Explain the parser.", lane="analyze", cwd=str(site.project))
        page = await call("runs", op="result", run_id=said.document["runId"], cursor=cursor)
        assert not page.error, page.text
        again = await call("run", run_id=said.document["runId"], cursor=cursor)
        assert not again.error, again.text
