"""Models learned again from random halves of the rows."""

from icscm.formatting import count
from icscm.report.content.stability import Stability


def describe_own_frequencies(stability: Stability, *, is_forest: bool) -> str:
    """Return in how many subsamples the model of all rows, or its columns, were found again."""
    n = stability.n_resamples
    return describe_stability(
        n_subsamples=n,
        n_same_model=round(stability.model_frequency * n),
        n_same_columns=round(stability.columns_frequency * n),
        is_forest=is_forest,
    )


def describe_stability(
    *, n_subsamples: int, n_same_model: int, n_same_columns: int, is_forest: bool
) -> str:
    """Return in how many subsamples the same model, or one of the same columns, was learned.

    >>> describe_stability(n_subsamples=20, n_same_model=0, n_same_columns=12, is_forest=True)
    'Of 20 random subsamples with half of the samples, 12 gave a forest of the same columns.'
    """
    start = f"Of {count(n_subsamples, 'random subsample')} with half of the samples"
    if is_forest:
        return f"{start}, {n_same_columns:,} gave a forest of the same columns."
    same_columns = f"{n_same_columns:,} one with the same columns"
    return f"{start}, {n_same_model:,} gave this model and {same_columns}."
