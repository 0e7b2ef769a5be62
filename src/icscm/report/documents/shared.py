"""Parts that several documents have."""

from collections.abc import Iterable, Sequence

from icscm.report.blocks import Block, Note, make_table, shorten_name, shorten_sentence
from icscm.report.drawing import Limits, choose_largest
from icscm.report.formatting import Plain, format_interval, format_ratio, format_share
from icscm.report.wording.facts import Fact

# What is listed at most in files, and of long lists in the short form on the terminal.
LIMITS = Limits()
N_BRIEF, N_FEW = 10, 5


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


def shorten_facts(facts: Iterable[Fact]) -> list[Fact]:
    """Return facts with texts of limited length."""
    return [Fact(fact.term, shorten_sentence(fact.text)) for fact in facts]


def write_ratio(extreme: Plain | None) -> str:
    """Return the odds ratio in an environment."""
    if extreme is None:
        return "-"
    return f"{format_ratio(extreme['odds_ratio'])} ({shorten_name(extreme['environment'])})"


def write_rejected_count(scan: Plain) -> str:
    """Return how many candidates of a scan were rejected."""
    return f"{scan['n_rejected_all']:,} of {scan['n_candidates']:,}"
