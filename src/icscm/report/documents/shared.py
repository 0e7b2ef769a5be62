"""Parts that several documents have."""

from collections.abc import Iterable, Sequence

from icscm.report.blocks import Block, Note, make_table, shorten_name
from icscm.report.drawing import Limits, choose_largest
from icscm.report.formatting import Plain, format_interval, format_share

# What is listed at most in files, and of long lists in the short form on the terminal.
LIMITS = Limits()
N_BRIEF = 10


def list_rates(pooled: Plain, environments: Iterable[Plain], titles: Sequence[str]) -> list[Block]:
    """Return a table of rates: of all rows, then by environment."""
    rows = [("all", pooled), *((row["environment"], row) for row in environments)]
    return [
        make_table(
            titles,
            [
                [
                    shorten_name(name),
                    f"{row['n']:,}",
                    format_share(row["rate"]),
                    format_interval(row["rate_interval"]),
                ]
                for name, row in rows
            ],
        )
    ]


def choose_by_name(environments: Sequence[Plain]) -> list[Plain]:
    """Return the environments that are listed, by name; of very many, the largest."""
    return choose_largest(environments, LIMITS.environments, "name")


def note_more(n_more: int, text: str, *, is_tight: bool = False) -> list[Block]:
    """Return a note on what is not listed; nothing where all is."""
    return [Note(text, is_tight=is_tight)] if n_more > 0 else []
