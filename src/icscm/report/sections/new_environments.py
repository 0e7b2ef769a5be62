"""Section `new_environments`: prediction intervals of the rates in a new environment."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from icscm.model.splits import LeafCounts
from icscm.report.formatting import Names, Plain, format_share
from icscm.report.sections.leaves import describe_expectation, find_extremes
from icscm.report.texts import write_text
from icscm.stats.new_environments import CONFIDENCE, make_expectations


def describe_new_environments(leaves: Sequence[Plain], totals: LeafCounts, names: Names) -> Plain:
    """The interval of all samples, which leaves have one, and what the intervals mean."""
    (overall,) = make_expectations([np.array(totals, dtype=np.int64)])
    known = [leaf["number"] for leaf in leaves if leaf["new_interval"] is not None]
    content = {"leaves": leaves, "known": known, "names": names, "confidence": CONFIDENCE}
    content |= {"has_interval": overall.interval is not None}
    content |= {"n_environments": overall.n_environments}
    return {
        "confidence": CONFIDENCE,
        "overall": describe_expectation(overall),
        "leaves": known,
        "text": write_text("new_environments", **content),
        "unknown_text": write_text("unknown_intervals", **content),
    }


def format_range(environments: Sequence[Plain]) -> str:
    """The rates in the training environments, from the lowest to the highest."""
    ends = [format_share(each["rate"]) for each in find_extremes(environments, "rate") if each]
    return " to ".join(ends) or "no sample"
