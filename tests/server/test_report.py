"""The page of a workflow: it stands alone, whatever a worker wrote stays text in it, and writing it never harms a run."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.runs.journals import Written, document
from tests.processes import until
from tests.server.site import Site
from tests.server.workflows import ACTOR, begin, ended

from bullswarm_core._dataclasses import replace
from bullswarm_core.pools.labels import Labels
from bullswarm_core.reports.workflow_result import result_of
from bullswarm_core.runs.events import RunFinished
from bullswarm_core.runs.run_files import RunFolder
from bullswarm_core.runs.state import RunState
from bullswarm_core.store.home import Home
from bullswarm_server.report import FILE_NAME, report_page, write_at_end

HOSTILE = (
    "</pre></details><script>document.title='owned'</script><img src=x onerror=document.title='owned'>"
    '<style>*{display:none}</style><a href="javascript:alert(1)">x</a> &lt; " \' ]]> <!-- \x1b[2J \u202egnp.exe '
    "\ud800 ${title} $body"
)
VOID = {"meta", "link", "img", "br", "line", "rect"}
ALLOWED = {
    "html", "head", "meta", "link", "title", "style", "body", "header", "main", "h1", "h2", "p", "span", "div", "b", "svg",
    "g", "text", "line", "rect", "details", "summary", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "pre", "code",
    "a",
}  # fmt: skip


class Strict(HTMLParser):
    """Reads a page as a browser would, and refuses what is not closed, not allowed, or reaches outside."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert self.open == [], self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED, tag
        for name, value in attrs:
            assert not name.startswith("on") and name not in ("src", "style", "srcset", "action"), (tag, name)
            if name == "href":
                assert value is not None
                self.links.append(value)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, (tag, self.open[-3:])
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")


def story(text: str, folder: RunFolder) -> RunState:
    """A run in which everything that others write is ``text``."""
    program = document(
        {"id": "a", "label": text, "phase": text},
        {"id": "b", "dependsOn": ["g"]},
        gates=[{"id": "g", "dependsOn": ["a"], "note": text}],
    )
    written = Written(program, retryAttempts=1)
    written.pick("a")
    written.now += timedelta(minutes=3)
    evidence = {"type": "command", "cmd": text, "status": "failed", "why": text, "tail": text, "log": text, "exit": 1}
    written.end(
        "a", "failed-evidence", evidenceResults=[evidence], excerpt=text, changedFiles=[text], answer={text: text},
        diffFile=str(folder.path / "diff-a.patch"), meta={"wallSec": 180.0},
    )  # fmt: skip
    written.run("a", "process", retry_how="same-pool", excerpt=text)
    state = written.write(RunFinished("partial", {}))
    return replace(state, created=replace(state.created, goal=text, cwd=text))


def page_of(text: str, folder: RunFolder, labels: Labels | None = None) -> str:
    state = story(text, folder)
    labels = labels or Labels()
    result = result_of(state, "partial", folder=folder, label=labels.shown)
    return report_page(folder, state, result, labels=labels)


@given(st.text(st.characters(codec=None, exclude_categories=()), max_size=60) | st.just(HOSTILE))
def test_whatever_others_wrote_stays_text_and_no_page_reaches_outside(text: str) -> None:
    page = page_of(text, RunFolder(Path("/nowhere/wf-1")))
    parsed = Strict(page)
    assert all(link.startswith(("./", "data:,")) for link in parsed.links)
    assert page.count("<style>") == 1 and "<script" not in page and "http-equiv" in page
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x1b]", page)
    page.encode("utf-8")


def test_the_text_that_was_written_is_there_to_read() -> None:
    parsed = Strict(page_of(HOSTILE, RunFolder(Path("/nowhere/wf-1"))))
    assert "<script>document.title='owned'</script>" in parsed.text and "${title} $body" in parsed.text


def test_pools_stand_by_their_labels_and_files_beside_the_page_are_linked(tmp_path: Path) -> None:
    page = page_of("x", RunFolder(tmp_path), Labels({"codex": "work"}))
    parsed = Strict(page)
    assert "work" in parsed.text and "codex" not in parsed.text
    assert "./diff-a.patch" in parsed.links


def test_the_kernel_leaves_a_page_beside_what_the_workers_wrote(site: Site) -> None:
    site.worker("one", ACTOR)
    run_id = begin(
        site,
        document(
            {"id": "a", "phase": "one"}, {"id": "b", "dependsOn": ["a"], "lane": "build", "prompt": "WRITE made.txt"}
        ),
    )
    ended(site, run_id)
    page = site.home.workflows_dir / run_id / FILE_NAME
    until(page.exists, "the page")
    parsed = Strict(page.read_text("utf-8"))
    for words in ("2 of 2", "completed", "made.txt", "The parser splits the line"):
        assert words in parsed.text
    outputs = [link for link in parsed.links if link.startswith("./out-")]
    assert len(outputs) == 2 and all((page.parent / link).is_file() for link in outputs)
    page.unlink()
    said = site.say("runs", "report", run_id)
    assert (said.code, said.out) == (0, f"{page}\n") and page.exists()
    assert site.say("runs", "report", run_id, "--json").document["report"] == str(page)
    assert page.stat().st_mode & 0o077 == 0, "it holds what workers wrote: nobody else reads it"


