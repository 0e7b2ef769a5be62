"""The check of a table before fitting: recommendations on environments, power and columns."""

from collections.abc import Callable, Sequence

from icscm import _constants
from icscm.formatting import shorten_list

# From this share of the rows on, one environment decides every test.
DOMINANT_SHARE = 0.95

# Differences of means, in standard deviations, that any study should detect: a medium effect by
# Cohen's convention.
BLIND_SHIFT = 0.5

# Names a parameter, with the value to give it, as in Python or as an option of the command line.
NameOption = Callable[..., str]


def format_shift(shift: float | None) -> str:
    """Write a difference in standard deviations; None if no difference is detectable.

    >>> format_shift(0.1234), format_shift(3.2), format_shift(None)
    ('0.12 SD', '3.2 SD', 'none')
    """
    return "none" if shift is None else f"{shift:.2g} SD"


def advise_on_sparse_environments(sparse: Sequence[str], *, has_classes: bool = True) -> list[str]:
    """Return what to do about environments with few rows, of a class if the outcome has any."""
    if not sparse:
        return []
    rows = "rows of a class" if has_classes else "rows"
    return [
        f"Merge or exclude environments with fewer than {_constants.SPARSE_ENVIRONMENT} {rows}: "
        f"{shorten_list(sparse)}."
    ]


def note_effective_rows(n_rows: int, *, n_effective: int) -> str:
    """Return how many independent rows tell as much as those with groups and weights.

    >>> note_effective_rows(3_000, n_effective=1_200)[:66]
    'With groups or weights, 3,000 rows tell as much about the outcome '
    """
    return (
        f"With groups or weights, {n_rows:,} rows tell as much about the outcome as "
        f"{n_effective:,} independent ones: intervals, tests and what is detectable allow for that."
    )


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


def advise_on_power_of_shares(in_table: float | None) -> list[str]:
    """Return what to do where too little is detectable of the share of the largest class."""
    if in_table is not None and in_table <= _constants.BLIND_DIFFERENCE:
        return []
    return [
        f"Even in the whole table a difference of {_constants.BLIND_DIFFERENCE:.0%} in the share "
        "of the largest class is not detectable: use more rows, or fewer and larger environments."
    ]


def advise_on_power_of_means(in_table: float | None) -> list[str]:
    """Return what to do where too little is detectable of means, in standard deviations."""
    if in_table is not None and in_table <= BLIND_SHIFT:
        return []
    return [
        f"Even in the whole table a difference of {BLIND_SHIFT:g} standard deviations between "
        "means is not detectable: use more rows, or fewer and larger environments."
    ]


def advise_on_learners(kind: str, name_of_screen: str) -> str:
    """Return who takes an outcome that is not two classes.

    >>> advise_on_learners("number", "icscm screen")[:43]
    'Of a number, icscm screen finds shortcuts; '
    """
    outcome = "a number" if kind == "number" else kind
    return (
        f"Of {outcome}, {name_of_screen} finds shortcuts; rules, trees, forests and scores take "
        "two classes."
    )


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
    has_rules: bool = True,
) -> list[str]:
    """Return what to do about columns that tell of the environment or of the outcome.

    Columns are given by name: those that determine the environment or nearly do, those strongly
    associated with it, those that determine the outcome of many rows, and those whose missing
    values depend on the environment. Rules are learned of two classes only; `has_rules` is whether
    they may be spoken of.
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
        why = (
            "A model may tell environments apart by such a column; drop the column if it only "
            "names the place."
        )
        if has_rules:
            why = (
                "A rule on such a column may be a rule on the environment; drop the column if it "
                "is."
            )
        advice.append(f"Strongly associated with the environment: {shorten_list(strong)}. {why}")
    if deciding:
        outcome = "label" if has_rules else "outcome"
        advice.append(
            f"Determines the {outcome} of many rows by itself: {shorten_list(deciding)}. Check "
            f"that such a column is known before the {outcome}, and is not part of its definition."
        )
    if missing:
        tested = "Rules on missingness are tested like any other; drop" if has_rules else "Drop"
        advice.append(
            f"Missing values depend on the environment: {shorten_list(missing)}. {tested} the "
            "columns if values will be missing for other reasons in a new environment."
        )
    return advice
