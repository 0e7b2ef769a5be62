"""A check of the environments before fitting: sizes, associations with columns, power.

Two things make a study of environments fail, and both can be seen before a model is fitted: too few
rows in an environment to detect a difference, and columns that tell the environments apart, by
which a model may learn the level of the outcome in each environment instead of what causes it.

The outcome may be two classes, several classes, or a number; `checked_outcomes` says what there is
to say of each.
"""

from collections.abc import Container, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from icscm import _constants
from icscm._changes import data_by_name
from icscm._repr import Display, DisplayMixin
from icscm._types import FloatArray, IntArray
from icscm.engine.counts import CountCube, Cut, RowSource
from icscm.exceptions import IcscmError, Parameter, Words
from icscm.formatting import as_text, make_plain
from icscm.parameters import allow, check_value
from icscm.report.documents.checkup import N_CLASSES_SHOWN, list_outcome_columns
from icscm.report.wording import checkup as wording
from icscm.sources.columns import open_columns
from icscm.sources.countable import BinningConfig, Countable
from icscm.stats.design_effects import SampledRows
from icscm.stats.giveaways import find_giveaways
from icscm.stats.ranking import rank_with_ties
from icscm.tables.coded import CodedTable
from icscm.tables.columns import count_rows
from icscm.tables.environments import check_several, encode_environments, take_environments
from icscm.tables.errors import describe_many
from icscm.tables.labels import check_labels
from icscm.tables.outcomes import (
    OutcomeKind,
    OutcomeValues,
    check_weighted,
    find_kind,
    is_numeric_outcome,
    read_outcome,
)
from icscm.tables.parsing import ParsedTable, read_table
from icscm.tables.suspicion import (
    EMPTY,
    LABEL_COPY,
    find_copies_of_numbers,
    find_empty,
    find_suspicious,
)
from icscm.tables.weights import read_weights
from icscm.validation.checked_outcomes import (
    AnyEnvironment,
    CheckedOutcome,
    LeafPower,
    SparseCell,
    count_effectively,
    make_classes,
    make_numbers,
)

# Bins of a column of numbers; of a category, levels that are kept apart and one bin of the others.
N_BINS = 16
# Columns of packed genomes that are listed, of millions.
N_LISTED = 100
# Shares of the rows for which the minimum detectable difference is computed.
LEAF_SHARES = (1.0, 0.5, 0.1)


@dataclass(frozen=True)
class Association:
    """The association of a column with the environment.

    Parameters
    ----------
    column, values : str or int, float
        Its name or position, and Cramer's V of its present values and the environment; 1 if it
        determines the environment.
    missingness : float or None
        Cramer's V of whether it is missing and the environment; None if it never is.
    determines : bool
        Whether it determines the environment, so that learners reject it: it is constant within
        every environment but not over all, varies in one only, or its levels lie in one each.
    decided : float
        Share of the rows whose value, which may be missing, goes with nearly one label only.
    is_nearly_determining : bool
        Whether it nearly determines the environment: Cramer's V is above .9, missing values
        being a value like any other.
    """

    column: str | int
    values: float
    missingness: float | None
    determines: bool
    decided: float = 0.0
    is_nearly_determining: bool = False

    @property
    def strength(self) -> float:
        """The larger association: that of its values, or of whether it is missing."""
        return max(self.values, self.missingness or 0.0)


