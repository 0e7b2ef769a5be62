"""Exhaustive search over a screened set of rules, leaf by leaf.

    counts -> one rule per associated feature, copies joined -> their joint table
           -> every subset's leaves -> accepted subsets -> what they all share, or the best

The greedy search treats "not rejected" as "invariant", so tests of low power may mislead it. Here
every subset of a few candidate rules is tested as a whole, and only rules that all accepted
subsets share are reported, as invariant causal prediction does; but a subset of d rules makes
d + 1 leaves, not 2^d strata, so its test has far more power. `docs/theory.md` has the guarantee
and its assumptions.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from icscm._constants import CHANCE_LEVEL, MAX_EQUIVALENT_RULES
from icscm._lazy import special
from icscm._types import CountArray, FloatArray, IntArray
from icscm.engine.counts import CountSource, Cut
from icscm.engine.leaf_tables import LeafTables, make_utility
from icscm.formatting import count
from icscm.model.splits import freeze_counts
from icscm.model.tree import Tree, make_chain
from icscm.search.columns import average_design
from icscm.search.records import Candidate, Screened, SetTest
from icscm.search.sets import find_beside, find_best, find_shared, list_subsets
from icscm.search.settings import ConjunctionView, Patterns, Settings
from icscm.search.trace import Step, Trace, make_trace
from icscm.stats.criteria import PValueCriterion
from icscm.stats.independence import PEARSON, GTest, compute_bic, compute_conditional, exceeds
from icscm.stats.replication import find_replicated
from icscm.stats.verdicts import Verdict


def choose_alpha(n_samples: int) -> float:
    """The level for `alpha="auto"`: 0.05 for few samples, 200 / m for more than 4,000.

    In up to alpha of the runs the true set is rejected. With many samples wrong sets have very
    small p-values, so that a smaller alpha has no disadvantage.

    >>> choose_alpha(2_000), choose_alpha(20_000)
    (0.05, 0.01)
    """
    return min(0.05, 200.0 / n_samples)


def learn_exhaustively(source: CountSource, settings: Settings) -> tuple[Tree, Trace]:
    """Learn from counts the rules that all accepted subsets of the screened rules share.

    Or, for `conclusion="best"`, the accepted subset of lowest BIC. Subsets of more than `max_rules`
    rules are not tried.
    """
    view = ConjunctionView(source, settings)
    screened, n_tried, n_beyond = _screen(view)
    rules = [view.make_rule(each.cut) for each in screened]
    binned = [view.make_binned_rule(each.cut) for each in screened]
    # where a rule has forms that are wider and narrower by the bins beside its cut, these follow
    wide, narrow = [*range(len(rules))], [*range(len(rules))]
    for number, beside in enumerate(find_beside(source, binned)):
        if beside is not None:
            wide[number], narrow[number] = len(binned), len(binned) + 1
            binned += beside
    patterns = view.count_patterns(binned)
    subsets = list_subsets(len(rules), settings.max_rules)
    # G summed over the leaves of each subset's conjunction, of samples not beside a cut
    certain = [([wide[i] for i in each], [narrow[i] for i in each]) for each in subsets]
    every = [patterns.compute_leaves(*each) for each in certain]
    numbers = (patterns.find_leaves(*each) for each in certain)
    p_values = compute_conditional(every, effects=patterns.measure_all(numbers, every)).p_values
    design = average_design(source)  # fewer samples, where rows belong together
    bics = compute_bic([patterns.compute_leaves(each) / design for each in subsets])
    names = [tuple(rules[i].feature for i in each) for each in subsets]
    found = p_values, exceeds(p_values, settings.alpha), bics
    sets = tuple(map(SetTest, names, *(each.tolist() for each in found)))
    accepted = {s: each.bic for s, each in zip(subsets, sets, strict=True) if each.accepted}
    chosen = find_best(accepted) if settings.conclusion == "best" else find_shared(accepted)
    kept = sorted(chosen or ())
    leaves = patterns.compute_leaves(kept)
    model = make_chain(settings.model_type, tuple(rules[i] for i in kept), freeze_counts(leaves))
    # the test that was used for the sets
    places = patterns.find_leaves(kept)
    own = patterns.measure_effects(places, leaves)
    verdicts = settings.make_verdicts(model.leaves, test=GTest(), effects=own)
    untested = _describe_untested(len(rules), n_beyond, settings)
    reason = "nothing_associated" if not screened else "all_rejected"
    if chosen is not None and screened:
        reason = ("" if chosen else "empty_") + settings.conclusion
    statistics = [each.statistic for each in screened]
    passed = zip(rules, statistics, _compute_p_values(statistics, n_tried).tolist(), strict=True)
    return model, make_trace(
        source,
        _make_steps(view, [screened[i] for i in kept], leaves, verdicts, n_tried, patterns, places),
        notes=(*source.notes, untested) if untested else tuple(source.notes),
        verdicts=verdicts,
        stop_reason=reason,
        alpha=settings.alpha,
        criterion=PValueCriterion(GTest(), settings.alpha),
        screening=tuple(Screened(*each) for each in passed),
        sets=sets,
        untested=untested,
    )


def _describe_untested(n_rules: int, n_beyond: int, settings: Settings) -> str | None:
    """A sentence on sets that were not tested because of limits; None if all were."""
    texts = []
    if n_beyond:
        texts.append(f"with any of {count(n_beyond, 'weaker rule')}")
    if n_rules > settings.max_rules:
        texts.append(f"of more than {settings.max_rules} of the {n_rules} screened rules")
    return f"Sets {' and sets '.join(texts)} were not tested." if texts else None


class _Association(NamedTuple):
    """A feature's best rule; sorts the strongest first, then as ties are broken.

    `rank` is the negative of its statistic times the weight of the feature; `alike` are the rules
    that cover the same samples.
    """

    rank: float
    cut: Cut
    statistic: float
    leaf: bytes
    alike: Sequence[Cut] = ()


def _screen(view: ConjunctionView) -> tuple[list[_Association], int, int]:
    """The best rule of each feature that is significantly associated with the label.

    At most `n_candidates`, strongest first; those that cover the same samples are one, which the
    first of them stands for. And the number of rules tried, by which Bonferroni's correction
    multiplies the p-values, and how many passed besides.
    """
    settings, samples = view.settings, view.flip(view.source.count_totals())
    design, weights = average_design(view.source), settings.feature_weights
    found: list[_Association] = []
    n_tried = 0
    for leaves in view.leaf_tables(samples):
        statistics = _associate(view, leaves, samples) / design
        n_tried += leaves.count(statistics > 0)
        best = leaves.find_best(statistics)
        # more rules will be tried, but what is not significant now will never be
        p_values = _compute_p_values(statistics[best], n_tried)
        for one in best[(statistics[best] > 0) & (p_values <= CHANCE_LEVEL)].tolist():
            cut, statistic = leaves.locate(one), float(statistics[one])
            weight = 1.0 if weights is None else float(weights[cut.feature])
            leaf = leaves.tables[one].tobytes()
            found.append(_Association(-statistic * weight, cut, statistic, leaf))
    is_significant = _compute_p_values([each.statistic for each in found], n_tried) <= CHANCE_LEVEL
    found = sorted(each for each, is_so in zip(found, is_significant, strict=True) if is_so)
    most = MAX_EQUIVALENT_RULES + 1
    screened: list[_Association] = []
    while found and len(screened) < settings.n_candidates:
        first = found[0]
        others = [each.cut for each in found[1:] if each.leaf == first.leaf]
        same = {first.cut, *view.find_equivalent((), first.cut, others)}
        alike = sorted(copy for each in same for copy in view.list_alike(each, most))[:most]
        screened.append(first._replace(alike=[each for each in alike if each != first.cut]))
        found = [each for each in found if each.cut not in same]
    return screened, n_tried, len(found)


def _associate(view: ConjunctionView, leaves: LeafTables, samples: CountArray) -> FloatArray:
    """Pearson's statistic of each rule against the label.

    0 for rules in the wrong direction (their leaf is more positive than the other samples): this
    holds for a rule or its negation, so each cut counts once.
    """
    settings, leaf = view.settings, leaves.tables.sum(axis=2)
    rest = samples.sum(axis=1) - leaf
    points_right = rest[:, 1] * leaf.sum(axis=1) > leaf[:, 1] * rest.sum(axis=1)
    n_least = np.minimum(leaf.sum(axis=1), rest.sum(axis=1))
    allowed = points_right & (n_least >= settings.min_samples_leaf)
    if settings.min_replication:
        allowed &= find_replicated(leaves.tables, samples, settings.min_replication)
    if settings.feature_weights is not None:
        allowed &= settings.feature_weights[leaves.find_features()] > 0
    if settings.screen == "invariance" and settings.test is not None:
        which = np.flatnonzero(allowed)
        cuts = map(leaves.locate, which.tolist())
        own = leaves.tables[which], view.measure_effects(cuts, leaves.tables[which])
        allowed[which] = PValueCriterion(settings.test, settings.alpha).find_accepted(*own)
    tables = np.stack((leaf, rest), axis=2)
    return np.where(allowed, PEARSON.compute_statistics(tables)[0], 0.0)


def _compute_p_values(statistics: Sequence[float] | FloatArray, n_tried: int) -> FloatArray:
    tails: FloatArray = special.chdtrc(1, np.asarray(statistics, dtype=np.float64))
    return np.minimum(n_tried * tails, 1.0)


def _make_steps(
    view: ConjunctionView,
    chosen: Sequence[_Association],
    leaves: CountArray,
    verdicts: Sequence[Verdict],
    n_tried: int,
    patterns: Patterns,
    places: IntArray,
) -> Iterator[Step]:
    """The model's rules as steps, with the leaf of each and the samples uncovered after it."""
    samples = view.flip(view.source.count_totals())
    p, weights = view.settings.p, view.settings.feature_weights
    utility = make_utility(p, weights, int(samples.sum()))
    for number, each in enumerate(chosen):
        uncovered = leaves[number + 1 :].sum(axis=0)
        both = np.stack((uncovered, leaves[: number + 1].sum(axis=0)))
        own = patterns.measure_effects((places <= number).astype(np.int64), both)
        found = None if own is None else [own[:1]]
        tested = compute_conditional([uncovered[np.newaxis]], effects=found)
        alone = np.frombuffer(each.leaf, samples.dtype).reshape(samples.shape)
        yield Step(
            n_candidates=n_tried,
            n_rejected={},
            chosen=Candidate(
                rule=view.make_rule(each.cut),
                covered=freeze_counts(leaves[number]),
                utility=utility.compute(alone, each.cut.feature),
                verdict=verdicts[number],
            ),
            uncovered=freeze_counts(uncovered),
            p_value_uncovered=float(tested.p_values[0]),
            equivalent=tuple(map(view.make_rule, each.alike)),
            n_tied=1 + len(each.alike),
        )
