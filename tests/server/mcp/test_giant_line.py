"""An answer that is one giant line: a whole, small envelope with its state first, and pages to the last byte."""

from __future__ import annotations

import json

from tests.server.mcp.calling import calling
from tests.server.mcp.test_run_tool import inside, task
from tests.server.site import Site

MOST_BYTES = 8 * 1024


async def test_sixty_kilobytes_of_json_on_one_line_come_whole_in_small_answers(site: Site) -> None:
    line = json.dumps({"rows": [{"number": number, "text": 'a "quoted" wörd'} for number in range(1500)]})
    assert len(line) > 60_000 and "\n" not in line
    (site.root / "line.json").write_text(line, encoding="utf-8")
    site.worker("alpha", f"cat > /dev/null\ncat {site.root / 'line.json'}")
    async with calling(site) as call:
        said = await call("run", **task(site))
        document = said.document
        whole = len(json.dumps(document, ensure_ascii=False).encode()) + len(said.text.encode())
        assert whole <= MOST_BYTES
        # What a host that cuts the middle or the end still shows: how it went, and how to read on.
        assert said.text[:300].startswith("OK [alpha]")
        assert {"runId", "shortId", "state", "ok"} <= set(list(document)[:8])
        pieces, cursor = [inside(document["output"])], document["cursor"]
        while cursor is not None:
            page = await call("runs", op="result", run_id=document["runId"], cursor=cursor)
            assert len(json.dumps(page.document).encode()) <= MOST_BYTES
            pieces.append(inside(page.document["text"]))
            cursor = page.document.get("cursor")
    assert "".join(pieces).strip() == line
