"""A comment cites only what the repository holds: no absent paper, and of the design pages only headings that are there.

A reader who can't follow a citation learns nothing from it. So a rule is written out where it applies, or cited as
``docs/design/<page>.md, "<heading>"``; more headings of the same page may follow, behind a comma or ``and``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DESIGN = ROOT / "docs" / "design"
_FOLDERS = ("core", "providers", "server", "hooks", "claude-mod", "tests", "docs", ".ci")
_SUFFIXES = {".py", ".ts", ".tsx", ".js", ".mjs", ".md", ".toml", ".sh", ""}
_NOT_OURS = {"node_modules", "__pycache__", ".venv", "recordings", "snapshots"}
# The beginnings of lines that continue a comment: a citation may run over the end of a line.
_LINE_BREAK = re.compile(r"\s*\n\s*(?:#|//|\*)?\s*")
# How the papers behind the first versions were cited: by number of section, decision, trap or report, or by their names.
ABSENT = re.compile(
    r"\breference (?:judging|routing|providers|traps?|runs-and-workflows|cli-config)\b|\breference \d+\.\d|[#\"] ?reference: "
    r"|\breference program|\bjudging \d+\.\d|\bdesign D\d|\(D\d+\)|\btraps? \d|\bbug reports? B?\d|\(B\d\d[,)]|\"\"\"B\d\d\b"
    r"|(?<!\w)\(seed[:)]|\b(?:older|newer|newest) seed\b|\bthe seed's\b|\bseed \"|[#\"] ?Seed: "
    r"|\bfacts/[a-z]|\(facts:? [a-z-]+ \d|\bpython-stack\b|\bquota-endpoints\b",
    re.IGNORECASE,
)
_CITATION = re.compile(r'docs/design/([\w-]+)\.md((?:(?:,| and) "[^"]+")*)')
_LINK = re.compile(r"\]\(([^)#\s]*)(#[^)\s]+)?\)")


def flat(text: str) -> str:
    return _LINE_BREAK.sub(" ", text)


def absent_papers(text: str) -> list[str]:
    """Every citation of a paper that the repository doesn't hold, with some words around it."""
    line = flat(text)
    return [line[max(0, match.start() - 40) : match.end() + 20] for match in ABSENT.finditer(line)]


def citations(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each design page that is cited, with its headings."""
    for match in _CITATION.finditer(flat(text)):
        yield match[1], re.findall(r'"([^"]+)"', match[2])


def headings(page: Path) -> list[str]:
    return re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)


def anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def texts() -> list[Path]:
    found = [ROOT / "README.md", ROOT / "SECURITY.md", ROOT / "develop.py", ROOT / "pyproject.toml"]
    for folder in _FOLDERS:
        found += [path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in _SUFFIXES and path.is_file()]
    return [path for path in found if path != Path(__file__) and not _NOT_OURS & set(path.relative_to(ROOT).parts)]


def test_no_text_cites_a_paper_that_is_not_here() -> None:
    wrong = {str(path.relative_to(ROOT)): found for path in texts() if (found := absent_papers(_read(path)))}
    assert wrong == {}


def test_every_cited_heading_is_there() -> None:
    cited = [(path, page, names) for path in texts() for page, names in citations(_read(path))]
    assert len(cited) > 30, "the sources cite the design pages"
    wrong = []
    for path, page, names in cited:
        file = DESIGN / f"{page}.md"
        missing = [name for name in names if name not in headings(file)] if file.is_file() else [file.name]
        wrong += [f"{path.relative_to(ROOT)}: docs/design/{page}.md has no {name!r}" for name in missing]
    assert wrong == []


@pytest.mark.parametrize("page", sorted(path.name for path in DESIGN.glob("*.md")))
def test_links_of_a_design_page_lead_somewhere(page: str) -> None:
    for target, place in _LINK.findall((DESIGN / page).read_text("utf-8")):
        file = (DESIGN / target).resolve() if target else DESIGN / page
        assert file.exists(), f"{page}: {target} is not there"
        if place:
            assert place[1:] in [anchor(name) for name in headings(file)], f"{page}: {target} has no {place}"


@pytest.mark.parametrize("page", sorted(path.name for path in DESIGN.glob("*.md") if path.name != "README.md"))
def test_every_design_page_is_in_the_index(page: str) -> None:
    assert f"]({page})" in (DESIGN / "README.md").read_text("utf-8")


@pytest.mark.parametrize(
    "comment",
    [
        "# Reference 6.4: the first of them.",
        "Rule: reference judging 4.1.",
        '"""Which level a task runs with (reference\n7.3)."""',
        "# counted at the reset (seed).",
        'Rule: seed "When a pool runs out".',
        "# The older seed says ten.",
        "it is refused (design D6)",
        "takes a pool out (D16).",
        "# never (trap 33)",
        "(bug\n    # report B27)",
        '    """B49."""',
        "(facts/quota-endpoints 2.2, rule 8)",
        "# held open (python-stack E)",
    ],
)
def test_a_citation_of_an_absent_paper_is_found(comment: str) -> None:
    assert absent_papers(comment)


@pytest.mark.parametrize(
    "line",
    [
        "def draw(recipe: Recipe, seed: int) -> Month:",
        '"""Return the month of that seed; the same recipe and seed give the same month."""',
        "def judge(facts: JudgeInput) -> Judgement:",
        "def _run_named(reference: str) -> str:",
        "# a reference is not followed",
        'Rule: docs/design/judging.md, "The error channel".',
    ],
)
def test_ordinary_words_are_no_citation(line: str) -> None:
    assert absent_papers(line) == []


def test_citations_are_read_with_all_their_headings_and_over_the_end_of_a_line() -> None:
    text = '# docs/design/runs.md,\n# "Clocks" and "Attempts", see\n# docs/design/quota.md'
    assert list(citations(text)) == [("runs", ["Clocks", "Attempts"]), ("quota", [])]


@cache
def _read(path: Path) -> str:
    return path.read_text("utf-8", "replace")
