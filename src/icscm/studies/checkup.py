"""A look at the environments before fitting: who is there, what gives them away, what can be seen.

Everything is computed from counts by (value, label, environment); nothing is learned.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from icscm._constants import BLIND_DIFFERENCE, SPARSE_ENVIRONMENT
from icscm._repr import Display, DisplayMixin
from icscm._types import FloatArray
from icscm.exceptions import Parameter, Words
from icscm.formatting import as_text, shorten_list
from icscm.model.plain import make_plain
from icscm.parameters import LEVEL, check_value
from icscm.report.words import describe_rates
from icscm.sources.countable import BinningConfig
from icscm.stats.independence import make_test
from icscm.stats.verdicts import compute_detectable
from icscm.tables.coded import CodedTable
from icscm.tables.column_checks import find_suspicious
from icscm.tables.columns import count_rows
from icscm.tables.labels import check_labels, check_several, encode_environments, take_environments
from icscm.tables.parsing import ParsedTable, read_table

Codes = NDArray[np.int64]

# Bins of a column of numbers, and levels of a category that are looked at one by one.
N_BINS = 16
# Cramer's V from which a column is said to give the environment away: a large effect by
# Cohen's convention.
STRONG = 0.5
# Shares of the rows for which the detectable difference is computed: all, and leaves of a half
# and a tenth.
LEAF_SHARES = (1.0, 0.5, 0.1)
# Rows of the middle environment below which there are too many environments for the rows.
FEW_ROWS = 30
# With so many rows that a difference this small would be seen in a leaf of a tenth, tests
# reject differences that matter to nobody.
TRIVIAL_DIFFERENCE = 0.01


@dataclass(frozen=True)
class EnvironmentSummary:
    """One environment.

    Parameters
    ----------
    label : object
        Of the environment.
    n_rows, n_positive : int
        Rows, and those of them with a positive label.
    rate : float
        Share of positive labels.
    rate_interval : tuple of two floats
        Wilson's interval of the rate, 95 %.
    missing : float
        Share of the cells that are missing.
    detectable : float or None
        Smallest difference of its rate from that of all others together that would be seen with
        80 % power; None if there is none.
    """

    label: Any
    n_rows: int
    n_positive: int
    rate: float
    rate_interval: tuple[float, float]
    missing: float
    detectable: float | None


@dataclass(frozen=True)
class SparseCell:
    """A class with few rows in an environment, or none."""

    environment: Any
    label: Any
    n_rows: int


@dataclass(frozen=True)
class Giveaway:
    """How much one column tells of the environment.

    Parameters
    ----------
    column : str or int
        Its name or position.
    values : float
        Cramer's V of its values against the environment, where they are present.
    missingness : float or None
        Cramer's V of whether it is missing against the environment; None if it never is.
    is_copy : bool
        Whether each value belongs to one environment and each environment has one value.
    """

    column: str | int
    values: float
    missingness: float | None
    is_copy: bool

    @property
    def strength(self) -> float:
        """The larger of the two."""
        return max(self.values, self.missingness or 0.0)


@dataclass(frozen=True)
class Detectable:
    """What could be seen in a leaf that holds this share of the rows of each environment."""

    share: float
    n_rows: int
    difference: float | None


@dataclass(frozen=True, repr=False)
class CheckUp(DisplayMixin):
    """What `check_environments` found.

    Parameters
    ----------
    n_rows, n_columns : int
        Size of the table.
    classes : tuple of two labels
        The second is the positive one.
    alpha : float
        Level of the tests.
    p_value : float
        Of the test whether the label is independent of the environment in the whole table.
    environments : tuple of EnvironmentSummary
        In the order of their labels.
    sparse : tuple of SparseCell
        Classes with fewer than five rows in an environment.
    giveaways : tuple of Giveaway
        All columns, the most telling first.
    left_out : dict
        Columns that `fit` will leave out, and why.
    detectable : tuple of Detectable
        What could be seen in the whole table and in smaller leaves.
    advice : tuple of str
        Plain sentences.
    """

    n_rows: int
    n_columns: int
    classes: tuple[Any, Any]
    alpha: float
    p_value: float
    environments: tuple[EnvironmentSummary, ...]
    sparse: tuple[SparseCell, ...]
    giveaways: tuple[Giveaway, ...]
    left_out: dict[str | int, str]
    detectable: tuple[Detectable, ...]
    advice: tuple[str, ...] = ()

    @property
    def strong_giveaways(self) -> tuple[Giveaway, ...]:
        """Columns that give the environment away."""
        return tuple(each for each in self.giveaways if each.strength >= STRONG)

    def _display(self) -> Display:
        """The environments; above them all advice."""
        rows = [
            (as_text(each.label), f"{each.n_rows:,}", f"{each.rate:.1%}", f"{each.missing:.1%}")
            for each in self.environments
        ]
        told = f"{self.n_rows:,} rows. {' '.join(self.advice)}".strip()
        return Display(told, ("environment", ">rows", ">positive", ">missing"), rows)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values.

        Returns
        -------
        dict
            As JSON knows them; labels of other types are text.
        """
        plain: dict[str, Any] = make_plain(asdict(self), str)
        return plain


