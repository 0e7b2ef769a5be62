"""A check of a table before fitting as a document."""

from collections.abc import Callable, Sequence
from typing import Any

from icscm.formatting import as_text, format_name
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
from icscm.report.wording.facts import Fact

# Shares of the rows in words.
SHARES = {1.0: "all rows", 0.5: "half of them", 0.1: "a tenth"}
# Columns that are listed where none is strongly associated.
N_WEAK = 3


def write_document(
    checkup: Plain, *, facts: Sequence[Fact], n_strong: int, n_listed: int | None
) -> Document:
    """Return a check-up, as `CheckUp.to_dict` has it.

    Lists are cut after `n_listed` items, or whole with None; `n_strong` columns are strongly
    associated with the environment.
    """
    return [
        Facts(shorten_facts(facts)),
        *write_environments(checkup, n_listed),
        *write_list(
            checkup["sparse"],
            n_listed,
            title="Classes with few rows in an environment",
            make=lambda sparse: write_sparse(sparse, checkup["classes"]),
            more="more; --all shows them",
        ),
        *write_list(
            list(checkup["dropped"].items()),
            n_listed,
            title="Columns that fit drops",
            make=write_dropped,
            more="more columns; --all shows them",
        ),
        *write_associations(checkup, n_strong, n_listed),
        *write_power(checkup),
        *write_advice(checkup),
    ]


def write_environments(checkup: Plain, n_listed: int | None) -> Document:
    """Return the environments, the largest first, and whether their rates differ."""
    environments = checkup["environments"]
    largest_first = sorted(environments, key=lambda environment: -environment["n_rows"])
    rows = [
        [
            shorten_name(as_text(environment["label"])),
            f"{environment['n_rows']:,}",
            format_share(environment["rate"]),
            format_interval(environment["rate_interval"]),
            format_share(environment["missing"]),
            format_detectable(environment["min_detectable"]),
        ]
        for environment in largest_first[:n_listed]
    ]
    titles = ["environment", ">rows", ">positive", ">95% interval", ">missing", ">detectable"]
    n_more = len(environments) - len(rows)
    return [
        Heading("Environments"),
        make_table(titles, rows),
        *note_more(n_more, f"and {n_more:,} more environments; --all shows them"),
        Note(
            "positive: share of positive labels. missing: share of empty cells. detectable: "
            "minimum detectable difference from the rate of the other environments, with 80% power."
        ),
        Paragraph(
            "Test of homogeneous rates of the label over the environments: p = "
            f"{format_p(checkup['p_value'])}."
        ),
    ]


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


def write_sparse(sparse: Sequence[Plain], classes: Sequence[object]) -> Block:
    """Return the classes with few rows, by environment."""
    rows = [
        [
            shorten_name(as_text(cell["environment"])),
            "positive" if cell["label"] == classes[1] else "negative",
            f"{cell['n_rows']:,}",
        ]
        for cell in sparse
    ]
    return make_table(["environment", "class", ">rows"], rows)


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
            "copy of it" if association["is_copy"] else f"{association['values']:.2f}",
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
    facts = [
        Fact(
            SHARES[leaf["share"]],
            f"{leaf['n_rows']:,} rows: {format_detectable(leaf['difference'])}",
        )
        for leaf in checkup["power"]
    ]
    return [
        Heading("Minimum detectable differences"),
        Facts(facts),
        Note(
            "Between the label's rates in the two largest environments, in leaves of this size, by "
            f"a test at alpha {checkup['alpha']:g} with 80% power."
        ),
    ]


def write_advice(checkup: Plain) -> Document:
    """Return the recommendations."""
    points = [shorten_sentence(advice) for advice in checkup["advice"]]
    return [Heading("Advice"), Bullets(points)] if points else []
