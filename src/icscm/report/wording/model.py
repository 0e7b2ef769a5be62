"""A model in a sentence, and its name."""

from collections.abc import Sequence
from typing import assert_never

from icscm.formatting import count
from icscm.model.forest import Forest, Model
from icscm.model.score import Score
from icscm.model.tree import Tree
from icscm.report.content.errors import Errors
from icscm.report.content.model import Discarded
from icscm.report.formatting import Names, format_features, format_share
from icscm.report.wording.errors import describe_error, describe_metrics

MISSING = '"missing: true" means that a missing value counts as true for the rule.'


def name_model(model: Model, columns: Sequence[str]) -> str:
    """Return the rules of a rule set; of other models kind and size."""
    if isinstance(model, Forest):
        return f"forest of {count(len(model.trees), 'tree')}"
    if model.kind == "tree":
        name = f"tree of {count(len(model.leaves), 'leaf')}"
        return f"{name} on {format_features(columns)}" if columns else name
    return str(model).partition("\n")[0]


def describe_model(
    model: Model, names: Names, columns: Sequence[str], *, is_discarded: bool
) -> str:
    """Return when the positive class is predicted."""
    if isinstance(model, Forest):
        return describe_forest(
            n_trees=len(model.trees),
            columns=columns,
            positive=names.positive,
            threshold=model.threshold,
        )
    if not model.rules:
        return describe_constant(model, names, is_discarded=is_discarded)
    if isinstance(model, Score):
        return describe_score(
            columns=columns, max_total=model.max_total, cut=model.cut, positive=names.positive
        )
    if isinstance(model, Tree):
        if not model.is_chain:
            return describe_tree(model, names, columns)
        return describe_rules(model, names)
    assert_never(model)


def describe_forest(
    *, n_trees: int, columns: Sequence[str], positive: str, threshold: float | None
) -> str:
    """Return the mean probability from which on a forest predicts the positive class."""
    where = f" on {format_features(columns)}" if columns else ""
    limit = "exceeds 0.5" if threshold is None else f"is at least {threshold:.3g}"
    trees = count(n_trees, "tree")
    return f"Predict {positive} where the mean probability of {trees}{where} {limit}."


def describe_constant(model: Tree | Score, names: Names, *, is_discarded: bool) -> str:
    """Return what a model without rules always predicts, and why."""
    always = names.predict(bool(model.leaf_verdicts[0]))
    if model.threshold:
        share = format_share(float(model.leaf_probabilities()[0]))
        return f"Predict {always} for every sample{model.at_threshold}: the probability is {share}."
    if is_discarded:
        return f"Always predict {always}: the rules that were found do no better."
    missing_parts = {"tree": "split was made", "score": "column got points"}
    missing = missing_parts.get(model.kind, "rule was found that does better")
    return f"Always predict {always}: no {missing}."


def describe_score(*, columns: Sequence[str], max_total: int, cut: int, positive: str) -> str:
    """Return how points are added, and from which total on the positive class is predicted.

    >>> describe_score(columns=["age", "sex"], max_total=7, cut=5, positive="ill = yes")
    'A score of age and sex: add the points, 0 to 7; predict ill = yes from a total of 5 on.'
    """
    return (
        f"A score of {format_features(columns)}: add the points, 0 to {max_total}; predict "
        f"{positive} from a total of {cut} on."
    )


def describe_tree(model: Tree, names: Names, columns: Sequence[str]) -> str:
    """Return the size of a tree, the range of its probabilities, and its positive leaves."""
    rates = model.leaf_probabilities().tolist()
    n_positive = int(model.leaf_verdicts.sum())
    return (
        f"A tree on {format_features(columns)} with {count(len(model.leaves), 'leaf')} and "
        f"probabilities from {format_share(min(rates))} to {format_share(max(rates))}; "
        f"{names.positive} is predicted in {count(n_positive, 'leaf')}{model.at_threshold}."
    )


def describe_rules(model: Tree, names: Names) -> str:
    """Return the rules, or the threshold where one was chosen."""
    if not model.threshold:
        negative = names.predict(False)
        return f"Predict {names.positive} when {model}; otherwise {negative}."
    word = " or " if model.covers_when else " and "
    rules = word.join(map(str, model.simple_rules))
    return (
        f"Predict {names.positive} from a probability of {model.threshold:.3g} on, in "
        f"{int(model.leaf_verdicts.sum())} of {count(len(model.leaves), 'leaf')} of the rules "
        f"{rules}."
    )


def explain_discarded(discarded: Discarded, baseline_error: float | None) -> str:
    """Return the error of rules that were discarded, beside that of the baseline."""
    return (
        f"The rules that were found ({discarded.text}) are wrong for "
        f"{describe_error(discarded.errors)} ({describe_metrics(discarded.errors)}), the "
        f"majority-class baseline for {format_share(baseline_error)}: they were discarded."
    )


def judge_discarded(discarded: Discarded) -> str:
    """Return how discarded rules compare with the baseline: `min_utility` asks for a gain."""
    return "no better than" if discarded.is_worse else "not enough better than"


def describe_worst(errors: Errors, names: Names) -> str | None:
    """Return the environment of the largest error, where there are several to compare."""
    if errors.worst is None:
        return None
    return f"{names.describe_place(errors.worst.environment)}, {describe_error(errors.worst)}"