@dataclass(frozen=True, repr=False)
class CheckUp(DisplayMixin):
    """The result of `check_environments`.

    Parameters
    ----------
    n_rows, n_columns, classes : int, int, tuple of labels or None
        Size of the table, and the classes; of two the second is the positive one. None if the
        outcome is a number.
    alpha, p_value : float
        Level of the tests, and the p-value of the test whether the outcome is independent of the
        environment in the whole table: of classes Pearson's, of a number Welch's.
    environments, sparse : tuple, tuple of SparseCell
        In the order of their labels, and classes with fewer than five rows in one of them (of a
        number, environments with fewer than five rows). Each environment is an
        `EnvironmentSummary` of two classes, `EnvironmentShares` of several, `EnvironmentMean` of a
        number; see `icscm.validation.checked_outcomes`.
    associations : tuple of Association
        All columns that are not dropped, the strongest association first.
    power : tuple of LeafPower
        Minimum detectable differences in the whole table and in smaller leaves: of two classes
        between rates, of several between shares of the largest class, of a number between means, in
        standard deviations within environments.
    dropped : dict
        Columns that `fit` drops, and why.
    advice : tuple of str
        Recommendations.

    Examples
    --------
    >>> from icscm import check_environments
    >>> from icscm.datasets import make_conjunction
    >>> data = make_conjunction(1_000, random_state=1)
    >>> checkup = check_environments(data.X, data.y, environments=data.environments)
    >>> checkup.n_rows, checkup.n_columns, checkup.associations[0].column
    (2000, 6, 'A1')
    """

    n_rows: int
    n_columns: int
    classes: tuple[Any, ...] | None
    alpha: float
    p_value: float
    environments: tuple[AnyEnvironment, ...]
    sparse: tuple[SparseCell, ...]
    associations: tuple[Association, ...]
    power: tuple[LeafPower, ...]
    dropped: dict[str | int, str] = field(default_factory=dict)
    advice: tuple[str, ...] = ()

    @property
    def kind(self) -> OutcomeKind:
        """What the outcome is: two classes, several classes or a number."""
        return find_kind(self.classes)

    @property
    def strong_associations(self) -> tuple[Association, ...]:
        """Columns that are strongly associated with the environment."""
        return tuple(
            association
            for association in self.associations
            if association.strength >= _constants.STRONG
        )

    def _display(self) -> Display:
        """Show the environments in a table, and all advice above them."""
        line = f"{self.n_rows:,} rows. {' '.join(self.advice)}".strip()
        columns = list_outcome_columns(self.to_dict(), n_classes=N_CLASSES_SHOWN)
        headings = ["environment", ">rows", *(column.title for column in columns), ">missing"]
        rows = [
            [
                as_text(environment.label),
                f"{environment.n_rows:,}",
                *(column.cells[position] for column in columns),
                f"{environment.missing:.1%}",
            ]
            for position, environment in enumerate(self.environments)
        ]
        return Display(line, headings, rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the whole check-up as plain values.

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
    groups: Any = None,
    sample_weight: Any = None,
    outcome: str | None = None,
    alpha: float = 0.05,
    words: Words = str,
) -> CheckUp:
    """Check the environments of a table before fitting.

    The outcome may be two classes, several classes, or a number, as for `InvariantFeatureSelector`.

    The association of a column with the environment is Cramer's V with Bergsma's correction: 0
    when unrelated, 1 when one determines the other, and 1 for each column that learners reject
    because it determines the environment. Numbers with many values are cut into 16 bins
    at quantiles; of categories the 15 most frequent levels are kept apart. Missing values are
    excluded; whether a value is missing has an association of its own.

    Parameters
    ----------
    X, y, environments : array-like
        As for `InvariantFeatureSelector.fit`.
    groups : array-like of shape (n_samples,), str or list of str, optional
        Rows that belong together, such as the visits of a patient: intervals, tests and power are
        those of as many independent rows as tell as much.
    sample_weight : array-like of shape (n_samples,), optional
        Design weights, any numbers from 0 on; only their ratios matter. Rates and means are
        weighted, associations of columns are not.
    outcome : {"number", "classes"}, optional
        What the outcome is; by default a number if it has numbers of more than ten distinct values,
        else classes.
    alpha : float, default=0.05
        Level of the tests whose power is computed.
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
    >>> checkup = check_environments(data.X, data.y, environments=data.environments)
    >>> checkup.environments[0].n_rows
    10000
    >>> [round(environment.rate, 2) for environment in checkup.environments]
    [0.07, 0.17]

    Of an outcome that is a number it says the mean and the standard deviation instead of the rate:

    >>> from icscm.datasets import make_hospitals
    >>> admissions = make_hospitals(2_000, random_state=0)
    >>> X = admissions.X.drop(columns="age")
    >>> checkup = check_environments(X, admissions.X["age"], environments=admissions.environments)
    >>> checkup.kind, checkup.classes
    (<OutcomeKind.NUMBER: 'number'>, None)
    """
    check_value("alpha", alpha, allow("float (0, 1)"))
    check_value("outcome", outcome, allow("number", "classes", None))
    X, environments = take_environments(X, environments)
    X, groups = take_environments(X, groups, "groups")
    n_rows = count_rows(X)
    values = _read_outcome(y, n_rows, outcome)
    environment_codes, environment_labels = encode_environments(environments, n_rows)
    check_several(environment_labels)
    rows = _CodedRows(
        values,
        environment_codes,
        n_environments=len(environment_labels),
        weights=_read_weights(sample_weight, values),
        group_codes=_encode_groups(groups, n_rows),
    )
    rows.check_weights(environment_labels)

    parsed = read_table(X)
    table = parsed.code(N_BINS - 1, None)
    names: Sequence[str | int] = parsed.names or range(table.n_columns)
    dropped = _find_dropped_columns(parsed, names, rows)
    giveaways = _find_giveaways(X, environments, names)
    scan = _scan_columns(table, names, rows, dropped=dropped, giveaways=giveaways)

    summary = _summarize_outcome(rows)
    checkup = _make_checkup(
        summary,
        environment_labels=environment_labels,
        alpha=alpha,
        n_columns=table.n_columns,
        associations=scan.associations,
        n_missing=scan.n_missing,
    )
    note = [] if rows.are_independent else [_note_effective_rows(summary)]
    return replace(checkup, dropped=dropped, advice=(*note, *_advise(checkup, words)))


