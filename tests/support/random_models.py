"""Random trees and forests over given rules, with a literal implementation of prediction."""

from dataclasses import replace
from itertools import accumulate
from random import Random
from typing import NamedTuple

from hypothesis import strategies as st

from icscm.model import tree as tree_module
from icscm.model.forest import Forest
from icscm.model.rules import CategoryRule, MissingRule, ThresholdRule
from icscm.model.score import Score, Term, find_max_total
from icscm.model.splits import Split
from icscm.model.tree import Tree


def make_tree(rules, rng, *, leaves=None, n_environments=2, balanced=False):
    """A tree whose split i asks rule i, at a random place below those before; random counts.

    `rng` is a `random.Random`.
    """
    # for each split the numbers of the splits on both sides, None for a leaf
    children = [[None, None] for _ in rules]
    free_sides = [(0, 0), (0, 1)] if rules else []
    for number in range(1, len(rules)):
        parent, side = free_sides.pop(rng.randrange(len(free_sides)))
        children[parent][side] = number
        free_sides += [(number, 0), (number, 1)]
    counts = leaves or _make_counts(rules, rng, n_environments)
    return Tree(number_leaves(rules, children), counts, balanced=balanced)


def number_leaves(rules, children):
    """The splits of a tree, whose leaves are numbered by a walk, where rules hold first.

    `children` has None for a leaf, a split ~n for leaf n.
    """
    numbered = [[*pair] for pair in children]
    n_leaves = 0
    sides_to_visit = [(0, 1), (0, 0)] if rules else []
    while sides_to_visit:
        parent, side = sides_to_visit.pop()
        child = numbered[parent][side]
        if child is None:
            numbered[parent][side] = ~n_leaves
            n_leaves += 1
        else:
            sides_to_visit += [(child, 1), (child, 0)]
    return tuple(
        Split(rule, if_true, if_false)
        for rule, (if_true, if_false) in zip(rules, numbered, strict=True)
    )


def make_chain(rules, side=0, *, leaves=None):
    """A tree that goes on to the same side only; 0 is where rules are true."""
    children = [[None, None] for _ in rules]
    for number in range(1, len(rules)):
        children[number - 1][side] = number
    counts = leaves or tuple(((3, i % 5), (1, i % 7)) for i in range(len(rules) + 1))
    return Tree(number_leaves(rules, children), counts)


def _make_counts(rules, rng, n_environments):
    """Random counts by (leaf, label, environment)."""
    largest = rng.choice([1, 10, 1000])

    def draw_counts():
        return tuple(rng.randint(0, largest) for _ in range(n_environments))

    n_leaves = len(rules) + 1
    return tuple((draw_counts(), draw_counts()) for _ in range(n_leaves))


def make_each_kind(rules):
    """A model of each kind that asks all of these rules, by the name of its kind.

    Random models need not be of each kind where few of them are tried. The thresholds of
    calibrated models are probabilities that occur.
    """
    rng = Random(35)
    tree = make_tree(rules, rng)
    balanced = make_tree(rules, rng, balanced=True)
    forest = Forest((tree, make_tree(rules[::2], rng), balanced))
    counts = _make_counts(rules, rng, 2)
    chains = {kind: tree_module.make_chain(kind, rules, counts) for kind in CHAINS}

    rules_by_column = sorted(rules, key=lambda rule: rule.column)
    terms = tuple(Term(rule, 1 + number % 4) for number, rule in enumerate(rules_by_column))
    log_odds = tuple(total / 3 - 2 for total in range(find_max_total(terms) + 1))
    leaves = (((3, 4), (1, 2)), ((1, 0), (5, 6)))
    score = Score(terms, log_odds, (2,), leaves)

    models = {**chains, "tree": tree, "balanced tree": balanced, "forest": forest, "score": score}
    return models | {f"calibrated {kind}": _calibrate(model) for kind, model in models.items()}


CHAINS = "conjunction", "disjunction"
KINDS = (*CHAINS, "tree", "balanced tree", "forest", "score")
KINDS += tuple(f"calibrated {kind}" for kind in KINDS)


