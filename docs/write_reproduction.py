"""Put the tables and findings of a run of `make paper` into the pages of docs/.

    PYTHONPATH=. python docs/write_reproduction.py paper/out

Everything between the marks of an experiment is replaced by the contents of its CSV file, complete
or not; figures are copied beside the page. Experiments that the folder does not hold stay as they
are. No number on the pages is typed by hand.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from icscm import __version__
from paper import NAMES, SCREENS, find_experiment
from paper.output import to_markdown, write_summary
from paper.runner import read_rows

DOCS = Path(__file__).parent
PAGES = {
    **dict.fromkeys(("sharper", "parents", "guarantee"), "sharper.md"),
    "transfer": "transfer.md",
    **dict.fromkeys(
        (
            *("screen", "screen-outcomes", "screen-levels", "screen-shifts"),
            *("screen-ablation", "screen-keep", "screen-times"),
        ),
        "screen-study.md",
    ),
    **dict.fromkeys(("clones", "levels", "group-levels"), "guide/groups.md"),
    **dict.fromkeys(("mechanisms", "more-parents"), "sharper.md"),
    "intervals": "new-environments.md",
}


def name_version() -> str:
    """The version that was measured: before a release, the one that the changelog prepares."""
    changelog = (DOCS.parent / "CHANGELOG.md").read_text(encoding="utf-8")
    unreleased = re.search(r"^## Unreleased \((.+)\)$", changelog, re.MULTILINE)
    return f"{unreleased[1]}, unreleased" if unreleased else __version__


def describe(name: str, folder: Path) -> str:
    """Tables, figures and findings of one experiment."""
    summary = find_experiment(name).summarise(read_rows(folder / f"{name}.csv"))
    write_summary(summary, folder)
    parts = [to_markdown(table) for table in summary.tables]
    for figure in summary.figures:
        (DOCS / "figures").mkdir(exist_ok=True)
        shutil.copy(folder / f"{figure.name}.svg", DOCS / "figures" / f"{figure.name}.svg")
        parts.append(f"![{figure.caption}](figures/{figure.name}.svg)\n")
    parts.append("\n".join(f"- {finding}" for finding in summary.findings) + "\n")
    return "\n".join(parts)


def main(folder: Path) -> None:
    """Rewrite the pages."""
    for name in (*NAMES, *SCREENS):
        if not (folder / f"{name}.csv").exists():
            continue
        page = DOCS / PAGES.get(name, "reproduction.md")
        mark = f"<!-- {name} -->"
        end = f"<!-- end of {name} -->"
        head, rest = page.read_text(encoding="utf-8").split(mark)
        _, tail = rest.split(end)
        measured = f"Measured with icscm {name_version()}."
        body = f"{mark}\n\n{measured}\n\n{describe(name, folder)}\n{end}"
        page.write_text(head + body + tail, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
