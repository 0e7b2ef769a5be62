"""The data of a command: facts about the table that it read, as terms and texts."""

from collections.abc import Mapping, Sequence

from icscm.formatting import as_text, count, shorten_list
from icscm.report.wording.facts import Fact


def describe_table(
    name: str, *, n_rows: int, n_columns: int, positive: str, n_positive: int
) -> list[Fact]:
    """Return the size of the table and the share of the positive class."""
    size = f"{count(n_rows, 'row')}, {count(n_columns, 'column')} to learn from"
    share = f"{n_positive / n_rows:.1%}"
    return [
        Fact("Data", f"{as_text(name)}: {size}"),
        Fact("Positive", f"{as_text(positive)}, in {share} of the rows"),
    ]


def describe_environments(column: str | None, n_environments: int) -> list[Fact]:
    """Return the number of environments, where the table has a column of them."""
    if column is None:
        return []
    return [Fact("Environments", f"{n_environments:,}, by {as_text(column)}")]


def describe_groups(column: str | None) -> list[Fact]:
    """Return by which column rows belong together."""
    if not column:
        return []
    return [Fact("Groups", f"rows with the same {as_text(column)} belong together")]


def describe_dropped_rows(n_dropped: int) -> list[Fact]:
    """Return how many rows lack what is needed to learn from them."""
    if not n_dropped:
        return []
    return [Fact("Dropped", f"{count(n_dropped, 'row')} without target or environment")]


def describe_excluded_environments(n_excluded: int, excluded: Sequence[str]) -> list[Fact]:
    """Return which environments were excluded, and how many rows they have."""
    if not excluded:
        return []
    return [Fact("Excluded", f"{count(n_excluded, 'row')} of {as_text(shorten_list(excluded))}")]


def describe_merged_environments(merged: Mapping[str | None, Sequence[str]]) -> list[Fact]:
    """Return which environments were merged, by their new name."""
    if not merged:
        return []
    texts = [
        f"{as_text(shorten_list(sorted(names)))} as {as_text(new)}" for new, names in merged.items()
    ]
    return [Fact("Merged", "; ".join(texts))]


def describe_missing_texts(
    cells: Sequence[tuple[str, Mapping[str, int]]], has_defaults: bool
) -> list[Fact]:
    """Return which texts were read as missing.

    `cells` has for each text the number of its cells by column; `has_defaults` is whether one of
    the texts means missing by default.
    """
    if not cells:
        return []
    parts = []
    for text, by_column in cells:
        columns = f"{len(by_column):,} columns"
        if len(by_column) == 1:
            (columns,) = by_column
        parts.append(f"{text!r} in {columns} ({count(sum(by_column.values()), 'cell')})")
    hint = "; --no-default-na keeps such texts" if has_defaults else ""
    return [Fact("Missing", f"{as_text(shorten_list(parts))}, read as missing{hint}")]