def _encode_groups(groups: Any, n_rows: int) -> IntArray | None:
    """Return the group of each row as a code; None without any."""
    if groups is None:
        return None
    codes, _ = encode_environments(groups, n_rows, what="groups")
    return codes


def _read_weights(sample_weight: Any, outcome: OutcomeValues) -> FloatArray | None:
    """Check the weights of the rows, and scale them so that the largest is 1; None without any."""
    if sample_weight is None:
        return None
    weights = read_weights(sample_weight, len(outcome.values), "sample_weight")
    check_weighted(outcome, weights)
    return np.asarray(weights / weights.max())


def _read_outcome(y: Any, n_rows: int, outcome: str | None) -> OutcomeValues:
    """Check the outcome of each row; two classes as the learners of rules check them."""
    is_number = is_numeric_outcome(y) if outcome is None else outcome == "number"
    values = read_outcome(y, n_rows, is_number=is_number)
    if values.kind is not OutcomeKind.TWO_CLASSES:
        return values
    codes, classes = check_labels(y, n_rows)
    return OutcomeValues(values=codes, classes=classes)


# --- columns of a table ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _CodedRows:
    """The outcome of each row, its environment as a code from 0, its weight and its group.

    There may be no weights, and no groups.
    """

    outcome: OutcomeValues
    environment_codes: IntArray
    n_environments: int
    weights: FloatArray | None = None
    group_codes: IntArray | None = None

    @property
    def are_independent(self) -> bool:
        """Whether each row tells as much as any other."""
        return self.weights is None and self.group_codes is None

    def check_weights(self, environment_labels: Sequence[Any]) -> None:
        """Raise unless each environment has a row of a positive weight."""
        sample = self.sample()
        absent = np.flatnonzero(sample.add_up(np.ones(len(sample.weights))) == 0).tolist()
        if absent:
            label = environment_labels[absent[0]]
            raise IcscmError(
                f"sample_weight is 0 in every row of environment {label!r}; drop these rows, or "
                "weight them"
            )

    def sample(self) -> SampledRows:
        """Return the rows with a weight and a cluster each."""
        n_rows = len(self.environment_codes)
        return SampledRows(
            environments=self.environment_codes,
            n_environments=self.n_environments,
            weights=np.ones(n_rows) if self.weights is None else self.weights,
            clusters=np.arange(n_rows) if self.group_codes is None else self.group_codes,
        )


def _note_effective_rows(outcome: CheckedOutcome) -> str:
    """Say how many independent rows tell as much."""
    return wording.note_effective_rows(
        int(outcome.sizes.sum()), n_effective=round(float(outcome.effective_sizes.sum()))
    )


def _summarize_outcome(rows: _CodedRows) -> CheckedOutcome:
    """Add up the outcome by environment."""
    outcome = rows.outcome
    if outcome.classes is None:
        return make_numbers(outcome.values, rows.sample(), are_independent=rows.are_independent)
    classes = outcome.classes.tolist()
    shape = (len(classes), rows.n_environments)
    effective_counts = None
    if not rows.are_independent:
        effective_counts = count_effectively(outcome.values, len(classes), rows.sample())
    return make_classes(
        classes,
        _cross_tabulate(outcome.values, rows.environment_codes, shape=shape),
        effective_counts,
    )


