"""What a rule may be besides what it seems: a true threshold lies inside a bin beside its cut.

Thresholds are tried between bins, and a bin holds several values. If a true rule is `x > 5.3` and
bins end at 5 and at 6, the best candidate is `x > 5` or `x > 6`, and the rows with values from 5 to
6 are partly on the wrong side. With many rows these few would be enough to reject a true set, so no
test of a set should use rows in the two bins beside a cut.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from icscm.engine.counts import BinnedRule, RowSource

# In a column of no more bins each is taken for a single value; so is, in one of more bins, a bin
# that holds a larger share of the rows than 1 of so many.
EXACT_BINS: Final = 16


@dataclass(frozen=True)
class CutBounds:
    """A rule with the two bins beside its cut added (`wide`), and both taken off (`narrow`)."""

    wide: BinnedRule
    narrow: BinnedRule


def find_cut_bounds(source: RowSource, rules: Sequence[BinnedRule]) -> list[CutBounds | None]:
    """Find the bounds of each rule; None if the bins beside its cut hold a value each."""
    bounds: list[CutBounds | None] = [None] * len(rules)
    candidates = {
        number: change
        for number, rule in enumerate(rules)
        if (change := _change_bins_beside_cut(source, rule)) is not None
    }
    if not candidates:
        return bounds

    changed_rules = [rules[number] for number in candidates]
    forms = [form for change in candidates.values() for form in (change.wide, change.narrow)]
    table = source.count_patterns([*changed_rules, *forms])
    n_rows = table.counts.sum(axis=(1, 2))

    # The rows of a form that differ from its rule are those of the bin that was added or taken off.
    n_changed = len(changed_rules)
    truth_of_rules = table.patterns[:, :n_changed].repeat(2, axis=1)
    is_beside = table.patterns[:, n_changed:] != truth_of_rules
    is_single_value = (n_rows @ is_beside * EXACT_BINS > n_rows.sum()).reshape(-1, 2).tolist()

    for (number, change), (keeps_wide, keeps_narrow) in zip(
        candidates.items(), is_single_value, strict=True
    ):
        bounds[number] = CutBounds(
            wide=rules[number] if keeps_wide else change.wide,
            narrow=rules[number] if keeps_narrow else change.narrow,
        )
    return bounds


def _change_bins_beside_cut(source: RowSource, rule: BinnedRule) -> CutBounds | None:
    """Make a rule true, and false, in both bins beside its cut; None if it has no such bins."""
    layout = source.columns.find_layout(rule.feature)
    first = int(layout.has_missing)
    of_values = rule.satisfied[first:]
    before_cut = np.flatnonzero(of_values[1:] != of_values[:-1]) + first
    if layout.nominal or len(of_values) <= EXACT_BINS or not len(before_cut):
        return None

    wide = rule.satisfied.copy()
    wide[before_cut] = wide[before_cut + 1] = True
    narrow = rule.satisfied.copy()
    narrow[before_cut] = narrow[before_cut + 1] = False
    return CutBounds(wide=BinnedRule(rule.feature, wide), narrow=BinnedRule(rule.feature, narrow))
