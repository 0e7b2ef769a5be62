"""Federated learning: sites, such as hospitals, keep their rows and return counts.

    agreement (columns, thresholds, levels, labels, environments)
        |                      |                      |
    site A: rows           site B: rows           site C: rows       stay where they are
        \\______ counts ________|______ counts ________/
                               |
                         SitesSource  -->  the same search, the same model

Rules are sent to the sites and counts come back. A site answers four kinds of queries and no
others; `docs/sites.md` describes what the answers reveal.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from numbers import Real
from threading import RLock
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


@dataclass(frozen=True)
class Agreement:
    """Columns, thresholds and labels common to all sites; made by `make_agreement`.

    Parameters
    ----------
    binning : Binning
        The columns, and where they may be cut.
    classes : tuple
        The two labels, the positive one last.
    environments : tuple
        The labels of all environments.

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
        """The features in the order, and in the blocks, in which they are counted."""
        every = np.arange(self.binning.n_features)
        return plan_blocks(self.binning, every, len(self.environments))


def make_agreement(
    columns: Mapping[str, Sequence[Level]],
    *,
    classes: tuple[Any, Any],
    environments: Sequence[Any],
    missing: Collection[str] = (),
) -> Agreement:
    """Define the columns and labels common to all sites, so that their counts can be added up.

    Parameters
    ----------
    columns : mapping of str to sequence
        Columns by name, each with its thresholds (numbers) or its levels (text, booleans).
    classes : tuple
        The two labels, the positive one last.
    environments : sequence
        The labels of all environments.
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
    for j, (name, cuts) in enumerate(columns.items()):
        listed = cuts if isinstance(cuts, Iterable) and not isinstance(cuts, str) else ()
        cuts = [each.item() if isinstance(each, np.generic) else each for each in listed]
        kinds = {
            type(v) if isinstance(v, str | bool) else isinstance(v, Real) and abs(v) <= 1e308
            for v in cuts
        }
        if kinds not in ({str}, {bool}, {True}):
            raise IcscmError(f"column {name!r} needs thresholds, or levels of one kind")
        if isinstance(cuts[0], str | bool):
            levels[j] = LevelBins(tuple(sorted(set(cuts), key=sort_key)))
            edges.append(np.arange(levels[j].n_bins - 1, dtype=np.float64))
        else:
            edges.append(np.unique(np.asarray(cuts, dtype=np.float64)))
    has_missing = np.array([name in missing for name in columns], dtype=np.bool_)
    table = CodedTable(np.empty((0, len(columns))), tuple(columns), levels, has_missing)
    if len(set(classes)) != 2 or len(set(environments)) < len(environments):
        raise IcscmError("classes must be two distinct labels, and each environment be named once")
    return Agreement(make_binning(edges, table), classes, tuple(environments))


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
    >>> site.count_cube(rules=[], block=0).shape  # feature, bin, label, environment
    (1, 2, 2, 2)
    """

    def count_totals(self) -> CountArray:
        """The site's samples by (label, environment).

        Returns
        -------
        array of int64
            The counts.
        """

    def count_cube(self, rules: Sequence[BinnedRule], block: int) -> CountArray:
        """Samples that satisfy all rules, by (feature, bin, label, environment).

        Parameters
        ----------
        rules : sequence of BinnedRule
            Those chosen so far, or those on the way to a node of a tree.
        block : int
            Which of the agreement's blocks of features to count.

        Returns
        -------
        array of int64
            The counts.
        """

    def find_same_coverage(
        self, rules: Sequence[BinnedRule], rule: BinnedRule, others: Sequence[BinnedRule]
    ) -> BoolArray:
        """Which of some rules cover the same samples, of those that satisfy all chosen ones.

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
            For each of the others whether it covers the same samples as `rule`.
        """

    def count_patterns(self, rules: Sequence[BinnedRule]) -> PatternTable:
        """The site's samples by the truth of each rule, label and environment.

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
        if isinstance(environments, tuple) or np.ndim(environments) == 0:
            environments = [environments] * n_rows
        labels = _find_numbers(y, n_rows, agreement.classes, "y")
        numbers = _find_numbers(environments, n_rows, agreement.environments, "environments")
        codes, n_environments = code_columns(X, agreement.binning), len(agreement.environments)
        self._piece = make_piece(codes, labels, numbers, n_environments, agreement.blocks)

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


class SitesSource:
    """A federated count source: queries each site and adds up the answers.

    Answers are checked: type and shape of each, and that the sums can be counts of the same samples
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
        self._lock = RLock()

    @cached_property
    def _totals(self) -> list[CountArray]:
        """The samples of each site, by (label, environment), and of all at the end."""
        read = partial(_read_array, shape=(2, len(self.environments)))
        answers = self._ask("count_totals", read)
        totals = [*answers, np.sum(answers, axis=0)]
        self._check("count_totals", [not _are_counts(each) for each in totals])
        return totals

    def count_rows(self, path: RulePath = ()) -> CountArray:
        """Count the rows of a path by (outcome, environment), from those in the smallest cube."""
        if not path:
            return self._totals[-1].copy()
        if not self._blocks:  # no column can be cut: each rule is true of all rows, or of none
            is_all = all(rule.satisfied[0] for rule in path)
            return self._totals[-1] * is_all
        n_environments = len(self.environments)
        sizes = [block.count_cells(n_environments) for block in self._blocks]
        cubes = self._count_site_cubes(path, int(np.argmin(sizes)))
        self._check_cubes("count_cube", cubes, [cube[0].sum(axis=0) for cube in cubes])
        counts: CountArray = cubes[-1][0].sum(axis=0)
        return counts

    def count_cubes(self, path: RulePath = ()) -> Iterator[CountCube]:
        """Count the rows of a path by (column, bin, outcome, environment)."""
        return make_cubes(self._blocks, self._count_cubes(path))

    def find_same_coverage(
        self, path: RulePath, rule: BinnedRule, others: Sequence[BinnedRule]
    ) -> BoolArray:
        """Find which of the other rules cover exactly the rows of a path that `rule` covers."""
        read = partial(_read_array, shape=(len(others),), kinds="b")
        answers = self._ask("find_same_coverage", read, list(path), rule, others)
        return np.asarray(np.logical_and.reduce(answers))

    def count_patterns(self, rules: Sequence[BinnedRule]) -> PatternTable:
        def read(answer: PatternTable) -> PatternTable:
            shape = len(answer.patterns), 2, len(self.environments)
            patterns = _read_array(answer.patterns, (len(answer.patterns), len(rules)), "b")
            return PatternTable(patterns, _read_array(answer.counts, shape))

        tables = self._ask("count_patterns", read, list(rules))
        added = add_patterns(tables)
        cubes = [table.counts[np.newaxis] for table in [*tables, added]]
        self._check_cubes("count_patterns", cubes, self._totals)
        return added

    def _count_cubes(self, path: RulePath) -> Iterator[CountArray]:
        """Count the cube of each block, over all sites: every column has the same rows."""
        totals = None if path else self._totals
        for number in range(len(self._blocks)):
            cubes = self._count_site_cubes(path, number)
            totals = totals or [cube[0].sum(axis=0) for cube in cubes]
            self._check_cubes("count_cube", cubes, totals)
            yield cubes[-1]

    def _count_site_cubes(self, path: RulePath, number: int) -> list[CountArray]:
        """Count the cube of one block at each site; the last one is the sum over all sites."""
        features, n_bins, _ = self._blocks[number]
        shape = len(features), n_bins, 2, len(self.environments)
        read = partial(_read_array, shape=shape)
        cubes = self._ask("count_cube", read, list(path), number)
        return [*cubes, np.sum(cubes, axis=0)]

    def _check_cubes(self, query: str, cubes: Sequence[Array], samples: Sequence[Array]) -> None:
        """Raise unless each feature of the last cube, the sum of the others, has these samples."""
        faults = [
            not _are_counts(cube) or (cube.sum(axis=1) != own).any() or (own > totals).any()
            for cube, own, totals in zip(cubes, samples, self._totals, strict=True)
        ]
        self._check(query, faults)

    def _check(self, query: str, faults: Sequence[Any]) -> None:
        """Raise if the sum, which comes last, is wrong; names the wrong sites, unless all are."""
        if faults[-1]:
            names = [f"site {number}" for number, fault in enumerate(faults[:-1], start=1) if fault]
            is_clear = len(names) in range(1, max(2, len(self._sites)))
            who = shorten_list(names) if is_clear else "the sum of the sites"
            what = f"{who} returned impossible counts for {query}: negative, or of different"
            raise IcscmError(f"{what} samples by column; {_CHECK}")

    def _ask(self, query: str, read: Callable[[Any], Any], *arguments: Any) -> list[Any]:
        """The answers of all sites, parsed by `read`; raises with the site that fails."""
        answers = []
        for number, site in enumerate(self._sites, start=1):
            why = f"failed to answer {query} ({{}}); check that it is running, then fit again"
            try:
                with self._lock:
                    answer = getattr(site, query)(*arguments)
                why = f"returned an unexpected answer to {query}: {{}}; {_CHECK}"
                answers.append(read(answer))
            except Exception as error:  # answers and errors may be of any kind
                text = " ".join(format_exception_only(error)[-1].split())
                raise IcscmError(f"site {number} {why.format(text)}") from error
        return answers


