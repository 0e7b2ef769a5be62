"""What to expect in an environment not seen: of each leaf, and of all samples."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from icscm.report.errors import find_worst_and_best
from icscm.report.words import Names, Plain, format_share
from icscm.stats.new_environments import CONFIDENCE, Expectation, make_expectations

# Shares that are told as none.
_NEARLY = 0.0005

ASSUMED = (
    "That holds for an environment drawn as these were: nothing is promised for one of another "
    "kind, such as another way to measure or to choose samples."
)


def describe_expectation(found: Expectation) -> Plain:
    """The fields of an expectation in plain values."""
    return {
        "tau": found.tau,
        "tau_interval": found.tau_interval and list(found.tau_interval),
        "i2": found.i2,
        "new_interval": found.interval and list(found.interval),
        "new_reason": found.reason,
    }


def describe_elsewhere(leaves: Sequence[Plain], tables: Sequence[Any], names: Names) -> Plain:
    """What a report says of an environment not seen; `leaves` are those described already."""
    (overall,) = make_expectations([np.array(tables, dtype=np.int64).sum(axis=0)])
    told = [leaf["number"] for leaf in leaves if leaf["new_interval"] is not None]
    untold = [leaf["number"] for leaf in leaves if leaf["new_interval"] is None]
    return {
        "confidence": CONFIDENCE,
        "overall": describe_expectation(overall),
        "leaves": told,
        "text": _say(overall, names, len(told)),
        "untold_text": _say_untold(untold) if told and untold else "",
    }


def _say(overall: Expectation, names: Names, n_told: int) -> str:
    """What the intervals mean, or why there are none."""
    if overall.interval is None:
        return _say_nothing(len(names.environments))
    if not n_told:
        return "It cannot be told: in no leaf do three environments have samples."
    return (
        f"From how much the rate of {names.positive} differs between "
        f"{overall.n_environments:,} environments it follows how much it may differ in one more. "
        f"In {CONFIDENCE:.0%} of new environments it lies in the interval given. {ASSUMED}"
    )


def _say_nothing(n_environments: int) -> str:
    if n_environments < 2:
        return "It cannot be told: the data name no environments."
    return (
        f"It cannot be told from {n_environments} environments: how much environments differ takes "
        "at least three to tell, and with fewer than five the answer is vague."
    )


def _say_untold(untold: Sequence[int]) -> str:
    which = f"leaf {untold[0]}" if len(untold) == 1 else f"{len(untold)} leaves"
    return f"Of {which} it cannot be told: fewer than three environments have samples there."


def find_ends(environments: Sequence[Plain]) -> tuple[Plain, Plain] | None:
    """Those of lowest and highest rate; None without samples.

    An environment with hardly a sample has a rate of 0 or 1 by chance, and is passed over where
    there are others.
    """
    seen = [each for each in environments if each["n"]]
    if not seen:
        return None
    highest, lowest = find_worst_and_best(environments, "n_positive")
    by_rate = sorted(seen, key=itemgetter("rate"))
    return lowest or by_rate[0], highest or by_rate[-1]


def say_range(environments: Sequence[Plain]) -> str:
    """The rates seen so far, from the lowest to the highest environment."""
    ends = find_ends(environments)
    return "no sample" if ends is None else " to ".join(format_share(e["rate"]) for e in ends)


def say_expected(interval: Sequence[float]) -> str:
    """An interval for a new environment; what is nearly 0 or 1 is, so that it is none too narrow.

    >>> say_expected((1e-7, 0.25)), say_expected((0.5, 0.99999))
    ('0% to 25.0%', '50.0% to 100%')
    """
    low, high = interval
    ends = 0.0 if low < _NEARLY else low, 1.0 if high > 1 - _NEARLY else high
    return " to ".join(map(format_share, ends))
