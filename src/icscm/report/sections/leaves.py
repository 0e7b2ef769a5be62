"""Sections `leaves` and `errors`: rates and errors of the leaves, overall and by environment."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from icscm._constants import DEFAULT_MARGIN, SPARSE_ENVIRONMENT, VERDICT_CONFIDENCE, VERDICT_POWER
from icscm._types import CountArray
from icscm.model.saved import Learner
from icscm.model.score import Score
from icscm.model.splits import LeafCounts
from icscm.model.tree import Tree
from icscm.report import formatting
from icscm.report.formatting import Names, Plain, compute_intervals, join_words
from icscm.stats.criteria import Criterion, PValueCriterion, find_outlier_environments
from icscm.stats.independence import make_test
from icscm.stats.new_environments import Expectation, make_expectations
from icscm.stats.ranking import compute_auc_of_counts
from icscm.stats.splits import find_extreme_environments
from icscm.stats.verdicts import NOT_INVARIANT, Verdict, deflate_alike, make_verdicts

# The level at which leaves are tested where the search itself did not test them.
AFTERWARDS_ALPHA = 0.05
# With more outlying environments than this none is named: the whole leaf is heterogeneous.
_MAX_OUTLIERS = 8


def make_requirement(
    names: Names,
    alpha: float | None = None,
    margin: float = DEFAULT_MARGIN,
    margin_on: str = "rate",
    *,
    afterwards: bool = False,
) -> Plain:
    """Level, margin and null hypothesis of the verdicts; `alpha` is None without environments."""
    text = formatting.format_points(margin)
    return {
        "alpha": alpha,
        "margin": margin,
        "margin_on": margin_on,
        "margin_text": f"an odds ratio of {margin:g}" if margin_on == "odds_ratio" else text,
        "afterwards": afterwards,
        "confidence": VERDICT_CONFIDENCE,
        "difference_confidence": None if alpha is None else max(1 - 2 * alpha, 0.0),
        "power": VERDICT_POWER,
        "conclusions": formatting.CONCLUSIONS,
        "null_hypothesis": (
            f"within the leaf, {names.target} does not depend on the {names.environment}. A small "
            "p-value is evidence against invariance; a large one does not prove it."
        ),
    }


def find_requirement(learner: Learner, names: Names) -> Plain:
    """The requirement of the learner itself, or the default one where it does not test leaves."""
    alpha = learner.trace_.alpha
    if len(names.environments) < 2:
        return make_requirement(names)
    if not learner.tests_invariance or alpha is None:
        return make_requirement(names, AFTERWARDS_ALPHA, afterwards=True)
    settings = learner.get_params(deep=False)
    return make_requirement(names, alpha, settings["margin"], settings["margin_on"])


def describe_model_leaves(learner: Learner, names: Names, requirement: Plain) -> list[Plain]:
    """The leaves of a fitted learner with the verdicts of its search, or of Pearson's test."""
    alpha, trace = requirement["alpha"], learner.trace_
    leaves = getattr(learner.model_, "leaves", ())
    if alpha is None or not leaves:
        return describe_leaves(learner.model_, names)
    test = make_test("chi2")
    verdicts = trace.verdicts or make_verdicts(leaves, test, alpha, requirement["margin"])
    criterion = PValueCriterion(test, alpha) if requirement["afterwards"] else trace.criterion
    return describe_leaves(learner.model_, names, verdicts, criterion)


def describe_leaves(
    model: Tree | Score,
    names: Names,
    verdicts: Sequence[Verdict] = (),
    criterion: Criterion | None = None,
) -> list[Plain]:
    """Every leaf: counts, rates, verdict, outlying environments and prediction interval."""
    tables = getattr(model, "leaves", ())
    if not tables:  # a forest
        return []
    judged: Sequence[Verdict | None] = verdicts or [None] * len(tables)
    is_positive, conditions = model.leaf_verdicts.tolist(), list_conditions(model)
    effects = [None if each is None else each.design_effect for each in judged]
    expected = make_expectations(deflate_alike(np.array(tables), verdicts))
    leaves = []
    for i, (counts, verdict) in enumerate(zip(tables, judged, strict=True)):
        overall, environments = formatting.describe_counts(counts, names)
        leaf = {
            "number": i + 1,
            "condition": conditions[i],
            "is_rest": not model.rules or (model.is_chain and i == len(model.rules)),
            "predicts": names.predict(is_positive[i]),
            "is_positive": is_positive[i],
            "end_text": None,
            **overall,
            "environments": environments,
            **describe_extremes(environments, "rate"),
            **describe_verdict(verdict),
            **describe_expectation(expected[i]),
        }
        tested = criterion if leaf["conclusion"] == NOT_INVARIANT else None
        leaf |= describe_outliers(counts, names, tested, leaf["n_seen"], effects[i])
        leaves.append({**leaf, "name": _name_leaf(leaf, model)})
    return leaves


