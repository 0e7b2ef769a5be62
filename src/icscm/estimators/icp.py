"""Invariant causal prediction: which sets of features make the label independent of environment.

Every set of features is tested, so the work is exponential by nature; what is left to save is
the cost of one set. The tables of all sets come from few passes over the rows:

    rows -> table of a largest set -> blocks of smaller sets' tables -> statistics -> p-values

A largest set is all features, or each set of `max_set_size` of them. Its table is counted from
the rows; every smaller set belongs to exactly one largest set (see `_Family`) and its table is a
sum over one feature of a table at hand.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import ClassifierTags, Tags
from sklearn.utils.validation import check_is_fitted

from icscm._constants import COUNT_DTYPE
from icscm._types import Array, CountArray, FloatArray, IntArray
from icscm.engine.binning import choose_edges
from icscm.exceptions import IcscmError, NothingAcceptedWarning
from icscm.parameters import (
    BOOLEAN,
    LEVEL,
    Allowed,
    check_parameters,
    one_of,
    whole_number,
    whole_or_nothing,
)
from icscm.stats.independence import ChiSquaredTest, GTest, compute_dof, compute_upper_tail, exceeds
from icscm.tables.arrays import check_table
from icscm.tables.environments import check_several, encode_environments
from icscm.tables.labels import check_labels

Statistics = Callable[[CountArray], FloatArray]

# Features whose sets may all be tested, and the most sets in any case: a minute or two of work.
MAX_FEATURES = 20
MAX_SETS = 2**MAX_FEATURES
# Cells of the largest table counted: 128 MiB. The walk down holds up to twice as much besides.
MAX_TABLE_CELLS = 2**24
# Numbers of sets beyond this are not counted out.
_UNCOUNTED = 10**15
# Cells whose statistics are computed together: many numbers for each call of NumPy, and yet
# what is at hand fits the cache of one core.
_BLOCK_CELLS = 2**18
# Small sets tested size by size when only the intersection is wanted: a few milliseconds.
_FIRST_SETS = 256

# Pearson without Yates' correction: corrected strata would add up to a conservative test.
_STATISTICS: dict[str, Statistics] = {
    "g": GTest().compute_statistics,
    "chi2": ChiSquaredTest(yates=False).compute_statistics,
}


class InvariantCausalPrediction(SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """Features that are in every set given which the label is the same in all environments.

    For each set S of features the label is tested against the environment within every
    combination of values of S. S is accepted when the p-value exceeds `alpha`, and the features
    that all accepted sets share are selected. If the causes of the label are among the
    features, and the environment acts on the label through them only, their set is accepted
    with probability 1 - alpha, and then every selected feature is one of them. A feature that
    is not selected may still be a cause: nothing says that these environments disclose it.

    The number of sets doubles with each feature. At most 20 features can be tested in full;
    with more, screen them first or bound the size of the sets with `max_set_size`.

    Parameters
    ----------
    alpha : level of the tests.
    test : `"g"` (likelihood ratio) or `"chi2"` (Pearson, without Yates' correction); summed
        over the combinations of values.
    max_set_size : largest size of the sets tested; None for all of them.
    dof : `"adjusted"` counts a degree of freedom only where a combination of values can tell:
        one that is empty, of one label or of one environment cannot. `"nominal"` counts them
        for every combination that could be, (K - 1) times the product of the numbers of
        levels, as is often done; large sets are then accepted for lack of samples.
    max_levels : a feature with more distinct values is binned into at most this many levels at
        quantiles, each bound an observed value; others keep their values. Values that share a
        level are not told apart: with too few levels the causes' own set may be rejected, and
        what is still accepted are large sets, of little power, that share other features.
    all_sets : False if only the intersection is wanted: sets are then tested from small to
        large, those that contain the intersection so far are skipped (they cannot change it),
        and nothing more is tested once it is empty. Quick where small sets are accepted, else
        not much quicker than all sets, since large ones are evaluated together.

    Attributes
    ----------
    parents_ : the selected features, a tuple of names, or positions where X had no names.
        `()` when the accepted sets share nothing, None when every set was rejected.
    accepted_sets_ : p-value of each accepted set, by size and then in the order of features;
        with `all_sets=False` of those that were tested.
    p_values_ : for each feature the largest p-value of the sets that leave it out: a feature
        is selected when that is not above alpha (and something was accepted). None with
        `all_sets=False`, since skipped sets have no p-value.
    n_sets_tested_ : number of sets tested; with `all_sets=False` of those that could still
        change the intersection when their turn came.
    environments_ : the environments' labels.
    n_features_in_, feature_names_in_ : as in all of scikit-learn.

    Examples
    --------
    >>> from icscm.datasets import make_conjunction
    >>> from icscm.estimators.icp import InvariantCausalPrediction
    >>> data = make_conjunction(n_distractors=1, random_state=1)
    >>> icp = InvariantCausalPrediction().fit(data.X, data.y, environments=data.environments)
    >>> icp.parents_
    ('A1', 'A2')
    >>> for features in icp.accepted_sets_:
    ...     print(*features)
    A1 A2
    A1 A2 B1
    """

    _allowed: ClassVar[dict[str, Allowed]] = {
        "alpha": LEVEL,
        "test": one_of(*_STATISTICS),
        "max_set_size": whole_number(1, or_none=True),
        "dof": one_of("adjusted", "nominal"),
        "max_levels": whole_number(2),
        "all_sets": BOOLEAN,
    }

    parents_: tuple[str | int, ...] | None
    accepted_sets_: dict[tuple[str | int, ...], float]
    p_values_: FloatArray | None
    n_sets_tested_: int
    environments_: tuple[Any, ...]
    n_features_in_: int

    def __init__(
        self,
        alpha: float = 0.05,
        test: str = "g",
        max_set_size: int | None = None,
        dof: str = "adjusted",
        max_levels: int = 4,
        all_sets: bool = True,
    ) -> None:
        self.alpha = alpha
        self.test = test
        self.max_set_size = max_set_size
        self.dof = dof
        self.max_levels = max_levels
        self.all_sets = all_sets

    @whole_or_nothing
    def fit(self, X: Any, y: Any, environments: Any = None) -> Self:
        """Test the sets of features of X (rows x numeric features) for the two classes of y.

        `environments` holds one hashable label per row, of at least two distinct ones.
        """
        check_parameters(self, self._allowed)
        rows = self._make_rows(X, y, environments)
        size = min(self.max_set_size or rows.n_features, rows.n_features)
        _check_affordable(rows, size, self.max_set_size)
        search = _test_all_sets if self.all_sets else _find_intersection
        self._keep(search(_SetTest(rows, self.test, self.dof, self.alpha), size))
        if self.parents_ is None:
            self._warn_of_nothing()
        return self

    def _make_rows(self, X: Any, y: Any, environments: Any) -> _Rows:
        """Check the data and make it countable."""
        table = check_table(self, X, reset=True)
        labels, _ = check_labels(y, len(table))
        if environments is None:
            raise IcscmError(
                "environments are missing: invariance across them is all that is tested here; "
                "pass fit(X, y, environments=...), one label per row (in a pipeline, route them)"
            )
        numbers, self.environments_ = encode_environments(environments, len(table))
        check_several(self.environments_)
        return _make_rows(table, labels, numbers, len(self.environments_), self.max_levels)

    def _keep(self, found: _Found) -> None:
        """Fitted state, in the caller's names."""
        names = self._get_features()
        self.parents_ = None if found.common is None else tuple(names[j] for j in found.common)
        self.accepted_sets_ = {
            tuple(names[j] for j in features): p_value
            for features, p_value in found.accepted.items()
        }
        self.p_values_ = found.p_values
        self.n_sets_tested_ = found.n_tested

    def _warn_of_nothing(self) -> None:
        warnings.warn(
            f"All {self.n_sets_tested_} sets of features were rejected at alpha={self.alpha}: "
            "whatever set is held fixed, the label still depends on the environment. parents_ is "
            "None, which is not the empty set. A cause that is hidden, binned too coarsely or "
            "left out by max_set_size would do this, and so would an environment that acts on "
            "the label directly. Try a smaller alpha, more features (screened if they are many), "
            "a larger max_levels, or other and more environments.",
            NothingAcceptedWarning,
            stacklevel=4,
        )

    def _get_features(self) -> list[str | int]:
        """Names where X had names, positions otherwise."""
        names = getattr(self, "feature_names_in_", None)
        return list(range(self.n_features_in_)) if names is None else names.tolist()

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self, "parents_")
        parents = self.parents_ or ()
        return np.array([feature in parents for feature in self._get_features()], dtype=np.bool_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        # no classifier, but its y is that of one with two classes
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags


@dataclass(frozen=True)
class _Found:
    """What a search found, features by position.

    `common` are the features that all accepted sets share, None when there is no such set.
    """

    accepted: dict[tuple[int, ...], float]
    common: tuple[int, ...] | None
    p_values: FloatArray | None
    n_tested: int


# --- rows to tables ---------------------------------------------------------


@dataclass(frozen=True)
class _Rows:
    """The samples as small numbers, equal ones merged where that pays.

    `cells` numbers the label and environment of each row, label first; `codes[j]` holds its
    level of feature j, one of `n_levels[j]`; `weights` how many samples it stands for.
    """

    codes: list[Array]
    n_levels: IntArray
    cells: Array
    n_environments: int
    weights: Array | None = None

    @property
    def n_features(self) -> int:
        return len(self.codes)

    def list_shape(self, features: Iterable[int]) -> tuple[int, ...]:
        """Shape of a table: (label and environment, level of the first feature, ...)."""
        return (2 * self.n_environments, *(int(self.n_levels[j]) for j in features))


def _make_rows(
    table: Array, labels: IntArray, environments: IntArray, n_environments: int, max_levels: int
) -> _Rows:
    """Replace values by levels: one for each value if these are few, else cut at quantiles."""
    codes, n_levels = [], []
    for column in table.T:
        edges, _ = choose_edges(np.sort(column), max_levels - 1)
        codes.append(np.searchsorted(edges, column).astype(np.min_scalar_type(len(edges))))
        n_levels.append(len(edges) + 1)
    cells = (labels * n_environments + environments).astype(np.int32)
    return _merge_equal(_Rows(codes, np.array(n_levels, dtype=np.int64), cells, n_environments))


def _merge_equal(rows: _Rows) -> _Rows:
    """One row for each cell of the joint table, if that has fewer cells than there are rows."""
    shape = rows.list_shape(range(rows.n_features))
    if rows.n_features > MAX_FEATURES or math.prod(shape) > len(rows.cells):
        return rows
    joint = np.bincount(np.ravel_multi_index((rows.cells, *rows.codes), shape))
    occupied = np.flatnonzero(joint)
    cells, *codes = np.unravel_index(occupied, shape)
    return _Rows(
        [each.astype(old.dtype) for each, old in zip(codes, rows.codes, strict=True)],
        rows.n_levels,
        cells.astype(np.int32),
        rows.n_environments,
        weights=joint[occupied],
    )


class _Counter:
    """Counts the tables of sets of features; sets that begin alike share the work for that."""

    def __init__(self, rows: _Rows) -> None:
        self.rows = rows
        self._features: list[int] = []
        # keys[i] numbers each row's label, environment and levels of the first i features
        self._keys = [rows.cells]

    def count(self, features: Sequence[int]) -> CountArray:
        """The table (label and environment, level of the first feature, of the second, ...)."""
        n_shared = _count_shared(self._features, features)
        del self._features[n_shared:], self._keys[n_shared + 1 :]
        for feature in features[n_shared:]:
            n_levels = np.int32(self.rows.n_levels[feature])
            self._keys.append(self._keys[-1] * n_levels + self.rows.codes[feature])
            self._features.append(feature)
        shape = self.rows.list_shape(features)
        counts = np.bincount(self._keys[-1], self.rows.weights, minlength=math.prod(shape))
        # weights make floats, exact up to 2**53
        return counts.astype(COUNT_DTYPE, copy=False).reshape(shape)


def _count_shared(first: Sequence[int], second: Sequence[int]) -> int:
    """Length of the beginning that both have in common."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(first), len(second)))


def _check_affordable(rows: _Rows, size: int, max_set_size: int | None) -> None:
    """Raise before starting what would take hours or not fit the memory."""
    n_sets = _count_sets(rows.n_features, size)
    if n_sets > MAX_SETS:
        raise IcscmError(
            f"{rows.n_features:,} features make "
            f"{f'{n_sets:,}' if n_sets < _UNCOUNTED else 'more than 10**15'} sets "
            f"{'' if max_set_size is None else f'of up to {size} '}to test, more than "
            f"{MAX_SETS:,} (all sets of {MAX_FEATURES} features); screen the features first"
            f"{_suggest_size(rows, size)}"
        )
    n_cells = _count_cells(rows, size)
    if n_cells > MAX_TABLE_CELLS:
        raise IcscmError(
            f"the joint table of {size} features would have {n_cells:,} cells, more than "
            f"{MAX_TABLE_CELLS:,}; screen the features first, choose a smaller max_levels"
            f"{_suggest_size(rows, size)}"
        )


def _count_sets(n_features: int, size: int) -> int:
    """Sets of up to `size` features; counting ends where nobody would read the number."""
    total = 0
    for k in range(size + 1):
        total += math.comb(n_features, k)
        if total > _UNCOUNTED:
            break
    return total


def _count_cells(rows: _Rows, size: int) -> int:
    """Cells of the largest table that a set of this size can have."""
    most: list[int] = sorted(rows.n_levels.tolist(), reverse=True)[:size]
    return 2 * rows.n_environments * math.prod(most)


def _suggest_size(rows: _Rows, size: int) -> str:
    """The largest `max_set_size` below this size that can be afforded, in words."""
    for smaller in range(min(size - 1, MAX_FEATURES), 0, -1):
        n_sets = _count_sets(rows.n_features, smaller)
        if n_sets <= MAX_SETS and _count_cells(rows, smaller) <= MAX_TABLE_CELLS:
            return f", or set max_set_size={smaller} or less"
    return ""


# --- tables to p-values -----------------------------------------------------


@dataclass(frozen=True)
class _Tested:
    """Sets of features (one in each row, filled up with the number of features) and p-values."""

    sets: Array
    p_values: FloatArray
    accepted: NDArray[np.bool_]


@dataclass(frozen=True)
class _SetTest:
    """The test of label against environment given a set, for many sets at once."""

    rows: _Rows
    test: str
    dof: str
    alpha: float

    def run(self, blocks: Iterable[CountArray], sets: Array) -> _Tested:
        """Test the sets, whose tables the blocks hold in the same order."""
        statistics, dof = _compute_statistics(blocks, _STATISTICS[self.test])
        if self.dof == "nominal":
            dof = self._compute_nominal_dof(sets)
        p_values = compute_upper_tail(statistics, dof)
        return _Tested(sets, p_values, exceeds(p_values, self.alpha))

    def _compute_nominal_dof(self, sets: Array) -> IntArray:
        # the last entry stands for "no feature"
        n_levels = np.append(self.rows.n_levels, 1)
        dof: IntArray = n_levels[sets].prod(axis=1) * (self.rows.n_environments - 1)
        return dof


def _compute_statistics(
    blocks: Iterable[CountArray], compute: Statistics
) -> tuple[FloatArray, IntArray]:
    """Statistic and degrees of freedom of each set in the blocks, see `_extend`."""
    statistics: list[Array] = [np.empty(0)]
    dof: list[Array] = [np.empty(0, dtype=np.int64)]
    for batch in _make_batches(blocks):
        # (label and environment, stratum): the strata of all sets of the batch side by side
        cells = np.concatenate([block.reshape(len(block), -1) for block in batch], axis=1)
        batch_statistics, batch_dof = _test_strata(cells, compute)
        start = 0
        for block in batch:
            shape = block.shape[1:]
            part = slice(start, start := start + math.prod(shape))
            statistics.append(_fold(batch_statistics[part].reshape(shape)))
            dof.append(_fold(batch_dof[part].reshape(shape)))
    return np.concatenate(statistics), np.concatenate(dof)


def _make_batches(blocks: Iterable[CountArray]) -> Iterator[list[CountArray]]:
    """Lists of blocks with at least `_BLOCK_CELLS` cells together, the last list with fewer."""
    batch: list[CountArray] = []
    n_cells = 0
    for block in blocks:
        batch.append(block)
        n_cells += block.size
        if n_cells >= _BLOCK_CELLS:
            yield batch
            batch, n_cells = [], 0
    if batch:
        yield batch


def _test_strata(cells: CountArray, compute: Statistics) -> tuple[FloatArray, IntArray]:
    """Statistic and degrees of freedom of each column of `cells`; 0 where it cannot tell."""
    dof = compute_dof(_as_tables(cells))
    telling = np.flatnonzero(dof)
    statistics = np.zeros(len(dof))
    statistics[telling] = compute(_as_tables(cells.take(telling, axis=1)))
    return statistics, dof


def _as_tables(cells: CountArray) -> CountArray:
    """(label and environment, stratum) seen as (stratum, label, environment).

    In memory the strata stay side by side, so that arithmetic runs along them.
    """
    return cells.reshape(2, len(cells) // 2, -1).transpose(2, 0, 1)


# --- the walk over smaller sets ---------------------------------------------


@dataclass(frozen=True)
class _Family:
    """The sets that hold all of `base` and up to `size` features of `others`, and no more.

    They are visited by largest sets, those with `size` of the others. Each smaller set belongs
    to the largest set made from it by adding the first of the others that it lacks. So a largest
    set with the others number 0 .. r - 1 and without number r owns what is left of it after
    taking out any of these r, which are its *free* features: 2**r sets, of which number i lacks
    free feature j where bit j of i is 1.
    """

    base: tuple[int, ...]
    others: tuple[int, ...]
    size: int

    def list_sets(self, n_features: int, n_columns: int) -> Array:
        """The sets in the order of the walk, one in each row: ascending, then `n_features`.

        >>> _Family((), (0, 1, 2), size=2).list_sets(n_features=3, n_columns=2)
        array([[0, 1],
               [1, 3],
               [0, 3],
               [3, 3],
               [0, 2],
               [2, 3],
               [1, 2]], dtype=uint8)
        """
        numbers = _list_numbers(len(self.others), self.size)
        # bytes, as long as features are few: a million sets of 20 fit 20 MB
        sets = np.full((len(numbers), n_columns), n_features, dtype=np.min_scalar_type(n_features))
        sets[:, : self.size] = np.array((*self.others, n_features))[numbers]
        sets[:, self.size : self.size + len(self.base)] = self.base
        sets.sort(axis=1)
        return sets

    def walk(self, counter: _Counter) -> Iterator[CountArray]:
        """Blocks that hold the table of every set once."""
        for features in combinations(self.others, self.size):
            table = counter.count((*features, *self.base))
            n_free = _count_shared(features, self.others)
            yield from _walk(table.reshape(*table.shape[: n_free + 1], -1))


def _list_numbers(n: int, size: int) -> Array:
    """Each set of up to `size` of n things, as `_Family` orders them, filled up with n."""
    n_largest = math.comb(n, size)
    members = chain.from_iterable(combinations(range(n), size))
    largest = np.fromiter(members, np.min_scalar_type(n), n_largest * size)
    largest = largest.reshape(n_largest, size)
    n_owned = 2 ** (largest == np.arange(size)).cumprod(axis=1).sum(axis=1)
    numbers = np.repeat(largest, n_owned, axis=0)
    i = np.arange(len(numbers)) - np.repeat(np.cumsum(n_owned) - n_owned, n_owned)
    for j in range(size):
        numbers[(i >> j) & 1 == 1, j] = n
    return numbers


def _walk(cells: CountArray) -> Iterator[CountArray]:
    """Blocks with the table of each set that keeps or leaves out each free feature.

    `cells` is (label and environment, level of free feature 0, of 1, ..., stratum of the
    features that are kept). The last free feature is kept, so its levels become strata,

        (2 K, L0, L1, P)  ->  (2 K, L0, L1 * P)

    or left out by summing over it, until the tables of what is still free fit one block.
    """
    if math.prod(_list_extended_shape(cells)) > _BLOCK_CELLS:
        cells = _drop_silent(cells)
    n_free = cells.ndim - 2
    if n_free == 0 or math.prod(_list_extended_shape(cells)) <= _BLOCK_CELLS:
        yield _extend(cells)
    else:
        yield from _walk(cells.reshape(*cells.shape[:-2], -1))
        yield from _walk(cells.sum(axis=-2))


def _drop_silent(cells: CountArray) -> CountArray:
    """Leave out the strata that cannot tell, since no part of them can either.

    Only if they are half of them: copies then shrink so fast that all those which a walk holds
    at a time take no more than the first.
    """
    totals = cells.reshape(len(cells), -1, cells.shape[-1]).sum(axis=1)
    tells = compute_dof(_as_tables(totals)) > 0
    return cells if 2 * tells.sum() > len(tells) else cells[..., tells]


def _extend(cells: CountArray) -> CountArray:
    """Add to the levels of each free feature their sum, which is to leave the feature out.

        (2 K, L0, L1, P)  ->  (2 K, L0 + 1, L1 + 1, P)

    All sets' tables lie in the result: kept features at their levels, others at the sum.
    """
    extended = np.empty(_list_extended_shape(cells), dtype=cells.dtype)
    filled = [slice(n) for n in cells.shape]
    extended[tuple(filled)] = cells
    for axis in range(cells.ndim - 2, 0, -1):
        levels = extended[tuple(filled)]
        sums = extended[(*filled[:axis], cells.shape[axis], *filled[axis + 1 :])]
        levels.sum(axis=axis, out=sums)
        filled[axis] = slice(None)
    return extended


def _list_extended_shape(cells: CountArray) -> tuple[int, ...]:
    return (len(cells), *(n + 1 for n in cells.shape[1:-1]), cells.shape[-1])


def _fold(values: Array) -> Array:
    """Sums of a block's values (L0 + 1, L1 + 1, ..., P) over the strata of each set.

    Set i is the one that lacks free feature j where bit j of i is 1.
    """
    values = values.sum(axis=-1)
    for _ in range(values.ndim):
        # the first axis becomes the last one: (kept, left out)
        values = np.stack((values[:-1].sum(axis=0), values[-1]), axis=-1)
    return values.ravel(order="F")


# --- the two searches -------------------------------------------------------


def _test_all_sets(test: _SetTest, size: int) -> _Found:
    """Test every set of up to `size` features."""
    n_features = test.rows.n_features
    tested = _test_families(test, size, [_Family((), tuple(range(n_features)), size)])
    accepted = tested.sets[tested.accepted]
    # a feature that all accepted sets share is in as many as there are
    n_containing = np.bincount(accepted.ravel(), minlength=n_features + 1)
    common = np.flatnonzero(n_containing[:-1] == len(accepted)).tolist()
    ordered = _order_sets(tested, tested.accepted, n_features)
    return _Found(
        accepted={features: p_value for features, p_value, _ in ordered},
        common=tuple(common) if len(accepted) else None,
        p_values=_find_feature_p_values(tested, n_features),
        n_tested=len(tested.sets),
    )


def _test_families(test: _SetTest, size: int, families: Sequence[_Family]) -> _Tested:
    counter = _Counter(test.rows)
    sets = [family.list_sets(test.rows.n_features, size) for family in families]
    blocks = chain.from_iterable(family.walk(counter) for family in families)
    return test.run(blocks, np.concatenate(sets))


def _order_sets(
    tested: _Tested, wanted: NDArray[np.bool_], n_features: int
) -> Iterator[tuple[tuple[int, ...], float, bool]]:
    """(set, p-value, whether accepted) of the wanted sets, by size and then feature order."""
    sets = tested.sets[wanted]
    sizes = (sets < n_features).sum(axis=1)
    order = np.lexsort((*sets.T[::-1], sizes))
    columns = (sets, sizes, tested.p_values[wanted], tested.accepted[wanted])
    for members, size, p_value, is_accepted in zip(
        *(column[order].tolist() for column in columns), strict=True
    ):
        yield tuple(members[:size]), p_value, is_accepted


def _find_feature_p_values(tested: _Tested, n_features: int) -> FloatArray:
    """For each feature the largest p-value of the sets that leave it out.

    For most features that is the largest of all; only those in its set need another look.
    """
    best = int(tested.p_values.argmax())
    largest = np.full(n_features, tested.p_values[best])
    for feature in tested.sets[best][tested.sets[best] < n_features].tolist():
        largest[feature] = tested.p_values[(tested.sets != feature).all(axis=1)].max()
    return largest


class _Intersection:
    """The features that the accepted sets share, as sets come in, small ones first."""

    def __init__(self) -> None:
        self.accepted: dict[tuple[int, ...], float] = {}
        self.common: tuple[int, ...] | None = None
        self.n_tested = 0

    def may_change(self, features: Sequence[int]) -> bool:
        """Whether accepting this set would change the intersection."""
        return self.common is None or not set(self.common).issubset(features)

    def take(self, ordered: Iterable[tuple[tuple[int, ...], float, bool]]) -> None:
        """Go through tested sets, leaving out those that cannot change it any more."""
        for features, p_value, is_accepted in ordered:
            if not self.may_change(features):
                continue
            self.n_tested += 1
            if is_accepted:
                self.accepted[features] = p_value
                common = features if self.common is None else self.common
                self.common = tuple(j for j in common if j in features)


def _find_intersection(test: _SetTest, size: int) -> _Found:
    """Test sets from small to large, only those that can still change the intersection.

    The few small sets come one size at a time, since the search often ends with them; all
    others together, which is much quicker for each.
    """
    n_features = test.rows.n_features
    found = _Intersection()
    n_first = max(k for k in range(size + 1) if _count_sets(n_features, k) <= _FIRST_SETS)
    for k in range(n_first + 1):
        tested = _test_size(test, filter(found.may_change, combinations(range(n_features), k)), k)
        found.take(_order_sets(tested, np.ones(len(tested.sets), dtype=np.bool_), n_features))
    families = _list_families(found.common, n_features, size)
    if n_first < size and families:
        tested = _test_families(test, size, families)
        is_larger = (tested.sets < n_features).sum(axis=1) > n_first
        found.take(_order_sets(tested, is_larger, n_features))
    return _Found(found.accepted, found.common, None, found.n_tested)


def _test_size(test: _SetTest, candidates: Iterable[tuple[int, ...]], size: int) -> _Tested:
    """Test some sets of one size, each counted by itself."""
    counter = _Counter(test.rows)
    listed = list(candidates)
    blocks = (counter.count(each).reshape(2 * test.rows.n_environments, -1) for each in listed)
    return test.run(blocks, np.array(listed, dtype=np.int64).reshape(len(listed), size))


def _list_families(common: tuple[int, ...] | None, n_features: int, size: int) -> list[_Family]:
    """Families that hold, once each, the sets of up to `size` features not containing `common`.

    Such a set lacks one of the common features: the first it lacks is number i in family i.
    """
    if common is None:
        return [_Family((), tuple(range(n_features)), size)]
    families = []
    for i in range(len(common)):
        others = tuple(j for j in range(n_features) if j not in common[: i + 1])
        families.append(_Family(common[:i], others, min(size - i, len(others))))
    return families
