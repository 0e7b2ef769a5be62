"""Calibration by leaf: whether the rates of positives are those of training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icscm._types import BoolArray, IntArray
from icscm.model.tree import Tree
from icscm.report.formatting import describe_rates
from icscm.stats.criteria import adjust_holm
from icscm.stats.independence import make_test
from icscm.stats.new_environments import compute_surprise, make_expectations
from icscm.studies.scores import ALPHA


@dataclass(frozen=True)
class IntervalCheck:
    """Whether a leaf's rate in a new environment agrees with its 95% prediction interval.

    Attributes
    ----------
    environment : label or None
        None where the rows have no environments and are treated as one.
    n_samples, n_positive : int
        Its rows in the leaf, and the positive ones among them.
    p_value : float
        Of as few or as many positives, including the sampling error of these rows.
    is_inside : bool
        Whether the p-value is above 0.05.
    """

    environment: Any
    n_samples: int
    n_positive: int
    p_value: float
    is_inside: bool


@dataclass(frozen=True)
class LeafCalibration:
    """The rate of a leaf in training and in the new rows.

    Attributes
    ----------
    leaf, text : int, str
        Number of the leaf, from 1, and its conditions.
    n_training, expected : int, float or None
        Training rows in it, and the share of positive ones.
    n_samples, n_positive, observed, interval : int, int, float or None, pair of floats or None
        New rows, the positive ones among them, their share and its Wilson interval (95%).
    p_value, adjusted : float or None
        Of Fisher's exact test (Pearson's for large counts) that both rates are equal, raw and
        corrected for the number of leaves (Holm); None where one side has no row.
    has_moved : bool or None
        Whether the corrected p-value is at most 0.05.
    new_interval : pair of floats or None
        95% prediction interval of the rate in a new environment; None where it is undefined.
    interval_checks : tuple of IntervalCheck
        The rate in each new environment against that interval; empty where there is none.
    """

    leaf: int
    text: str
    n_training: int
    expected: float | None
    n_samples: int
    n_positive: int
    observed: float | None
    interval: tuple[float, float] | None
    p_value: float | None
    adjusted: float | None
    has_moved: bool | None
    new_interval: tuple[float, float] | None = None
    interval_checks: tuple[IntervalCheck, ...] = ()


def calibrate(
    model: Tree,
    leaves: NDArray[np.intp],
    is_positive: BoolArray,
    environments: IntArray | None = None,
    new: Sequence[tuple[int, Any]] = (),
) -> tuple[LeafCalibration, ...]:
    """The rate of each leaf in training and in these rows, which fall in `leaves`.

    `new` are number and label of the environments that did not occur in training.
    """
    places = np.zeros_like(leaves) if environments is None else environments
    training = np.array(model.leaves, dtype=np.int64)  # (leaf, label, environment)
    shape = len(training), 2, int(places.max()) + 1
    cells = np.ravel_multi_index((leaves, is_positive.astype(np.intp), places), shape)
    now = np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape)
    tables = np.stack((training.sum(axis=2), now.sum(axis=2)), axis=2)  # (leaf, label, old or now)
    is_tested = tables.sum(axis=1).min(axis=1) > 0
    p_values = make_test("fisher").compute_p_values(tables[is_tested])
    tested = iter(zip(p_values.tolist(), adjust_holm(p_values).tolist(), strict=True))
    n_rows = tables.sum(axis=1).T.tolist()  # (old or now, leaf)
    rates = [describe_rates(k, n) for k, n in zip(tables[:, 1].T.tolist(), n_rows, strict=True)]
    expected = make_expectations(training)
    of_new = now[:, :, [number for number, _ in new]]
    sizes, positives = of_new.sum(axis=1), of_new[:, 1]  # (leaf, new environment)
    surprises = compute_surprise(training, positives, sizes)
    found = []
    for i, (before, after) in enumerate(zip(*rates, strict=True)):
        p_value, adjusted = next(tested) if is_tested[i] else (None, None)
        own = [each[i].tolist() for each in (sizes, positives, surprises)]
        found.append(
            LeafCalibration(
                leaf=i + 1,
                text=model.leaf_texts[i],
                n_training=before["n"],
                expected=before["rate"],
                n_samples=after["n"],
                n_positive=after["n_positive"],
                observed=after["rate"],
                interval=after["rate_interval"] and tuple(after["rate_interval"]),
                p_value=p_value,
                adjusted=adjusted,
                has_moved=None if adjusted is None else adjusted <= ALPHA,
                new_interval=expected[i].interval,
                interval_checks=tuple(
                    IntervalCheck(label, n, k, p, p > ALPHA)
                    for (_, label), n, k, p in zip(new, *own, strict=True)
                    if not np.isnan(p)
                ),
            )
        )
    return tuple(found)
