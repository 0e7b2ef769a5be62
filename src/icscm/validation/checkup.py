"""A check of the environments before fitting: sizes, associations with columns, power."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from icscm import _constants
from icscm._changes import data_by_name
from icscm._repr import Display, DisplayMixin
from icscm._types import FloatArray
from icscm.engine.counts import Cut, RowSource
from icscm.exceptions import Parameter, Words
from icscm.formatting import as_text, make_plain
from icscm.parameters import allow, check_value
from icscm.report.content.rates import make_rates
from icscm.report.wording import checkup as wording
from icscm.sources.countable import BinningConfig, Countable
from icscm.stats.independence import make_test
from icscm.stats.verdicts import compute_minimum_detectable_difference
from icscm.tables.columns import count_rows
from icscm.tables.errors import describe_many
from icscm.tables.labels import check_labels, check_several, encode_environments, take_environments
from icscm.tables.parsing import read_table
from icscm.tables.suspicion import find_kept, find_suspicious

Codes = NDArray[np.int64]

# Bins of a column of numbers, and levels of a category that are kept apart.
N_BINS = 16
# Features of packed genomes that are listed, of millions.
N_LISTED = 100
# Shares of the rows for which the minimum detectable difference is computed.
LEAF_SHARES = (1.0, 0.5, 0.1)


@dataclass(frozen=True)
class EnvironmentSummary:
    """One environment.

    Parameters
    ----------
    label, n_rows, n_positive : object, int, int
        Its label, its rows, and those of them with a positive label.
    rate, rate_interval : float, tuple of two floats
        Share of positive labels, and its Wilson interval (95%).
    missing : float
        Share of the cells that are missing.
    min_detectable : float or None
        Minimum detectable difference between its rate and that of all others together, with 80%
        power; None if there is none.
    """

    label: Any
    n_rows: int
    n_positive: int
    rate: float
    rate_interval: tuple[float, float]
    missing: float
    min_detectable: float | None


@dataclass(frozen=True)
class SparseCell:
    """A class with few rows in an environment, or none."""

    environment: Any
    label: Any
    n_rows: int


@dataclass(frozen=True)
class Association:
    """The association of a column with the environment.

    Parameters
    ----------
    column, values : str or int, float
        Its name or position, and Cramer's V of its present values and the environment.
    missingness : float or None
        Cramer's V of whether it is missing and the environment; None if it never is.
    is_copy : bool
        Whether each value belongs to one environment and each environment has one value.
    decided : float
        Share of the rows with values, missing or not, that nearly all have the same label.
    """

    column: str | int
    values: float
    missingness: float | None
    is_copy: bool
    decided: float = 0.0

    @property
    def strength(self) -> float:
        """The larger of the two."""
        return max(self.values, self.missingness or 0.0)


@dataclass(frozen=True)
class LeafPower:
    """The minimum detectable difference in a leaf with this share of each environment."""

    share: float
    n_rows: int
    difference: float | None


@dataclass(frozen=True, repr=False)
class CheckUp(DisplayMixin):
    """The result of `check_environments`.

    Parameters
    ----------
    n_rows, n_columns, classes : int, int, tuple of two labels
        Size of the table, and the classes; the second is the positive one.
    alpha, p_value : float
        Level of the tests, and the p-value of the test whether the label is independent of the
        environment in the whole table.
    environments, sparse : tuple of EnvironmentSummary, tuple of SparseCell
        In the order of their labels, and classes with fewer than five rows in one of them.
    associations : tuple of Association
        All columns that are not dropped, the strongest association first.
    power : tuple of LeafPower
        Minimum detectable differences in the whole table and in smaller leaves.
    dropped : dict
        Columns that `fit` drops, and why.
    advice : tuple of str
        Recommendations.

    Examples
    --------
    >>> from icscm import check_environments
    >>> from icscm.datasets import make_conjunction
    >>> data = make_conjunction(1_000, random_state=1)
    >>> found = check_environments(data.X, data.y, environments=data.environments)
    >>> found.n_rows, found.n_columns, found.associations[0].column
    (2000, 6, 'A1')
    """

    n_rows: int
    n_columns: int
    classes: tuple[Any, Any]
    alpha: float
    p_value: float
    environments: tuple[EnvironmentSummary, ...]
    sparse: tuple[SparseCell, ...]
    associations: tuple[Association, ...]
    power: tuple[LeafPower, ...]
    dropped: dict[str | int, str] = field(default_factory=dict)
    advice: tuple[str, ...] = ()

    @property
    def strong_associations(self) -> tuple[Association, ...]:
        """Columns that are strongly associated with the environment."""
        return tuple(each for each in self.associations if each.strength >= _constants.STRONG)

    def _display(self) -> Display:
        """The environments; above them all advice."""
        rows = [
            (as_text(each.label), f"{each.n_rows:,}", f"{each.rate:.1%}", f"{each.missing:.1%}")
            for each in self.environments
        ]
        line = f"{self.n_rows:,} rows. {' '.join(self.advice)}".strip()
        return Display(line, ("environment", ">rows", ">positive", ">missing"), rows)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values.

        Returns
        -------
        dict
            As JSON can hold; labels of other types are text.
        """
        plain: dict[str, Any] = make_plain(asdict(self), str)
        return plain


