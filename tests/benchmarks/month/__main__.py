"""``python -m tests.benchmarks.month --write``: play all months with all policies and write the tables of docs/benchmarks.md.

It takes about ten minutes of one core. With ``--results FILE`` what was played is kept there, and a second call goes on.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.benchmarks.month.families import REPORTED_SEEDS
from tests.benchmarks.month.measuring import measure_all
from tests.benchmarks.month.table import tables, write_page

from bullswarm_simulation import known_policies


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.month", description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write the tables into docs/benchmarks.md, too")
    parser.add_argument("--results", type=Path, metavar="FILE", help="keep the results here, one JSON object a line")
    parser.add_argument("--processes", type=int, default=2, metavar="N")
    parser.add_argument("--policy", action="append", metavar="NAME", help="only this one (may be repeated)")
    parser.add_argument("--seeds", type=int, nargs=2, metavar=("FIRST", "LAST"), help="others than those of the page")
    given = parser.parse_args()
    if given.write and given.seeds:
        parser.error("--write is for the seeds of the page; leave out --seeds")
    policies = tuple(given.policy or known_policies())
    seeds = range(given.seeds[0], given.seeds[1] + 1) if given.seeds else REPORTED_SEEDS
    text = tables(measure_all(policies, seeds, given.results, given.processes))
    sys.stdout.write(text)
    if given.write:
        write_page(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
