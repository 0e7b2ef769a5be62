"""Random trees and forests over given rules, with a literal implementation of prediction."""

from dataclasses import replace
from itertools import accumulate
from random import Random

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
    children = [[None, None] for _ in rules]
    free = [(0, 0), (0, 1)] if rules else []
    for number in range(1, len(rules)):
        parent, side = free.pop(rng.randrange(len(free)))
        children[parent][side] = number
        free += [(number, 0), (number, 1)]
    counts = leaves or _make_counts(rules, rng, n_environments)
    return Tree(number_leaves(rules, children), counts, balanced=balanced)


def number_leaves(rules, children):
    """Splits of rules and pairs of children, in which leaves, None, are numbered by a walk."""
    n_leaves, stack = 0, [(0, 1), (0, 0)] if rules else []
    while stack:
        parent, side = stack.pop()
        child = children[parent][side]
        if child is None:
            children[parent][side] = ~n_leaves
            n_leaves += 1
        else:
            stack += [(child, 1), (child, 0)]
    return tuple(Split(rule, *pair) for rule, pair in zip(rules, children, strict=True))


def make_chain(rules, side=0, *, leaves=None):
    """A tree that goes on to the same side only; 0 is where rules are true."""
    children = [[None, None] for _ in rules]
    for number in range(1, len(rules)):
        children[number - 1][side] = number
    counts = leaves or tuple(((3, i % 5), (1, i % 7)) for i in range(len(rules) + 1))
    return Tree(number_leaves(rules, children), counts)


def _make_counts(rules, rng, n_environments):
    most = rng.choice([1, 10, 1000])
    return tuple(
        tuple(tuple(rng.randint(0, most) for _ in range(n_environments)) for _ in range(2))
        for _ in range(len(rules) + 1)
    )


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
    by_column = sorted(rules, key=lambda rule: rule.column)
    terms = tuple(Term(rule, 1 + number % 4) for number, rule in enumerate(by_column))
    log_odds = tuple(total / 3 - 2 for total in range(find_max_total(terms) + 1))
    score = Score(terms, log_odds, (2,), (((3, 4), (1, 2)), ((1, 0), (5, 6))))
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
    asked = draw(st.lists(rules, max_size=max_splits))
    rng = draw(st.randoms(use_true_random=False))
    return make_tree(asked, rng, n_environments=n_environments, balanced=draw(st.booleans()))


@st.composite
def scores(draw, rules, *, max_terms=8, n_environments=2):
    """Scores over rules that a strategy gives, those of a column together."""
    asked = sorted(draw(st.lists(rules, max_size=max_terms)), key=lambda rule: rule.column)
    terms = tuple(Term(rule, draw(st.integers(0, 9))) for rule in asked)
    leaf = tuple((draw(st.integers(0, 99)),) * n_environments for _ in range(2))
    highest = find_max_total(terms)
    steps = draw(st.lists(st.floats(0, 2), min_size=highest + 1, max_size=highest + 1))
    log_odds = tuple(accumulate(steps, initial=draw(st.floats(-5, 5))))[1:]
    bounds = tuple(each for each in (1, 4) if each <= highest)
    return Score(terms, log_odds, bounds, (leaf,) * (len(bounds) + 1))


def forests(rules, *, max_trees=4, **options):
    """Forests of such trees."""
    some = st.lists(trees(rules, **options), min_size=1, max_size=max_trees)
    return some.map(lambda each: Forest(tuple(each)))


@st.composite
def calibrated(draw, models):
    """Such models, calibrated and with a threshold, which is often a probability of a leaf."""
    pair = draw(st.just((0.0, 1.0)) | st.tuples(st.floats(-9, 9), st.floats(0.1, 4)))
    model = replace(draw(models), calibration=pair)
    tree = model.trees[0] if isinstance(model, Forest) else model
    seen = [p for p in model.calibrate(tree.leaf_probabilities()).tolist() if 0 < p < 1]
    cuts = st.none() | st.floats(0.01, 0.99)
    return replace(model, threshold=draw(cuts | st.sampled_from(seen) if seen else cuts))


# --- literally ----------------------------------------------------------------------------------


def follow(tree, row, node=None):
    """Probability, number of leaves and likeliest leaf of one row, by recursion.

    A row is a list of values by position, None where one is missing. Both sides of a rule count,
    by their training samples, if it says nothing of missing values.
    """
    node = (0 if tree.splits else -1) if node is None else node
    if node < 0:
        return tree.leaf_probabilities().tolist()[~node], 1, ~node
    split = tree.splits[node]
    truth = is_true(split.rule, row[split.rule.column])
    if truth is not None:
        return follow(tree, row, split.if_true if truth else split.if_false)
    one, other = (follow(tree, row, child) for child in (split.if_true, split.if_false))
    m, n = (count_samples(tree, child) for child in (split.if_true, split.if_false))
    share = m / (m + n) if m + n else 0.5
    likelier = one if share >= 0.5 else other
    return share * one[0] + (1 - share) * other[0], one[1] + other[1], likelier[2]


def count_samples(tree, node):
    if node < 0:
        return sum(map(sum, tree.leaves[~node]))
    split = tree.splits[node]
    return count_samples(tree, split.if_true) + count_samples(tree, split.if_false)


def name_unseen(model, row):
    """The columns that a row lacks and of which a rule says nothing."""
    names = {rule.name: None for rule in model.rules}
    lacks = {r.name for r in model.rules if is_true(r, row[r.column]) is None}
    return ", ".join(f"{name} missing" for name in names if name in lacks)


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
    pairs = [(n, k) for n, k in zip(negatives, positives, strict=True) if n + k]
    return sum((k + 1) / (n + k + 2) for n, k in pairs) / len(pairs) if pairs else 0.5
