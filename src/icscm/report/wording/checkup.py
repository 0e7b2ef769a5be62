"""The check of a table before fitting: recommendations on environments, power and columns."""

from collections.abc import Callable, Sequence

from icscm import _constants
from icscm.formatting import shorten_list

# From this share of the rows on, one environment decides every test.
DOMINANT_SHARE = 0.95

# Names a parameter, with the value to give it, as in Python or as an option of the command line.
NameOption = Callable[..., str]


def advise_on_sparse_environments(sparse: Sequence[str]) -> list[str]:
    """Return what to do about environments with few rows of a class."""
    if not sparse:
        return []
    return [
        f"Merge or exclude environments with fewer than {_constants.SPARSE_ENVIRONMENT} rows of a "
        f"class: {shorten_list(sparse)}."
    ]


def advise_on_dominance(largest_share: float) -> list[str]:
    """Return a remark where one environment holds nearly all rows."""
    if largest_share <= DOMINANT_SHARE:
        return []
    return [
        f"One environment holds {largest_share:.1%} of the rows: the others have little weight in "
        "any test."
    ]


def advise_on_power(
    in_table: float | None, in_a_tenth: float | None, name_option: NameOption
) -> list[str]:
    """Return what to do where too little or too much is detectable.

    The arguments are minimum detectable differences between rates, None where none is detectable.
    """
    if in_table is None or in_table > _constants.BLIND_DIFFERENCE:
        return [
            f"Even in the whole table a difference of {_constants.BLIND_DIFFERENCE:.0%} between "
            "rates is not detectable: use more rows, or fewer and larger environments."
        ]
    if in_a_tenth is not None and in_a_tenth < _constants.TRIVIAL_DIFFERENCE:
        return [
            f"Even in a tenth of the rows a difference of {in_a_tenth:.1%} is detectable: nearly "
            "every rule may be rejected for differences too small to matter. Try a smaller "
            f"{name_option('alpha')} (or auto), or {name_option('margin', 0.05)} if differences of "
            "five points are acceptable."
        ]
    return []


def advise_on_equal_rates(p_value: float, alpha: float) -> list[str]:
    """Return a remark where rates are the same everywhere, so that little is rejected."""
    if p_value <= alpha:
        return []
    return [
        "The rate of the label does not differ significantly between environments "
        f"(p {p_value:.2g}): few rules can be rejected."
    ]


def advise_on_columns(
    *,
    determining: Sequence[str],
    nearly: Sequence[str],
    strong: Sequence[str],
    deciding: Sequence[str],
    missing: Sequence[str],
) -> list[str]:
    """Return what to do about columns that tell of the environment or of the label.

    Columns are given by name: those that determine the environment or nearly do, those strongly
    associated with it, those that determine the label of many rows, and those whose missing values
    depend on the environment.
    """
    advice = []
    if determining:
        advice.append(
            f"Determines the environment: {shorten_list(determining)}. Learners that compare "
            "environments reject such a column: there is nothing to compare its effect with."
        )
    if nearly:
        advice.append(
            f"Nearly determines the environment (Cramer's V above 0.9): {shorten_list(nearly)}. "
            "There is little to compare its effect with."
        )
    if strong:
        advice.append(
            f"Strongly associated with the environment: {shorten_list(strong)}. A rule on such a "
            "column may be a rule on the environment; drop the column if it is."
        )
    if deciding:
        advice.append(
            f"Determines the label of many rows by itself: {shorten_list(deciding)}. Check that "
            "such a column is known before the label, and is not part of its definition."
        )
    if missing:
        advice.append(
            f"Missing values depend on the environment: {shorten_list(missing)}. Rules on "
            "missingness are tested like any other; drop the columns if values will be missing for "
            "other reasons in a new environment."
        )
    return advice
