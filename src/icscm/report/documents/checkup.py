"""A check of a table before fitting as a document.

An outcome is shown by environment in columns of its own: the share of the positive class, shares of
several classes, or the mean of a number (`list_outcome_columns`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from icscm.formatting import as_text, format_name, shorten_list
from icscm.report.blocks import (
    Block,
    Bullets,
    Document,
    Facts,
    Heading,
    Note,
    Paragraph,
    make_table,
    note_more,
    shorten_name,
    shorten_sentence,
)
from icscm.report.documents.shared import shorten_facts
from icscm.report.formatting import (
    Plain,
    format_detectable,
    format_interval,
    format_p,
    format_share,
)
from icscm.report.wording.checkup import format_shift
from icscm.report.wording.facts import Fact
from icscm.tables.outcomes import OutcomeKind, find_kind

# Shares of the rows in words.
SHARES = {1.0: "all rows", 0.5: "half of them", 0.1: "a tenth"}
# Columns that are listed where none is strongly associated.
N_WEAK = 3
# Of more classes the most frequent are shown.
N_CLASSES_SHOWN = 4

# What the environments and the power mean, by the kind of the outcome.
ENVIRONMENT_NOTES: Final = {
    OutcomeKind.TWO_CLASSES: (
        "positive: share of positive labels. missing: share of empty cells. detectable: "
        "minimum detectable difference from the rate of the other environments, with 80% power."
    ),
    OutcomeKind.SEVERAL_CLASSES: (
        "missing: share of empty cells. detectable: minimum detectable difference from the share "
        "of {largest}, the largest class, in the other environments, with 80% power."
    ),
    OutcomeKind.NUMBER: (
        "SD: standard deviation. missing: share of empty cells. detectable: minimum detectable "
        "difference from the mean of the other environments, with 80% power, in standard "
        "deviations of the outcome within environments."
    ),
}
TESTS: Final = {
    OutcomeKind.TWO_CLASSES: "Test of homogeneous rates of the label over the environments",
    OutcomeKind.SEVERAL_CLASSES: "Test of homogeneous shares of the classes over the environments",
    OutcomeKind.NUMBER: "Test of equal means of the outcome over the environments (Welch)",
}
POWER_NOTES: Final = {
    OutcomeKind.TWO_CLASSES: (
        "Between the label's rates in the two largest environments, in leaves of this size, by "
        "a test at alpha {alpha:g} with 80% power."
    ),
    OutcomeKind.SEVERAL_CLASSES: (
        "Between the shares of {largest}, the largest class, in the two largest environments, in "
        "so many rows, by a test at alpha {alpha:g} with 80% power."
    ),
    OutcomeKind.NUMBER: (
        "Between the means of the two largest environments, in standard deviations of the outcome "
        "within environments, in so many rows, by a test at alpha {alpha:g} with 80% power. As "
        "large a difference is detectable between the slopes of a column whose standard deviation "
        "is 1."
    ),
}


def write_document(
    checkup: Plain, *, facts: Sequence[Fact], n_strong: int, n_listed: int | None
) -> Document:
    """Return a check-up, as `CheckUp.to_dict` has it.

    Lists are cut after `n_listed` items, or whole with None; `n_strong` columns are strongly
    associated with the environment.
    """
    classes = checkup["classes"]
    sparse_title = "Classes with few rows in an environment"
    if classes is None:
        sparse_title = "Environments with few rows"
    dropping_command = "fit" if get_kind(checkup) is OutcomeKind.TWO_CLASSES else "screen"
    return [
        Facts(shorten_facts(facts)),
        *write_environments(checkup, n_listed),
        *write_list(
            checkup["sparse"],
            n_listed,
            title=sparse_title,
            make=lambda sparse: write_sparse(sparse, classes),
            more="more; --all shows them",
        ),
        *write_list(
            list(checkup["dropped"].items()),
            n_listed,
            title=f"Columns that {dropping_command} drops",
            make=write_dropped,
            more="more columns; --all shows them",
        ),
        *write_associations(checkup, n_strong, n_listed),
        *write_power(checkup),
        *write_advice(checkup),
    ]


def get_kind(checkup: Plain) -> OutcomeKind:
    """Return what the outcome of a check-up is."""
    return find_kind(checkup["classes"])


# --- environments ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class OutcomeColumn:
    """A column on the outcome in the table of environments; its cells are in their order."""

    title: str
    cells: list[str]


def list_outcome_columns(checkup: Plain, *, n_classes: int | None) -> list[OutcomeColumn]:
    """Return the columns that say what the outcome is in each environment, without intervals.

    Of several classes the `n_classes` most frequent are shown, all with None.
    """
    environments = checkup["environments"]
    kind = get_kind(checkup)
    if kind is OutcomeKind.TWO_CLASSES:
        return [OutcomeColumn(">positive", [f"{place['rate']:.1%}" for place in environments])]
    if kind is OutcomeKind.NUMBER:
        means = [f"{place['mean']:.4g}" for place in environments]
        deviations = [format_deviation(place["deviation"]) for place in environments]
        return [OutcomeColumn(">mean", means), OutcomeColumn(">SD", deviations)]
    return [
        OutcomeColumn(
            f">{shorten_name(as_text(checkup['classes'][number]))}",
            [format_share(place["shares"][number]) for place in environments],
        )
        for number in list_frequent_classes(checkup)[:n_classes]
    ]


def list_frequent_classes(checkup: Plain) -> list[int]:
    """Return the positions of several classes, the most frequent first."""
    n_rows_of_classes = [
        sum(place["n_rows"] * place["shares"][number] for place in checkup["environments"])
        for number in range(len(checkup["classes"]))
    ]
    numbers = range(len(n_rows_of_classes))
    return sorted(numbers, key=lambda number: -round(n_rows_of_classes[number]))


def list_detailed_columns(checkup: Plain, *, n_classes: int | None) -> list[OutcomeColumn]:
    """Return the columns on the outcome with intervals, as the terminal has room for them."""
    environments = checkup["environments"]
    kind = get_kind(checkup)
    if kind is OutcomeKind.SEVERAL_CLASSES:
        return list_outcome_columns(checkup, n_classes=n_classes)
    if kind is OutcomeKind.TWO_CLASSES:
        rates = [format_share(place["rate"]) for place in environments]
        intervals = [format_interval(place["rate_interval"]) for place in environments]
        return [OutcomeColumn(">positive", rates), OutcomeColumn(">95% interval", intervals)]
    mean_column, deviation_column = list_outcome_columns(checkup, n_classes=None)
    intervals = [format_mean_interval(place["mean_interval"]) for place in environments]
    return [mean_column, OutcomeColumn(">95% interval", intervals), deviation_column]


def format_deviation(deviation: float | None) -> str:
    """Write a standard deviation; a single row has none.

    >>> format_deviation(12.3456), format_deviation(None)
    ('12.35', '-')
    """
    return "-" if deviation is None else f"{deviation:.4g}"


def format_mean_interval(interval: Sequence[float] | None) -> str:
    """Write the interval of a mean; a single row has none.

    >>> format_mean_interval((1.0, 2.5)), format_mean_interval(None)
    ('1 to 2.5', '-')
    """
    return "-" if interval is None else " to ".join(f"{end:.4g}" for end in interval)


def format_difference(difference: float | None, kind: OutcomeKind) -> str:
    """Write a minimum detectable difference: of a number in standard deviations, else in points."""
    if kind is OutcomeKind.NUMBER:
        return format_shift(difference)
    return format_detectable(difference)


def fill_note(note: str, checkup: Plain) -> str:
    """Fill a note with the level of the tests and, of several classes, the name of the largest."""
    largest = ""
    if get_kind(checkup) is OutcomeKind.SEVERAL_CLASSES:
        largest = as_text(checkup["classes"][list_frequent_classes(checkup)[0]])
    return note.format(alpha=checkup["alpha"], largest=shorten_name(largest))


def write_environments(checkup: Plain, n_listed: int | None) -> Document:
    """Return the environments, the largest first, and whether the outcome differs between them."""
    environments = checkup["environments"]
    kind = get_kind(checkup)
    n_classes = None if n_listed is None else N_CLASSES_SHOWN
    columns = list_detailed_columns(checkup, n_classes=n_classes)
    largest_first = sorted(
        range(len(environments)), key=lambda number: -environments[number]["n_rows"]
    )
    rows = [
        [
            shorten_name(as_text(environments[number]["label"])),
            f"{environments[number]['n_rows']:,}",
            *(column.cells[number] for column in columns),
            format_share(environments[number]["missing"]),
            format_difference(environments[number]["min_detectable"], kind),
        ]
        for number in largest_first[:n_listed]
    ]
    titles = ["environment", ">rows", *(column.title for column in columns)]
    n_more = len(environments) - len(rows)
    return [
        Heading("Environments"),
        make_table([*titles, ">missing", ">detectable"], rows),
        *note_more(n_more, f"and {n_more:,} more environments; --all shows them"),
        *note_more_classes(checkup, n_classes),
        Note(fill_note(ENVIRONMENT_NOTES[kind], checkup)),
        Paragraph(f"{TESTS[kind]}: p = {format_p(checkup['p_value'])}."),
    ]


def note_more_classes(checkup: Plain, n_classes: int | None) -> Document:
    """Return which of several classes are not shown in the table of environments."""
    if get_kind(checkup) is not OutcomeKind.SEVERAL_CLASSES or n_classes is None:
        return []
    hidden = list_frequent_classes(checkup)[n_classes:]
    names = [as_text(checkup["classes"][number]) for number in hidden]
    classes = "class" if len(names) == 1 else "classes"
    return note_more(
        len(names), f"and {len(names):,} more {classes}: {shorten_list(names)}; --all shows them"
    )


# --- lists ----------------------------------------------------------------------------------------


def write_list(
    items: Sequence[Any],
    n_listed: int | None,
    *,
    title: str,
    make: Callable[[Any], Block],
    more: str,
) -> Document:
    """Return the first items below a title, and how many more there are; nothing without any."""
    if not items:
        return []
    shown = items[:n_listed]
    n_more = len(items) - len(shown)
    return [Heading(title), make(shown), *note_more(n_more, f"and {n_more:,} {more}")]


def write_sparse(sparse: Sequence[Plain], classes: Sequence[object] | None) -> Block:
    """Return the classes with few rows, by environment; of a number, the environments."""
    if classes is None:
        rows = [
            [shorten_name(as_text(cell["environment"])), f"{cell['n_rows']:,}"] for cell in sparse
        ]
        return make_table(["environment", ">rows"], rows)
    rows = [
        [
            shorten_name(as_text(cell["environment"])),
            name_class(cell["label"], classes),
            f"{cell['n_rows']:,}",
        ]
        for cell in sparse
    ]
    return make_table(["environment", "class", ">rows"], rows)


def name_class(label: object, classes: Sequence[object]) -> str:
    """Name a class: of two, whether it is the positive one.

    >>> name_class("yes", ["no", "yes"]), name_class("mild", ["mild", "none", "severe"])
    ('positive', 'mild')
    """
    if len(classes) > 2:
        return shorten_name(as_text(label))
    return "positive" if label == classes[1] else "negative"


def write_dropped(dropped: Sequence[Sequence[str]]) -> Block:
    """Return the columns that are dropped, and why."""
    return Facts(
        [Fact(shorten_name(as_text(name)), shorten_sentence(as_text(why))) for name, why in dropped]
    )


def write_associations(checkup: Plain, n_strong: int, n_listed: int | None) -> Document:
    """Return the columns that are associated with the environment, the strongest first.

    The first `n_strong` are strongly associated, and at most `n_listed` of these are listed; where
    none is, a few of the others are. With None all columns are listed.
    """
    title = "Columns associated with the environment"
    if not n_strong:
        title = "No column is strongly associated with the environment; the strongest"

    n_shown = n_listed
    if n_listed:
        n_shown = min(n_strong, n_listed) if n_strong else N_WEAK
    rows = [
        [
            shorten_name(format_name(association["column"])),
            f"{association['values']:.2f}",
            write_missingness(association["missingness"]),
        ]
        for association in checkup["associations"][:n_shown]
    ]
    n_more = 0 if n_listed is None else n_strong - n_listed
    return [
        Heading(title),
        make_table(["column", ">values", ">missingness"], rows),
        *note_more(n_more, f"and {n_more:,} more columns; --all shows them"),
        Note(
            "Cramer's V with the environment, of the values of the column and of whether it is "
            "missing: 0 unrelated, 1 one determines the other; strong from 0.5. Numbers are cut "
            "into 16 bins."
        ),
    ]


def write_missingness(strength: float | None) -> str:
    """Return the association of missing values with the environment; a dash without any."""
    return "-" if strength is None else f"{strength:.2f}"


def write_power(checkup: Plain) -> Document:
    """Return the minimum detectable differences in leaves of several sizes."""
    kind = get_kind(checkup)
    facts = [
        Fact(
            SHARES[leaf["share"]],
            f"{leaf['n_rows']:,} rows: {format_difference(leaf['difference'], kind)}",
        )
        for leaf in checkup["power"]
    ]
    return [
        Heading("Minimum detectable differences"),
        Facts(facts),
        Note(fill_note(POWER_NOTES[kind], checkup)),
    ]


def write_advice(checkup: Plain) -> Document:
    """Return the recommendations."""
    points = [shorten_sentence(advice) for advice in checkup["advice"]]
    return [Heading("Advice"), Bullets(points)] if points else []