def list_conditions(model: Any) -> list[str]:
    """The condition of each leaf; in a rule set, of the samples that reach its rule."""
    if not model.rules:
        return ["every sample"]
    if not model.is_chain:
        return [*model.leaf_texts]
    rest = "no rule is true" if model.covers_when else "every rule is true"
    rules = (rule if model.covers_when else rule.negate() for rule in model.rules)
    return [*map(str, rules), rest]


def _name_leaf(leaf: Plain, model: Any) -> str:
    """A leaf of a rule set by the rule that covers it, of a tree by its number and path."""
    if model.rules and not model.is_chain:
        return f"{leaf['number']}: {leaf['condition']}"
    if leaf["is_rest"]:
        return "all samples" if leaf["number"] == 1 else "else"
    return ("else " if leaf["number"] > 1 else "") + str(leaf["condition"])


def describe_outliers(
    counts: LeafCounts,
    names: Names,
    criterion: Criterion | None,
    n_seen: int,
    effect: float | None = None,
) -> Plain:
    """The few environments without which a leaf would be invariant, also as text."""
    table = np.array(counts)
    found = criterion and find_outlier_environments(table, criterion, _MAX_OUTLIERS, effect)
    outliers = [names.environments[k] for k in sorted(found)] if found else None
    text = ""
    if outliers:
        n_holds = f"holds in {n_seen - len(outliers):,} of {n_seen:,} environments"
        text = f"{n_holds}; not in {join_words(outliers)}"
    return {"outliers": outliers, "outliers_text": text}


def find_extremes(rows: Sequence[Plain], key: str) -> tuple[Plain | None, Plain | None]:
    """The environments of the lowest and highest value, passing over sparse ones.

    An environment of a few samples has an extreme value by chance; it is named only where fewer
    than two others have samples.
    """
    known = [each for each in rows if each[key] is not None]
    clear = [each for each in known if each["n"] >= SPARSE_ENVIRONMENT]
    named = clear if len(clear) > 1 else known
    ends = find_extreme_environments([each[key] for each in named])
    return (None, None) if ends is None else (named[ends[0]], named[ends[1]])


def describe_extremes(rows: Sequence[Plain], key: str) -> Plain:
    """Lowest and highest environment of a leaf or split, and how many have a value."""
    ends = [
        each and {name: each[name] for name in ("environment", "n", key)}
        for each in find_extremes(rows, key)
    ]
    n_seen = sum(each[key] is not None for each in rows)
    return {"n_seen": n_seen, "lowest": ends[0], "highest": ends[1]}


def describe_verdict(verdict: Verdict | None) -> Plain:
    """The fields of a verdict that are not rates; all None where nothing was tested."""
    keys = "conclusion", "p_value", "difference", "difference_interval"
    fields = {key: getattr(verdict, key, None) for key in keys}
    interval = fields["difference_interval"]
    detectable = getattr(verdict, "minimum_detectable_difference", None)
    return {**fields, "difference_interval": interval and list(interval), "detectable": detectable}


def describe_expectation(found: Expectation) -> Plain:
    """The prediction interval for a new environment, in plain values."""
    return {
        "tau": found.tau,
        "tau_interval": found.tau_interval and list(found.tau_interval),
        "i2": found.i2,
        "new_interval": found.interval and list(found.interval),
        "known_interval": found.known_interval and list(found.known_interval),
        "new_reason": found.reason,
    }


def describe_errors(model: Tree | Score, names: Names, p: Any = 1.0) -> Plain:
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
    overall["auc"] = compute_auc_of_counts(counts.sum(axis=2), model.leaf_probabilities())
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
        **dict.fromkeys(formatting.SHARES),
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
        text = f"{names.describe_place(worst)}, {formatting.format_error(worst)}"
        worst = {**worst, "text": text}
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
    by_label = totals.T.tolist(), right.T.tolist()
    rows = zip(sizes, wrong, compute_intervals(wrong, sizes), *by_label, strict=True)
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
