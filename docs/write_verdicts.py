"""Put what the criteria give on real data into docs/verdicts.md.

    PYTHONPATH=. python docs/write_verdicts.py [FOLDER]

FOLDER holds the raw data files, by default that of ICSCM_DATA. Everything between the marks is
replaced; no number there is typed by hand.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

from icscm import ICSCMClassifier, __version__
from icscm.datasets import RealData
from icscm.exceptions import IcscmWarning
from paper.data import LOADERS
from paper.methods import PAPER

PAGE = Path(__file__).parent / "verdicts.md"
NAMES = {"diabetes": "diabetes_readmission", "ACS income": "acs_income"}
CRITERIA = {
    "pvalue": {},
    "equivalence, rate 0.05": {"margin": 0.05},
    "equivalence, rate 0.02": {"margin": 0.02},
}
HEADER = "| data | criterion | model | test error | verdicts on its leaves |\n|---|---|---|---|---|"


def describe(name: str, data: RealData) -> list[str]:
    """One line for each criterion, fitted to half of the samples and tested on the others."""
    is_train = np.random.default_rng(0).random(len(data.y)) < 0.5
    title = f"{name}, {is_train.sum():,} training samples"
    lines = []
    for criterion, parameters in CRITERIA.items():
        learner = ICSCMClassifier(**PAPER, **parameters)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IcscmWarning)
            learner.fit(
                data.X[is_train], data.y[is_train], environments=data.environments[is_train]
            )
        error = 1.0 - learner.score(data.X[~is_train], data.y[~is_train])
        counted = Counter(verdict.conclusion for verdict in learner.verdicts_)
        verdicts = ", ".join(f"{n} {conclusion}" for conclusion, n in counted.items())
        lines.append(f"| {title} | {criterion} | {learner.model_} | {error:.3f} | {verdicts} |")
    return lines


def main(folder: str | None = None) -> None:
    """Replace the table of the page."""
    lines = []
    for title, name in NAMES.items():
        lines += describe(title, LOADERS[name](folder))
    table = "\n".join([f"Measured with icscm {__version__}.\n", HEADER, *lines])
    marks = r"(<!-- table -->\n).*(\n<!-- end -->)"
    page = re.sub(marks, lambda match: match[1] + table + match[2], PAGE.read_text(), flags=re.S)
    PAGE.write_text(page)


if __name__ == "__main__":
    main(*sys.argv[1:])
