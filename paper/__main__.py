"""`python -m paper NAME...`: reproduce tables and figures of the paper; `make paper` runs all."""

from __future__ import annotations

import argparse
import os
import sys
from math import inf
from pathlib import Path
from typing import Any

from icscm.exceptions import IcscmError
from paper import NAMES, SCREENS
from paper.output import QUICK
from paper.reproduction import reproduce

OUT = Path(__file__).parent / "out"


def main(arguments: list[str] | None = None) -> int:
    """Run the named experiments, resuming a run that was stopped."""
    parser = argparse.ArgumentParser("python -m paper", description=__doc__)
    names = f"{', '.join(NAMES)}, or all; {', '.join(SCREENS)}, which all leaves out"
    parser.add_argument("names", nargs="+", metavar="NAME", help=names)
    help_out = "folder of the results, by default paper/out, or paper/out/quick with --quick"
    parser.add_argument("--out", type=Path, help=help_out)
    parser.add_argument("--runs", type=int, help="repetitions per cell, by default the paper's")
    parser.add_argument("--seed", type=int, default=0, help="random seed (default: 0)")
    jobs = os.cpu_count() or 1
    parser.add_argument("--jobs", type=int, default=jobs, help="processes, by default all cores")
    parser.add_argument("--quick", action="store_true", help="few repetitions of small samples")
    help_data = "folder of the raw data files of `real` and `transfer` (default: $ICSCM_DATA)"
    parser.add_argument("--data", type=Path, help=help_data)
    parser.add_argument("--time-limit", type=float, default=inf, help="give up after this time (s)")
    _add_screen_options(parser)
    options = vars(parser.parse_args(arguments))
    options["choose"] = {key: values.split(",") for key, values in options["choose"]}
    out = options.pop("out") or (OUT / "quick" if options["quick"] else OUT)
    try:
        page = reproduce(options.pop("names"), out, data_home=options.pop("data"), **options)
    except (IcscmError, OSError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    if options["quick"]:
        print(QUICK)
    print(f"Written: {page}")
    return 0


def _add_screen_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("options of the studies of the screen, and of intervals")
    home = os.environ.get("ICSCM_TABLES")
    help_tables = "folder of prepared tables, NAME.parquet (default: $ICSCM_TABLES, or raw data)"
    group.add_argument("--tables", type=Path, default=home and Path(home), help=help_tables)
    help_rows = "rows used of a table (default: 12,000)"
    group.add_argument("--max-rows", type=int, default=12_000, help=help_rows)
    help_out = "environments left out of a table, by default each in turn"
    group.add_argument("--max-out", type=int, help=help_out)
    help_choose = "only tasks with these values, such as learner=boosting or table=heart,acs"
    pair: dict[str, Any] = {"metavar": "KEY=VALUES", "type": lambda text: text.split("=", 1)}
    group.add_argument("--choose", action="append", default=[], help=help_choose, **pair)


if __name__ == "__main__":
    sys.exit(main())