def _are_counts(counts: Array) -> bool:
    """Whether no count is negative or impossibly large."""
    return bool((counts >= 0).all() and np.sum(counts, dtype=np.float64) <= LARGEST_EXACT)


def _read_array(answer: Any, shape: tuple[int, ...], kinds: str = "iu") -> Array:
    """An answer as an array of whole numbers, or of booleans, of this shape; else ValueError."""
    found = np.asarray(answer)
    if found.dtype.kind not in kinds or found.shape != shape:
        raise ValueError(f"{found.dtype} of shape {found.shape}, but {shape} was expected")
    return found.astype(np.bool_ if kinds == "b" else COUNT_DTYPE)


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
        The samples, for `fit_counts` of a learner.

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
    source, binning = SitesSource(sites, agreement), agreement.binning
    names = binning.names or ()
    table = CodedTable(np.empty((0, len(names))), names, binning.levels, binning.has_missing)
    return Countable(source, table, names, np.array(agreement.classes), len(names), is_binned=False)


def code_columns(X: Any, binning: Binning) -> Array:
    """The bin of each value of each agreed column."""
    names = binning.names or ()
    columns = [_check_column(read_column(X, j, n), binning, j, n) for j, n in enumerate(names)]
    return PieceCoder(binning, range(len(names))).code(columns)


