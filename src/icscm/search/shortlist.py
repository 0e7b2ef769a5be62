"""Which columns a scan must examine: all of them, or those on a shortlist that the source makes.

A source may hold millions of columns (on a graphics card). Then it can have a *shortlister*, which
applies the criteria of a step where the counts are. It is sent these as plain numbers, and answers
with the columns that can matter to the scan, and how many candidates there are on all others.

The criteria are those of `icscm.search.candidates`: what is a candidate, and the reasons to reject
it. The search applies them again to the columns on the list, and has the last word. It may round
differently. So near each bound there is an interval, as wide as rounding could ever matter, in
which the shortlister must not decide: the column goes on the list.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from icscm._constants import MAX_EQUIVALENT_RULES, N_REJECTED_KEPT
from icscm._lazy import special
from icscm._types import Array, CountArray, FloatArray
from icscm.engine.counts import (
    CandidateCriteria,
    CountCube,
    Shortlist,
    Shortlister,
    ShortlistOrder,
    ShortlistQuery,
)
from icscm.search.nodes import Node
from icscm.search.utility import Utility
from icscm.search.view import ConjunctionView
from icscm.stats.criteria import Criterion, PValueCriterion
from icscm.stats.independence import ChiSquaredTest, GTest
from icscm.stats.replication import compute_factors, find_effective_bounds

# Rounding errors are below this part of a bound, plus so much for each row that is summed.
RELATIVE_ROUNDING: Final = 1e-9
ROUNDING_OF_ROW: Final = 1e-13
# Columns whose counts a device sends, once, to find those that determine the environment.
MAX_SENT_COLUMNS: Final = 2**17


def make_shortlist(view: ConjunctionView, *, utility: Utility, uncovered: Node) -> Shortlist:
    """List the columns that can be chosen, or listed as rejected, in a scan.

    Without a shortlister, or where it could not apply the criteria, these are all columns.
    """
    shortlister = find_shortlister(view, uncovered)
    query = make_query(view, ShortlistOrder.UTILITY, utility=utility, uncovered=uncovered)
    if shortlister is None or query is None:
        return Shortlist(cubes=uncovered.count_cubes())

    shortlist = shortlister.shortlist(query)
    return view.swap_shortlist(shortlist)


def find_shortlister(view: ConjunctionView, uncovered: Node) -> Shortlister | None:
    """Find what examines candidates where the counts are; None where the search itself does.

    A shortlister does not know which columns determine the environment. The search finds them in
    the counts of all rows, unless there are more columns than can be sent; and if there are any, it
    examines all candidates itself. Where columns have two bins, as in a packed store, rules on
    columns that determine the environment are rejected in any case: they are not replicated.
    """
    shortlister = view.shortlister
    if shortlister is None or view.comparable is None or shortlister.n_columns > MAX_SENT_COLUMNS:
        return shortlister
    is_first_scan = not uncovered.path
    return None if is_first_scan or view.comparable.rejects_any else shortlister


def list_nearest(
    view: ConjunctionView, *, utility: Utility, uncovered: Node
) -> Iterator[CountCube]:
    """List the columns that can hold the largest p-values of the rules that the test rejects."""
    shortlister = find_shortlister(view, uncovered)
    query = make_query(view, ShortlistOrder.P_VALUE, utility=utility, uncovered=uncovered)
    if shortlister is None or query is None:
        return uncovered.count_cubes()

    shortlist = shortlister.shortlist(query)
    return view.swap_shortlist(shortlist).cubes


# --- the query ------------------------------------------------------------------


@dataclass(frozen=True)
class Bounds:
    """The two sides of a bound: `lower` and `upper` enclose what rounding could decide."""

    lower: Array
    upper: Array


def make_query(
    view: ConjunctionView, order: ShortlistOrder, *, utility: Utility, uncovered: Node
) -> ShortlistQuery | None:
    """Put the question of a scan into plain numbers; None if that is not possible."""
    criteria = make_criteria(view, utility=utility, uncovered=uncovered)
    if criteria is None:
        return None
    return ShortlistQuery(
        path=uncovered.path,
        criteria=criteria,
        order=order,
        n_ties=1 + MAX_EQUIVALENT_RULES,
        n_rejected=N_REJECTED_KEPT,
    )


def make_criteria(
    view: ConjunctionView, *, utility: Utility, uncovered: Node
) -> CandidateCriteria | None:
    """Put the criteria of a step into plain numbers; None if that is not possible.

    A step chooses a rule for the uncovered rows. A rule covers some of them, its *leaf*, of which A
    are negative and B positive. The shortlister computes a number of each leaf, and compares it
    with a bound that is computed here:

        rejected as     if in its leaf                                     is
        DEPENDENT       the statistic of criterion (i)                     >= the critical value
        UNREPLICATED    the effective number of environments               <  the least allowed
        UNHELPFUL       the utility  p_denominator A - p_numerator B       <  `min_utility`
        UNHELPFUL       the evidence that it is not due to chance          <  `min_evidence`

    Utilities are whole numbers. The other bounds have two sides, between which rounding could
    decide and the shortlister must not. Outside of these it allows and rejects exactly the
    candidates that the search would. `CandidateCriteria` has the meaning of each field.

    None is returned where criterion (i) is not that a statistic stays below a critical value.
    """
    settings = view.settings
    criterion = settings.make_criterion()
    statistic = find_statistic(criterion)
    if statistic is None:
        return None

    counts = uncovered.counts  # by (outcome, environment)

    # DEPENDENT: a critical value for each number of degrees of freedom that a leaf may have.
    critical_values = compute_critical_values(criterion, counts)

    # UNREPLICATED: the factors turn the rows of a leaf into weights of the environments.
    replication_factors = compute_factors(counts)
    effective_numbers = find_effective_bounds(counts, settings.min_replication)

    # UNHELPFUL: the search requires evidence only where it requires a utility.
    min_utility = utility.find_bound(settings.min_utility)
    min_evidence = 0.0 if settings.min_utility is None else settings.min_evidence
    evidence_rounding = bound_rounding(min_evidence, n_rows=uncovered.n_rows)

    return CandidateCriteria(
        is_inverted=view.is_inverted,
        p_numerator=utility.ratio.numerator,
        p_denominator=utility.ratio.denominator,
        statistic=statistic,
        passes_below=critical_values.lower,
        fails_from=critical_values.upper,
        replication_factors=replication_factors,
        unreplicated_below=effective_numbers.unreplicated_below,
        replicated_from=effective_numbers.replicated_from,
        min_utility=min_utility,
        positive_rates=compute_rates(counts),
        min_evidence=min_evidence,
        evidence_slack=float(evidence_rounding),
    )


def find_statistic(criterion: Criterion | None) -> str | None:
    """Find the statistic that decides criterion (i), by the name that a shortlister knows it by.

    None if no statistic decides: an exact test, or a test of equivalence, takes more than that.
    """
    if criterion is None:
        return "none"
    if not isinstance(criterion, PValueCriterion):
        return None

    # By the very type: a user's subclass may compute its p-value from something else.
    test = criterion.test
    if type(test) is GTest:
        return "g"
    if type(test) is ChiSquaredTest:
        return "yates" if test.yates else "pearson"
    return None


def compute_critical_values(criterion: Criterion | None, uncovered: CountArray) -> Bounds:
    """Compute the statistic from which on criterion (i) rejects a leaf, by degrees of freedom.

        environments with rows   degrees of freedom   critical value
        1                        0                    infinite: it cannot depend on environments
        K                        K - 1                the one whose p-value is alpha

    Entry d of the bounds is for d degrees of freedom. Without a test all critical values are
    infinite, so that no leaf is rejected.
    """
    n_environments = uncovered.shape[1]
    no_limit = np.full(n_environments, np.inf)
    if not isinstance(criterion, PValueCriterion):
        return Bounds(lower=no_limit, upper=no_limit)

    degrees_of_freedom = np.arange(1, n_environments)
    critical_values = special.chdtri(degrees_of_freedom, criterion.alpha)
    n_rows = int(uncovered.sum())
    return surround_bounds(np.append(np.inf, critical_values), n_rows=n_rows)


def surround_bounds(bounds: FloatArray, *, n_rows: int) -> Bounds:
    """Put around each bound the interval that rounding could decide; infinite ones stay."""
    is_finite = np.isfinite(bounds)
    rounding = np.zeros(len(bounds))
    rounding[is_finite] = bound_rounding(bounds[is_finite], n_rows=n_rows)
    return Bounds(lower=bounds - rounding, upper=bounds + rounding)


def compute_rates(counts: CountArray) -> FloatArray:
    """Compute the rate of positives in each environment, 0 where there are no rows."""
    n_rows = counts.sum(axis=0)
    return np.asarray(counts[1] / np.maximum(n_rows, 1))


def bound_rounding(bound: Array | float, *, n_rows: int) -> Array | float:
    """Return by how much rounding may move a statistic that lies near a bound."""
    return RELATIVE_ROUNDING * bound + ROUNDING_OF_ROW * n_rows
