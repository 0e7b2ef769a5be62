"""Write docs/licences.md: the licence of each package that icscm depends on, as installed here.

python docs/write_licences.py
"""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, distribution, requires
from pathlib import Path

PAGE = Path(__file__).parent / "licences.md"
EXTRAS = {"data": "downloads of data sets", "dask": "clusters", "cuda": "GPU"}
HEAD = """# Licences of dependencies

icscm is under the BSD-3-Clause licence. It contains no code of other projects. It imports the
packages below, each installed under its own licence; none of them is under the GPL. `python
docs/write_licences.py` writes this page from the metadata of the installed packages.

| package | needed for | licence |
|---|---|---|
"""


def find_requirements() -> dict[str, str]:
    """What each package is needed for: always, or with an extra."""
    purposes = {}
    for line in requires("icscm") or []:
        name = re.match(r"[\w.-]+", line)
        extra = re.search(r"extra == ['\"](\w+)['\"]", line)
        if name is None:
            continue
        if extra is None:
            purposes[name[0]] = "always"
        elif extra[1] in EXTRAS:
            purposes[name[0]] = f"{EXTRAS[extra[1]]} (`{extra[1]}`)"
    return purposes


def find_licence(name: str) -> str:
    """The licence that the package declares: an expression, a short text, or classifiers."""
    try:
        facts = distribution(name).metadata
    except PackageNotFoundError:
        return "MIT" if name.startswith("cupy") else "not installed here"
    declared = str(facts["License-Expression"] or facts["License"] or "")
    if declared and len(declared) <= 60 and "\n" not in declared:
        return declared
    classifiers = facts.get_all("Classifier") or []
    licences = [text for text in classifiers if text.startswith("License :: ")]
    names = [text.split(" :: ")[-1] for text in licences]
    return ", ".join(names) or declared.splitlines()[0]


def make_page() -> str:
    """The whole page."""
    rows = [
        f"| {name} | {purpose} | {find_licence(name)} |"
        for name, purpose in find_requirements().items()
    ]
    return HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(make_page(), encoding="utf-8")
