"""What the search sees of the data: counts, and nothing else.

This module is the contract between searches and sources. A *source* (`RowSource`) has rows, in
columns that were cut into *bins*, and counts them; it may be an array or a hundred hospitals. The
axes of counts are always (column, bin, outcome, environment).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

import numpy as np

from icscm._constants import COUNT_DTYPE
from icscm._types import Array, BoolArray, CountArray, FloatArray, IntArray
from icscm.exceptions import IcscmError
from icscm.model.novelty import Range
from icscm.model.rules import Rule
from icscm.stats.design_effects import ClusterMoments, ClusterSums


class Layout(NamedTuple):
    """How the bins of a column are to be read.

    layout                     bins                                  rules
    Layout()                   values up to t0 | up to t1 | above    x > t0, x <= t0, ...
    Layout(nominal=True)       level a | level b | level c           x == a, x != a, ...
    Layout(is_pair=True, ..)   level a | level b                     x == a, x == b
    Layout(has_missing=True)   missing | the bins as above           with missing on either side
    """

    nominal: bool = False
    is_pair: bool = False
    has_missing: bool = False


ORDERED = Layout()


@dataclass(frozen=True)
class CountCube:
    """Counts of some rows for a block of columns, by (column, bin, outcome, environment).

    All columns of a block have the same layout. Those with fewer bins than the block's widest
    have zeros in their last bins. Of identical columns that are stored once, only the first is in a
    cube; `BinnedColumns.list_copies` has the others.
    """

    columns: IntArray
    counts: CountArray
    layout: Layout = ORDERED

    def check(self, rows: CountArray) -> None:
        """Raise unless it has the rows, by (outcome, environment), that earlier counts leave."""
        if len(self.counts) and (self.counts[0].sum(axis=0) != rows).any():
            raise IcscmError(
                "the source, or one of its sites, counts other rows than its earlier counts leave; "
                "see what it runs"
            )


@dataclass(frozen=True, eq=False)
class ValueCube:
    """Sums of values of the rows for a block of columns, by (column, bin, value, environment).

    The values are one or more numbers of each row; columns and layout are as in `CountCube`.
    """

    columns: IntArray
    sums: FloatArray
    layout: Layout = ORDERED


@dataclass(frozen=True, eq=False)
class MomentCube:
    """Sums of gradients and of hessians for a block of columns, by (column, bin, environment).

    See `icscm.engine.moments`; columns and layout are as in `CountCube`.
    """

    columns: IntArray
    gradients: FloatArray
    hessians: FloatArray
    layout: Layout = ORDERED


# The `cut` of the rules `x is missing` and, negated, `x is present`.
MISSINGNESS = -1


class Cut(NamedTuple):
    """A candidate rule by its place in the cube.

    `cut` numbers the thresholds or the levels of the column: `x > t`, negated `x <= t`, or
    `x == v`, negated `x != v`. `missing` is the rule's truth for a missing value.

    Cuts compare in the order that breaks ties: column, threshold, `>` before `<=`, missing
    values false before true.
    """

    column: int
    cut: int
    negated: bool
    missing: bool = False


@dataclass(frozen=True)
class BinnedRule:
    """A rule as the sources understand it: which bins of one column satisfy it."""

    column: int
    satisfied: BoolArray


@dataclass(frozen=True)
class PatternTable:
    """All rows by the truth of several rules, outcome and environment.

    `patterns` is (pattern, rule), one line for each combination that occurs, in ascending
    order; `counts` is (pattern, outcome, environment).
    """

    patterns: BoolArray
    counts: CountArray


class BinnedColumns(Protocol):
    """What the bins of columns mean: turns a cut of the cube into a rule on values and on bins.

    A source may store identical columns once, under the first of them. The others are found here,
    so that counting and searching know of stored columns only; most sources inherit these methods.
    """

    def make_rule(self, cut: Cut) -> Rule:
        """Make the rule of a cut as a model prints it."""

    def make_binned_rule(self, cut: Cut) -> BinnedRule:
        """Make the rule of a cut as a source understands it, on the column that is stored."""

    def find_layout(self, column: int) -> Layout:
        """Find how the bins of a column are to be read."""

    def count_bins(self, columns: IntArray) -> IntArray:
        """Return the number of bins of some columns, that of missing values included."""

    def count_copies(self, columns: IntArray) -> IntArray:
        """Return how many identical columns each of some stored columns stands for, itself too."""
        return np.ones(len(columns), dtype=np.int64)

    def find_range(self, column: int) -> Range | None:  # noqa: ARG002
        """Find the range of a column of numbers; None where it is not known, as of presences."""
        return None

    def list_copies(self, column: int, limit: int | None = None) -> list[int]:  # noqa: ARG002
        """List the columns that are identical to one, itself included, the first up to a limit."""
        return [column]


class SourceInfo(NamedTuple):
    """What a source's counts are counts of: its columns, the outcome's values, the environments.

    See the properties of `RowSource` of the same names.
    """

    columns: BinnedColumns
    classes: Sequence[Any]
    environments: Sequence[Any]
    notes: Sequence[str] = ()


# The rules that are all true of some rows; the empty path is all rows.
RulePath = tuple[BinnedRule, ...]


class BinnedSplit(NamedTuple):
    """A split of a tree as the sources understand it: a rule, and where its two sides lead to.

    A side leads to another split, given by its number from 0 on, or to a leaf. Leaves are numbered
    by themselves, and leaf 0 is written as -1, leaf 1 as -2, and so on
    (`icscm.model.splits.encode_leaf`).
    """

    rule: BinnedRule
    if_true: int
    if_false: int


# --- candidates that are examined where the rows are -----------------------------


@dataclass(frozen=True, eq=False, kw_only=True)
class CandidateCriteria:
    """The criteria of one step of a search in plain numbers, which a device can apply.

    A rule covers the rows where it is false: its leaf. With A negatives and B positives in the
    leaf, its utility is `p_denominator` A - `p_numerator` B.

    A device may round numbers in another way than the search. So a criterion has two bounds, one
    below its critical value and one above, which are farther apart than rounding goes. Of a rule
    between the two the device does not decide, but sends its counts to the search, which does.

    Attributes
    ----------
    is_inverted : bool
        Whether negatives and positives are swapped, as for a disjunction.
    p_numerator, p_denominator : int
        The cost of a positive in the leaf, as a ratio.
    statistic : {"pearson", "yates", "g", "none"}
        The statistic of the test of dependence; `"none"` for no test.
    passes_below, fails_from : array of float, (degrees of freedom)
        Bounds of the test's critical value: a leaf whose statistic is below the first passes the
        test, one whose statistic is at least the second fails.
    replication_factors : array of float, (environment)
        For the weights of environments, n_1 n_0 times the factor, of the effective number of
        environments: n_1 and n_0 are the rows of the environment where the rule is true and false.
    unreplicated_below, replicated_from : float
        Bounds of the least effective number of environments: a rule with fewer than the first is
        rejected, one with at least the second is replicated.
    min_utility : int
        The least utility.
    positive_rates : array of float, (environment)
        Shares of positives, from which the evidence against chance is computed.
    min_evidence, evidence_slack : float
        The least evidence against chance. Within the slack of it, times the largest ratio of a
        cell to its number by chance, the device must not decide.
    """

    is_inverted: bool
    p_numerator: int
    p_denominator: int
    statistic: str
    passes_below: FloatArray
    fails_from: FloatArray
    replication_factors: FloatArray
    unreplicated_below: float
    replicated_from: float
    min_utility: int
    positive_rates: FloatArray
    min_evidence: float
    evidence_slack: float


class ShortlistOrder(StrEnum):
    """Which candidates a search wants to see."""

    # those that may be chosen, and of the rejected those of largest utility
    UTILITY = "utility"
    # those that the test rejects with the largest p-values
    P_VALUE = "p_value"


@dataclass(frozen=True, eq=False, kw_only=True)
class ShortlistQuery:
    """A question to a `Shortlister`: which columns can matter to a step of a search.

    Attributes
    ----------
    path : RulePath
        The rows in question: those of which all these rules are true.
    criteria : CandidateCriteria
        Which rules are candidates, and which of them are allowed.
    order : ShortlistOrder
        Which candidates are wanted.
    n_ties : int
        How many columns to list of those that hold the best allowed rules.
    n_rejected : int
        How many rejected rules to list.
    """

    path: RulePath
    criteria: CandidateCriteria
    order: ShortlistOrder = ShortlistOrder.UTILITY
    n_ties: int = 1
    n_rejected: int = 0


@dataclass(frozen=True, eq=False, kw_only=True)
class Shortlist:
    """The columns that can matter, to be tested as if they were all, and a tally of the others.

    The columns are: all with a rule that the device must not decide; the first `n_ties` of those
    that hold the largest utility that is allowed, with the leaf that the first of these has; and
    the `n_rejected` of largest utility that are rejected.

    Attributes
    ----------
    cubes : iterator of CountCube
        The counts of the columns on the list.
    n_candidates : int
        Candidates on all other columns.
    n_rejected : mapping of str to int
        How many of these are rejected, by reason.
    n_ties : int
        How many of these have the utility and the excess of negatives `best`.
    best : tuple of int, optional
        The largest utility that is allowed, and the largest excess A - B that goes with it.
    """

    cubes: Iterator[CountCube]
    n_candidates: int = 0
    n_rejected: Mapping[str, int] = field(default_factory=dict)
    n_ties: int = 0
    best: tuple[int, int] | None = None


class Shortlister(Protocol):
    """Examines candidates where the counts are, if these are too many to be sent."""

    @property
    def n_columns(self) -> int:
        """The number of columns that it examines."""

    def shortlist(self, query: ShortlistQuery) -> Shortlist:
        """List the columns that can matter; where it cannot decide on a column, it lists it."""


# --- rows that are in this process, or belong together ---------------------------


@dataclass(frozen=True, eq=False)
class Clusters:
    """The cluster of each row, as a source sorts them.

    Those of environment e are numbered from `starts[e]` on. `groups` is the number of each
    cluster's group, which may have others in other environments. `unit` is how many rows stand for
    one: above 1 where rows were repeated by their weights.
    """

    codes: Array
    starts: IntArray
    groups: IntArray
    unit: float = 1.0


@dataclass(frozen=True, eq=False)
class ClusterPatterns:
    """Rows by cluster and by pattern, a row of a `PatternTable`: the pairs that occur.

    `counts` is (pair, outcome); the clusters of environment e are numbered from `starts[e]` on.
    """

    patterns: IntArray
    clusters: IntArray
    counts: CountArray
    starts: IntArray

    def count_moments(self, parts: IntArray, n_parts: int) -> ClusterMoments:
        """Count the moments of clusters in some parts of the rows, by (part, environment).

        A part, such as a leaf, is a set of patterns: `parts` has the number of each pattern's part,
        or -1 for none. What a part has of a cluster is a *share* of n rows, p of them positive. Its
        moments are the sums of 1, n n, n p and p p over the shares of an environment's clusters.
        """
        n_clusters = int(self.starts[-1])
        n_environments = len(self.starts) - 1

        # The pairs of a pattern and a cluster whose pattern is in a part.
        part_of_pair = parts[self.patterns]
        is_inside = part_of_pair >= 0
        negatives, positives = self.counts[is_inside].T

        # A share is numbered by its part and cluster. All pairs with this number belong to it,
        # since a part may have several patterns.
        number_of_pair = part_of_pair[is_inside] * n_clusters + self.clusters[is_inside]
        numbers, share_of_pair = np.unique(number_of_pair, return_inverse=True)
        part_of_share = numbers // n_clusters
        cluster_of_share = numbers % n_clusters
        p = np.bincount(share_of_pair, positives, len(numbers))
        n = np.bincount(share_of_pair, negatives, len(numbers)) + p

        environment_of_share = np.searchsorted(self.starts, cluster_of_share, side="right") - 1
        cell_of_share = part_of_share * n_environments + environment_of_share

        def add_up(values: Array) -> CountArray:
            """Add up values of the shares by (part, environment)."""
            sums = np.bincount(cell_of_share, values, n_parts * n_environments)
            return sums.astype(COUNT_DTYPE).reshape(n_parts, n_environments)

        return ClusterMoments(
            n_clusters=add_up(n > 0),
            sum_nn=add_up(n * n),
            sum_np=add_up(n * p),
            sum_pp=add_up(p * p),
        )


class ClusterCounter(Protocol):
    """Counts clusters: rows of one environment that belong together, such as a patient's visits.

    What a test needs to know of the clusters in a leaf are four sums over them, their *moments*:
    see `icscm.stats.design_effects`.
    """

    @property
    def unit(self) -> float:
        """How many rows stand for one: above 1 where rows were repeated by their weights."""

    def count_moments(self, path: RulePath, rules: Sequence[BinnedRule]) -> ClusterMoments:
        """Count the moments (rule, environment) of what each rule covers of a path's rows."""

    def count_patterns(self, rules: Sequence[BinnedRule]) -> ClusterPatterns:
        """Count all rows by cluster and the truth of each rule."""

    def count_leaf_moments(self, splits: Sequence[BinnedSplit]) -> ClusterMoments:
        """Count the moments (leaf, environment) of all rows in the leaves of a tree."""

    def square_residuals(self, splits: Sequence[BinnedSplit], p: FloatArray) -> ClusterSums:
        """Square the clusters' sums of outcome - p, with p (leaf, environment), and count clusters.

        Both are added up by environment, and the squares also over whole groups: see `ClusterSums`.
        """


