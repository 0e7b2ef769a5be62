"""Chooses the shape of a model: a conjunction, a disjunction, or a tree of the same rules.

Each is learned without some of the environments, and ranks their samples. With fewer than three
environments too few would remain to compare, and rows are held out instead.

    all rows  --draw-->  without fold 1  --search-->  model  --its leaves-->  AUC in fold 1
                         ...

Chains are searched without pruning, which changes their ranking little.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, Final

import numpy as np

from icscm._types import BoolArray, FloatArray, IntArray
from icscm.engine.counts import CountSource
from icscm.engine.pieces import BinnedSplit
from icscm.search.greedy import Growth
from icscm.search.grow import TOLERANCES, TreeSettings, list_binned_splits
from icscm.search.settings import Settings
from icscm.search.trees import grow_screened, make_tree
from icscm.sources.countable import Countable, StoredSource
from icscm.stats.ranking import compute_auc_of_counts

# Folds of environments, each of one where there are no more, or of rows.
N_FOLDS: Final = 5
# The gain in AUC required of a disjunction over a conjunction, and of a tree over both.
LEAST_GAIN: Final = 0.01
# Steps of a scan up to which a tree is grown, too: it takes many more scans; see `count_steps`.
MAX_TREE_STEPS: Final = 10**7
# Rows by which shapes are compared: their numbers take 50 bytes a row, beyond a limit of memory.
MAX_ROWS: Final = 500_000
_LEAST_LEAF: Final = 0.01


@dataclass(frozen=True)
class ShapeChoice:
    """AUC of each shape where samples were held out; see `choose_shape`.

    Attributes
    ----------
    scores : dict of str to float
        Mean AUC within environments of "conjunction", "disjunction" and, where environments were
        held out and the table is not large, "tree".
    held_out : {"environments", "groups", "rows"}
        What was held out.
    """

    scores: dict[str, float]
    held_out: str

    @property
    def chosen(self) -> str:
        """The disjunction if its AUC is larger by more than `LEAST_GAIN`, else the conjunction."""
        is_better = self.scores["disjunction"] > self.scores["conjunction"] + LEAST_GAIN
        return "disjunction" if is_better else "conjunction"

    @property
    def prefers_tree(self) -> bool:
        """Whether a tree is better than both."""
        return self.scores.get("tree", 0.0) > self.scores[self.chosen] + LEAST_GAIN


def count_steps(countable: Countable[Any], n_samples: int, each: int = 20) -> int:
    """Steps of a scan: the cells of the table, and `each` for a number (bin, environment).

    Testing a number takes as long as counting many cells, and a tree tests it more often.
    """
    source, features = countable.source, np.arange(countable.n_features)
    n_numbers = int(source.candidates.count_bins(features).sum()) * len(source.environments)
    return n_samples * len(features) + each * n_numbers


def choose_shape(countable: Countable[Any], chains: Mapping[str, Settings]) -> ShapeChoice:
    """Compare shapes by samples that they were not learned from; `chains` are settings of each.

    The AUC is that within an environment, averaged with weights P N / (P + N) by its positives and
    negatives, so that environments without cases have none. Of more than `MAX_ROWS` samples every
    second, third .. of each label and environment is taken.
    """
    source: StoredSource = countable.source
    sizes = source.piece.rows.sizes
    if (step := -(-int(sizes.sum()) // MAX_ROWS)) > 1:
        kept = [np.arange(n, dtype=np.int32) % step == 0 for n in sizes.tolist()]
        source = source.draw(np.concatenate(kept))
    labels, environments = source.list_cells()
    held_out, folds = _assign_folds(source, labels, environments)
    shapes = [*chains]
    is_small = not countable.is_part and count_steps(countable, len(labels)) <= MAX_TREE_STEPS
    if held_out == "environments" and is_small:
        shapes.append("tree")  # held-out rows of the training environments would favour shortcuts
    found: dict[str, list[tuple[float, float]]] = {shape: [] for shape in shapes}
    for fold in np.unique(folds).tolist():
        is_out: BoolArray = folds == fold
        part = source.draw(~is_out)
        for shape in shapes:
            is_chain, settings = shape in chains, chains.get(shape, chains["conjunction"])
            grown = _grow_chain(part, settings) if is_chain else _grow_tree(part, settings)
            leaves = source.find_leaves(grown[0], is_out)[is_out]
            part = source.draw(~is_out) if is_chain else part  # its rows were covered
            found[shape] += _score(labels[is_out], environments[is_out], grown[1][leaves])
    means = {}
    for shape, pairs in found.items():
        weights, values = np.array(pairs or [(1.0, 0.5)]).T
        means[shape] = float(np.average(values, weights=weights))
    return ShapeChoice(means, held_out)


def _assign_folds(
    source: StoredSource, labels: IntArray, environments: IntArray
) -> tuple[str, IntArray]:
    """What is held out, and the fold of each row; groups of rows are never split."""
    if len(source.environments) >= 3:
        return "environments", source.number_units(environments) % N_FOLDS
    groups = source.list_groups()
    units = source.number_units(groups)
    drawn = np.random.default_rng(0).permutation(int(units.max()) + 1)[units]
    if groups is not None:
        return "groups", drawn % N_FOLDS
    order = np.lexsort((drawn, source.number_units(environments), labels))
    folds = np.empty_like(labels)
    folds[order] = np.arange(len(labels)) % N_FOLDS
    return "rows", folds


def _grow_chain(part: CountSource, settings: Settings) -> tuple[list[BinnedSplit], FloatArray]:
    """The splits of a chain, and the probability of each of its leaves."""
    growth = Growth(part, settings)
    cuts, leaves, _ = growth.run()
    last, make = len(cuts) - 1, growth.view.make_binned_rule
    splits = [
        BinnedSplit(make(cut), i + 1 if i < last else ~(i + 1), ~i) for i, cut in enumerate(cuts)
    ]
    counts = np.array(leaves).sum(axis=2)
    return splits, (counts[:, 1] + 1.0) / (counts.sum(axis=1) + 2.0)


def _grow_tree(part: CountSource, settings: Settings) -> tuple[list[BinnedSplit], FloatArray]:
    """The same of a tree whose effects are homogeneous; a plain one where nothing is tested."""
    n_least = max(1, ceil(_LEAST_LEAF * int(part.count_totals().sum())))
    tolerance = None if settings.test is None else TOLERANCES["effect"]
    own = TreeSettings(tolerance=tolerance, n_least=n_least, missing=settings.missing)
    top, _ = grow_screened(part, own)
    tree = make_tree(part, top, balanced=False)
    return list_binned_splits(part, top), tree.leaf_probabilities()


def _score(
    labels: IntArray, environments: IntArray, votes: FloatArray
) -> Iterator[tuple[float, float]]:
    """Weight and AUC of each environment that has both labels."""
    for k in np.unique(environments).tolist():
        own = environments == k
        scores, ranks = np.unique(votes[own], return_inverse=True)
        table = np.bincount(2 * ranks + labels[own], minlength=2 * len(scores)).reshape(-1, 2)
        if (auc := compute_auc_of_counts(table, scores)) is not None:
            yield 1.0 / (1.0 / table.sum(axis=0)).sum(), auc
