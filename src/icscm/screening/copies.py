"""Shortcuts that are spread over several columns, such as noisy copies of one.

Each copy carries little, so that none of them differs enough by itself. But the own effects of
copies go together. Columns that may be reversed by themselves, and whose own effects correlate
within environments, are therefore judged as one column.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from icscm._types import FloatArray
from icscm.screening.outcomes import Environments

# Own effects that correlate more belong to one group.
MIN_CORRELATION: Final = 0.1
# Of two columns each is found by itself, and two real columns that are doubtful are common.
MIN_GROUP: Final = 3
# With fewer environments nearly every column is doubtful by itself.
MIN_ENVIRONMENTS: Final = 5


def find_groups(effects: Mapping[int, FloatArray], places: Environments) -> list[list[int]]:
    """Find groups of columns whose own effects go together, directly or through others."""
    centred = {column: centre(values, places) for column, values in effects.items()}
    ungrouped = set(centred)
    groups: list[list[int]] = []
    while ungrouped:
        group = {min(ungrouped)}
        newest = group
        while newest:
            newest = {
                column
                for column in ungrouped - group
                if any(correlates(centred[column], centred[member]) for member in newest)
            }
            group = group | newest
        ungrouped -= group
        if len(group) >= MIN_GROUP:
            groups.append(sorted(group))
    return groups


def centre(values: FloatArray, places: Environments) -> FloatArray:
    """Return values (row, output) less their mean in the environment."""
    n_rows = np.bincount(places.numbers, minlength=places.count)
    means = places.add_up(values) / np.maximum(n_rows, 1)[:, np.newaxis]
    return np.asarray(values - means[places.numbers])


def correlates(first: FloatArray, second: FloatArray) -> bool:
    """Return whether two centred effects correlate by more than `MIN_CORRELATION`."""
    norm = np.sqrt((first**2).sum() * (second**2).sum())
    product = abs(float((first * second).sum()))
    return product > MIN_CORRELATION * max(float(norm), 1e-12)
