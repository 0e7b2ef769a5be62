"""What a rule may be besides what it seems: a true threshold lies inside a bin beside its cut.

Thresholds are tried between bins, and a bin holds several values. If a true rule is `x > 5.3` and
bins end at 5 and at 6, the best candidate is `x > 5` or `x > 6`, and the rows with values from 5 to
6 are partly on the wrong side. With many rows these few would be enough to reject a true set, so no
test of a set should use rows in the two bins beside a cut. They are the rows of which a *wide* form
of the rule is true, and a *narrow* one is not:

    bins            3 to 4    4 to 5  |  5 to 6    6 to 7
    x > 5           no        no      |  yes       yes
    its wide form   no        yes     |  yes       yes
    narrow form     no        no      |  no        yes
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from icscm._types import BoolArray, CountArray
from icscm.engine.counts import BinnedRule, RowSource

# In a column of no more bins each is taken for a single value; so is, in one of more bins, a bin
# that holds a larger share of the rows than 1 of so many.
EXACT_BINS: Final = 16


@dataclass(frozen=True)
class CutBounds:
    """A rule made true in both bins beside its cut (`wide`), and made false in both (`narrow`)."""

    wide: BinnedRule
    narrow: BinnedRule


def find_cut_bounds(source: RowSource, rules: Sequence[BinnedRule]) -> list[CutBounds | None]:
    """Find the bounds of each rule; None if the bins beside its cut hold a value each.

    A bin that holds a single value cannot hide a threshold, so the rule itself is its bound there.
    """
    bounds = [_change_bins_beside_cut(source, rule) for rule in rules]
    changed = {number: forms for number, forms in enumerate(bounds) if forms is not None}
    if not changed:
        return bounds

    # One pass over the rows counts the truths of all rules and of both forms of each.
    unchanged_rules = [rules[number] for number in changed]
    wide_rules = [forms.wide for forms in changed.values()]
    narrow_rules = [forms.narrow for forms in changed.values()]
    table = source.count_patterns([*unchanged_rules, *wide_rules, *narrow_rules])
    is_true, is_wide, is_narrow = np.split(table.patterns, 3, axis=1)  # each (pattern, rule)
    n_rows = table.counts.sum(axis=(1, 2))  # by pattern

    # Where a rule and its form differ are the rows of the bin that was added or taken off.
    n_rows_added = n_rows @ (is_wide != is_true)
    n_rows_taken_off = n_rows @ (is_narrow != is_true)
    wide_is_exact = _is_single_value(n_rows_added, n_rows=n_rows.sum())
    narrow_is_exact = _is_single_value(n_rows_taken_off, n_rows=n_rows.sum())
    for position, (number, forms) in enumerate(changed.items()):
        rule = rules[number]
        bounds[number] = CutBounds(
            wide=rule if wide_is_exact[position] else forms.wide,
            narrow=rule if narrow_is_exact[position] else forms.narrow,
        )
    return bounds


def _is_single_value(n_rows_in_bins: CountArray, *, n_rows: int) -> BoolArray:
    """Tell which bins hold so many rows that each is taken for a single value."""
    return np.asarray(n_rows_in_bins * EXACT_BINS > n_rows)


def _change_bins_beside_cut(source: RowSource, rule: BinnedRule) -> CutBounds | None:
    """Make a rule true, and false, in both bins beside its cut; None if it has no such bins.

    The cut lies between two neighbouring bins of values of which one satisfies the rule.
    """
    layout = source.columns.find_layout(rule.column)
    first_value = int(layout.has_missing)
    n_values = len(rule.satisfied) - first_value
    if layout.nominal or n_values <= EXACT_BINS:
        return None

    is_true = rule.satisfied[first_value:]
    is_before_cut = is_true[:-1] != is_true[1:]
    bins_before_cut = first_value + np.flatnonzero(is_before_cut)
    if not len(bins_before_cut):
        return None
    bins_after_cut = bins_before_cut + 1
    bins_beside_cut = np.union1d(bins_before_cut, bins_after_cut)

    wide = rule.satisfied.copy()
    wide[bins_beside_cut] = True
    narrow = rule.satisfied.copy()
    narrow[bins_beside_cut] = False
    return CutBounds(
        wide=BinnedRule(rule.column, satisfied=wide),
        narrow=BinnedRule(rule.column, satisfied=narrow),
    )
