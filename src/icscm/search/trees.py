"""Trees from counts: a model and its trace.

A tree of homogeneous effects is grown without the columns that a screen rejects
(`icscm.search.columns`), a tree of homogeneous rates as `icscm.search.rate_trees` says, a plain
tree without any requirement.
"""

from icscm.engine.counts import RowSource
from icscm.model.tree import Tree
from icscm.search.columns import ColumnScreen
from icscm.search.grow import TreeSettings, grow
from icscm.search.rate_trees import find_rate_tree
from icscm.search.split_scanner import SplitScanner
from icscm.search.trace import Trace
from icscm.search.tree_records import ScreenedTree, describe_tree


def find_tree(
    source: RowSource, settings: TreeSettings, screen: ColumnScreen | None = None
) -> tuple[Tree, Trace]:
    """Find the tree that the settings require; one screen may serve several tolerances."""
    if settings.needs_rates:
        rate_tree = find_rate_tree(source, settings)
        return rate_tree.model, rate_tree.trace

    screened_tree = grow_screened(source, settings, screen)
    return describe_tree(source, settings, screened_tree)


def grow_screened(
    source: RowSource, settings: TreeSettings, screen: ColumnScreen | None = None
) -> ScreenedTree:
    """Grow a tree of homogeneous effects, or a plain one."""
    screen = screen or ColumnScreen(source, settings)
    rejected = screen.reject(settings.tolerance)
    scanner = SplitScanner(screen.finder, rejected=rejected.reasons)
    tree = grow(screen.root, scanner, settings.max_leaves)
    return ScreenedTree(tree, rejected_columns=rejected.records, comparable=screen.comparable)