def _calibrate(model):
    model = replace(model, calibration=(0.5, 1.5))
    if isinstance(model, Score):
        probabilities = model.compute_risks()
    else:
        tree = model.trees[0] if isinstance(model, Forest) else model
        probabilities = model.calibrate(tree.leaf_probabilities())
    return replace(model, threshold=float(sorted(probabilities)[len(probabilities) // 2]))


@st.composite
def trees(draw, rules, *, max_splits=8, n_environments=2):
    """Trees over rules that a strategy gives."""
    rules_of_tree = draw(st.lists(rules, max_size=max_splits))
    rng = draw(st.randoms(use_true_random=False))
    return make_tree(
        rules_of_tree, rng, n_environments=n_environments, balanced=draw(st.booleans())
    )


@st.composite
def scores(draw, rules, *, max_terms=8, n_environments=2):
    """Scores over rules that a strategy gives, those of a column together."""
    drawn_rules = draw(st.lists(rules, max_size=max_terms))
    rules_by_column = sorted(drawn_rules, key=lambda rule: rule.column)
    terms = tuple(Term(rule, draw(st.integers(0, 9))) for rule in rules_by_column)
    leaf = tuple((draw(st.integers(0, 99)),) * n_environments for _ in range(2))
    highest = find_max_total(terms)
    steps = draw(st.lists(st.floats(0, 2), min_size=highest + 1, max_size=highest + 1))
    log_odds = tuple(accumulate(steps, initial=draw(st.floats(-5, 5))))[1:]
    bounds = tuple(total for total in (1, 4) if total <= highest)
    return Score(terms, log_odds, bounds, (leaf,) * (len(bounds) + 1))


def forests(rules, *, max_trees=4, **options):
    """Forests of such trees."""
    lists_of_trees = st.lists(trees(rules, **options), min_size=1, max_size=max_trees)
    return lists_of_trees.map(lambda trees_of_forest: Forest(tuple(trees_of_forest)))


@st.composite
def calibrated(draw, models):
    """Such models, calibrated and with a threshold, which is often a probability of a leaf."""
    calibration = draw(st.just((0.0, 1.0)) | st.tuples(st.floats(-9, 9), st.floats(0.1, 4)))
    model = replace(draw(models), calibration=calibration)
    tree = model.trees[0] if isinstance(model, Forest) else model
    probabilities = model.calibrate(tree.leaf_probabilities()).tolist()
    inner_probabilities = [p for p in probabilities if 0 < p < 1]
    thresholds = st.none() | st.floats(0.01, 0.99)
    if inner_probabilities:
        thresholds = thresholds | st.sampled_from(inner_probabilities)
    return replace(model, threshold=draw(thresholds))


# --- literally ----------------------------------------------------------------------------------


class Reached(NamedTuple):
    """What a row reaches in a tree: the mean of some leaves, and the likeliest of them."""

    probability: float
    n_leaves: int
    likeliest_leaf: int


def follow(tree, row, node=None):
    """What one row reaches from a node, by recursion; a negative node ~n is leaf n.

    A row is a list of values by position, None where one is missing. Both sides of a rule count,
    by their training samples, if it says nothing of missing values.
    """
    if node is None:
        node = 0 if tree.splits else -1
    if node < 0:
        probability = tree.leaf_probabilities().tolist()[~node]
        return Reached(probability, n_leaves=1, likeliest_leaf=~node)
    split = tree.splits[node]
    truth = is_true(split.rule, row[split.rule.column])
    if truth is not None:
        return follow(tree, row, split.if_true if truth else split.if_false)

    if_true = follow(tree, row, split.if_true)
    if_false = follow(tree, row, split.if_false)
    n_true = count_samples(tree, split.if_true)
    n_false = count_samples(tree, split.if_false)
    share = n_true / (n_true + n_false) if n_true + n_false else 0.5
    likelier = if_true if share >= 0.5 else if_false
    return Reached(
        probability=share * if_true.probability + (1 - share) * if_false.probability,
        n_leaves=if_true.n_leaves + if_false.n_leaves,
        likeliest_leaf=likelier.likeliest_leaf,
    )


def count_samples(tree, node):
    """The training samples of a node."""
    if node < 0:
        return sum(map(sum, tree.leaves[~node]))
    split = tree.splits[node]
    return count_samples(tree, split.if_true) + count_samples(tree, split.if_false)


def name_unseen(model, row):
    """The columns that a row lacks and of which a rule says nothing."""
    undecided = {rule.name for rule in model.rules if is_true(rule, row[rule.column]) is None}
    names = dict.fromkeys(rule.name for rule in model.rules)
    return ", ".join(f"{name} missing" for name in names if name in undecided)


def is_true(rule, value):
    """A rule about one value; None if it says nothing of missing ones."""
    if isinstance(rule, MissingRule):
        return (value is None) == rule.is_missing
    if value is None:
        return rule.missing
    if isinstance(rule, ThresholdRule):
        return (value > rule.threshold) == rule.above
    if isinstance(rule, CategoryRule):
        return (value in rule.levels) == rule.equal
    return (value > 0) == rule.present


def compute_chance(tree, leaf):
    """The probability of a leaf, as its definition has it."""
    negatives, positives = tree.leaves[leaf]
    if not tree.balanced:
        return (sum(positives) + 1) / (sum(negatives) + sum(positives) + 2)
    rates = [(k + 1) / (n + k + 2) for n, k in zip(negatives, positives, strict=True) if n + k > 0]
    return sum(rates) / len(rates) if rates else 0.5
