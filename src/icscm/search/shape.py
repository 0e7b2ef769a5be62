"""Chooses the shape of a model: a conjunction, a disjunction, or a tree of the same rules.

Each is learned without some of the environments, and ranks the rows of these. With fewer than three
environments too few would remain to compare, and rows are left out instead. What is left out
together is a *fold*:

    all rows  --select-->  without fold 1  --search-->  model  --its leaves-->  AUC in fold 1
                           without fold 2  ...

A model sends each row to one of its *leaves*, and ranks rows by the rate of positives there. A
conjunction or disjunction is a *chain*: a tree with a leaf for each rule, and one for the rows that
none of its rules covers. They are not pruned here, which changes their ranking little.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, Final

import numpy as np

from icscm._types import BoolArray, FloatArray, IntArray
from icscm.engine.counts import BinnedSplit, RowAccess, RowCells, RowSource
from icscm.engine.threads import divide_up
from icscm.model.splits import encode_leaf
from icscm.search.greedy import learn_conjunction
from icscm.search.grow import TOLERANCES, TreeSettings, make_binned_splits
from icscm.search.settings import Settings
from icscm.search.tree_records import make_tree
from icscm.search.trees import grow_screened
from icscm.search.view import ConjunctionView
from icscm.sources.countable import Countable
from icscm.stats.ranking import compute_auc_of_counts

# Folds of environments, each of one where there are no more, or of rows.
N_FOLDS: Final = 5
# The gain in AUC required of a disjunction over a conjunction, and of a tree over both.
MIN_GAIN: Final = 0.01
# Steps of a scan up to which a tree is grown, too: it takes many more scans; see `count_steps`.
MAX_TREE_STEPS: Final = 10**7
# Rows by which shapes are compared: their numbers take 50 bytes a row, beyond a limit of memory.
MAX_ROWS: Final = 500_000
# The smallest leaf of a tree, as a share of the rows.
_MIN_LEAF_SHARE: Final = 0.01


@dataclass(frozen=True)
class ShapeChoice:
    """AUC of each shape in rows that were left out; see `choose_shape`.

    Attributes
    ----------
    scores : dict of str to float
        Mean AUC within environments of "conjunction", "disjunction" and, where environments were
        left out and the table is not large, "tree".
    held_out : {"environments", "groups", "rows"}
        What was left out.
    """

    scores: dict[str, float]
    held_out: str

    @property
    def chosen(self) -> str:
        """The disjunction if its AUC is larger by more than `MIN_GAIN`, else the conjunction."""
        is_better = self.scores["disjunction"] > self.scores["conjunction"] + MIN_GAIN
        return "disjunction" if is_better else "conjunction"

    @property
    def prefers_tree(self) -> bool:
        """Whether a tree is better than both."""
        return self.scores.get("tree", 0.0) > self.scores[self.chosen] + MIN_GAIN


def count_steps(
    countable: Countable[Any],
    n_rows: int,
    *,
    n_steps_of_number: int = 20,
    n_cells_of_step: int = 1,
) -> int:
    """Count the steps of a scan: a step for each cell of the table, some for each number tested.

    There is a number for each bin and environment. Testing one takes as long as counting many
    cells, and a tree tests it more often. Of packed bits many cells are counted in a step.
    """
    source = countable.source
    columns = np.arange(countable.n_features)
    n_steps_of_cells = divide_up(n_rows * len(columns), n_cells_of_step)
    n_bins = int(source.columns.count_bins(columns).sum())
    n_numbers = n_bins * len(source.environments)
    return n_steps_of_cells + n_steps_of_number * n_numbers


def choose_shape(countable: Countable[Any], chains: Mapping[str, Settings]) -> ShapeChoice:
    """Compare shapes by rows that they were not learned from.

    The AUC is that within an environment, averaged over all that were left out (`average_scores`).

    Parameters
    ----------
    countable : Countable
        The rows. Of more than `MAX_ROWS` every second, third .. of each outcome and environment is
        taken.
    chains : mapping of str to Settings
        Settings of the conjunction and of the disjunction.
    """
    source = thin_out(countable.source)
    assert source.rows is not None  # rows are left out
    cells = source.rows.list_cells()
    folds = assign_folds(source.rows, cells, n_environments=len(source.environments))

    shapes = [*chains]
    # Rows left out of the training environments would favour a tree that uses shortcuts.
    is_small = count_steps(countable, len(cells.outcomes)) <= MAX_TREE_STEPS
    if folds.left_out == "environments" and is_small and not countable.is_part:
        shapes.append("tree")

    scores_by_shape: dict[str, list[EnvironmentScore]] = {shape: [] for shape in shapes}
    for fold in np.unique(folds.numbers).tolist():
        is_left_out: BoolArray = folds.numbers == fold
        training_source = source.rows.select(~is_left_out)
        for shape in shapes:
            if shape == "tree":
                ranker = learn_tree(training_source, chains["conjunction"])
            else:
                ranker = learn_chain(training_source, chains[shape])
            scores_of_fold = score_ranker(ranker, source.rows, cells, is_left_out)
            scores_by_shape[shape].extend(scores_of_fold)

    mean_scores = {shape: average_scores(scores) for shape, scores in scores_by_shape.items()}
    return ShapeChoice(scores=mean_scores, held_out=folds.left_out)


def thin_out(source: RowSource) -> RowSource:
    """Take every second, third .. row of each outcome and environment, if there are many."""
    assert source.rows is not None
    # Rows are sorted by outcome and environment, so those of a cell of the counts come together.
    cell_sizes = source.count_rows().ravel()
    step = divide_up(int(cell_sizes.sum()), MAX_ROWS)
    if step <= 1:
        return source
    is_taken = [np.arange(n_rows, dtype=np.int32) % step == 0 for n_rows in cell_sizes.tolist()]
    return source.rows.select(np.concatenate(is_taken))


# --- folds ----------------------------------------------------------------------


@dataclass(frozen=True)
class Folds:
    """The fold of each row, and what is left out together: environments, groups or rows."""

    numbers: IntArray
    left_out: str


def assign_folds(rows: RowAccess, cells: RowCells, *, n_environments: int) -> Folds:
    """Assign folds to rows: by environments, or where these are fewer than three by groups or rows.

    These units are numbered by their first row in the table, so folds do not depend on their names,
    and dealt out to the folds in turn. Groups and rows are shuffled before.
    """
    if n_environments >= 3:
        environment_of_row = rows.number_units(cells.environments)
        return Folds(environment_of_row % N_FOLDS, left_out="environments")

    groups = rows.list_groups()
    unit_of_row = rows.number_units(groups)  # its group; without groups the row itself
    n_units = int(unit_of_row.max()) + 1
    shuffled_unit_of_row = np.random.default_rng(0).permutation(n_units)[unit_of_row]
    if groups is not None:
        return Folds(shuffled_unit_of_row % N_FOLDS, left_out="groups")

    # In turn within each outcome and environment, so that all folds have the same share of them.
    environment_of_row = rows.number_units(cells.environments)
    order = np.lexsort((shuffled_unit_of_row, environment_of_row, cells.outcomes))
    numbers = np.empty_like(cells.outcomes)
    numbers[order] = np.arange(len(order)) % N_FOLDS
    return Folds(numbers, left_out="rows")


# --- models that rank rows ------------------------------------------------------


@dataclass(frozen=True)
class Ranker:
    """A model that ranks rows: its splits, and the probability of each of its leaves."""

    splits: list[BinnedSplit]
    probabilities: FloatArray


def learn_chain(source: RowSource, settings: Settings) -> Ranker:
    """Learn a conjunction or disjunction, as a chain: a tree of a single branch.

    Where rule i is false, it leads to leaf i. Where it is true, it leads to the next rule; the last
    one to one more leaf, of the rows that no rule covers:

        rule 0 --true--> rule 1 --true--> leaf 2
          |false           |false
        leaf 0           leaf 1
    """
    conjunction = learn_conjunction(ConjunctionView(source, settings))
    n_rules = len(conjunction.cuts)
    after_rule = [*range(1, n_rules), encode_leaf(n_rules)]
    splits = [
        BinnedSplit(
            rule=source.columns.make_binned_rule(cut),
            if_true=after_rule[number],
            if_false=encode_leaf(number),
        )
        for number, cut in enumerate(conjunction.cuts)
    ]

    # Laplace's rule: a row of each outcome more, so that small leaves rank less far out.
    counts = np.array(conjunction.leaves).sum(axis=2)  # (leaf, outcome)
    probabilities = (counts[:, 1] + 1.0) / (counts.sum(axis=1) + 2.0)
    return Ranker(splits=splits, probabilities=probabilities)


def learn_tree(source: RowSource, settings: Settings) -> Ranker:
    """Learn a tree whose effects are homogeneous; a plain one where nothing is tested."""
    n_rows = int(source.count_rows().sum())
    tree_settings = TreeSettings(
        tolerance=None if settings.test is None else TOLERANCES["effect"],
        min_leaf_rows=max(1, ceil(_MIN_LEAF_SHARE * n_rows)),
    )
    tree = grow_screened(source, tree_settings).tree
    model = make_tree(source, tree, balanced=False)
    return Ranker(
        splits=make_binned_splits(source.columns, tree),
        probabilities=model.leaf_probabilities(),
    )


# --- scores ---------------------------------------------------------------------


@dataclass(frozen=True)
class EnvironmentScore:
    """The AUC in one environment, of so many negatives and positives."""

    auc: float
    n_negatives: int
    n_positives: int

    @property
    def weight(self) -> float:
        """The weight of the AUC in a mean, N P / (N + P): about as the inverse of its variance."""
        return 1.0 / (1.0 / self.n_negatives + 1.0 / self.n_positives)


def score_ranker(
    ranker: Ranker, rows: RowAccess, cells: RowCells, is_left_out: BoolArray
) -> Iterator[EnvironmentScore]:
    """Score a model in each environment left out that has both outcomes.

    Rows of the same leaf have the same score, the probability of a positive outcome there. So the
    AUC depends on how many rows of each outcome have each score:

        score      negatives   positives
        0.2        40          10
        0.7         9          21
    """
    leaves = rows.find_leaves(ranker.splits, is_left_out)[is_left_out]
    probabilities = ranker.probabilities[leaves]
    outcomes = cells.outcomes[is_left_out]
    environments = cells.environments[is_left_out]
    for environment in np.unique(environments).tolist():
        is_inside = environments == environment
        scores, score_numbers = np.unique(probabilities[is_inside], return_inverse=True)
        is_positive = outcomes[is_inside] == 1
        n_rows = np.bincount(score_numbers, minlength=len(scores))
        n_positive = np.bincount(score_numbers[is_positive], minlength=len(scores))
        counts = np.column_stack((n_rows - n_positive, n_positive))  # (score, outcome)

        auc = compute_auc_of_counts(counts, scores)
        if auc is not None:
            n_negatives, n_positives = counts.sum(axis=0).tolist()
            yield EnvironmentScore(auc=auc, n_negatives=n_negatives, n_positives=n_positives)


def average_scores(scores: list[EnvironmentScore]) -> float:
    """Average the AUC over environments; without any, no model is better than chance."""
    if not scores:
        return 0.5
    values = [score.auc for score in scores]
    weights = [score.weight for score in scores]
    return float(np.average(values, weights=weights))
