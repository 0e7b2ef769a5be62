"""Samples that can be counted, and what is known of their table: the result of opening a source.

`StoredSource` is what the sources share that keep all rows in stores: in memory, or mapped from a
file.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, Self, TypeVar

import numpy as np

from icscm._constants import QUANTILE_SAMPLE
from icscm._types import Array, BoolArray, CountArray, FloatArray, IntArray
from icscm.engine import clusters
from icscm.engine.binning import describe_survey, find_suspicious_surveyed
from icscm.engine.clusters import ClusterPatterns, Clusters
from icscm.engine.counts import BinnedRule, CountCube, CountSource, Judge, PatternTable, SourceInfo
from icscm.engine.pieces import BinnedSplit, NodeRows, Piece, find_leaves, number_patterns
from icscm.engine.stores import Rows, Store
from icscm.engine.survey import Survey
from icscm.exceptions import IcscmError, Parameter
from icscm.tables.coded import CodedTable, drop_columns

SAMPLED = (
    f"Thresholds of features with many values are quantiles of a sample of {QUANTILE_SAMPLE:,} "
    "rows, picked by a hash of their content."
)

Source = TypeVar("Source", bound=CountSource)


@dataclass(frozen=True)
class BinningConfig:
    """The parameters of a learner that decide how a table is read and binned.

    Parameters
    ----------
    max_thresholds : int, optional
        The most thresholds of a feature; None for every value.
    missing : {"candidate", "separate", "error"}
        How missing values are handled.
    keep_columns : str or sequence of str, optional
        Columns to keep although they are suspicious, or `"all"`.
    n_jobs : int, optional
        The number of threads.
    device : {"cpu", "cuda", "auto"}
        Where samples are counted.

    Examples
    --------
    >>> from icscm import ICSCMClassifier
    >>> from icscm.sources import BinningConfig
    >>> ICSCMClassifier(max_thresholds=20).prepare() == BinningConfig(max_thresholds=20)
    True
    """

    max_thresholds: int | None = 50
    missing: str = "candidate"
    keep_columns: Any = None
    n_jobs: int | None = None
    device: str = "cpu"


def describe_columns(
    survey: Survey, names: tuple[str, ...] | None, config: BinningConfig, *, has_types: bool = True
) -> CodedTable:
    """The columns of a surveyed table, without those that rules should not use.

    Arrays, whose columns have no types of their own, come from users who prepared them.
    """
    table = describe_survey(survey, names)
    if config.missing == "error":
        table.reject_missing()
    if not has_types:
        return table
    return drop_columns(table, find_suspicious_surveyed(survey, table), config.keep_columns)


# The settings that a learner and its source must share.
_BINNING_SETTINGS = ("max_thresholds", "missing", "keep_columns", "device")


def _are_same(name: str, opened: Any, wanted: Any) -> bool:
    if name == "keep_columns":  # in any order
        names = [[each] if isinstance(each, str) else each or () for each in (opened, wanted)]
        return {*names[0]} == {*names[1]}
    return bool(opened == wanted or (name == "device" and wanted == "auto"))


@dataclass(frozen=True)
class Countable(Generic[Source]):
    """Samples made countable; an estimator's `fit_counts` turns it into fitted state.

    Use it in a `with` statement, or `close` it: some sources hold a temporary file.

    Parameters
    ----------
    source : CountSource
        What counts the samples.
    table : CodedTable, optional
        The columns, without rows; None where they are too many to describe.
    names : tuple of str, optional
        The names of the features; None where they go by their positions.
    classes : array of shape (2,)
        The two labels, the positive one last.
    n_features : int
        The number of features.
    has_environments : bool
        Whether environments were given.
    close : callable
        Releases the resources of the source.
    config : BinningConfig
        How the samples were opened; a learner must have the same settings.
    is_binned : bool
        Whether `config` decided on the bins; False where they were fixed before.
    is_part : bool
        Whether these are a fold or a subsample: what only a report of all samples shows is omitted.

    Examples
    --------
    >>> from icscm import ICSCMClassifier
    >>> from icscm.datasets import make_conjunction
    >>> data = make_conjunction(random_state=1)

    >>> from icscm.sources import open_memory
    >>> with open_memory(data.X, data.y, data.environments) as countable:
    ...     print(countable.n_features, countable.classes)
    ...     print(ICSCMClassifier().fit_counts(countable).model_)
    6 [0 1]
    A1 > 0 and A2 > 0
    """

    source: Source
    table: CodedTable | None
    names: tuple[str, ...] | None
    classes: Array
    n_features: int
    has_environments: bool = True
    close: Callable[[], None] = lambda: None  # nothing is held
    config: BinningConfig = BinningConfig()
    is_binned: bool = True
    is_part: bool = False
    _learners: list[str] = field(default_factory=list, init=False, repr=False, compare=False)

    def mark_used(self, learner: str, config: BinningConfig) -> None:
        """Record the learner: covered rows leave for good, so only one can learn from the samples.

        Parameters
        ----------
        learner : str
            Its name.
        config : BinningConfig
            The settings of the learner.

        Raises
        ------
        IcscmError
            If another learner had the samples before, or they were opened with other settings.
        """
        for name in _BINNING_SETTINGS if self.is_binned else ("device",):
            opened, wanted = getattr(self.config, name), getattr(config, name)
            if opened is not wanted and not _are_same(name, opened, wanted):
                why = Parameter(name, wanted), ", but these samples were opened with "
                advice = "; open them with preparation=learner.prepare(), or give it that value"
                raise IcscmError(f"{learner} has ", *why, Parameter(name, opened), advice)
        if self._learners:
            before = f"these samples were already used by {self._learners[0]}"
            raise IcscmError(f"{before} and lost rows; open them again for each learner")
        self._learners.append(learner)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def place(stores: Sequence[Store], rows: Rows, device: str) -> Sequence[Store]:
    """The stores of one source where `device` wants them."""
    from icscm.sources.gpu.card import choose_card  # later: few have a card
    from icscm.sources.gpu.stores import put_on_card

    card = choose_card(device, sum(store.n_bytes for store in stores))
    return stores if card is None else [put_on_card(card, store, rows) for store in stores]


class StoredSource:
    """Counts over a single piece, whose stores follow the rows that leave."""

    def __init__(
        self, info: SourceInfo, stores: Sequence[Store], rows: Rows, position: Array
    ) -> None:
        self.info, self.position = info, position
        self.groups: Clusters | None = None
        self.candidates, self.classes, self.environments, self.notes = info
        self.piece = Piece(stores, rows, len(info.environments))
        self._in_play = self.piece.start()
        self._nodes = NodeRows()

    def draw(self, wanted: BoolArray, n_threads: int | None = 1) -> Self:
        """A source over some of the sorted rows; nothing is binned again."""
        piece = self.piece.restrict(wanted, n_threads)
        drawn = type(self)(self.info, piece.stores, piece.rows, self.position)
        drawn.groups = self.groups
        return drawn

    def number_units(self, codes: IntArray | None = None) -> IntArray:
        """The sorted rows, or codes of them, numbered by their first appearance in the table.

        What is drawn by these numbers does not depend on the names of environments and groups.
        """
        import pandas

        in_table = np.empty_like(self.position)
        in_table[self.position] = np.arange(len(in_table), dtype=in_table.dtype)
        order = np.argsort(self.piece.rows.take(in_table))
        units = np.empty(len(order), dtype=np.int64)
        units[order] = np.arange(len(order))
        if codes is not None:
            units[order] = pandas.factorize(codes[order])[0]
        return units

    def list_groups(self) -> IntArray | None:
        """Number of the group of each sorted row; None where no groups were given."""
        own = self.groups
        return None if own is None else own.groups[self.piece.rows.take(own.codes)]

    def count_clusters(self, rules: Sequence[BinnedRule]) -> CountArray:
        assert self.groups is not None
        return clusters.count_clusters(self.piece, self._in_play.stay, self.groups, rules)

    def count_cluster_patterns(self, rules: Sequence[BinnedRule]) -> ClusterPatterns:
        assert self.groups is not None
        return clusters.count_cluster_patterns(self.piece, self.groups, rules)

    def square_residuals(self, splits: Sequence[BinnedSplit], p: FloatArray) -> FloatArray:
        """Squares of the clusters' sums of labels less p (leaf, environment), and clusters.

        By environment (2, environment), for the leaves of a tree: sums that sites can add up.
        """
        (labels, environments), (leaves, *own) = self.list_cells(), self._locate(splits)
        return clusters.square_sums(labels - p[leaves, environments], *own)

    def count_leaf_moments(self, splits: Sequence[BinnedSplit]) -> CountArray:
        """Moments of the clusters (leaf, environment, 4) in the leaves of a tree."""
        labels, (leaves, codes, starts) = self.list_cells()[0], self._locate(splits)
        own = ClusterPatterns(leaves, codes, np.column_stack((1 - labels, labels)), starts)
        return own.count_moments(np.arange(len(splits) + 1), len(splits) + 1)

    def _locate(self, splits: Sequence[BinnedSplit]) -> tuple[IntArray, Array, IntArray]:
        """The leaf and the cluster of each sorted row, and where those of environments start."""
        assert self.groups is not None
        codes = self.piece.rows.take(self.groups.codes)
        leaves = self.find_leaves(splits, np.ones(len(codes), dtype=np.bool_))
        return leaves, codes, self.groups.starts

    def sum_residuals(
        self, rules: Sequence[BinnedRule], p: FloatArray, features: IntArray
    ) -> Iterator[CountCube]:
        """Sums of label - p, and of p (1 - p), by (feature, bin, 2, environment).

        p (pattern, environment) is for the patterns that `count_patterns` finds.
        """
        labels, environments = self.list_cells()
        truths = [~self.piece.find_covered(self.piece.rows, rule) for rule in rules]
        own = p[number_patterns(truths, len(labels))[1], environments]
        values = np.column_stack((labels - own, own * (1.0 - own)))
        return self.piece.sum_values(values, environments, features)

    def list_cells(self) -> tuple[IntArray, IntArray]:
        """Number of the label and of the environment of each sorted row."""
        cells = np.repeat(np.arange(2 * len(self.environments)), self.piece.rows.sizes)
        return cells // len(self.environments), cells % len(self.environments)

    def find_leaves(self, splits: Sequence[BinnedSplit], held_out: BoolArray) -> IntArray:
        """The leaf of a tree that each sorted row falls in, for those held out; else -1."""
        leaves = np.full(len(held_out), -1, dtype=np.int64)
        rows, _ = self.piece.rows.split(~held_out)
        leaves[held_out] = find_leaves(splits, len(rows), partial(self.piece.find_covered, rows))
        return leaves

    def count_totals(self) -> CountArray:
        return self.piece.count_totals()

    def counts(self) -> Iterator[CountCube]:
        for store in self.piece.stores:
            yield from store.counts()

    @property
    def judge(self) -> Judge | None:
        """The store that can screen candidates, if it is the only one."""
        # with several, the first of all tied rules may be in any of them
        stores: Any = self.piece.stores
        return stores[0] if len(stores) == 1 and hasattr(stores[0], "shortlist") else None

    def keep(self, rule: BinnedRule) -> None:
        self._in_play = self.piece.keep(self._in_play, rule)
        for store in self.piece.stores:
            store.remove(self._in_play.left, self._in_play.stay)

    def count_node(self, path: Sequence[BinnedRule]) -> Iterator[CountCube]:
        rows = self._nodes.find(self.piece, path)
        for store in self.piece.stores:
            yield from store.restrict(rows).counts()

    def find_same_coverage(self, rule: BinnedRule, others: Sequence[BinnedRule]) -> BoolArray:
        return self.piece.find_same_coverage(self._in_play, rule, others)

    def count_patterns(self, rules: Sequence[BinnedRule]) -> PatternTable:
        return self.piece.count_patterns(rules)
