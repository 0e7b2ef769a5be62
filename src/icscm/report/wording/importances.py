"""What the importances of a forest's columns mean."""

from icscm.formatting import count


def describe_importances(n_permuted: int | None) -> str:
    """Return the meaning of importances, and of losses by permutation where they were computed.

    `n_permuted` is the number of rows of which columns were permuted.
    """
    text = (
        "Importance is the share of a column in the deviance that the splits of all trees explain "
        "by effects common to all environments."
    )
    if n_permuted is None:
        return text
    return (
        f"{text} The losses of AUC and of log loss are those of the forest where the values of the "
        "column are permuted among the rows of each environment, in "
        f"{count(n_permuted, 'training row')}; permuting a column that only distinguishes "
        "environments costs nothing. The losses show what this forest relies on, not what causes "
        "the label; of two columns that carry the same information, each may seem unimportant."
    )