@dataclass(frozen=True, eq=False)
class RowCells:
    """Number of the outcome, 0 or 1, and of the environment of each row."""

    outcomes: IntArray
    environments: IntArray


class RowAccess(Protocol):
    """Access to the rows of a source that has them in this process.

    Rows are numbered as the source sorts them: by outcome, then by environment.
    """

    def select(self, is_selected: BoolArray, n_threads: int | None = 1) -> "RowSource":
        """Make a source of some rows, which are not binned again."""

    def take(self, table_rows: Array, n_threads: int | None = None) -> "RowSource":
        """Make a source of some rows, given by their numbers in the table."""

    def list_cells(self) -> RowCells:
        """List the outcome and the environment of each row."""

    def list_groups(self) -> IntArray | None:
        """List the number of the group of each row; None where no groups were given."""

    def list_clusters(self) -> Clusters | None:
        """List the cluster of each row: a group within an environment; None without groups."""

    def number_units(self, codes: IntArray | None = None) -> IntArray:
        """Number the rows, or codes of them, by their first appearance in the table.

        What is drawn by these numbers does not depend on the names of environments and groups.
        """

    def list_in_table_order(self) -> IntArray:
        """List the rows as they come in the table, of which some may be left out."""

    def to_table_order(self, values: Array) -> Array:
        """Return values of the rows in the order of the table."""

    def from_table_order(self, values: Array) -> Array:
        """Return values that are in the order of the table in that of the rows."""

    def list_columns(self) -> IntArray:
        """List the columns that can be cut, ascending."""

    def read_bins(self, column: int) -> Array:
        """Read the bin of each row in one of these columns."""

    def find_true(self, rule: BinnedRule) -> BoolArray:
        """Find the rows of which a rule is true."""

    def find_leaves(self, splits: Sequence[BinnedSplit], is_wanted: BoolArray) -> IntArray:
        """Find the leaf of a tree in which each row falls; -1 for those that are not wanted."""

    def sum_values(self, values: FloatArray, columns: IntArray | None) -> Iterator[ValueCube]:
        """Sum values (row, value) by (column, bin, value, environment); of all columns for None."""

    def sum_residuals(
        self, rules: Sequence[BinnedRule], p: FloatArray, columns: IntArray
    ) -> Iterator[MomentCube]:
        """Sum gradients, outcome - p, and hessians, p (1 - p), by column, bin and environment.

        p (pattern, environment) is for the patterns that `count_patterns` finds.
        """


