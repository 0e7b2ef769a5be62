"""What the search sees of the data: counts, and nothing else.

The axes are always (feature, bin, label, environment).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from icscm._types import BoolArray, CountArray, FloatArray, IntArray
from icscm.exceptions import IcscmError
from icscm.model.rules import Rule


class Layout(NamedTuple):
    """How the bins of a feature are to be read.

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
    """Samples still in play for a block of features, by (feature, bin, label, environment).

    All features of a block have the same layout. Those with fewer bins than the block's widest
    have zeros in their last bins.

    Where identical features are stored once, `n_alike` says how many each of them stands for; see
    `icscm.engine.bits`.
    """

    features: IntArray
    counts: CountArray
    layout: Layout = ORDERED
    n_alike: IntArray | None = None

    def check(self, samples: CountArray) -> None:
        """Raise unless it has the samples, by (label, environment), that earlier counts leave."""
        if len(self.counts) and (self.counts[0].sum(axis=0) != samples).any():
            why = "the source, or one of its sites, counts other samples than its earlier counts"
            raise IcscmError(f"{why} leave; see what it runs")


# The `cut` of the rules `x is missing` and, negated, `x is present`.
MISSINGNESS = -1


class Cut(NamedTuple):
    """A candidate rule by its place in the cube.

    `cut` numbers the thresholds or the levels of the feature: `x > t`, negated `x <= t`, or
    `x == v`, negated `x != v`. `missing` is the rule's truth for a missing value.

    Cuts compare in the order that breaks ties: feature, threshold, `>` before `<=`, missing
    values false before true.
    """

    feature: int
    cut: int
    negated: bool
    missing: bool = False


@dataclass(frozen=True)
class BinnedRule:
    """A rule as the sources understand it: which bins of one feature satisfy it."""

    feature: int
    satisfied: BoolArray


@dataclass(frozen=True)
class PatternTable:
    """All samples by the truth of several rules, label and environment.

    `patterns` is (pattern, rule), one row for each combination that occurs, in ascending
    order; `counts` is (pattern, label, environment).
    """

    patterns: BoolArray
    counts: CountArray


class CandidateMap(Protocol):
    """What a feature's bins mean: turns a cut of the cube into a rule on values and on bins."""

    def make_rule(self, cut: Cut) -> Rule: ...

    def make_binned_rule(self, cut: Cut) -> BinnedRule: ...

    def find_layout(self, feature: int) -> Layout:
        """How the bins of one feature are to be read."""

    def count_bins(self, features: IntArray) -> IntArray:
        """Number of bins of each of some features, that of missing values included."""


class SourceInfo(NamedTuple):
    """What a source's counts are counts of; see the properties of `CountSource`."""

    candidates: CandidateMap
    classes: Sequence[Any]
    environments: Sequence[Any]
    notes: Sequence[str] = ()


class ScreenQuery(NamedTuple):
    """The criteria by which a source may screen all rules on features of two bins.

    With negatives a and positives b in a rule's leaf, labels `inverted` or not, its utility is
    `den` a - `num` b. Statistics of `test` (`"pearson"`, `"yates"`, `"g"`, or `"none"`) are
    compared by degrees of freedom: below `lower` a leaf surely passes, from `upper` on it surely
    does not, and between them the source must not decide: rounding would. So it is with the
    effective number of environments of n_1 n_0, the samples of each on either side of the cut,
    times `factors`: `unreplicated_below` and `replicated_from`. The evidence of a leaf against
    chance (`icscm.engine.leaf_tables.LeafTables.compute_evidence`), with the environments' `rates`
    of positives in play, must be `least_evidence`; within `evidence_slack` of it, times the
    largest ratio of a cell to its number by chance, the source must not decide.
    """

    inverted: bool
    num: int
    den: int
    n_least: int
    test: str
    lower: FloatArray
    upper: FloatArray
    factors: FloatArray
    unreplicated_below: float
    replicated_from: float
    least_utility: int
    rates: FloatArray
    least_evidence: float
    evidence_slack: float
    n_ties: int
    n_rejected: int


class Shortlist(NamedTuple):
    """Features that can matter, to be tested as if they were all, and a summary of the others.

    The features are: all with an undecided rule; the first `n_ties` of those that hold the
    largest utility that is allowed, with the leaf that the first of these has; and the
    `n_rejected` of largest utility that are rejected. Of the rules on all others there are
    `n_candidates`, `n_rejected` by reason, and `n_ties` of the very utility and margin `best`.
    """

    cubes: Iterator[CountCube]
    n_candidates: int
    n_rejected: Mapping[str, int]
    n_ties: int
    best: tuple[int, int] | None


class Judge(Protocol):
    """What a source may offer as its `judge`, where counts are too many to be sent."""

    def shortlist(self, question: ScreenQuery) -> Shortlist | None:
        """The candidates that can matter to a search; None if the source cannot decide."""

    def list_nearest(self, question: ScreenQuery) -> Iterator[CountCube] | None:
        """Features with the `n_rejected` rules of largest p-value that the test rejects."""


class CountSource(Protocol):
    """Anything that can count: an array, a folder of files, a cluster, a set of hospitals.

    `icscm.testing.check_count_source` holds an implementation to this contract.

    Examples
    --------
    >>> from icscm.datasets import make_conjunction
    >>> from icscm.sources import open_memory
    >>> data = make_conjunction(50, random_state=1)
    >>> source = open_memory(data.X, data.y, data.environments).source
    >>> source.count_totals().shape, [cube.counts.shape for cube in source.counts()]
    ((2, 2), [(6, 2, 2, 2)])
    """

    @property
    def candidates(self) -> CandidateMap:
        """The meaning of the bins."""

    @property
    def classes(self) -> Sequence[Any]:
        """The two labels; the second is the positive one."""

    @property
    def environments(self) -> Sequence[Any]:
        """The environments' labels, in the order of the cube's last axis."""

    @property
    def notes(self) -> Sequence[str]:
        """Remarks on how the counts came about, for the trace."""

    def count_totals(self) -> CountArray:
        """All samples, by (label, environment), those already covered included."""

    def counts(self) -> Iterator[CountCube]:
        """The samples still in play, a block of features at a time, in any order of blocks."""

    def keep(self, rule: BinnedRule) -> None:
        """The samples that the rule covers leave and never come back."""

    def count_node(self, path: Sequence[BinnedRule]) -> Iterator[CountCube]:
        """All samples that satisfy every rule of the path, those already covered included.

        The empty path is all samples. A path may be any, whatever was counted before; one that goes
        a rule further than an earlier one may be cheaper. Blocks of features come in the same
        order and shape for every path, so that one node's counts can be taken off another's, and
        their counts are the caller's to keep.
        """

    def find_same_coverage(self, rule: BinnedRule, others: Sequence[BinnedRule]) -> BoolArray:
        """Which of the other rules cover exactly the samples in play that `rule` covers."""

    def count_patterns(self, rules: Sequence[BinnedRule]) -> PatternTable:
        """All samples, those already covered included, by the truth of each rule."""
