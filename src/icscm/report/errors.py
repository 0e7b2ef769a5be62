"""How often a model is wrong on its training data, and where most."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from icscm._constants import SPARSE_ENVIRONMENT
from icscm._types import CountArray
from icscm.model.rule_sets import RuleSet
from icscm.report.words import Names, Plain, compute_intervals, format_share
from icscm.text import count


def describe_errors(model: RuleSet, names: Names) -> Plain:
    """Errors from the leaves' counts: for the training data these are exact."""
    counts = np.array(model.leaves, dtype=np.int64)
    is_positive = model.leaf_verdicts
    # by (label, environment): samples in all, and those whose leaf predicts their label
    totals = counts.sum(axis=0)
    right = np.stack((counts[~is_positive, 0].sum(axis=0), counts[is_positive, 1].sum(axis=0)))
    majority = int(2 * totals[1].sum() > totals.sum())
    environments = [
        {"environment": name, **_describe_error(totals[:, k], right[:, k], majority)}
        for k, name in enumerate(names.environments)
    ]
    ends = find_worst_and_best(
        [each["n_errors"] for each in environments], [each["n"] for each in environments]
    )
    worst, best = (None, None) if ends is None else (environments[k] for k in ends)
    return {
        "on": "the training data",
        **_describe_error(totals.sum(axis=1), right.sum(axis=1), majority),
        "majority_class": names.predict(bool(majority)),
        "majority_is_positive": bool(majority),
        "environments": environments,
        "worst": worst and {**worst, "text": _name_place(worst, names)},
        "best": best,
    }


def _name_place(environment: Plain, names: Names) -> str:
    share, n = format_share(environment["error"]), count(environment["n"], "sample")
    return f"{names.place(environment)}, {share} of {n}"


def _describe_error(totals: CountArray, right: CountArray, majority: int) -> Plain:
    """Error, and how many of each label are found, from samples and right ones by label."""
    n, wrong = int(totals.sum()), int((totals - right).sum())
    found = [int(r) / int(t) if t else None for r, t in zip(right, totals, strict=True)]
    return {
        "n": n,
        "n_errors": wrong,
        "error": wrong / n if n else None,
        "error_interval": compute_intervals([wrong], [n])[0],
        "sensitivity": found[1],
        "specificity": found[0],
        "majority_error": int(totals[1 - majority]) / n if n else None,
    }


def find_worst_and_best(wrong: Sequence[int], total: Sequence[int]) -> tuple[int, int] | None:
    """Where the largest and the smallest share is wrong; None unless two can be compared.

    Few samples are all wrong, or all right, by chance: an environment with fewer than 5 is named
    only where all are so small.

    >>> find_worst_and_best([1, 30, 20], [1, 100, 100])
    (1, 2)
    """
    seen = [k for k, n in enumerate(total) if n]
    named = [k for k in seen if total[k] >= SPARSE_ENVIRONMENT] or seen
    if len(named) < 2:
        return None
    shares = {k: wrong[k] / total[k] for k in named}
    return max(named, key=shares.__getitem__), min(named, key=shares.__getitem__)