@dataclass(frozen=True, eq=False)
class _ColumnScan:
    """What one pass over the columns finds.

    Attributes
    ----------
    associations : list of Association
        Of the columns that `fit` would not drop, the strongest association first.
    n_missing : array of shape (n_environments,)
        Missing cells of each environment.
    """

    associations: list[Association]
    n_missing: FloatArray


def _find_dropped_columns(
    parsed: ParsedTable, names: Sequence[str | int], rows: _CodedRows
) -> dict[str | int, str]:
    """Find the columns that `fit` would drop, and why; of an array only those without values."""
    # coded as by `fit`: how many levels are kept apart decides which columns are dropped
    table_of_fit = parsed.code(BinningConfig().max_thresholds, None)
    if parsed.whole is None:
        return {names[position]: EMPTY for position in find_empty(table_of_fit)}
    is_number = rows.outcome.is_number
    # no column is a copy of classes where there are none
    no_classes = np.zeros(len(rows.environment_codes), dtype=np.int64)
    reasons = find_suspicious(
        table_of_fit,
        no_classes if is_number else rows.outcome.values,
        rows.environment_codes,
        whole=parsed.whole,
        declared=parsed.declared,
    )
    if is_number:
        copies = find_copies_of_numbers(table_of_fit, rows.outcome.values)
        reasons |= dict.fromkeys(copies, LABEL_COPY)
    return {names[position]: reason for position, reason in reasons.items()}


@dataclass(frozen=True)
class _Giveaways:
    """The columns that determine the environment, and those that nearly do, by name."""

    determining: frozenset[str | int]
    nearly: frozenset[str | int]


def _find_giveaways(X: Any, environments: Any, names: Sequence[str | int]) -> _Giveaways:
    """Find the columns that give the environment away, in the bins that learners see."""
    opened = open_columns(
        X,
        environments=environments,
        groups=None,
        max_thresholds=BinningConfig().max_thresholds,
        n_jobs=1,
    )
    determining: list[str | int] = []
    nearly: list[str | int] = []
    for cube in opened.source.count_cubes():
        giveaways = find_giveaways(cube.counts.sum(axis=2))
        for position, column in enumerate(cube.columns.tolist()):
            copies = [names[copy] for copy in opened.source.columns.list_copies(column)]
            if giveaways.is_determining[position]:
                determining += copies
            elif giveaways.is_nearly_determining[position]:
                nearly += copies
    return _Giveaways(determining=frozenset(determining), nearly=frozenset(nearly))


def _scan_columns(
    table: CodedTable,
    names: Sequence[str | int],
    rows: _CodedRows,
    *,
    dropped: Container[str | int],
    giveaways: _Giveaways,
) -> _ColumnScan:
    """Measure the association of each column, and count the missing cells by environment.

    Both are done in one pass, since a column of a sparse matrix is slow to read.
    """
    associations = []
    n_missing = np.zeros(rows.n_environments)
    for position, name in enumerate(names):
        if position in table.dropped:  # a column of dates, which has no values
            continue
        values = _get_column(table.values, position)
        codes_where_missing = rows.environment_codes[np.isnan(values)]
        n_missing += np.bincount(codes_where_missing, minlength=rows.n_environments)
        if name not in dropped:
            associations.append(_associate(name, values, rows, giveaways))

    associations.sort(key=lambda association: -association.strength)
    return _ColumnScan(associations=associations, n_missing=n_missing)


def _get_column(values: Any, position: int) -> FloatArray:
    """Return a column of a dense or sparse matrix as numbers."""
    column = values[:, [position]]
    dense = column.toarray() if issparse(column) else column
    return np.asarray(dense).ravel().astype(np.float64)


# --- columns of packed genomes --------------------------------------------------------------------


def check_presence(
    countable: Countable[Any], *, alpha: float = 0.05, words: Words = str
) -> CheckUp:
    """Check the environments of packed genomes before fitting.

    Parameters
    ----------
    countable : Countable
        The value of `icscm.sources.open_bits`: columns that are present or absent.
    alpha : float, default=0.05
        Level of the tests whose power is computed.
    words : callable, optional
        Names of parameters in advice, if not those of Python.

    Returns
    -------
    CheckUp
        As of `check_environments`, with the columns of strongest association only; of columns
        that are present in the same genomes the first.
    """
    check_value("alpha", alpha, allow("float (0, 1)"))
    source = countable.source
    check_several(source.environments)
    checkup = _make_checkup(
        make_classes(source.classes, source.count_rows()),
        environment_labels=source.environments,
        alpha=alpha,
        n_columns=countable.n_features,
        associations=_find_strongest(source),
    )
    return replace(checkup, advice=_advise(checkup, words))


