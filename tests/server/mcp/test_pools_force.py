"""`pools` with `force`: the meters are read anew while the call waits, and what failed is said."""

from __future__ import annotations

from tests.core.meters.endpoint import Answer, endpoint
from tests.server.mcp.calling import calling
from tests.server.metered_site import LIVE, metered
from tests.server.site import Site


async def test_a_forced_reading_is_in_the_answer(site: Site) -> None:
    with endpoint() as vendor, endpoint(Answer(b"", 429)) as angry:
        vendor.tells({"5h": 30, "weekly": 40})
        metered(site, "fake", vendor.url)
        metered(site, "angry", angry.url)
        site.environ |= LIVE
        async with calling(site) as call:
            said = await call("pools", pool="fake", force=True)
            (row,) = said.document["pools"]
            assert (row["pacingUsedPct"], row["meterReadBy"]) == (40, "usage endpoint")
            assert [(one["pool"], one["step"]) for one in said.document["renewed"]] == [("fake", "live")]
            assert angry.asked == []
            said = await call("pools", force=True)
            assert "angry: 127.0.0.1 answered 429 · retry in" in said.text and not said.error
            assert {one["pool"]: one["step"] for one in said.document["renewed"]} == {"fake": "live", "angry": "failed"}
            assert (await call("pools", force="yes, please")).error