def check_environments(
    X: Any,
    y: Any,
    environments: Any,
    *,
    alpha: float = 0.05,
    keep_columns: Any = None,
    words: Words = str,
) -> CheckUp:
    """Look at the environments of a table before fitting.

    A column's association with the environment is Cramer's V with Bergsma's correction: 0 when
    unrelated, 1 when one determines the other. Numbers of many values are cut into 16 bins at
    quantiles, of categories the 15 most frequent levels are told apart. Values are compared where
    they are present; whether they are is looked at apart.

    Parameters
    ----------
    X, y, environments : array-like
        As for `ICSCMClassifier.fit`.
    alpha : float, default=0.05
        Level of the tests whose power is computed.
    keep_columns : "all", str or sequence of str, optional
        Columns that are asked for, as for the learners.
    words : callable, optional
        What to call parameters in advice, if not as Python does.

    Returns
    -------
    CheckUp
        What was found, and advice.

    Raises
    ------
    IcscmError
        If the table cannot be learned from, or has one environment only.

    Examples
    --------
    >>> from icscm.datasets import make_conjunction
    >>> data = make_conjunction(random_state=1)
    >>> found = check_environments(data.X, data.y, data.environments)
    >>> [(each.label, each.n_rows, round(each.rate, 2)) for each in found.environments]
    [(0, 10000, 0.07), (1, 10000, 0.17)]
    """
    check_value("alpha", alpha, LEVEL)
    X, environments = take_environments(X, environments)
    n_rows = count_rows(X)
    labels, classes = check_labels(y, n_rows)
    codes, names = encode_environments(environments, n_rows)
    check_several(names)
    table = _count(labels, codes, 2, len(names))
    intake = read_table(X)
    left_out = _find_left_out(intake, labels, codes, keep_columns)
    coded = intake.code(N_BINS - 1, None)
    n_missing, giveaways = np.zeros(len(names)), []
    for name, values in _list_columns(coded):
        n_missing += np.bincount(codes[np.isnan(values)], minlength=len(names))
        if name not in left_out:
            giveaways.append(_measure(name, values, codes, len(names)))
    found = make_checkup(table, names, classes.tolist(), alpha, n_missing / coded.n_columns)
    return add_advice(
        replace(
            found,
            n_columns=coded.n_columns,
            giveaways=tuple(sorted(giveaways, key=lambda each: -each.strength)),
            left_out=left_out,
        ),
        words,
    )


