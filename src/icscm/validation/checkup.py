"""A check of the environments before fitting: sizes, associations with columns, power."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from icscm import _constants
from icscm._changes import data_by_name
from icscm._repr import Display, DisplayMixin
from icscm._types import FloatArray, IntArray
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
from icscm.tables.environments import check_several, encode_environments, take_environments
from icscm.tables.errors import describe_many
from icscm.tables.labels import check_labels
from icscm.tables.parsing import read_table
from icscm.tables.suspicion import find_kept, find_suspicious

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
    outcome_codes, classes = check_labels(y, n_rows)
    environment_codes, environment_labels = encode_environments(environments, n_rows)
    check_several(environment_labels)
    parsed = read_table(X)
    table = parsed.code(N_BINS - 1, None)
    names: Sequence[str | int] = parsed.names or range(table.n_columns)
    dropped = {}
    if parsed.whole is not None:  # columns of arrays are never dropped
        table_of_fit = parsed.code(BinningConfig().max_thresholds, None)
        kept = find_kept(table, keep_columns)
        reasons = find_suspicious(table_of_fit, outcome_codes, environment_codes, parsed.whole)
        dropped = {names[j]: reason for j, reason in reasons.items() if j not in kept}

    n_missing = np.zeros(len(environment_labels))
    associations = []
    for position, name in enumerate(names):
        if position in table.dropped:  # as dates are
            continue
        values = _get_column(table.values, position)
        missing_codes = environment_codes[np.isnan(values)]
        n_missing += np.bincount(missing_codes, minlength=len(environment_labels))
        if name not in dropped:
            associations.append(_associate(name, values, environment_codes, outcome_codes))
    associations.sort(key=lambda association: -association.strength)
    found = _make_checkup(
        counts=_cross_tabulate(outcome_codes, environment_codes, 2, len(environment_labels)),
        environment_labels=environment_labels,
        classes=[*classes],
        alpha=alpha,
        n_columns=table.n_columns,
        associations=associations,
        n_missing=n_missing,
    )
    return replace(found, dropped=dropped, advice=_advise(found, words))


def _get_column(values: Any, position: int) -> FloatArray:
    """Return a column of a dense or sparse matrix as numbers."""
    column = values[:, [position]]
    dense = column.toarray() if issparse(column) else column
    return np.asarray(dense).ravel().astype(np.float64)


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
    found = _make_checkup(
        counts=source.count_rows(),
        environment_labels=source.environments,
        classes=source.classes,
        alpha=alpha,
        n_columns=countable.n_features,
        associations=_find_strongest(source),
    )
    return replace(found, advice=_advise(found, words))


@dataclass(frozen=True, eq=False)
class _PresenceTable:
    """Counts of a feature by (absent or present, environment), and how strong they are related."""

    strength: float
    column: int
    counts: IntArray


def _find_strongest(source: RowSource) -> list[Association]:
    """Find the features, of millions, that are most strongly associated with the environment.

    They are ranked by chi squared, sum (n - expected)^2 / expected, before any correction.
    """
    strongest: list[_PresenceTable] = []
    for cube in source.count_cubes():
        tables = cube.counts.sum(axis=2)  # (feature, absent or present, environment)
        expected = (
            tables.sum(axis=2, keepdims=True)
            * tables.sum(axis=1)[:, np.newaxis]
            / max(1, int(tables[0].sum()))
        )
        squares = (tables - expected) ** 2
        terms = np.divide(squares, expected, where=expected > 0, out=np.zeros_like(expected))
        strengths = terms.sum(axis=(1, 2))
        top = np.argsort(-strengths, kind="stable")[:N_LISTED]
        strongest += [
            _PresenceTable(float(strengths[k]), int(cube.features[k]), tables[k]) for k in top
        ]
        strongest = sorted(strongest, key=lambda each: (-each.strength, each.column))[:N_LISTED]
    associations = []
    for each in strongest:
        rule = source.columns.make_rule(Cut(each.column, 0, negated=False))
        associations.append(compute_association(rule.feature, each.counts))
    return associations


def _make_checkup(
    *,
    counts: IntArray,
    environment_labels: Sequence[Any],
    classes: Sequence[Any],
    alpha: float,
    n_columns: int,
    associations: Sequence[Association],
    n_missing: FloatArray | None = None,
) -> CheckUp:
    """Make the check-up from counts by (label, environment).

    `n_missing` are the missing cells of each environment; None if no cell can be missing.
    """
    return CheckUp(
        n_rows=int(counts.sum()),
        n_columns=n_columns,
        classes=(classes[0], classes[1]),
        alpha=alpha,
        p_value=float(make_test("chi2").compute_p_values(counts[np.newaxis])[0]),
        environments=_summarize_environments(
            counts, environment_labels, alpha, n_cells=n_columns, n_missing=n_missing
        ),
        sparse=_find_sparse_cells(counts, environment_labels, classes),
        associations=tuple(associations),
        power=tuple(_compute_power(counts, share, alpha) for share in LEAF_SHARES),
    )


def _summarize_environments(
    counts: IntArray,
    labels: Sequence[Any],
    alpha: float,
    *,
    n_cells: int,
    n_missing: FloatArray | None,
) -> tuple[EnvironmentSummary, ...]:
    """Summarize each environment; a row has `n_cells`."""
    sizes = counts.sum(axis=0)
    others = counts.sum(axis=1, keepdims=True) - counts
    against_others = np.stack((counts.T, others.T), axis=2)  # (environment, label, it or others)
    differences = _compute_detectable_differences(against_others, alpha)
    missing_shares = np.zeros(len(labels)) if n_missing is None else n_missing / n_cells / sizes
    rates = make_rates(counts[1].tolist(), sizes.tolist())
    summaries = []
    for code, rate in enumerate(rates):
        assert rate.rate is not None  # every environment has rows
        assert rate.rate_interval is not None
        low, high = rate.rate_interval
        summaries.append(
            EnvironmentSummary(
                label=labels[code],
                n_rows=rate.n,
                n_positive=rate.n_positive,
                rate=rate.rate,
                rate_interval=(low, high),
                missing=float(missing_shares[code]),
                min_detectable=differences[code],
            )
        )
    return tuple(summaries)


def _find_sparse_cells(
    counts: IntArray, environment_labels: Sequence[Any], classes: Sequence[Any]
) -> tuple[SparseCell, ...]:
    """Find the classes with few rows in an environment."""
    return tuple(
        SparseCell(environment_labels[code], classes[label], int(counts[label, code]))
        for label, code in np.argwhere(counts < _constants.SPARSE_ENVIRONMENT).tolist()
    )


def _compute_power(counts: IntArray, share: float, alpha: float) -> LeafPower:
    """Compute what is detectable in a leaf with this share of each cell."""
    leaf = np.floor(counts * share).astype(np.int64)
    (difference,) = _compute_detectable_differences(leaf[np.newaxis], alpha)
    return LeafPower(share=share, n_rows=int(leaf.sum()), difference=difference)


def _compute_detectable_differences(tables: IntArray, alpha: float) -> list[float | None]:
    """Compute the minimum detectable difference of each table; None if there is none."""
    differences = compute_minimum_detectable_difference(tables, alpha)
    return [float(each) if np.isfinite(each) else None for each in differences]


def _cross_tabulate(
    row_codes: IntArray, column_codes: IntArray, n_rows: int, n_columns: int
) -> IntArray:
    """Count each pair of codes, in a table of so many rows and columns."""
    pairs = np.bincount(row_codes * n_columns + column_codes, minlength=n_rows * n_columns)
    return pairs.astype(np.int64).reshape(n_rows, n_columns)


def _associate(
    name: str | int, values: FloatArray, environment_codes: IntArray, outcome_codes: IntArray
) -> Association:
    """Measure the association of a column with the environment, and what it decides."""
    bins = _bin_values(values)
    n_environments = int(environment_codes.max()) + 1
    counts = _cross_tabulate(bins, environment_codes, N_BINS + 1, n_environments)
    association = compute_association(name, counts[:-1])
    is_missing = np.isnan(values)
    missingness = None
    if is_missing.any():
        missing_counts = _cross_tabulate(is_missing * 1, environment_codes, 2, n_environments)
        missingness = compute_cramers_v(missing_counts)
    return replace(
        association,
        decided=_compute_decided_share(_cross_tabulate(bins, outcome_codes, N_BINS + 1, 2)),
        missingness=missingness,
    )


def _bin_values(values: FloatArray) -> IntArray:
    """Return the bin of each value, between quantiles if there are many; the last is missing."""
    is_present = ~np.isnan(values)
    present = values[is_present]
    edges = np.unique(present)
    if len(edges) > N_BINS:
        shares = np.arange(1, N_BINS) / N_BINS
        edges = np.unique(np.quantile(present, shares, method="inverted_cdf"))
    bins = np.full(len(values), N_BINS)
    bins[is_present] = np.searchsorted(edges, present)
    return bins


def _compute_decided_share(counts: IntArray) -> float:
    """Compute the share of rows in bins that have nearly one label only; counts are (bin, label).

    A label is nearly absent where it has 1% of the rows that it would have by chance, if these are
    enough to tell.
    """
    n_rows = counts.sum()
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / n_rows
    is_absent = (expected >= _constants.DECIDED_ROWS) & (100 * counts <= expected)
    return float(counts[is_absent.any(axis=1)].sum() / n_rows)


def compute_association(name: str | int, counts: IntArray) -> Association:
    """Compute the association of a column from its counts of (value, environment)."""
    n_environments_of_values = (counts > 0).sum(axis=1)
    n_values_of_environments = (counts > 0).sum(axis=0)
    is_copy = (
        (n_environments_of_values <= 1).all()
        and (n_values_of_environments == 1).all()
        and n_environments_of_values.sum() == counts.shape[1]
    )
    return Association(
        column=name,
        values=compute_cramers_v(counts),
        missingness=None,
        is_copy=bool(is_copy),
    )


def compute_cramers_v(counts: IntArray) -> float:
    """Compute Cramer's V of a table of counts, from 0 to 1, with Bergsma's correction (2013).

    With phi^2 = chi^2 / n of a table of r rows and c columns

        phi~^2 = max(0, phi^2 - (r - 1)(c - 1) / (n - 1))
        r~ = r - (r - 1)^2 / (n - 1),  c~ = c - (c - 1)^2 / (n - 1)
        V = sqrt(phi~^2 / (min(r~, c~) - 1))

    Without the correction, columns of many values would appear associated by chance.

    >>> compute_cramers_v(np.array([[50, 0], [0, 50]])), compute_cramers_v(np.array([[9, 9]]))
    (1.0, 0.0)
    """
    table = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    n = int(table.sum())
    if min(table.shape) < 2 or n < 2:
        return 0.0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / n
    phi_squared = float(((table - expected) ** 2 / expected).sum()) / n
    n_table_rows, n_table_columns = table.shape
    bias = (n_table_rows - 1) * (n_table_columns - 1) / (n - 1)
    largest = min(size - (size - 1) ** 2 / (n - 1) for size in table.shape) - 1
    if largest <= 0:
        return 0.0
    return float(min(np.sqrt(max(phi_squared - bias, 0.0) / largest), 1.0))


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


def _name_columns(associations: Sequence[Association]) -> list[str]:
    return [as_text(each.column) for each in associations]
