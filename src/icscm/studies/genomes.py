"""A look at the environments of packed genomes before fitting."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from icscm.engine.counts import CountSource, Cut
from icscm.exceptions import Words
from icscm.parameters import LEVEL, check_value
from icscm.sources.countable import Countable
from icscm.studies.checkup import CheckUp, Codes, Giveaway, add_advice, judge_column, make_checkup
from icscm.tables.labels import check_several

# Features that are told, of millions.
N_TELLING = 100


def check_presence(
    countable: Countable[Any], *, alpha: float = 0.05, words: Words = str
) -> CheckUp:
    """Look at the environments of packed genomes before fitting.

    Parameters
    ----------
    countable : Countable
        What `icscm.sources.open_bits` gives: features that are present or absent.
    alpha : float, default=0.05
        Level of the tests whose power is computed.
    words : callable, optional
        What to call parameters in advice, if not as Python does.

    Returns
    -------
    CheckUp
        As of `check_environments`; of the features only the most telling, of those that are
        present in the same genomes the first.
    """
    check_value("alpha", alpha, LEVEL)
    source = countable.source
    check_several(source.environments)
    totals, names = source.count_totals(), source.environments
    found = make_checkup(totals, names, list(source.classes), alpha, np.zeros(len(names)))
    giveaways = tuple(_rank_presence(source))
    return add_advice(replace(found, n_columns=countable.n_features, giveaways=giveaways), words)


def _rank_presence(source: CountSource) -> list[Giveaway]:
    """The features that tell most of the environment, of millions."""
    best: list[tuple[float, int, Codes]] = []
    for cube in source.counts():
        tables = cube.counts.sum(axis=2)  # (feature, absent or present, environment)
        of_value, of_environment = tables.sum(axis=2, keepdims=True), tables.sum(axis=1)[:, None]
        expected = of_value * of_environment / max(1, int(tables[0].sum()))
        phi = np.divide((tables - expected) ** 2, expected, where=expected > 0, out=0 * expected)
        strength = phi.sum(axis=(1, 2))
        top = np.argsort(-strength, kind="stable")[:N_TELLING]
        found = zip(strength[top].tolist(), cube.features[top].tolist(), tables[top], strict=True)
        best = sorted([*best, *found], key=lambda each: (-each[0], each[1]))[:N_TELLING]
    rules = [source.candidates.make_rule(Cut(feature, 0, negated=False)) for _, feature, _ in best]
    return [judge_column(rule.feature, each[2]) for rule, each in zip(rules, best, strict=True)]