def make_checkup(
    table: Codes, names: Sequence[Any], classes: list[Any], alpha: float, missing: FloatArray
) -> CheckUp:
    """What counts by label and environment tell."""
    return CheckUp(
        n_rows=int(table.sum()),
        n_columns=0,
        classes=(classes[0], classes[1]),
        alpha=alpha,
        p_value=float(make_test("chi2").compute_p_values(table[None])[0]),
        environments=_summarise(table, names, alpha, missing),
        sparse=tuple(
            SparseCell(names[k], classes[label], int(table[label, k]))
            for label, k in np.argwhere(table < SPARSE_ENVIRONMENT).tolist()
        ),
        giveaways=(),
        left_out={},
        detectable=tuple(_describe_leaf(table, share, alpha) for share in LEAF_SHARES),
    )


def add_advice(found: CheckUp, words: Words) -> CheckUp:
    """What was found, and what to make of it."""
    sizes, power = _advise_on_sizes(found), _advise_on_power(found, words)
    return replace(found, advice=(*sizes, *power, *_advise_on_columns(found, words)))


def _count(first: Codes, second: Codes, n_first: int, n_second: int) -> Codes:
    """How often each pair of codes occurs, (first, second)."""
    pairs = np.bincount(first * n_second + second, minlength=n_first * n_second)
    return pairs.astype(np.int64).reshape(n_first, n_second)


# --- environments -----------------------------------------------------------


def _summarise(
    table: Codes, names: Sequence[Any], alpha: float, missing: FloatArray
) -> tuple[EnvironmentSummary, ...]:
    """One summary each; `missing` counts the missing values of an environment, per column."""
    sizes = table.sum(axis=0)
    others = table.sum(axis=1, keepdims=True) - table
    against = np.stack((table.T, others.T), axis=2)  # (environment, label, it or the others)
    rates = describe_rates(table[1].tolist(), sizes.tolist())
    seen = _find_detectable(against, alpha)
    found = []
    for k, share in enumerate((missing / sizes).tolist()):
        n_rows, n_positive, rate, (low, high) = rates[k].values()
        told = names[k], n_rows, n_positive, rate, (low, high), share, seen[k]
        found.append(EnvironmentSummary(*told))
    return tuple(found)


def _find_detectable(tables: Codes, alpha: float) -> list[float | None]:
    """Of each table the smallest difference that would be seen; None if there is none."""
    found = compute_detectable(tables, alpha)
    return [float(each) if np.isfinite(each) else None for each in found]


def _describe_leaf(table: Codes, share: float, alpha: float) -> Detectable:
    leaf = np.floor(table * share).astype(np.int64)
    return Detectable(share, int(leaf.sum()), _find_detectable(leaf[None], alpha)[0])


# --- columns ----------------------------------------------------------------


def _list_columns(coded: CodedTable) -> Iterator[tuple[str | int, FloatArray]]:
    """Each column but dates as numbers, NaN where missing; of a category rare levels are one."""
    names: Sequence[str | int] = coded.names or range(coded.n_columns)
    for j, name in enumerate(names):
        if j not in coded.dropped:
            column: Any = coded.values[:, [j]]
            dense = column.toarray() if issparse(column) else column
            yield name, dense.ravel().astype(np.float64)


def _measure(name: str | int, values: FloatArray, codes: Codes, n_environments: int) -> Giveaway:
    missing = np.isnan(values)
    bins = _bin(values[~missing])
    table = _count(bins, codes[~missing], N_BINS, n_environments)
    missingness = None
    if missing.any():
        missingness = compute_cramers_v(_count(missing * 1, codes, 2, n_environments))
    return judge_column(name, table, missingness)


def judge_column(name: str | int, table: Codes, missingness: float | None = None) -> Giveaway:
    """How much a column tells, by counts of (value, environment)."""
    of_value, of_environment = (table > 0).sum(axis=1), (table > 0).sum(axis=0)
    is_pure = (of_value <= 1).all() and (of_environment == 1).all()
    is_copy = bool(is_pure and of_value.sum() == table.shape[1])
    return Giveaway(name, compute_cramers_v(table), missingness, is_copy)


