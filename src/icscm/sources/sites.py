"""Federated learning: sites, such as hospitals, keep their rows and return counts.

    agreement (columns, thresholds, levels, labels, environments)
        |                      |                      |
    site A: rows           site B: rows           site C: rows       stay where they are
        \\______ counts ________|______ counts ________/
                               |
                         SitesSource  -->  the same search, the same model

Rules are sent to the sites and counts come back. A site answers four kinds of queries and no
others; `docs/sites.md` describes what the answers reveal.

Numbers of columns, bins, outcomes and environments mean the same everywhere, since all sites code
their rows by one agreement. So the counts of the pooled rows are the sums of the sites' counts.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from numbers import Real
from threading import Lock
from traceback import format_exception_only
from typing import Any, Protocol

import numpy as np

from icscm._constants import COUNT_DTYPE, LARGEST_EXACT
from icscm._types import Array, BoolArray, CountArray, FloatArray, IntArray
from icscm.engine.binning import Binning, make_binning
from icscm.engine.coding import PieceCoder
from icscm.engine.counts import BinnedRule, CountCube, PatternTable, RulePath
from icscm.engine.patterns import add_patterns
from icscm.engine.pieces import Block, make_cubes, make_piece, plan_blocks
from icscm.exceptions import IcscmError, reject_unknown
from icscm.formatting import shorten_list
from icscm.sources.countable import Countable
from icscm.tables.coded import CodedTable, LevelBins
from icscm.tables.columns import Column, Level, Levels, Numbers, count_rows, read_column, sort_key
from icscm.tables.environments import encode_environments

# What to do about a site whose answers cannot be right.
_CHECK = "check its software, or omit it"
# Numbers beyond this are as good as infinite: no threshold is there.
_LARGEST_THRESHOLD = 1e308


@dataclass(frozen=True)
class Agreement:
    """Columns, thresholds, classes and environments of all sites; made by `make_agreement`.

    Parameters
    ----------
    binning : Binning
        The columns, and where they may be cut.
    classes : tuple
        The two outcomes, the positive one last.
    environments : tuple
        The names of all environments.

    Examples
    --------
    >>> from icscm.sources.sites import make_agreement
    >>> make_agreement({"age": [40, 60]}, classes=(0, 1), environments=("a", "b")).classes
    (0, 1)
    """

    binning: Binning
    classes: tuple[Any, Any]
    environments: tuple[Any, ...]

    @cached_property
    def blocks(self) -> list[Block]:
        """The columns in the order, and in the blocks, in which they are counted."""
        all_columns = np.arange(self.binning.n_features)
        return plan_blocks(self.binning, all_columns, len(self.environments))


def make_agreement(
    columns: Mapping[str, Sequence[Level]],
    *,
    classes: tuple[Any, Any],
    environments: Sequence[Any],
    missing: Collection[str] = (),
) -> Agreement:
    """Define columns, classes and environments of all sites, so that counts can be added up.

    Parameters
    ----------
    columns : mapping of str to sequence
        Columns by name, each with its thresholds (numbers) or its levels (text, booleans).
    classes : tuple
        The two outcomes, the positive one last.
    environments : sequence
        The names of all environments.
    missing : collection of str
        The columns in which values may be missing.

    Returns
    -------
    Agreement
        For `LocalSite` and `open_sites`.

    Raises
    ------
    IcscmError
        If a column has neither thresholds nor levels, `missing` names others, or labels repeat.

    Examples
    --------
    >>> agreed = make_agreement(
    ...     {"age": [40, 60], "smoker": ["no", "yes"]},
    ...     classes=("well", "ill"), environments=("north", "south"), missing=["age"],
    ... )
    >>> agreed.binning.find_edges(0), agreed.binning.levels[1].levels
    (array([40., 60.]), ('no', 'yes'))
    """
    reject_unknown(missing, columns, "missing names columns that were not agreed: ")
    edges: list[FloatArray] = []
    levels: dict[int, LevelBins] = {}
    for column, (name, cuts) in enumerate(columns.items()):
        values = _list_cuts(name, cuts)
        is_category = isinstance(values[0], str | bool)
        if is_category:
            # Levels are coded 0, 1, ... in their order, and cut between any two of them.
            bins = LevelBins(tuple(sorted(set(values), key=sort_key)))
            levels[column] = bins
            edges.append(np.arange(bins.n_bins - 1, dtype=np.float64))
        else:
            edges.append(np.unique(np.asarray(values, dtype=np.float64)))

    table = CodedTable(
        values=np.empty((0, len(columns))),  # an agreement has no rows
        names=tuple(columns),
        levels=levels,
        has_missing=np.array([name in missing for name in columns], dtype=np.bool_),
    )
    if len(set(classes)) != 2 or len(set(environments)) < len(environments):
        raise IcscmError("classes must be two distinct labels, and each environment be named once")
    return Agreement(make_binning(edges, table), classes, tuple(environments))


def _list_cuts(name: str, cuts: Any) -> list[Any]:
    """List the agreed thresholds or levels of a column; raise unless all are of one kind."""
    is_list = isinstance(cuts, Iterable) and not isinstance(cuts, str)
    listed = cuts if is_list else ()
    values = [cut.item() if isinstance(cut, np.generic) else cut for cut in listed]

    kinds = {_find_kind(value) for value in values}
    if kinds not in ({"text"}, {"boolean"}, {"number"}):  # none, several, or one that is unusable
        raise IcscmError(f"column {name!r} needs thresholds, or levels of one kind")
    return values


def _find_kind(value: Any) -> str:
    """Find the kind of a level, which is a text or a boolean, or of a threshold, a number."""
    if isinstance(value, str):
        return "text"
    if isinstance(value, bool):
        return "boolean"
    is_number = isinstance(value, Real)
    return "number" if is_number and abs(value) <= _LARGEST_THRESHOLD else "unusable"


class Site(Protocol):
    """The queries that a site answers.

    Implement it on your connection to a site, where a `LocalSite` computes the answers.

    Examples
    --------
    >>> import pandas as pd
    >>> from icscm.sources.sites import LocalSite, make_agreement
    >>> agreed = make_agreement({"age": [40]}, classes=(0, 1), environments=("a", "b"))
    >>> ages = pd.DataFrame({"age": [30, 70]})
    >>> site = LocalSite(ages, [0, 1], environments="a", agreement=agreed)
    >>> site.count_cube(rules=[], block=0).shape  # column, bin, outcome, environment
    (1, 2, 2, 2)
    """

    def count_totals(self) -> CountArray:
        """The site's rows by (outcome, environment).

        Returns
        -------
        array of int64
            The counts.
        """

    def count_cube(self, rules: Sequence[BinnedRule], block: int) -> CountArray:
        """Rows that satisfy all rules, by (column, bin, outcome, environment).

        Parameters
        ----------
        rules : sequence of BinnedRule
            Those chosen so far, or those on the way to a node of a tree.
        block : int
            Which of the agreement's blocks of columns to count.

        Returns
        -------
        array of int64
            The counts.
        """

    def find_same_coverage(
        self, rules: Sequence[BinnedRule], rule: BinnedRule, others: Sequence[BinnedRule]
    ) -> BoolArray:
        """Which of some rules cover the same rows, of those that satisfy all chosen ones.

        Parameters
        ----------
        rules : sequence of BinnedRule
            Those chosen so far.
        rule : BinnedRule
            The one to compare with.
        others : sequence of BinnedRule
            Those to be compared.

        Returns
        -------
        array of bool
            For each of the others whether it covers the same rows as `rule`.
        """

    def count_patterns(self, rules: Sequence[BinnedRule]) -> PatternTable:
        """The site's rows by the truth of each rule, outcome and environment.

        Parameters
        ----------
        rules : sequence of BinnedRule
            Any rules.

        Returns
        -------
        PatternTable
            The combinations that occur, and their counts.
        """


class LocalSite(Site):
    """The rows of one site, coded as agreed; answers the four kinds of queries, keeps no state.

    Parameters
    ----------
    X : frame
        A table with (at least) the agreed columns.
    y : array-like of shape (n_samples,)
        One of the agreed labels for each row.
    environments : array-like of shape (n_samples,) or label
        One label for each row, or a single label for the whole site.
    agreement : Agreement
        The agreement of all sites.

    Raises
    ------
    IcscmError
        If the rows hold columns, levels or labels that were not agreed on.

    Examples
    --------
    >>> import pandas as pd
    >>> from icscm.sources.sites import LocalSite, make_agreement
    >>> agreed = make_agreement({"age": [40, 60]}, classes=(0, 1), environments=("a", "b"))
    >>> ages = pd.DataFrame({"age": [30, 70]})
    >>> site = LocalSite(ages, [0, 1], environments="a", agreement=agreed)
    >>> site.count_totals().tolist()
    [[1, 0], [1, 0]]
    """

    def __init__(self, X: Any, y: Any, *, environments: Any, agreement: Agreement) -> None:
        n_rows = count_rows(X)
        is_one_for_all = isinstance(environments, tuple) or np.ndim(environments) == 0
        if is_one_for_all:
            environments = [environments] * n_rows

        self._piece = make_piece(
            code_columns(X, agreement.binning),
            _number_labels(y, n_rows, agreement.classes, what="y"),
            _number_labels(environments, n_rows, agreement.environments, what="environments"),
            len(agreement.environments),
            agreement.blocks,
        )

    def count_totals(self) -> CountArray:
        return self._piece.count_rows(self._piece.rows)

    def count_cube(self, rules: Sequence[BinnedRule], block: int) -> CountArray:
        return self._piece.count_block(self._piece.find_rows(rules), block)

    def find_same_coverage(
        self, rules: Sequence[BinnedRule], rule: BinnedRule, others: Sequence[BinnedRule]
    ) -> BoolArray:
        return self._piece.find_same_coverage(self._piece.find_rows(rules), rule, others)

    def count_patterns(self, rules: Sequence[BinnedRule]) -> PatternTable:
        return self._piece.count_patterns(rules)


@dataclass(frozen=True, eq=False)
class _SiteCounts:
    """What each site returned for a query of counts, and the sum over all sites.

    Only the sum is used; the counts of each site tell which of them is at fault if the sum is
    impossible.
    """

    of_sites: Sequence[CountArray]
    total: CountArray

    @classmethod
    def add_up(cls, of_sites: Sequence[CountArray]) -> "_SiteCounts":
        """Add up the counts of the sites."""
        return cls(of_sites, np.sum(of_sites, axis=0))

    def map(self, function: Callable[[CountArray], CountArray]) -> "_SiteCounts":
        """Apply a function to the counts of each site, and to the sum."""
        return _SiteCounts([function(counts) for counts in self.of_sites], function(self.total))


class SitesSource:
    """Rows of several sites: queries each site and adds up the answers.

    Answers are checked: type and shape of each, and that the sums can be counts of the same rows
    in every column. Only sums need to be right: sites may add masks that cancel.
    """

    notes: Sequence[str] = ()
    clusters = None
    rows = None
    shortlister = None

    def __init__(self, sites: Sequence[Site], agreement: Agreement) -> None:
        if not sites:
            raise IcscmError("no sites were given; give at least one")
        self.columns = agreement.binning
        self.classes: Sequence[Any] = agreement.classes
        self.environments: Sequence[Any] = agreement.environments
        self._sites = sites
        self._blocks = agreement.blocks
        # A connection to a site may not be made for several threads.
        self._lock = Lock()

    def count_rows(self, path: RulePath = ()) -> CountArray:
        """Count the rows of a path by (outcome, environment).

        There is no query for that. But every row of the path is in one bin of each column, so any
        cube will do, and the smallest is the quickest.
        """
        if not path:
            return self._all_rows.total.copy()
        if not self._blocks:  # no column can be cut: each rule is true of all rows, or of none
            is_true_of_all = all(rule.satisfied[0] for rule in path)
            return self._all_rows.total * is_true_of_all

        n_cells = [block.count_cells(len(self.environments)) for block in self._blocks]
        smallest_block = int(np.argmin(n_cells))
        cubes = self._count_block(path, smallest_block)
        rows = cubes.map(count_rows_of_cube)
        self._check_cubes("count_cube", cubes, rows=rows)
        return rows.total

    def count_cubes(self, path: RulePath = ()) -> Iterator[CountCube]:
        """Count the rows of a path by (column, bin, outcome, environment)."""
        return make_cubes(self._blocks, self._count_blocks(path))

    def find_same_coverage(
        self, path: RulePath, rule: BinnedRule, others: Sequence[BinnedRule]
    ) -> BoolArray:
        """Find which of the other rules cover exactly the rows of a path that `rule` covers."""
        is_same_at_sites = self._ask(
            "find_same_coverage",
            lambda site: site.find_same_coverage(list(path), rule, others),
            read=partial(_read_array, shape=(len(others),), kinds="b"),
        )
        return np.asarray(np.logical_and.reduce(is_same_at_sites))

    def count_patterns(self, rules: Sequence[BinnedRule]) -> PatternTable:
        """Count all rows by the truth of each rule: which combinations occur, and how often."""

        def read(answer: PatternTable) -> PatternTable:
            n_patterns = len(answer.patterns)
            patterns = _read_array(answer.patterns, (n_patterns, len(rules)), "b")
            counts = _read_array(answer.counts, (n_patterns, 2, len(self.environments)))
            return PatternTable(patterns, counts)

        tables = self._ask(
            "count_patterns", lambda site: site.count_patterns(list(rules)), read=read
        )
        summed_table = add_patterns(tables)

        # Each row has one pattern, as it is in one bin of a column. So counts by (pattern, outcome,
        # environment) are checked as the cube of a single column, with a first axis of length 1.
        cubes = _SiteCounts(
            of_sites=[table.counts[np.newaxis] for table in tables],
            total=summed_table.counts[np.newaxis],
        )
        self._check_cubes("count_patterns", cubes, rows=self._all_rows)
        return summed_table

    @cached_property
    def _all_rows(self) -> _SiteCounts:
        """All rows by (outcome, environment); each site is asked once."""
        answers = self._ask(
            "count_totals",
            lambda site: site.count_totals(),
            read=partial(_read_array, shape=(2, len(self.environments))),
        )
        rows = _SiteCounts.add_up(answers)
        self._reject_impossible(
            "count_totals",
            is_possible_at_sites=[_are_counts(counts) for counts in rows.of_sites],
            is_sum_possible=_are_counts(rows.total),
        )
        return rows

    def _count_blocks(self, path: RulePath) -> Iterator[CountArray]:
        """Count the cube of each block, over all sites: every column has the same rows."""
        rows = None if path else self._all_rows
        for block in range(len(self._blocks)):
            cubes = self._count_block(path, block)
            if rows is None:
                rows = cubes.map(count_rows_of_cube)
            self._check_cubes("count_cube", cubes, rows=rows)
            yield cubes.total

    def _count_block(self, path: RulePath, block: int) -> _SiteCounts:
        """Count the cube of one block at each site, by (column, bin, outcome, environment)."""
        n_columns = len(self._blocks[block].columns)
        shape = (n_columns, self._blocks[block].n_bins, 2, len(self.environments))
        cubes = self._ask(
            "count_cube",
            lambda site: site.count_cube(list(path), block),
            read=partial(_read_array, shape=shape),
        )
        return _SiteCounts.add_up(cubes)

    def _check_cubes(self, query: str, cubes: _SiteCounts, *, rows: _SiteCounts) -> None:
        """Raise unless the summed cube can be one of these rows, which must be some of all rows."""
        counts_of_sites = zip(cubes.of_sites, rows.of_sites, self._all_rows.of_sites, strict=True)
        self._reject_impossible(
            query,
            is_possible_at_sites=[
                _is_cube_possible(cube, rows=own_rows, all_rows=all_rows)
                for cube, own_rows, all_rows in counts_of_sites
            ],
            is_sum_possible=_is_cube_possible(
                cubes.total, rows=rows.total, all_rows=self._all_rows.total
            ),
        )

    def _reject_impossible(
        self, query: str, *, is_possible_at_sites: Sequence[bool], is_sum_possible: bool
    ) -> None:
        """Raise if a sum over sites is impossible; names the sites at fault, where that is clear.

        Sites may have added masks that cancel in the sum. Then the counts of all of them look
        impossible, and any may be at fault.
        """
        if is_sum_possible:
            return
        suspects = [
            f"site {number}"
            for number, is_possible in enumerate(is_possible_at_sites, start=1)
            if not is_possible
        ]
        is_clear = len(suspects) == 1 or 0 < len(suspects) < len(self._sites)
        culprits = shorten_list(suspects) if is_clear else "the sum of the sites"
        raise IcscmError(
            f"{culprits} returned impossible counts for {query}: negative, or of different rows by "
            f"column; {_CHECK}"
        )

    def _ask(
        self, query: str, ask_site: Callable[[Site], Any], *, read: Callable[[Any], Any]
    ) -> list[Any]:
        """Ask all sites and return their answers, parsed by `read`.

        Sites are software of others: answers and errors may be of any kind, and all errors are
        raised as `IcscmError` with the number of the site.
        """
        answers = []
        for number, site in enumerate(self._sites, start=1):
            try:
                with self._lock:
                    answer = ask_site(site)
            except Exception as error:
                raise IcscmError(
                    f"site {number} failed to answer {query} ({_describe_error(error)}); "
                    "check that it is running, then fit again"
                ) from error
            try:
                answers.append(read(answer))
            except Exception as error:
                raise IcscmError(
                    f"site {number} returned an unexpected answer to {query}: "
                    f"{_describe_error(error)}; {_CHECK}"
                ) from error
        return answers


def _describe_error(error: Exception) -> str:
    """Describe an error of any kind in one line: its type and its message."""
    last_line = format_exception_only(error)[-1]
    return " ".join(last_line.split())


def count_rows_of_cube(cube: CountArray) -> CountArray:
    """Count the rows of a cube by (outcome, environment): every column has them all."""
    first_column = cube[0]
    counts: CountArray = first_column.sum(axis=0)
    return counts


def _is_cube_possible(cube: CountArray, *, rows: CountArray, all_rows: CountArray) -> bool:
    """Return whether a cube can be one of these rows: each column has all of them.

    The cube is by (column, bin, outcome, environment), rows are by (outcome, environment).
    """
    has_rows = (cube.sum(axis=1) == rows).all()
    are_some_of_all = (rows <= all_rows).all()
    return bool(has_rows and are_some_of_all) and _are_counts(cube)


def _are_counts(counts: Array) -> bool:
    """Return whether no count is negative or impossibly large."""
    return bool((counts >= 0).all() and np.sum(counts, dtype=np.float64) <= LARGEST_EXACT)


def _read_array(answer: Any, shape: tuple[int, ...], kinds: str = "iu") -> Array:
    """Return an answer as an array of whole numbers, or of booleans ("b"), of this shape.

    Raises ValueError for anything else.
    """
    array = np.asarray(answer)
    if array.dtype.kind not in kinds or array.shape != shape:
        raise ValueError(f"{array.dtype} of shape {array.shape}, but {shape} was expected")
    return array.astype(np.bool_ if kinds == "b" else COUNT_DTYPE)


def open_sites(sites: Sequence[Site], agreement: Agreement) -> Countable[SitesSource]:
    """Make the counts of federated sites usable; the model equals that of the pooled rows.

    Parameters
    ----------
    sites : sequence of Site
        The sites, each a `LocalSite` or your own implementation of `Site`.
    agreement : Agreement
        The agreement of all sites.

    Returns
    -------
    Countable
        The rows, for `fit_counts` of a learner.

    Raises
    ------
    IcscmError
        If there is no site.

    Examples
    --------
    >>> import pandas as pd
    >>> from icscm import ICSCMClassifier
    >>> from icscm.sources.sites import LocalSite, make_agreement, open_sites
    >>> agreement = make_agreement(
    ...     {"age": [40, 60]}, classes=("well", "ill"), environments=("north", "south")
    ... )
    >>> ages = pd.DataFrame({"age": [30, 50, 70, 80] * 50})
    >>> ill = ["well", "well", "ill", "ill"] * 50
    >>> sites = [
    ...     LocalSite(ages, ill, environments=name, agreement=agreement)
    ...     for name in ("north", "south")
    ... ]
    >>> print(ICSCMClassifier().fit_counts(open_sites(sites, agreement)).model_)
    age > 60
    """
    columns = _describe_columns(agreement)
    return Countable(
        SitesSource(sites, agreement),
        table=columns,
        names=columns.names,
        classes=np.array(agreement.classes),
        n_features=columns.n_columns,
        is_binned=False,
    )


def _describe_columns(agreement: Agreement) -> CodedTable:
    """Describe the agreed columns by a table without rows: these never leave their sites."""
    binning = agreement.binning
    names = _read_names(binning)
    return CodedTable(
        values=np.empty((0, len(names))),
        names=names,
        levels=binning.levels,
        has_missing=binning.has_missing,
    )


def code_columns(X: Any, binning: Binning) -> Array:
    """Return the bin of each value of the agreed columns; raise if one is not as agreed."""
    columns = []
    for position, name in enumerate(_read_names(binning)):
        column = read_column(X, position, name)
        if position not in binning.levels:
            column = _as_numbers_if_empty(column)
        _check_column(column, binning, position=position, name=name)
        columns.append(column)
    return PieceCoder(binning, range(len(columns))).code(columns)


def _read_names(binning: Binning) -> tuple[str, ...]:
    """Return the names of the agreed columns."""
    assert binning.names is not None, "make_agreement takes columns by name"
    return binning.names


def _as_numbers_if_empty(column: Column) -> Column:
    """Return a column as numbers if it holds nothing but missing values: it may be read as text."""
    if isinstance(column, Levels) and not column.levels:
        return Numbers(np.zeros(len(column.codes)), column.missing)
    return column


def _check_column(column: Column, binning: Binning, *, position: int, name: str) -> None:
    """Raise unless a column is of the agreed kind, with missing values and levels as agreed."""
    is_category = position in binning.levels
    if not isinstance(column, Levels if is_category else Numbers):
        wanted = "categories" if is_category else "numbers"
        raise IcscmError(f"column {name!r} must hold {wanted}, as agreed, but does not")

    if column.missing is not None and not binning.has_missing[position]:
        n_missing = int(column.missing.sum())
        raise IcscmError(
            f"column {name!r} is missing in {n_missing:,} rows, which was not agreed; "
            "name it in make_agreement(missing=...)"
        )

    if isinstance(column, Levels):
        agreed_keys = {sort_key(level) for level in binning.levels[position].levels}
        unknown = [level for level in column.levels if sort_key(level) not in agreed_keys]
        reject_unknown(unknown, (), f"column {name!r} holds levels that were not agreed: ")


def _number_labels(values: Any, n_rows: int, agreed: Sequence[Any], *, what: str) -> IntArray:
    """Number each row's class, or environment, by its position among those agreed."""
    code_of_row, labels = encode_environments(values, n_rows, what=what)
    position_of_label = {label: position for position, label in enumerate(agreed)}
    reject_unknown(labels, position_of_label, f"{what} holds labels that were not agreed: ")
    position_of_code = np.array([position_of_label[label] for label in labels], dtype=np.int64)
    return position_of_code[code_of_row]