@dataclass(frozen=True, eq=False)
class _PresenceTable:
    """Counts of a column by (absent or present, environment), and their chi squared."""

    column: int
    counts: IntArray
    chi_squared: float


def _find_strongest(source: RowSource) -> list[Association]:
    """Find the columns, of millions, that are most strongly associated with the environment.

    They are ranked by chi squared before any correction, which takes one pass over the counts; only
    the few that are listed get a corrected association.
    """
    strongest: list[_PresenceTable] = []
    for cube in source.count_cubes():
        strongest += _find_strongest_of_cube(cube)
        # of columns that tie, the first ones, however the source cuts its columns into cubes
        strongest.sort(key=lambda table: (-table.chi_squared, table.column))
        del strongest[N_LISTED:]

    associations = []
    for table in strongest:
        # the rule that the column is present, which knows its name
        is_present = source.columns.make_rule(Cut(table.column, 0, negated=False))
        association = compute_association(is_present.feature, table.counts)
        giveaways = find_giveaways(table.counts[np.newaxis])
        associations.append(
            mark_giveaway(
                association,
                determines=bool(giveaways.is_determining[0]),
                is_nearly_determining=bool(giveaways.is_nearly_determining[0]),
            )
        )
    return associations


def _find_strongest_of_cube(cube: CountCube) -> list[_PresenceTable]:
    """Find the columns of a cube that may be among the strongest of all."""
    counts = cube.counts.sum(axis=2)  # (column, absent or present, environment)
    chi_squared = _compute_chi_squared(counts)
    by_strength = np.argsort(-chi_squared, kind="stable")
    return [
        _PresenceTable(
            column=int(cube.columns[position]),
            counts=counts[position],
            chi_squared=float(chi_squared[position]),
        )
        for position in by_strength[:N_LISTED]
    ]


def _compute_chi_squared(tables: IntArray) -> FloatArray:
    """Compute Pearson's chi squared of each column's table, counts (column, value, environment).

        sum (count - expected)^2 / expected

    where, of n rows, (rows of the value) x (rows of the environment) / n are expected. Values that
    no row has add nothing.
    """
    n_rows = max(1, int(tables[0].sum()))
    rows_of_values = tables.sum(axis=2, keepdims=True)
    rows_of_environments = tables.sum(axis=1, keepdims=True)
    expected = rows_of_values * rows_of_environments / n_rows
    squares = (tables - expected) ** 2
    terms = np.divide(squares, expected, where=expected > 0, out=np.zeros_like(expected))
    return np.asarray(terms.sum(axis=(1, 2)))


# --- environments ---------------------------------------------------------------------------------


def _make_checkup(
    outcome: CheckedOutcome,
    *,
    environment_labels: Sequence[Any],
    alpha: float,
    n_columns: int,
    associations: Sequence[Association],
    n_missing: FloatArray | None = None,
) -> CheckUp:
    """Make the check-up, still without advice, from the outcome by environment.

    `n_missing` are the missing cells of each environment; None if no cell can be missing.
    """
    missing_shares = np.zeros(len(environment_labels))
    if n_missing is not None:
        missing_shares = n_missing / n_columns / outcome.sizes
    return CheckUp(
        n_rows=int(outcome.sizes.sum()),
        n_columns=n_columns,
        classes=outcome.classes,
        alpha=alpha,
        p_value=outcome.compute_p_value(),
        environments=outcome.summarize_environments(
            environment_labels, missing_shares=missing_shares, alpha=alpha
        ),
        sparse=outcome.find_sparse_cells(environment_labels),
        associations=tuple(associations),
        power=tuple(outcome.compute_power(share, alpha) for share in LEAF_SHARES),
    )


# --- associations ---------------------------------------------------------------------------------


def _cross_tabulate(
    first_codes: IntArray, second_codes: IntArray, *, shape: tuple[int, int]
) -> IntArray:
    """Count the rows that have each pair of codes, (first, second)."""
    n_first, n_second = shape
    pair_codes = first_codes * n_second + second_codes
    counts = np.bincount(pair_codes, minlength=n_first * n_second)
    return counts.astype(np.int64).reshape(shape)


