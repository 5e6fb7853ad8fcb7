"""The tables of docs/benchmarks.md, from results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from tests.benchmarks.month.families import FAMILIES
from tests.benchmarks.month.measuring import SEASONED, TOLD, Result

from bullswarm_simulation import known_policies

PAGE = Path(__file__).parents[3] / "docs" / "benchmarks.md"
BEGINS, ENDS = "<!-- the tables begin -->\n", "<!-- the tables end -->\n"


def mean(numbers: Iterable[float]) -> float:
    """The mean of at least one number."""
    found = list(numbers)
    return sum(found) / len(found)


def share_of(results: Sequence[Result], policy: str, family: str) -> float:
    """The mean share of the optimum of a policy in a family."""
    return mean(result.share for result in results if (result.policy, result.family) == (policy, family))


def worst_family(results: Sequence[Result], policy: str) -> tuple[str, float]:
    """The family in which the policy is furthest from the optimum, and its share there."""
    families = {result.family for result in results if result.policy == policy}
    return min(((family, share_of(results, policy, family)) for family in sorted(families)), key=lambda entry: entry[1])


def tables(results: Sequence[Result]) -> str:
    """Both tables in Markdown: the policies, and their share of the optimum in each family."""
    played = {result.policy for result in results}
    policies = [
        name for known in known_policies() for name in (known, known + SEASONED, known + TOLD) if name in played
    ]
    families = [recipe.name for recipe in FAMILIES if any(result.family == recipe.name for result in results)]
    seeds = sorted({result.seed for result in results})
    head = f"{len(families)} families, {len(seeds)} months of each (seeds {seeds[0]} to {seeds[-1]}).\n\n"
    return head + _summary(results, policies) + "\n" + _by_family(results, policies, families)


def _summary(results: Sequence[Result], policies: Sequence[str]) -> str:
    lines = [
        "| policy | share of the optimum | worst family | lost at walls | given up | own use refused | quota expired |",
        "|---|---|---|---|---|---|---|",
    ]
    for policy in policies:
        own = [result for result in results if result.policy == policy]
        family, share = worst_family(own, policy)
        parts: list[Callable[[Result], float]] = [lambda r: r.lost, lambda r: r.dropped, lambda r: r.refused]
        cells = [f"{100 * mean(map(part, own)):.1f} %" for part in parts]
        cells.append(f"{mean(result.expired_pct for result in own):.1f} %")
        overall = mean(result.share for result in own)
        lines.append(f"| `{policy}` | {overall:.4f} | {family}, {share:.4f} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _by_family(results: Sequence[Result], policies: Sequence[str], families: Sequence[str]) -> str:
    lines = [
        f"| family | {' | '.join(f'`{policy}`' for policy in policies)} |",
        "|---" * (len(policies) + 1) + "|",
    ]
    for family in families:
        cells = [f"{share_of(results, policy, family):.4f}" for policy in policies]
        lines.append(f"| {family} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def write_page(text: str, page: Path = PAGE) -> None:
    """Put ``text`` between the marks of the page; ValueError if it has none."""
    before, begins, rest = page.read_text().partition(BEGINS)
    _, ends, after = rest.partition(ENDS)
    if not begins or not ends:
        raise ValueError(f"{page} has no marks for its tables; write {BEGINS.strip()} and {ENDS.strip()} where they go")
    page.write_text(before + begins + "\n" + text + "\n" + ends + after)