@data_by_name
def check_environments(
    X: Any,
    y: Any,
    *,
    environments: Any,
    alpha: float = 0.05,
    keep_columns: Any = None,
    words: Words = str,
) -> CheckUp:
    """Check the environments of a table before fitting.

    The association of a column with the environment is Cramer's V with Bergsma's correction: 0
    when unrelated, 1 when one determines the other. Numbers with many values are cut into 16 bins
    at quantiles; of categories the 15 most frequent levels are kept apart. Missing values are
    excluded; whether a value is missing has an association of its own.

    Parameters
    ----------
    X, y, environments : array-like
        As for `ICSCMClassifier.fit`.
    alpha : float, default=0.05
        Level of the tests whose power is computed.
    keep_columns : "all", str or sequence of str, optional
        Columns that are not dropped, as for the learners.
    words : callable, optional
        Names of parameters in advice, if not those of Python.

    Returns
    -------
    CheckUp
        Summaries, associations, power and advice.

    Raises
    ------
    IcscmError
        If the table cannot be learned from, or has one environment only.

    Examples
    --------
    >>> from icscm.datasets import make_conjunction
    >>> data = make_conjunction(random_state=1)
    >>> found = check_environments(data.X, data.y, environments=data.environments)
    >>> [(each.label, each.n_rows, round(each.rate, 2)) for each in found.environments]
    [(0, 10000, 0.07), (1, 10000, 0.17)]
    """
    check_value("alpha", alpha, allow("float (0, 1)"))
    X, environments = take_environments(X, environments)
    n_rows = count_rows(X)
    labels, classes = check_labels(y, n_rows)
    codes, places = encode_environments(environments, n_rows)
    check_several(places)
    parsed = read_table(X)
    coded = parsed.code(N_BINS - 1, None)
    names: Sequence[str | int] = parsed.names or range(coded.n_columns)
    dropped, kept = {}, find_kept(coded, keep_columns)
    if parsed.whole is not None:  # columns of arrays are never dropped
        fitted = parsed.code(BinningConfig().max_thresholds, None)
        reasons = find_suspicious(fitted, labels, codes, parsed.whole)
        dropped = {names[j]: why for j, why in reasons.items() if j not in kept}
    n_missing, associations = np.zeros(len(places)), []
    for j, name in enumerate(names):
        if j not in coded.dropped:  # as dates are
            column: Any = coded.values[:, [j]]
            values = (column.toarray() if issparse(column) else column).ravel().astype(np.float64)
            n_missing += np.bincount(codes[np.isnan(values)], minlength=len(places))
            if name not in dropped:
                associations.append(_associate(name, values, codes, labels))
    associations.sort(key=lambda each: -each.strength)
    table, n_columns = _count(labels, codes, 2, len(places)), coded.n_columns
    found = _make_checkup(table, places, [*classes], alpha, n_columns, associations, n_missing)
    return replace(found, dropped=dropped, advice=_advise(found, words))