def mark_giveaway(
    association: Association, *, determines: bool, is_nearly_determining: bool
) -> Association:
    """Return an association that says whether the column determines the environment.

    Then its strength is 1. Cramer's V is less where a column varies in one environment only, or
    where its missing values tell the environment.
    """
    return replace(
        association,
        values=1.0 if determines else association.values,
        determines=determines,
        is_nearly_determining=is_nearly_determining,
    )


def _associate(
    name: str | int, values: FloatArray, rows: _CodedRows, giveaways: _Giveaways
) -> Association:
    """Measure the association of a column with the environment, and the outcomes that it decides.

    Both are measured on bins of its values. Missing values are left out of the association, since
    whether a value is missing has an association of its own. For the outcome they are a value like
    any other, since rules may use them.
    """
    bins = _bin_values(values)
    n_bins = N_BINS + 1  # with that of missing values, the last
    by_environment = _cross_tabulate(
        bins, rows.environment_codes, shape=(n_bins, rows.n_environments)
    )

    missingness = None
    is_missing = np.isnan(values).astype(np.int64)
    if is_missing.any():
        missing_by_environment = _cross_tabulate(
            is_missing, rows.environment_codes, shape=(2, rows.n_environments)
        )
        missingness = compute_cramers_v(missing_by_environment)

    present_by_environment = by_environment[:-1]
    association = mark_giveaway(
        compute_association(name, present_by_environment),
        determines=name in giveaways.determining,
        is_nearly_determining=name in giveaways.nearly,
    )
    return replace(
        association,
        decided=_compute_decided_share(bins, rows.outcome),
        missingness=missingness,
    )


def _bin_values(values: FloatArray) -> IntArray:
    """Return the bin of each value, between quantiles if there are many.

    The bin `N_BINS`, after all others, holds missing values.
    """
    is_present = ~np.isnan(values)
    present = values[is_present]
    edges = np.unique(present)
    if len(edges) > N_BINS:
        # an edge is the largest value of its bin; the last bin has all values beyond the edges
        shares = np.arange(1, N_BINS) / N_BINS
        edges = np.unique(np.quantile(present, shares, method="inverted_cdf"))
    bins = np.full(len(values), N_BINS)
    bins[is_present] = np.searchsorted(edges, present)
    return bins


def _compute_decided_share(bins: IntArray, outcome: OutcomeValues) -> float:
    """Compute the share of rows in bins that determine the outcome nearly alone."""
    n_bins = N_BINS + 1  # with that of missing values, the last
    if outcome.classes is None:
        return compute_share_of_decided_numbers(bins, outcome.values, n_bins=n_bins)
    counts = _cross_tabulate(bins, outcome.values, shape=(n_bins, len(outcome.classes)))
    return compute_share_of_decided_classes(counts)


def compute_share_of_decided_classes(counts: IntArray) -> float:
    """Compute the share of rows in bins of nearly one class only; counts are (bin, class).

    In such a bin all other classes together have at most 1% of the rows that they would have by
    chance, if these are enough to tell.

    >>> counts = np.array([[400, 0, 0], [200, 100, 300]])
    >>> compute_share_of_decided_classes(counts)
    0.4
    """
    n_rows = counts.sum()
    rows_of_bins = counts.sum(axis=1, keepdims=True)
    rows_of_classes = counts.sum(axis=0)
    counts_of_others = rows_of_bins - counts
    expected_others = rows_of_bins * (n_rows - rows_of_classes) / n_rows
    is_expected = expected_others >= _constants.DECIDED_ROWS
    is_nearly_alone = is_expected & (100 * counts_of_others <= expected_others)
    is_decided = is_nearly_alone.any(axis=1)
    return float(counts[is_decided].sum() / n_rows)


def compute_share_of_decided_numbers(bins: IntArray, numbers: FloatArray, *, n_bins: int) -> float:
    """Compute the share of rows in bins in which the number is nearly the same.

    There its ranks have at most 1% of their variance in the whole table. Ranks are compared, since
    a few outliers may have nearly all of the variance of the numbers themselves. A bin can tell if
    enough rows of other values than the most frequent one would be in it by chance.
    """
    ranks = rank_with_ties(numbers)
    n_rows = len(ranks)
    rows_of_bins = np.bincount(bins, minlength=n_bins)
    means = np.bincount(bins, weights=ranks, minlength=n_bins) / np.maximum(rows_of_bins, 1)
    squares = np.bincount(bins, weights=(ranks - means[bins]) ** 2, minlength=n_bins)
    expected_squares = rows_of_bins * ranks.var()

    rows_of_most_frequent = np.unique(numbers, return_counts=True)[1].max()
    expected_others = rows_of_bins * (1 - rows_of_most_frequent / n_rows)
    is_telling = expected_others >= _constants.DECIDED_ROWS
    is_decided = is_telling & (100 * squares <= expected_squares)
    return float(rows_of_bins[is_decided].sum() / n_rows)


