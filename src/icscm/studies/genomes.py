"""A check of the environments of packed genomes before fitting."""

from __future__ import annotations

from typing import Any

import numpy as np

from icscm.engine.counts import CountSource, Cut
from icscm.exceptions import Words
from icscm.parameters import allow, check_value
from icscm.sources.countable import Countable
from icscm.studies.checkup import (
    Association,
    CheckUp,
    Codes,
    add_advice,
    compute_association,
    make_checkup,
)
from icscm.tables.labels import check_several

# Features that are listed, of millions.
N_LISTED = 100


def check_presence(
    countable: Countable[Any], *, alpha: float = 0.05, words: Words = str
) -> CheckUp:
    """Check the environments of packed genomes before fitting.

    Parameters
    ----------
    countable : Countable
        The value of `icscm.sources.open_bits`: features that are present or absent.
    alpha : float, default=0.05
        Level of the tests whose power is computed.
    words : callable, optional
        Names of parameters in advice, if not those of Python.

    Returns
    -------
    CheckUp
        As of `check_environments`, with the features of strongest association only; of features
        that are present in the same genomes the first.
    """
    check_value("alpha", alpha, allow("float (0, 1)"))
    source = countable.source
    check_several(source.environments)
    totals, names = source.count_totals(), source.environments
    found = _find_strongest(source)
    return add_advice(
        make_checkup(totals, names, source.classes, alpha, countable.n_features, found), words
    )


def _find_strongest(source: CountSource) -> list[Association]:
    """The features that are most strongly associated with the environment, of millions."""
    best: list[tuple[float, int, Codes]] = []
    for cube in source.counts():
        tables = cube.counts.sum(axis=2)  # (feature, absent or present, environment)
        of_value, of_environment = tables.sum(axis=2, keepdims=True), tables.sum(axis=1)[:, None]
        expected = of_value * of_environment / max(1, int(tables[0].sum()))
        phi = np.divide((tables - expected) ** 2, expected, where=expected > 0, out=0 * expected)
        strength = phi.sum(axis=(1, 2))
        top = np.argsort(-strength, kind="stable")[:N_LISTED]
        found = zip(strength[top].tolist(), cube.features[top].tolist(), tables[top], strict=True)
        best = sorted([*best, *found], key=lambda each: (-each[0], each[1]))[:N_LISTED]
    rules = [source.candidates.make_rule(Cut(feature, 0, negated=False)) for _, feature, _ in best]
    return [compute_association(r.feature, each[2]) for r, each in zip(rules, best, strict=True)]
