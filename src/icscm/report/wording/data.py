"""The data of a command: facts about the table that it read, as terms and texts."""

from collections.abc import Mapping, Sequence

from icscm.formatting import as_text, count, shorten_list
from icscm.report.wording.facts import Fact


def describe_table(name: str, *, n_rows: int, n_columns: int) -> list[Fact]:
    """Return the size of the table."""
    size = f"{count(n_rows, 'row')}, {count(n_columns, 'column')} to learn from"
    return [Fact("Data", f"{as_text(name)}: {size}")]


def describe_positive(positive: str, *, n_positive: int, n_rows: int) -> list[Fact]:
    """Return the share of the positive class, given the number of its rows."""
    return describe_positive_share(positive, n_positive / n_rows)


def describe_positive_share(positive: str, share: float) -> list[Fact]:
    """Return the share of the positive class.

    >>> describe_positive_share("ill is yes", 0.25)[0].text
    'ill is yes, in 25.0% of the rows'
    """
    return [Fact("Positive", f"{as_text(positive)}, in {share:.1%} of the rows")]


def describe_number(target: str, *, mean: float, deviation: float, hint: str = "") -> list[Fact]:
    """Return an outcome that is a number; the hint says how to have it taken for classes.

    >>> describe_number("age", mean=54.321, deviation=9.87654)[0].text
    'age, a number: mean 54.32, standard deviation 9.877'
    """
    text = f"{as_text(target)}, a number: mean {mean:.4g}, standard deviation {deviation:.4g}"
    return [Fact("Outcome", text + hint)]


def describe_classes(target: str, shares: Mapping[str, float], hint: str = "") -> list[Fact]:
    """Return an outcome of several classes, the most frequent first.

    >>> describe_classes("grade", {"mild": 0.25, "severe": 0.75})[0].text
    'grade, 2 classes: severe 75.0%, mild 25.0%'
    """
    most_frequent_first = sorted(shares.items(), key=lambda item: -item[1])
    listed = [f"{as_text(label)} {share:.1%}" for label, share in most_frequent_first]
    text = f"{as_text(target)}, {len(shares):,} classes: {shorten_list(listed)}"
    return [Fact("Outcome", text + hint)]


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


def describe_weights(column: str | None) -> list[Fact]:
    """Return which column has the weights of the rows."""
    return [Fact("Weights", as_text(column))] if column else []


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
    cells: Sequence[tuple[str, Mapping[str, int]]],
    *,
    has_defaults: bool,
    doubtful: Sequence[str] = (),
) -> list[Fact]:
    """Return which texts were read as missing.

    `cells` has for each text the number of its cells by column; `has_defaults` is whether one of
    the texts means missing by default. `doubtful` are columns of text with empty cells and with
    `None`, which may be a level there: the user is asked.
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
    facts = [Fact("Missing", f"{as_text(shorten_list(parts))}, read as missing{hint}")]
    if doubtful:
        columns = as_text(shorten_list(list(doubtful)))
        question = (
            f"is 'None' a level of {columns}, where other cells are empty? If it is, read it with "
            "--no-default-na, and with --na for each text that does mean missing"
        )
        facts.append(Fact("Question", question))
    return facts
