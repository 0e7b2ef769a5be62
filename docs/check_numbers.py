"""Fail where the numbers of a page were measured with an older version than that of the code.

    python docs/check_numbers.py

A measured part of a page lies between two comments, <!-- NAME --> and <!-- end of NAME -->, and
begins with the version it was measured with: "icscm 0.3.0". The scripts that write it put it there.
A release has a new minor version, and thus new measurements.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from icscm import __version__

ROOT = Path(__file__).parents[1]
PART = re.compile(r"<!-- ([\w-]+)(?:: [^>]*)? -->\n(.*?)<!-- end(?: of [^>]*)? -->", re.DOTALL)
MEASURED = re.compile(r"icscm (\d+)\.(\d+)\.\d+")


def find_faults(pages: list[Path], version: str) -> Iterator[str]:
    """What is wrong, a line for each part."""
    version_of_code = tuple(map(int, version.split(".")[:2]))
    for page in pages:
        for name, text in PART.findall(page.read_text(encoding="utf-8")):
            first_paragraph = text.strip().partition("\n\n")[0]
            stated = MEASURED.search(first_paragraph)
            if stated is None:
                yield f"{page.name}, {name}: the version it was measured with is not stated"
            elif (int(stated[1]), int(stated[2])) < version_of_code:
                yield f"{page.name}, {name}: measured with {stated[0]}, the code is {version}"


def list_pages() -> list[Path]:
    """All pages that may have measured parts."""
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "guide").glob("*.md")]
    return [*sorted(pages), ROOT / "benchmarks" / "README.md"]


if __name__ == "__main__":
    faults = [*find_faults(list_pages(), __version__)]
    sys.exit("\n".join(faults) if faults else 0)