# --- the source -------------------------------------------------------------------


class RowSource(Protocol):
    """Rows that can be counted: an array, files, a cluster of machines, a set of hospitals.

    Counting changes nothing that an answer depends on: a source may be asked anything, any number
    of times, in any order and from several threads. It may keep what it needs for the rows of
    recent paths. `icscm.testing.check_row_source` holds an implementation to this contract.

    Examples
    --------
    >>> from icscm.datasets import make_conjunction
    >>> from icscm.sources import open_memory
    >>> data = make_conjunction(50, random_state=1)
    >>> source = open_memory(data.X, data.y, environments=data.environments).source
    >>> source.count_rows().shape, [cube.counts.shape for cube in source.count_cubes()]
    ((2, 2), [(6, 2, 2, 2)])
    """

    @property
    def columns(self) -> BinnedColumns:
        """The columns, and what their bins mean."""

    @property
    def classes(self) -> Sequence[Any]:
        """The two values of the outcome; the second is the positive one."""

    @property
    def environments(self) -> Sequence[Any]:
        """The names of the environments, in the order of the cube's last axis."""

    @property
    def notes(self) -> Sequence[str]:
        """Remarks on how the counts came about, for the trace."""

    @property
    def clusters(self) -> ClusterCounter | None:
        """Counts rows that belong together, or have weights; None if rows are independent."""

    @property
    def rows(self) -> RowAccess | None:
        """The rows, if they are in this process."""

    @property
    def shortlister(self) -> Shortlister | None:
        """A device that examines candidates where they are, if there is one."""

    def count_rows(self, path: RulePath = ()) -> CountArray:
        """Count the rows of a path by (outcome, environment)."""

    def count_cubes(self, path: RulePath = ()) -> Iterator[CountCube]:
        """Count the rows of a path by (column, bin, outcome, environment), in blocks of columns.

        A path that goes a rule further than an earlier one may be cheaper. Blocks come in the same
        order and shape for every path, so that one path's counts can be taken off another's, and
        the counts are the caller's to keep.
        """

    def count_patterns(self, rules: Sequence[BinnedRule]) -> PatternTable:
        """Count all rows by the truth of each rule."""

    def find_same_coverage(
        self, path: RulePath, rule: BinnedRule, others: Sequence[BinnedRule]
    ) -> BoolArray:
        """Find which of the other rules cover exactly the rows of a path that `rule` covers."""
