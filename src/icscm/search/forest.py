"""Forests: many trees, each grown on some of the rows and some of the features.

Features are screened once, on all rows: of many trees on fewer rows each, some would accept a
feature that the others reject. Rows are drawn without replacement: repeated rows would exaggerate
the evidence that effects differ.

    all rows   --judge-->   which features differ too much
    0.632 of the rows, 0.6 of the features left   --grow-->   tree 1
    ...                                                      tree 2, ...
    the other rows of each tree  ----->  scores out of bag, or out of environment
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from icscm._types import Array, BoolArray, FloatArray, IntArray
from icscm.engine.counts import CountSource
from icscm.engine.threads import run_ahead
from icscm.model.forest import Forest
from icscm.model.tree import Tree
from icscm.progress import track
from icscm.search import trees
from icscm.search.columns import ColumnScreen
from icscm.search.grow import Growing, TreeSettings, grow, list_binned_splits, make_root
from icscm.search.scanners import Scanner
from icscm.search.trace import Trace
from icscm.sources.countable import StoredSource

# Distinct rows of a bootstrap sample, 1 - 1/e of all: that many are drawn.
DRAWN_SHARE: Final = 0.632


@dataclass(frozen=True)
class ForestSettings:
    """Settings of a forest, in addition to those of its trees."""

    tree: TreeSettings
    n_trees: int = 100
    max_features: float = 0.6
    resample: str = "rows"
    seed: int = 0
    n_threads: int = 1


@dataclass(frozen=True)
class OutOfBag:
    """Predictions of the trees for the rows that they were not grown on, in one order of rows.

    `votes` are the means of the trees' probabilities, NaN for rows that all trees were grown on.
    """

    labels: Array
    environments: Array
    votes: FloatArray


def find_forest(source: StoredSource, settings: ForestSettings) -> tuple[Forest, Trace, OutOfBag]:
    """Grow a forest; the trace is that of screening the features, on all rows."""
    features, trace = _screen(source, settings.tree)
    labels, environments = source.list_cells()
    draws_places = settings.resample == "environments"
    units = source.number_units(environments if draws_places else source.list_groups())
    rngs = np.random.default_rng(settings.seed).spawn(settings.n_trees)

    def grow_one(rng: np.random.Generator) -> tuple[Tree, IntArray]:
        """A tree, and the leaf of each row that it was not grown on."""
        drawn = _draw_rows(units, rng, draws_places)
        n_drawn = min(max(1, round(settings.max_features * len(features))), len(features))
        columns = rng.choice(features, n_drawn, replace=False)
        scan = Scanner(source.candidates, settings.tree, columns, record_rejections=False)
        top = grow(make_root(source.draw(drawn)), scan, settings.tree.max_leaves)
        leaves = source.find_leaves(list_binned_splits(source, top), ~drawn)
        return trees.make_tree(source, top, balanced=settings.tree.balanced), leaves

    grown = []
    votes, n_votes = np.zeros((2, len(labels)))
    for tree, leaves in track(run_ahead(grow_one, rngs, settings.n_threads), len(rngs)):
        grown.append(tree)
        is_out = leaves >= 0
        votes[is_out] += tree.leaf_probabilities()[leaves[is_out]]
        n_votes += is_out
    with np.errstate(invalid="ignore"):
        means = np.where(n_votes > 0, votes / n_votes, np.nan)
    return Forest(tuple(grown)), trace, OutOfBag(labels, environments, means)


def _screen(source: CountSource, settings: TreeSettings) -> tuple[IntArray, Trace]:
    """The features that trees may use, judged on all rows, and the trace of that."""
    if settings.needs_rates:
        _, trace, top, banned = trees.find_rate_tree(source, settings)
        root = top.node
    else:
        screen = ColumnScreen(source, settings)
        root, (banned, rejected) = screen.root, screen.reject(settings.tolerance)
        scan = Scanner(source.candidates, settings, banned=banned)(root)
        _, trace = trees.describe_tree(source, settings, Growing(root, scan), rejected)
    every = [cube.features for cube in root.count()]
    return np.setdiff1d(np.concatenate(every), [*banned]) if every else np.empty(0, int), trace


def _draw_rows(units: IntArray, rng: np.random.Generator, draws_places: bool) -> BoolArray:
    """Which rows a tree is grown on: some of all, or all of some environments, at least two.

    Rows that belong together are drawn together.
    """
    n_units = int(units.max()) + 1
    n_drawn = max(1, round(DRAWN_SHARE * n_units))
    if draws_places:
        n_drawn = min(max(2, n_drawn), n_units - 1)
    wanted = np.zeros(n_units, dtype=np.bool_)
    wanted[rng.choice(n_units, n_drawn, replace=False, shuffle=False)] = True
    return wanted[units]