def _bin(values: FloatArray) -> Codes:
    """The bin of each value: its own, or between quantiles where there are too many."""
    edges = np.unique(values)
    if len(edges) > N_BINS:
        shares = np.arange(1, N_BINS) / N_BINS
        edges = np.unique(np.quantile(values, shares, method="inverted_cdf"))
    return np.searchsorted(edges, values).astype(np.int64)


def compute_cramers_v(table: Codes) -> float:
    """Association of rows and columns of a table of counts, 0 to 1, Bergsma's correction applied.

    Without the correction, columns of many values would seem to tell of the environment by chance.

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


def _find_left_out(
    intake: ParsedTable, labels: Codes, codes: Codes, keep: Any
) -> dict[str | int, str]:
    """The columns that the learners would leave out."""
    if intake.whole is None or (isinstance(keep, str) and keep == "all"):
        return {}  # arrays are taken as they are
    table = intake.code(BinningConfig().max_thresholds, None)
    names: Sequence[str | int] = intake.names or range(table.n_columns)
    found = find_suspicious(table, labels, codes, intake.whole)
    return {names[j]: why for j, why in found.items() if names[j] not in (keep or ())}


# --- advice -----------------------------------------------------------------


def _advise_on_sizes(found: CheckUp) -> Iterator[str]:
    sparse = list(dict.fromkeys(as_text(cell.environment) for cell in found.sparse))
    if sparse:
        yield (
            f"Merge or leave out {shorten_list(sparse)}: fewer than {SPARSE_ENVIRONMENT} rows of a "
            "class say nothing about its rate."
        )
    sizes = sorted(each.n_rows for each in found.environments)
    middle = sizes[len(sizes) // 2]
    if len(sizes) > 2 and middle < FEW_ROWS:
        yield (
            f"Group the {len(sizes)} environments, say by region or kind: half of them have "
            f"{middle} rows or fewer, and the tests' power is spread over all."
        )
    if sizes[-1] > 0.95 * found.n_rows:
        yield (
            f"One environment holds {sizes[-1] / found.n_rows:.1%} of the rows: what the others "
            "can contradict is little."
        )


def _advise_on_power(found: CheckUp, words: Words) -> Iterator[str]:
    whole, _, tenth = found.detectable
    if whole.difference is None or whole.difference > BLIND_DIFFERENCE:
        yield (
            f"Rates {BLIND_DIFFERENCE:.0%} apart would likely go unseen even in the whole table: "
            "'not refused' will mean little. Get more rows, or fewer and larger environments."
        )
    elif tenth.difference is not None and tenth.difference < TRIVIAL_DIFFERENCE:
        yield (
            f"Even in a tenth of the rows a difference of {tenth.difference:.1%} would be seen: "
            "nearly every rule may be refused for differences too small to matter. Try a smaller "
            f"{words(Parameter('alpha'))} (or auto), or "
            f"{words(Parameter('criterion', 'equivalence'))} with a margin that you can stand."
        )
    if found.p_value > found.alpha:
        yield (
            "The label's rate does not differ between the environments as far as can be told "
            f"(p {found.p_value:.2g}): they put few rules to the test."
        )


def _advise_on_columns(found: CheckUp, words: Words) -> Iterator[str]:
    copies = [each for each in found.giveaways if each.is_copy]
    by_values = [g for g in found.giveaways if g.values >= STRONG and not g.is_copy]
    by_missing = [g for g in found.giveaways if (g.missingness or 0) >= STRONG]
    if copies:
        yield f"Leave out {_name(copies)}: the environment under another name."
    if by_values:
        yield (
            f"{_name(by_values)} tell the environments apart by their values. That is no error, "
            "but a rule on them may be a rule on the environment; drop them if it is."
        )
    if by_missing:
        yield (
            f"Whether {_name(by_missing)} is missing follows the environment: what a site did not "
            "measure says more of the site than of the case. Such rules are tested like any "
            f"other; {words(Parameter('missing', 'separate'))} keeps missing values out of other "
            "rules; or drop the columns."
        )


def _name(found: Sequence[Giveaway]) -> str:
    return shorten_list([as_text(each.column) for each in found])