def compute_association(name: str | int, counts: IntArray) -> Association:
    """Compute the association of a column from its counts of (value, environment)."""
    return Association(
        column=name, values=compute_cramers_v(counts), missingness=None, determines=False
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
    r, c = table.shape
    if min(r, c) < 2 or n < 2:
        return 0.0

    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / n
    phi_squared = float(((table - expected) ** 2 / expected).sum()) / n
    corrected_phi_squared = max(phi_squared - (r - 1) * (c - 1) / (n - 1), 0.0)
    corrected_r = r - (r - 1) ** 2 / (n - 1)
    corrected_c = c - (c - 1) ** 2 / (n - 1)
    largest = min(corrected_r, corrected_c) - 1
    if largest <= 0:
        return 0.0
    return float(min(np.sqrt(corrected_phi_squared / largest), 1.0))


# --- advice ---------------------------------------------------------------------------------------


def _advise(checkup: CheckUp, words: Words) -> tuple[str, ...]:
    """Recommend what to do about environments, power and columns."""

    def name_option(name: str, value: Any = ...) -> str:
        return words(Parameter(name, value))

    labels = [environment.label for environment in checkup.environments]
    sizes = [environment.n_rows for environment in checkup.environments]
    sparse_environments = dict.fromkeys(as_text(cell.environment) for cell in checkup.sparse)
    advice_on_many = describe_many(labels, sizes, max_environments=2)
    advice = [
        *wording.advise_on_sparse_environments(
            list(sparse_environments), has_classes=checkup.classes is not None
        ),
        *([advice_on_many] if advice_on_many else []),
        *wording.advise_on_dominance(max(sizes) / checkup.n_rows),
        *_advise_on_outcome(checkup, name_option),
        *_advise_on_columns(
            checkup.associations, has_rules=checkup.kind is OutcomeKind.TWO_CLASSES
        ),
    ]
    return tuple(advice)


def _advise_on_outcome(checkup: CheckUp, name_option: wording.NameOption) -> list[str]:
    """Recommend what to do about power, and where the outcome is the same everywhere."""
    in_table = checkup.power[0].difference
    in_a_tenth = checkup.power[-1].difference
    if checkup.kind is OutcomeKind.TWO_CLASSES:
        return [
            *wording.advise_on_power(
                in_table=in_table, in_a_tenth=in_a_tenth, name_option=name_option
            ),
            *wording.advise_on_equal_rates(checkup.p_value, checkup.alpha),
        ]
    advice_on_power = wording.advise_on_power_of_shares(in_table)
    if checkup.kind is OutcomeKind.NUMBER:
        advice_on_power = wording.advise_on_power_of_means(in_table)
    return [
        *advice_on_power,
        wording.advise_on_learners(str(checkup.kind), name_option("InvariantFeatureSelector")),
    ]


def _advise_on_columns(associations: Sequence[Association], *, has_rules: bool) -> list[str]:
    """Recommend which columns to look at, by what they tell of environment or outcome."""
    determining: list[str] = []
    nearly: list[str] = []
    strong: list[str] = []
    deciding: list[str] = []
    missing: list[str] = []
    for association in associations:
        name = as_text(association.column)
        if association.determines:
            determining.append(name)
        elif association.is_nearly_determining:
            nearly.append(name)
        elif association.values >= _constants.STRONG:
            strong.append(name)
        if association.decided >= _constants.DECIDED_SHARE:
            deciding.append(name)
        is_told = association.determines or association.is_nearly_determining
        missingness = association.missingness or 0.0
        if missingness >= _constants.STRONG and not is_told:
            missing.append(name)
    return wording.advise_on_columns(
        determining=determining,
        nearly=nearly,
        strong=strong,
        deciding=deciding,
        missing=missing,
        has_rules=has_rules,
    )