def test_a_run_without_a_result_and_a_single_run_have_no_report(site: Site) -> None:
    site.worker("one", ACTOR)
    run_id = begin(site, document({"id": "w", "prompt": "WAIT"}))
    assert site.say("runs", "report", run_id).code == 2
    (site.project / "go").touch()
    ended(site, run_id)
    single = site.create()
    assert site.say("runs", "report", single.run_id).code == 2


def test_a_page_that_can_not_be_written_is_said_and_changes_nothing(tmp_path: Path) -> None:
    home = Home(tmp_path / "state")
    folder = RunFolder.of(home, "wf-1")
    folder.path.parent.mkdir(parents=True)
    folder.path.write_text("a file where the folder should be")
    said: list[str] = []
    state = story("x", folder)
    state = replace(state, finished=RunFinished("partial", result_of(state, "partial", folder=folder, label=str)))
    write_at_end(home, state, say=said.append)
    assert len(said) == 1 and said[0].startswith("no report.html")
    write_at_end(home, replace(state, finished=None), say=said.append)
    assert len(said) == 1


# --- in a browser

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def chromium(page: Path, profile: Path, *options: str) -> subprocess.CompletedProcess[str]:
    assert CHROMIUM is not None
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
        "--disable-background-networking", "--disable-component-update", f"--user-data-dir={profile}",
        "--window-size=1000,900", *options, page.as_uri(),
    ]  # fmt: skip
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=True, env={"PATH": "/usr/bin:/bin"}
    )


@contextmanager
def listening() -> Iterator[tuple[str, list[str]]]:
    """A web server of our own on this machine, and what it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: apt-get install chromium)")
def test_in_a_browser_nothing_of_a_hostile_worker_runs_and_nothing_is_asked_for(tmp_path: Path) -> None:
    with listening() as (address, asked):
        reaching = f"<img src='{address}/image'><link rel=stylesheet href='{address}/sheet'>"
        page = tmp_path / FILE_NAME
        page.write_bytes(page_of(HOSTILE + reaching, RunFolder(tmp_path)).encode("utf-8", "replace"))
        shown = chromium(page, tmp_path / "profile", "--dump-dom")
        assert asked == []
        title = re.search("<title>(.*?)</title>", shown.stdout, re.S)
        assert title is not None and title[1] != "owned" and "owned" in title[1]
        assert "<script" not in shown.stdout and "<img" not in shown.stdout and shown.stdout.count("<svg") == 1
        # Even what came through unescaped would be stopped: the page's policy forbids it.
        page.write_text(
            page_of("x", RunFolder(tmp_path)).replace(
                "</main>", f"{reaching}<script>document.title='owned'</script></main>"
            )
        )
        assert "<title>x</title>" in chromium(page, tmp_path / "profile", "--dump-dom").stdout and asked == []
        # The proof that this machine's browser would have asked.
        page.write_text(f"<!doctype html><title>t</title>{reaching}<script>document.title='owned'</script>")
        assert "<title>owned</title>" in chromium(page, tmp_path / "profile", "--dump-dom").stdout
        assert sorted(asked) == ["/image", "/sheet"]


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: apt-get install chromium)")
def test_in_a_browser_the_page_is_light_or_dark_as_the_person_likes(tmp_path: Path) -> None:
    page = tmp_path / FILE_NAME
    page.write_text(page_of("words", RunFolder(tmp_path)), "utf-8")
    pictures: dict[str, bytes] = {}
    for name, option in (("light", "--blink-settings=preferredColorScheme=1"), ("dark", "--force-dark-mode")):
        picture = tmp_path / f"{name}.png"
        chromium(page, tmp_path / name, f"--screenshot={picture}", option)
        pictures[name] = picture.read_bytes()
        assert pictures[name].startswith(b"\x89PNG") and len(pictures[name]) > 5_000
    assert pictures["light"] != pictures["dark"]


def test_a_large_run_makes_a_page_of_bounded_size(tmp_path: Path) -> None:
    written = Written(document(*({"id": f"s{number}"} for number in range(500))))
    for number in range(500):
        written.run(f"s{number}", excerpt="x" * 100_000)
    state = written.write(RunFinished("completed", {}))
    folder = RunFolder(tmp_path)
    result: dict[str, Any] = result_of(state, "completed", folder=folder, label=str)
    page = report_page(folder, state, json.loads(json.dumps(result)), labels=Labels())
    Strict(page)
    assert len(page) < 5_000_000
