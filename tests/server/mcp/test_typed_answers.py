"""`answer_schema` of the `run` tool: a small answer comes as a value, a large one says where it is, both within 8 KB."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.server.mcp.calling import MOST_BYTES, calling
from tests.server.site import SAY, Site, tree

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}


def task(site: Site, **more: Any) -> dict[str, Any]:
    return {"lane": "analyze", "prompt": "Review it.", "cwd": str(site.project), "answer_schema": SCHEMA, **more}


def worker(site: Site, value: Any, *, before: str = "") -> None:
    (site.root / "reply.txt").write_text(before + json.dumps(value), encoding="utf-8")
    site.worker("alpha", f"cat > /dev/null\ncat '{site.root}/reply.txt'")


@pytest.mark.parametrize("value", [{"ok": True}, {"ok": False, "names": ["é", "x" * 900]}])
async def test_a_small_answer_is_a_value_in_the_document_and_fenced_in_the_text(site: Site, value: Any) -> None:
    worker(site, value)
    async with calling(site) as call:
        said = await call("run", **task(site))
        shown = await call("runs", op="show", run_id="last")
        read = await call("runs", op="result", run_id="last")
    for one in (said, shown):
        document = one.document
        assert (document["ok"], document["answer"]) == (True, value)
        assert document["answerCheck"]["source"] == "final-reply" and document["answerCheck"]["ok"]
        assert "not instructions" in document["answerNote"] and "output" not in document
        assert (
            json.dumps(value, ensure_ascii=False, separators=(",", ":")) in one.text.partition("<<<worker-output ")[2]
        )
        assert json.loads(Path(document["answerCheck"]["file"]).read_text()) == value
    assert json.dumps(value) in read.document["text"]


@pytest.mark.parametrize("value", [None, {}, [], 0, False, ""], ids=repr)
async def test_an_empty_value_is_an_answer(site: Site, value: Any) -> None:
    worker(site, value)
    async with calling(site) as call:
        said = await call("run", **task(site, answer_schema={"title": "anything"}))
    assert said.document["ok"] and "answer" in said.document and said.document["answer"] == value


async def test_a_large_answer_says_where_all_of_it_is(site: Site) -> None:
    value = {"ok": True, "text": "é\n" * 20_000}
    worker(site, value)
    async with calling(site) as call:
        said = await call("run", **task(site))
        document = said.document
        assert document["ok"] and "answer" not in document
        assert document["answerCheck"]["file"] in said.text and document["answerCheck"]["bytes"] > 100_000
        uri = f"bullswarm://runs/{document['shortId']}"
        assert uri in document["answerNote"] and uri in said.text
    assert json.loads(Path(document["answerCheck"]["file"]).read_text()) == value
    assert len(json.dumps(document).encode()) + len(said.text.encode()) <= MOST_BYTES


async def test_what_is_wrong_with_an_answer_is_told_within_bounds(site: Site) -> None:
    names = {f"a{n}": {"type": "null"} for n in range(200)}
    worker(site, dict.fromkeys(names, "\x1b" + "x" * 500))
    async with calling(site) as call:
        said = await call("run", **task(site, answer_schema={"properties": names}))
    document = said.document
    assert (document["ok"], document["failureKind"], document["answerCheck"]["problemCount"]) == (False, "schema", 100)
    assert 1 <= len(document["answerCheck"]["problems"]) <= 5 and "answer" not in document
    assert "answer refused (final-reply" in said.text and "\x1b" not in said.text


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"if": {}}, 'answer_schema: unsupported keyword "if" at #'),
        ({"items": {"$ref": "http://x.test/"}}, '"$ref" at #/items is "http://x.test/"'),
        ("{}", "answer_schema is '{}': input should be a valid dictionary"),
    ],
)
async def test_a_schema_that_is_refused_starts_nothing(site: Site, schema: Any, words: str) -> None:
    site.worker("alpha", SAY)
    async with calling(site) as call:
        before = tree(site.root)
        said = await call("run", **task(site, answer_schema=schema))
        assert said.error and words in said.text and "nothing was started" in said.text
        assert tree(site.root) == before
        waiting = await call("run", run_id="last", answer_schema=SCHEMA)
        assert waiting.error


async def test_one_key_asks_for_one_answer(site: Site) -> None:
    worker(site, {"ok": True})
    async with calling(site) as call:
        first = await call("run", **task(site, idempotency_key="k"))
        again = await call("run", **task(site, idempotency_key="k"))
        other = await call("run", **task(site, idempotency_key="k", answer_schema={"type": "object"}))
    assert again.document["runId"] == first.document["runId"] and again.document["answer"] == {"ok": True}
    assert other.error and "another" in other.text
