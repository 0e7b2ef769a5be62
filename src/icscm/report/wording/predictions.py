"""Notes on new rows: rows that were excluded, groups, and levels that do not match training."""

from collections.abc import Sequence

from icscm.formatting import count, shorten_list


def note_excluded_rows(n_excluded: int) -> list[str]:
    """Return how many rows are of environments that were excluded in training."""
    if not n_excluded:
        return []
    rows = count(n_excluded, "sample")
    return [f"Excluded: {rows} of environments that were excluded in training."]


def note_groups(n_groups: int | None) -> list[str]:
    """Return that intervals are those of groups, where rows belong together."""
    if n_groups is None:
        return []
    groups = count(n_groups, "group")
    return [f"Intervals and tests are those of {groups} of rows, not of single rows."]


def note_weights(n_rows: int, *, n_counted: int) -> str:
    """Return that rows count by their weights.

    >>> note_weights(300, n_counted=900)
    'Rows count by their weights: 300 rows as 900. Intervals and tests allow for that.'
    """
    rows = count(n_rows, "row")
    return (
        f"Rows count by their weights: {rows} as {n_counted:,}. Intervals and tests allow for that."
    )


def note_absent_levels(column: str, absent: Sequence[str], present: Sequence[str]) -> list[str]:
    """Return which levels of the rules no row has; often they are spelt differently."""
    if not absent:
        return []
    return [
        f"Column {column} does not contain {shorten_list(absent)}, which the rules use; it "
        f"contains {shorten_list(present) or 'no value'}."
    ]


def note_new_levels(column: str, new: Sequence[str], n_rows: int) -> list[str]:
    """Return which levels did not occur in training, and in how many rows."""
    if not n_rows:
        return []
    return [
        f"Column {column} contains levels that did not occur in training, in "
        f"{count(n_rows, 'row')}: {shorten_list(new)}."
    ]
