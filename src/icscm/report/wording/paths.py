"""Models at other levels of alpha, or at other tolerances."""

from collections.abc import Sequence

from icscm.formatting import count
from icscm.report.content.nodes import CriterionName
from icscm.report.content.paths import LevelModel, PathContent, TreeAtTolerance
from icscm.report.formatting import format_features, format_score, format_share

CAUTION = (
    "Leave-one-environment-out measures no shift larger than those between the environments at "
    "hand: a loose tolerance with a good score may fail where a shortcut reverses. Of tolerances "
    "with similar scores, prefer the strict one."
)


def explain_alpha(criterion: str | None) -> str:
    """Return what a larger alpha does, by what decides on rejections."""
    if criterion == CriterionName.SETS:
        return (
            "A larger alpha rejects more sets; the fewer are accepted, the more they share, and "
            "the fewer there are to choose from."
        )
    if criterion == CriterionName.MARGIN:
        return "A larger alpha requires less evidence, so that fewer rules are rejected."
    return "A larger alpha rejects more rules, a smaller one fewer."


def describe_path(path: PathContent) -> str:
    """Return how much the model depends on alpha, or on the tolerance."""
    if path.parameter == "alpha":
        return describe_levels(path)
    return describe_tolerances(path.points)


def describe_levels(path: PathContent) -> str:
    """Return how many models there are, the errors, and the levels at which there is no rule."""
    levels = f"{path.n_searches} levels of alpha from {path.first:g} to {path.last:g}"
    if len(path.models) == 1:
        return f"The same model is learned at {levels}."
    models_with_rules = [model for model in path.models if model.n_rules]
    models_without_rules = [model for model in path.models if not model.n_rules]

    n_different = len({model.text for model in models_with_rules})
    own_spans = [
        f", this one {describe_span(model, 'only at')}"
        for model in models_with_rules
        if model.is_own
    ]
    parts = [f"{levels} give {count(n_different, 'different model')}{''.join(own_spans)}"]
    if models_with_rules:
        parts.append(f"errors {describe_error_range(models_with_rules)}")
        parts.append(describe_shared_columns(path.shared))
    if models_without_rules:
        spans = [describe_span(model, "at") for model in models_without_rules]
        parts.append(f"no rule is found {' and '.join(spans)}")
    return f"{'; '.join(parts)}."


def describe_error_range(models: Sequence[LevelModel]) -> str:
    """Return `10.0% to 12.5%`, or one error where both are written alike."""
    errors = [model.errors.error or 0.0 for model in models]
    lowest = format_share(min(errors))
    highest = format_share(max(errors))
    return lowest if lowest == highest else f"{lowest} to {highest}"


def describe_shared_columns(columns: Sequence[str]) -> str:
    """Return the columns that all models use."""
    if not columns:
        return "no column is in all models"
    return f"columns in all models: {', '.join(columns)}"


def describe_span(model: LevelModel, at: str) -> str:
    """Return `from 0.01 to 0.1`, or `at 0.1` with these words for a single level."""
    if model.alpha_from == model.alpha_to:
        return f"{at} {model.alpha_to:g}"
    return f"from {model.alpha_from:g} to {model.alpha_to:g}"


def describe_tolerances(trees: Sequence[TreeAtTolerance]) -> str:
    """Return the tree of the report beside a plain one: deviance, heterogeneity, columns, AUC."""
    plain = trees[0]
    own = next(tree for tree in trees if tree.is_own)
    if plain.tolerance is not None or not plain.deviance_explained:
        return f"The tree was grown at {count(len(trees), 'tolerance')}."
    text = (
        f"Compared with a plain tree: deviance explained {own.deviance_explained:,.0f} against "
        f"{plain.deviance_explained:,.0f}, heterogeneity {own.varies:,.0f} against "
        f"{plain.varies:,.0f}"
    )
    gone = [column for column in plain.features if column not in own.features]
    if gone:
        text += f"; without {format_features(gone)}"
    text += "."
    if own.mean_auc is not None and plain.mean_auc is not None:
        text += (
            f" Mean leave-one-environment-out AUC: {format_score(own.mean_auc)}, of the plain "
            f"tree {format_score(plain.mean_auc)}."
        )
    return text
