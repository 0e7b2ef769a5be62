"""Section `new_environments`: prediction intervals of the rates in a new environment."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from icscm.model.leaves import LeafCounts
from icscm.report.formatting import Names, Plain, format_share
from icscm.report.sections.leaves import describe_expectation, find_extremes
from icscm.stats.new_environments import CONFIDENCE, make_expectations

ASSUMPTION = (
    "The intervals assume that a new environment is drawn from the same population as these; they "
    "do not hold for one of another kind, such as another way to measure or to choose samples."
)


def describe_new_environments(leaves: Sequence[Plain], totals: LeafCounts, names: Names) -> Plain:
    """The interval of all samples, which leaves have one, and what the intervals mean."""
    (overall,) = make_expectations([np.array(totals, dtype=np.int64)])
    known = [leaf["number"] for leaf in leaves if leaf["new_interval"] is not None]
    n_unknown, n = len(leaves) - len(known), len(names.environments)
    if overall.interval is not None and (known or not leaves):
        text = (
            f"The {CONFIDENCE:.0%} prediction intervals of the rate of {names.positive} follow "
            f"from its heterogeneity over {overall.n_environments:,} environments. {ASSUMPTION}"
        )
    elif overall.interval is not None:
        text = "No prediction interval: no leaf has samples of three environments."
    elif n < 2:
        text = "No prediction interval: the data have no environments."
    else:
        text = (
            f"No prediction interval from {n} environments: the heterogeneity between environments "
            "needs at least three, and is imprecise with fewer than five."
        )
    unknown = f"{n_unknown} {'leaf has' if n_unknown == 1 else 'leaves have'} no interval"
    return {
        "confidence": CONFIDENCE,
        "overall": describe_expectation(overall),
        "leaves": known,
        "text": text,
        "unknown_text": f"{unknown}: fewer than three environments have samples there."
        if known and n_unknown
        else "",
    }


def format_range(environments: Sequence[Plain]) -> str:
    """The rates in the training environments, from the lowest to the highest."""
    ends = [format_share(each["rate"]) for each in find_extremes(environments, "rate") if each]
    return " to ".join(ends) or "no sample"