def _check_column(column: Column, binning: Binning, j: int, name: str) -> Column:
    """The column, if it is as agreed."""
    is_category = j in binning.levels
    if isinstance(column, Levels) and not column.levels and not is_category:
        column = Numbers(np.zeros(len(column.codes)), column.missing)  # nothing but missing values
    if not isinstance(column, Levels if is_category else Numbers):
        wanted = "categories" if is_category else "numbers"
        raise IcscmError(f"column {name!r} must hold {wanted}, as agreed, but does not")
    if column.missing is not None and not binning.has_missing[j]:
        why = f"column {name!r} is missing in {int(column.missing.sum()):,} rows"
        raise IcscmError(f"{why}, which was not agreed; name it in make_agreement(missing=...)")
    if isinstance(column, Levels):
        known = {sort_key(level) for level in binning.levels[j].levels}
        unknown = [level for level in column.levels if sort_key(level) not in known]
        reject_unknown(unknown, (), f"column {name!r} holds levels that were not agreed: ")
    return column


def _find_numbers(values: Any, n_rows: int, labels: Sequence[Any], what: str) -> IntArray:
    """The place of each row's label among those agreed."""
    codes, found = encode_environments(values, n_rows, what=what)
    place = {label: i for i, label in enumerate(labels)}
    reject_unknown(found, place, f"{what} holds labels that were not agreed: ")
    return np.array([place[label] for label in found], dtype=np.int64)[codes]
