"""Section `errors`: how often the predictions are wrong, and in which environment most often."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from icscm._constants import SPARSE_ENVIRONMENT
from icscm._types import CountArray
from icscm.formatting import count
from icscm.model.tree import Tree
from icscm.report.formatting import Names, Plain, compute_intervals, format_share
from icscm.report.sections.leaves import find_extremes
from icscm.stats.splits import compute_auc

_SHARES = {"sensitivity": "sensitivity", "specificity": "specificity", "ppv": "PPV"}


def describe_errors(model: Tree, names: Names, p: Any = 1.0) -> Plain:
    """Errors on the training data, exact from the counts of the leaves.

    `p` is the misclassification cost ratio that the model was learned with.
    """
    counts = np.array(model.leaves, dtype=np.int64)
    is_positive = model.leaf_verdicts
    # by (label, environment): all samples, and those whose leaf predicts their label
    totals = counts.sum(axis=0)
    right = np.stack((counts[~is_positive, 0].sum(axis=0), counts[is_positive, 1].sum(axis=0)))
    majority = _find_majority(totals)
    pooled, right_of_all = (each.sum(axis=1, keepdims=True) for each in (totals, right))
    (overall,) = _describe_errors(pooled, right_of_all, majority)
    overall["auc"] = compute_auc(counts.sum(axis=2), model.leaf_probabilities())
    rows, n_contrary = _describe_errors(totals, right, majority), model.count_contrary()
    return {
        "on": "the training data",
        "is_out_of_bag": False,
        "p": p,
        **_compare_environments(overall, rows, names, majority),
        "n_contrary": sum(n_contrary),
        "contrary_leaves": [number for number, n in enumerate(n_contrary, start=1) if n],
    }


def describe_out_of_bag(learner: Any, names: Names) -> Plain:
    """Errors of a forest on the samples that some of its trees were not grown on."""
    totals = np.array(learner.class_counts_, dtype=np.int64)
    majority = _find_majority(totals)
    overall, *rows = learner.out_of_bag_.to_dict("records")
    shares = totals[1 - majority] / np.maximum(totals.sum(axis=0), 1)
    pooled = float(totals[1 - majority].sum() / totals.sum())
    pairs = zip([overall, *(rows or [overall])], [pooled, *shares.tolist()], strict=True)
    described, *environments = [_describe_scores(*pair) for pair in pairs]
    return {
        "on": "the samples that trees were not grown on",
        "is_out_of_bag": True,
        "p": 1.0,
        **_compare_environments(described, environments, names, majority),
        "n_contrary": 0,
        "contrary_leaves": [],
    }


def _find_majority(totals: CountArray) -> int:
    """The label of more samples, from counts by (label, environment)."""
    return int(2 * totals[1].sum() > totals.sum())


def _describe_scores(scores: Plain, majority_error: float) -> Plain:
    n = int(scores["n"])
    n_errors = round((1 - scores["accuracy"]) * n) if n else 0
    return {
        "n": n,
        "n_errors": n_errors,
        "error": n_errors / n if n else None,
        "error_interval": compute_intervals([n_errors], [n])[0],
        "majority_error": majority_error,
        **dict.fromkeys(_SHARES),
        **{key: None if np.isnan(scores[key]) else scores[key] for key in ("auc", "brier")},
    }


def _compare_environments(
    overall: Plain, rows: Sequence[Plain], names: Names, majority: int
) -> Plain:
    """All environments, the worst and the best; None where there are not two to compare."""
    pairs = zip(names.environments, rows, strict=True)
    environments = [{"environment": name, **each} for name, each in pairs]
    best, worst = find_extremes(environments, "error")
    sizes = [each["n"] for each in environments if each["n"]]
    if worst is None or len(sizes) < 2 or sum(n >= SPARSE_ENVIRONMENT for n in sizes) == 1:
        best = worst = None
    else:
        worst = {**worst, "text": f"{names.describe_place(worst)}, {format_error(worst)}"}
    is_better = overall["error"] is not None and overall["error"] < overall["majority_error"]
    return {
        **overall,
        "beats_majority": is_better,
        "majority_class": names.predict(bool(majority)),
        "majority_is_positive": bool(majority),
        "environments": environments,
        "worst": worst,
        "best": best,
    }


def _describe_errors(totals: CountArray, right: CountArray, majority: int) -> list[Plain]:
    sizes, wrong = totals.sum(axis=0).tolist(), (totals - right).sum(axis=0).tolist()
    rows = zip(
        sizes,
        wrong,
        compute_intervals(wrong, sizes),
        totals.T.tolist(),
        right.T.tolist(),
        strict=True,
    )
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
        for n, n_wrong, interval, there, found in rows
    ]


def format_metrics(errors: Plain) -> str:
    """Sensitivity, specificity, PPV and AUC."""
    shares = [] if errors["is_out_of_bag"] else _SHARES.items()
    texts = [f"{name} {format_share(errors[key])}" for key, name in shares]
    return ", ".join([*texts, *([f"AUC {errors['auc']:.3f}"] if errors["auc"] else [])])


def format_error(fields: Plain) -> str:
    """The error rate and the number of samples."""
    return f"{format_share(fields['error'])} of {count(fields['n'], 'sample')}"
