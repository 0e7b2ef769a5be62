"""Parts that several documents have."""

from collections.abc import Iterable, Sequence

from icscm.report.blocks import Block, make_table, shorten_name, shorten_sentence
from icscm.report.content.candidates import RatioExtreme
from icscm.report.content.leaves import Leaf
from icscm.report.content.nodes import EffectExtreme, ScanSize
from icscm.report.content.rates import EnvironmentRate, Rate
from icscm.report.drawing import Environment, Limits, choose_largest
from icscm.report.formatting import Names, format_interval, format_ratio, format_share
from icscm.report.wording.facts import Fact

# What is listed at most in files, and of long lists in the short form on the terminal.
LIMITS = Limits()
N_BRIEF, N_FEW = 10, 5


def write_rates(
    overall: Rate | Leaf, environments: Iterable[EnvironmentRate], titles: Sequence[str]
) -> Block:
    """Return a table of rates: of all rows, then by environment."""
    named_rates = [("all", overall), *((rate.environment, rate) for rate in environments)]
    rows = [
        [
            shorten_name(name),
            f"{rate.n:,}",
            format_share(rate.rate),
            format_interval(rate.rate_interval),
        ]
        for name, rate in named_rates
    ]
    return make_table(titles, rows)


def choose_by_name(environments: Sequence[Environment]) -> list[Environment]:
    """Return the environments that are listed, by name; of very many, the largest."""
    return choose_largest(environments, LIMITS.environments)


def name_environments(names: Names) -> str:
    """Return the title of a column of environments."""
    return shorten_name(names.place)


def shorten_facts(facts: Iterable[Fact]) -> list[Fact]:
    """Return facts with texts of limited length."""
    return [Fact(fact.term, shorten_sentence(fact.text)) for fact in facts]


def write_ratio(extreme: RatioExtreme | EffectExtreme | None) -> str:
    """Return the odds ratio in an environment."""
    if extreme is None:
        return "-"
    return f"{format_ratio(extreme.odds_ratio)} ({shorten_name(extreme.environment)})"


def write_rejected_count(size: ScanSize) -> str:
    """Return how many candidates of a scan were rejected."""
    return f"{size.n_rejected_all:,} of {size.n_candidates:,}"
