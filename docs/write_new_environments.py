"""Put the tables of the study of prediction intervals into docs/new-environments.md.

    python -m paper intervals --out FOLDER
    python docs/write_new_environments.py FOLDER

Everything between the marks is replaced; no number there is typed by hand.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

PAGE = Path(__file__).parent / "new-environments.md"
NAMES = ("intervals-simulated", "intervals-shared")


def main(folder: str) -> None:
    """Replace what the page says."""
    tables = [(Path(folder) / f"{name}.md").read_text(encoding="utf-8") for name in NAMES]
    text = "\n\n".join(table.strip() for table in tables)
    marks = r"(<!-- study -->\n).*(<!-- end study -->)"
    page = PAGE.read_text(encoding="utf-8")
    replaced = re.sub(marks, lambda found: f"{found[1]}{text}\n{found[2]}", page, flags=re.DOTALL)
    PAGE.write_text(replaced, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