def check_presence(
    countable: Countable[Any], *, alpha: float = 0.05, words: Words = str
) -> CheckUp:
    """Check the environments of packed genomes before fitting.

    Parameters
    ----------
    countable : Countable
        The value of `icscm.sources.open_bits`: features that are present or absent.
    alpha : float, default=0.05
        Level of the tests whose power is computed.
    words : callable, optional
        Names of parameters in advice, if not those of Python.

    Returns
    -------
    CheckUp
        As of `check_environments`, with the features of strongest association only; of features
        that are present in the same genomes the first.
    """
    check_value("alpha", alpha, allow("float (0, 1)"))
    source = countable.source
    check_several(source.environments)
    known = source.count_rows(), source.environments, source.classes
    found = _make_checkup(*known, alpha, countable.n_features, _find_strongest(source))
    return replace(found, advice=_advise(found, words))


def _find_strongest(source: RowSource) -> list[Association]:
    """The features that are most strongly associated with the environment, of millions."""
    best: list[tuple[float, int, Codes]] = []
    for cube in source.count_cubes():
        tables = cube.counts.sum(axis=2)  # (feature, absent or present, environment)
        of_value, of_environment = tables.sum(axis=2, keepdims=True), tables.sum(axis=1)[:, None]
        expected = of_value * of_environment / max(1, int(tables[0].sum()))
        phi = np.divide((tables - expected) ** 2, expected, where=expected > 0, out=0 * expected)
        strength = phi.sum(axis=(1, 2))
        top = np.argsort(-strength, kind="stable")[:N_LISTED]
        found = zip(strength[top].tolist(), cube.features[top].tolist(), tables[top], strict=True)
        best = sorted([*best, *found], key=lambda each: (-each[0], each[1]))[:N_LISTED]
    rules = [source.columns.make_rule(Cut(feature, 0, negated=False)) for _, feature, _ in best]
    return [compute_association(r.feature, each[2]) for r, each in zip(rules, best, strict=True)]


def _make_checkup(
    table: Codes,
    names: Sequence[Any],
    classes: Sequence[Any],
    alpha: float,
    n_columns: int,
    associations: Sequence[Association],
    n_missing: FloatArray | float = 0.0,
) -> CheckUp:
    """The check-up of counts by label and environment; `n_missing` cells by environment."""
    sizes = table.sum(axis=0)
    others = table.sum(axis=1, keepdims=True) - table
    against = np.stack((table.T, others.T), axis=2)  # (environment, label, it or the others)
    rates = make_rates(table[1].tolist(), sizes.tolist())
    own = zip((n_missing / n_columns / sizes).tolist(), _detect(against, alpha), strict=True)
    environments = [
        EnvironmentSummary(
            name, each.n, each.n_positive, each.rate or 0.0, _list_ends(each.rate_interval), *more
        )
        for name, each, more in zip(names, rates, own, strict=True)
    ]
    sparse = [
        SparseCell(names[k], classes[label], int(table[label, k]))
        for label, k in np.argwhere(table < _constants.SPARSE_ENVIRONMENT).tolist()
    ]
    leaves = [(share, np.floor(table * share).astype(np.int64)) for share in LEAF_SHARES]
    return CheckUp(
        n_rows=int(table.sum()),
        n_columns=n_columns,
        classes=(classes[0], classes[1]),
        alpha=alpha,
        p_value=float(make_test("chi2").compute_p_values(table[None])[0]),
        environments=tuple(environments),
        sparse=tuple(sparse),
        associations=tuple(associations),
        power=tuple(LeafPower(s, int(n.sum()), *_detect(n[None], alpha)) for s, n in leaves),
    )


def _detect(tables: Codes, alpha: float) -> list[float | None]:
    """The minimum detectable difference of each table; None if there is none."""
    found = compute_minimum_detectable_difference(tables, alpha)
    return [float(each) if np.isfinite(each) else None for each in found]


def _count(first: Codes, second: Codes, n_first: int, n_second: int) -> Codes:
    """Number of rows with each pair of codes, (first, second)."""
    pairs = np.bincount(first * n_second + second, minlength=n_first * n_second)
    return pairs.astype(np.int64).reshape(n_first, n_second)


