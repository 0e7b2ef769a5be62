"""Compile the kernels that nearly every test calls: `make test` runs this before its workers start.

Compiled code is cached beside the source. Two processes that compile the same kernels at the same
time take twice as long, and the later one overwrites the list of what the earlier one cached.
"""

import warnings

import numpy as np

from icscm import (
    ICSCMClassifier,
    InvariantFeatureSelector,
    InvariantScoreClassifier,
    InvariantTreeClassifier,
)
from icscm.datasets import make_hospitals


def compile_kernels() -> None:
    """Fit a learner of each kind, to numbers of both precisions, bits and categories."""
    hospitals = make_hospitals(1_000, random_state=1)
    for learner in (
        ICSCMClassifier(),
        ICSCMClassifier(search="exhaustive"),
        InvariantTreeClassifier(),
        InvariantScoreClassifier(random_state=0),
        InvariantFeatureSelector(cv=2, random_state=0),
    ):
        learner.fit(hospitals.X, hospitals.y, environments=hospitals.environments)

    generator = np.random.default_rng(0)
    numbers = generator.random((len(hospitals.y), 4))
    bits = numbers > 0.5
    for X in (numbers, numbers.astype(np.float32), np.asfortranarray(numbers), bits):
        ICSCMClassifier().fit(X, hospitals.y, environments=hospitals.environments)


if __name__ == "__main__":
    with warnings.catch_warnings(action="ignore"):
        compile_kernels()
