"""The process that computes cases with one version: `python -P -m versions.worker`.

It reads the names of cases from standard input, a line each, and writes the result of each to a
file as soon as it is known, so that a crash loses one case only.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from versions.cases import CASES, fingerprint_case
from versions.running import run_case


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", type=Path, required=True, help="folder to import from")
    parser.add_argument("--out", type=Path, required=True, help="folder of the results")
    options = parser.parse_args()
    check_origin(options.package)

    cases = {case.name: case for case in CASES}
    for name in sys.stdin.read().splitlines():
        start = time.perf_counter()
        facts = run_case(cases[name])
        result = {"name": name, "seconds": time.perf_counter() - start, "facts": facts}
        path = options.out / f"{fingerprint_case(cases[name])}.json"
        unfinished = path.with_suffix(".part")
        unfinished.write_text(json.dumps(result, indent=1), encoding="utf-8")
        unfinished.replace(path)


def check_origin(folder: Path) -> None:
    """Raise unless the package is imported from this folder, not from an editable install."""
    import icscm

    origin = Path(icscm.__file__).resolve()
    if not origin.is_relative_to(folder.resolve()):
        sys.exit(f"icscm was imported from {origin}, not from {folder}")


if __name__ == "__main__":
    main()