def _associate(name: str | int, values: FloatArray, codes: Codes, labels: Codes) -> Association:
    """The association of a column; of more than 16 values, bins between quantiles are used."""
    missing = np.isnan(values)
    present = values[~missing]
    edges = np.unique(present)
    if len(edges) > N_BINS:
        shares = np.arange(1, N_BINS) / N_BINS
        edges = np.unique(np.quantile(present, shares, method="inverted_cdf"))
    bins, n_places = np.full(len(values), N_BINS), int(codes.max()) + 1  # missing values are last
    bins[~missing] = np.searchsorted(edges, present)
    found = compute_association(name, _count(bins, codes, N_BINS + 1, n_places)[:-1])
    by_label = _count(bins, labels, N_BINS + 1, 2)
    expected = np.outer(by_label.sum(axis=1), by_label.sum(axis=0)) / len(values)
    is_pure = (expected >= _constants.DECIDED_ROWS) & (100 * by_label <= expected)
    found = replace(found, decided=float(by_label[is_pure.any(axis=1)].sum() / len(values)))
    if not missing.any():
        return found
    return replace(found, missingness=compute_cramers_v(_count(missing * 1, codes, 2, n_places)))


def compute_association(name: str | int, table: Codes) -> Association:
    """The association of a column, from its counts of (value, environment)."""
    of_value, of_environment = (table > 0).sum(axis=1), (table > 0).sum(axis=0)
    is_pure = (of_value <= 1).all() and (of_environment == 1).all()
    is_copy = bool(is_pure and of_value.sum() == table.shape[1])
    return Association(name, compute_cramers_v(table), None, is_copy)


def compute_cramers_v(table: Codes) -> float:
    """Association of rows and columns of a table of counts, 0 to 1, Bergsma's correction applied.

    Without the correction, columns of many values would appear associated by chance.

    >>> compute_cramers_v(np.array([[50, 0], [0, 50]])), compute_cramers_v(np.array([[9, 9]]))
    (1.0, 0.0)
    """
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    total = int(table.sum())
    if min(table.shape) < 2 or total < 2:
        return 0.0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / total
    phi = float(((table - expected) ** 2 / expected).sum()) / total
    bias = math.prod(n - 1 for n in table.shape) / (total - 1)
    room = min(n - (n - 1) ** 2 / (total - 1) for n in table.shape) - 1
    return float(min(np.sqrt(max(phi - bias, 0.0) / room), 1.0)) if room > 0 else 0.0


def _advise(found: CheckUp, words: Words) -> tuple[str, ...]:
    """Recommendations on environments, power and columns."""
    sizes = {each.label: each.n_rows for each in found.environments}
    many = describe_many([*sizes], [*sizes.values()], most=2)

    def option(*parameter: Any) -> str:
        return words(Parameter(*parameter))

    largest_share = max(sizes.values()) / found.n_rows
    sparse = dict.fromkeys(as_text(each.environment) for each in found.sparse)
    strong = [each for each in found.associations if each.values >= _constants.STRONG]
    deciding = [each for each in found.associations if each.decided >= _constants.DECIDED_SHARE]
    absent = [each for each in found.associations if (each.missingness or 0.0) >= _constants.STRONG]
    copies = [each for each in found.associations if each.is_copy]
    advice = [
        *wording.advise_on_sparse_environments([*sparse]),
        *([many] if many else []),
        *wording.advise_on_dominance(largest_share),
        *wording.advise_on_power(
            in_table=found.power[0].difference,
            in_a_tenth=found.power[-1].difference,
            name_option=option,
        ),
        *wording.advise_on_equal_rates(found.p_value, found.alpha),
        *wording.advise_on_columns(
            copies=_name_columns(copies),
            strong=_name_columns([each for each in strong if not each.is_copy]),
            deciding=_name_columns(deciding),
            missing=_name_columns(absent),
            name_option=option,
        ),
    ]
    return tuple(advice)


def _list_ends(interval: list[float] | None) -> tuple[float, float]:
    assert interval is not None  # every environment has rows
    low, high = interval
    return low, high


def _name_columns(associations: Sequence[Association]) -> list[str]:
    return [as_text(each.column) for each in associations]
