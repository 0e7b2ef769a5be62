"""The leaves of a fitted model as a frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from icscm._constants import DEFAULT_MARGIN
from icscm.exceptions import IcscmError
from icscm.model.forest import Forest, Model
from icscm.report.sections.leaves import AFTERWARDS_ALPHA
from icscm.stats.independence import make_test
from icscm.stats.new_environments import make_expectations
from icscm.stats.verdicts import Verdict, deflate_alike, make_verdicts

if TYPE_CHECKING:
    import pandas


def describe_leaves(
    model: Model,
    verdicts: Sequence[Verdict],
    *,
    has_environments: bool,
    prevalence: float | None = None,
) -> pandas.DataFrame:
    """A row for each leaf, as `BaseRuleClassifier.describe_leaves` documents.

    >>> from icscm import ICSCMClassifier
    >>> from icscm.datasets import make_conjunction
    >>> data = make_conjunction(random_state=1)
    >>> learner = ICSCMClassifier().fit(data.X, data.y, environments=data.environments)
    >>> learner.describe_leaves()[["leaf", "rule", "n", "verdict"]]
       leaf             rule      n    verdict
    0     1  not met: A1 > 0  13918  invariant
    1     2  not met: A2 > 0   4061  invariant
    2     3    all rules met   2021  invariant
    """
    import pandas  # slow to import

    if isinstance(model, Forest):
        raise IcscmError("each tree of a forest has leaves of its own, in model_.trees")
    tables = np.array(model.leaves, dtype=np.int64)
    if not verdicts and has_environments:
        verdicts = make_verdicts(tables, make_test("chi2"), AFTERWARDS_ALPHA, DEFAULT_MARGIN)
    conclusions: list[str | None] = [each.conclusion for each in verdicts] or [None] * len(tables)
    sizes, nothing = tables.sum(axis=(1, 2)), (None, None)
    found = make_expectations(deflate_alike(tables, verdicts), prevalence)
    numbers = [
        (each.tau, *(each.tau_interval or nothing), each.i2)
        + (each.interval or nothing)
        + (each.known_interval or nothing)
        for each in found
    ]
    names = "tau", "tau_low", "tau_high", "i2", "new_low", "new_high", "known_low", "known_high"
    return pandas.DataFrame(
        {
            "leaf": np.arange(1, len(tables) + 1),
            "rule": list(model.leaf_texts),
            "n": sizes,
            "rate": np.where(sizes, tables[:, 1].sum(axis=1) / np.maximum(sizes, 1), np.nan),
            **dict(zip(names, np.array(numbers, dtype=np.float64).T, strict=True)),
            "verdict": pandas.Series(conclusions, dtype=object),
            "note": pandas.Series([each.reason for each in found], dtype=object),
        }
    )


def get_names(target: Any, environments: Any) -> dict[str, str | None]:
    """Names of the columns of the label and of the environments, for reports; a text is a name."""
    names: dict[str, str | None] = {}
    for key, column in (("target", target), ("environment", environments)):
        name = column if isinstance(column, str) else getattr(column, "name", None)
        names[key] = name if isinstance(name, str) and name else None
    return names
