"""How often a model is wrong on its training data, and where most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from icscm._constants import SPARSE_ENVIRONMENT
from icscm._types import CountArray
from icscm.formatting import as_text, count
from icscm.model.tree import Tree
from icscm.report.words import Names, Plain, compute_intervals, format_share
from icscm.stats.metrics import compute_auc

# Beside the error, as people call them.
_SHARES = {"sensitivity": "sensitivity", "specificity": "specificity", "ppv": "PPV"}


def describe_errors(model: Tree, names: Names, p: Any = 1.0) -> Plain:
    """Errors from the leaves' counts: for the training data these are exact.

    `p` is the weight of errors that the model was learned with.
    """
    counts = np.array(model.leaves, dtype=np.int64)
    is_positive = model.leaf_verdicts
    # by (label, environment): samples in all, and those whose leaf predicts their label
    totals = counts.sum(axis=0)
    right = np.stack((counts[~is_positive, 0].sum(axis=0), counts[is_positive, 1].sum(axis=0)))
    majority = int(2 * totals[1].sum() > totals.sum())
    described = _describe_errors(totals, right, majority)
    pairs = zip(names.environments, described, strict=True)
    environments = [{"environment": name, **each} for name, each in pairs]
    (overall,) = _describe_errors(
        totals.sum(axis=1, keepdims=True), right.sum(axis=1, keepdims=True), majority
    )
    worst, best = find_worst_and_best(environments, "n_errors")
    n_contrary = model.count_contrary()
    return {
        "on": "the training data",
        "p": p,
        **overall,
        "auc": compute_auc(counts.sum(axis=2), model.leaf_probabilities()),
        "beats_majority": overall["n_errors"] < int(totals[1 - majority].sum()),
        "n_contrary": sum(n_contrary),
        "contrary_leaves": [number for number, n in enumerate(n_contrary, start=1) if n],
        "majority_class": names.predict(bool(majority)),
        "majority_is_positive": bool(majority),
        "environments": environments,
        "worst": worst and {**worst, "text": f"{names.place(worst)}, {format_error(worst)}"},
        "best": best,
    }


def say_measures(errors: Plain) -> str:
    """What stands beside the error; a share of nothing is none."""
    shares = [f"{name} {format_share(errors[key])}" for key, name in _SHARES.items()]
    return ", ".join([*shares, *([f"AUC {errors['auc']:.3f}"] if errors["auc"] else [])])


def say_fault(errors: Plain, always: str) -> str:
    """Of a rule that is wrong at least as often as a constant; with p as asked for it may be."""
    if errors["p"] == 1:
        return f"no better than {always}"
    return f"wrong at least as often as {always}, as p = {as_text(errors['p'])} allows"


def format_error(fields: Plain) -> str:
    """The share that is wrong, and of how many."""
    return f"{format_share(fields['error'])} of {count(fields['n'], 'sample')}"


def _describe_errors(totals: CountArray, right: CountArray, majority: int) -> list[Plain]:
    """Errors, and how many of each label are found, from samples and right ones (label, place)."""
    sizes, wrong = totals.sum(axis=0).tolist(), (totals - right).sum(axis=0).tolist()
    intervals = compute_intervals(wrong, sizes)
    return [
        {
            "n": n,
            "n_errors": n_wrong,
            "error": n_wrong / n if n else None,
            "error_interval": interval,
            "sensitivity": found[1] / there[1] if there[1] else None,
            "specificity": found[0] / there[0] if there[0] else None,
            "ppv": found[1] / said if (said := found[1] + there[0] - found[0]) else None,
            "majority_error": there[1 - majority] / n if n else None,
        }
        for n, n_wrong, interval, there, found in zip(
            sizes, wrong, intervals, totals.T.tolist(), right.T.tolist(), strict=True
        )
    ]


def find_worst_and_best(
    environments: Sequence[Plain], key: str
) -> tuple[Plain, Plain] | tuple[None, None]:
    """Those of the largest and the smallest share of `key` in `n`; None unless two compare.

    Few samples are all wrong, or all right, by chance: an environment with fewer than 5 is named
    only where all are so small.

    >>> counts = [(1, 1), (30, 100), (20, 100)]
    >>> find_worst_and_best([{"wrong": wrong, "n": n} for wrong, n in counts], "wrong")
    ({'wrong': 30, 'n': 100}, {'wrong': 20, 'n': 100})
    """
    seen = [each for each in environments if each["n"]]
    named = [each for each in seen if each["n"] >= SPARSE_ENVIRONMENT] or seen
    shares = [each[key] / each["n"] for each in named]
    if len(named) < 2:
        return None, None
    return named[shares.index(max(shares))], named[shares.index(min(shares))]
