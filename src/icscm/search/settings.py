"""Input of a search for a rule set: settings, the source as the search sees it, and its query.

A disjunction is learned as a conjunction on the inverted label: `ConjunctionView` inverts the
counts. A source that examines candidates itself gets the criteria of a step in plain numbers, a
`CandidateCriteria`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from icscm._constants import DEFAULT_MARGIN
from icscm._lazy import special
from icscm._types import CountArray, FloatArray, IntArray
from icscm.engine.bits import expand, list_alike
from icscm.engine.counts import (
    BinnedRule,
    CandidateCriteria,
    ClusterPatterns,
    CountCube,
    CountSource,
    Cut,
    PatternTable,
    RulePath,
)
from icscm.engine.leaf_tables import EITHER_SIDE, LeafTables, Utility, compute_leaf_tables
from icscm.model.rules import Rule
from icscm.model.splits import LeafCounts
from icscm.stats.criteria import Criterion, EquivalenceCriterion, PValueCriterion
from icscm.stats.design_effects import compute_leaf_design_effects
from icscm.stats.independence import ChiSquaredTest, GTest, IndependenceTest
from icscm.stats.replication import compute_factors, find_effective_bounds
from icscm.stats.verdicts import Verdict, make_verdicts

# Statistics nearer to the critical value are decided by the search itself: a relative distance, and
# one per sample, for the rounding of sums.
_SLACK = 1e-9
_SLACK_OF_SAMPLE = 1e-13


@dataclass(frozen=True)
class Settings:
    """Settings of the search for a rule set.

    Without a `test` nothing is rejected for depending on the environment: the plain SCM.
    """

    p: float = 1.0
    model_type: str = "conjunction"
    max_rules: int = 10
    alpha: float = 0.05
    test: IndependenceTest | None = None
    stop: str = "coverage"
    pruning: bool | str = False
    min_samples_leaf: int = 1
    min_replication: float = 0.0
    min_utility: float | None = None
    min_evidence: float = 0.0
    search: str = "greedy"
    feature_weights: FloatArray | None = None
    evidence: str = "step"
    conclusion: str = "intersection"
    criterion: str = "pvalue"
    margin: float = DEFAULT_MARGIN
    margin_on: str = "rate"
    correction: str | None = None
    missing: str = "candidate"

    def make_criterion(self, level: float | None = None) -> Criterion | None:
        """What criteria (i) and (ii) accept as invariant, at alpha or another level."""
        if self.test is None:
            return None
        alpha = self.alpha if level is None else level
        if self.criterion == "equivalence":
            return EquivalenceCriterion(alpha, self.margin, self.margin_on)
        return PValueCriterion(self.test, alpha)

    def make_verdicts(
        self,
        leaves: Sequence[LeafCounts],
        levels: Sequence[float | None] | None = None,
        test: IndependenceTest | None = None,
        effects: FloatArray | None = None,
    ) -> tuple[Verdict, ...]:
        """The verdict on each leaf by the settings' own or another test; none without a test.

        A leaf that the criterion accepts is never *not invariant*. `levels` are those at which
        criterion (i) tested the leaves, None for alpha; `effects` are their design effects.
        """
        test = test or self.test
        if test is None:
            return ()
        return make_verdicts(
            leaves,
            test,
            self.alpha,
            self.margin,
            margin_on=self.margin_on,
            trivial_is_invariant=self.criterion == "equivalence",
            levels=[self.alpha if each is None else each for each in levels] if levels else None,
            effects=effects,
        )


class ConjunctionView:
    """A source as the search for a conjunction sees it: for a disjunction, labels are inverted.

    Features of different weights are not alike: then identical features come each by itself. With
    `missing="separate"` no printed rule is true for a missing value; where the printed rules are
    the negations of those searched, these are all true for it.
    """

    def __init__(self, source: CountSource, settings: Settings) -> None:
        self.source, self.settings = source, settings
        self.kind = settings.model_type
        self.inverted = self.kind == "disjunction"
        self._sides = (self.inverted,) if settings.missing == "separate" else EITHER_SIDE
        self._expanded = settings.feature_weights is not None
        self.make_binned_rule = source.candidates.make_binned_rule
        #: whether tests are corrected for rows that come in groups, or have weights
        has_groups = getattr(source, "groups", None) is not None
        self.is_clustered = has_groups and settings.test is not None

    def flip(self, counts: CountArray) -> CountArray:
        """Counts by the labels as the search sees them, or back."""
        return counts[..., ::-1, :] if self.inverted else counts

    def leaf_tables(
        self, samples: CountArray, cubes: Iterable[CountCube] | None = None
    ) -> Iterator[LeafTables]:
        """The leaves of all candidates, or of those in some cubes, each of these samples."""
        candidates = self.source.candidates
        for cube in self.source.counts() if cubes is None else cubes:
            cube = expand(cube, candidates) if self._expanded else cube
            if self.inverted:
                cube = replace(cube, counts=self.flip(cube.counts))
            cube.check(samples)
            yield compute_leaf_tables(cube, candidates, self._sides, inverted=self.inverted)

    def make_rule(self, cut: Cut) -> Rule:
        """The rule as the model prints it."""
        rule = self.source.candidates.make_rule(cut)
        return rule.negate() if self.inverted else rule

    def list_alike(self, cut: Cut, most: int) -> list[Cut]:
        """The cut and those of identical features, the first of them."""
        return [cut] if self._expanded else list_alike(cut, self.source.candidates, most)

    def measure_effects(
        self, cuts: Iterable[Cut | BinnedRule], tables: CountArray
    ) -> FloatArray | None:
        """Design effects of the leaves that rules would cover; None for independent rows."""
        if not self.is_clustered:
            return None
        counter: Any = self.source
        rules = [self.make_binned_rule(e) if isinstance(e, Cut) else e for e in cuts]
        return compute_leaf_design_effects(self.flip(tables), counter.count_clusters(rules))

    def count_patterns(self, rules: Sequence[BinnedRule]) -> "Patterns":
        """Samples by the values of some rules."""
        counter: Any = self.source
        clusters = counter.count_cluster_patterns(rules) if self.is_clustered else None
        return Patterns(self.source.count_patterns(rules), clusters)

    def find_equivalent(self, path: RulePath, chosen: Cut, others: Sequence[Cut]) -> list[Cut]:
        """Which of the others cover exactly the uncovered samples that the chosen one covers."""
        if not others:
            return []
        rule, *rules = map(self.make_binned_rule, (chosen, *others))
        same = self.source.find_same_coverage(path, rule, rules)
        return [cut for cut, is_same in zip(others, same, strict=True) if is_same]


@dataclass(frozen=True)
class Patterns:
    """Samples by the values of some rules; with clusters, where tests are corrected for these."""

    table: PatternTable
    clusters: ClusterPatterns | None = None

    def find_leaves(self, rules: Sequence[int], others: Sequence[int] | None = None) -> IntArray:
        """The leaf of each pattern in the conjunction of some of the rules: the first false.

        With as many `others`, -1 for patterns that fall into another leaf of their conjunction.
        """
        ends = np.zeros((len(self.table.patterns), 1), dtype=np.bool_)
        numbers, other = (
            np.hstack((self.table.patterns[:, list(each)], ends)).argmin(axis=1)
            for each in (rules, others or rules)
        )
        return np.where(numbers == other, numbers, -1)

    def compute_leaves(
        self, rules: Sequence[int], others: Sequence[int] | None = None
    ) -> CountArray:
        """Counts (leaf, label, environment) of the conjunction of some of the rules.

        With as many `others`, only of samples that fall into the same leaf of their conjunction.
        """
        numbers, counts = self.find_leaves(rules, others), self.table.counts
        leaves = np.zeros((len(rules) + 1, *counts.shape[1:]), dtype=counts.dtype)
        np.add.at(leaves, numbers[numbers >= 0], counts[numbers >= 0])
        return leaves

    def measure_effects(self, parts: IntArray, tables: CountArray) -> FloatArray | None:
        """Design effects of tables, given the one that each pattern is in; -1 for none.

        None for independent rows.
        """
        if self.clusters is None:
            return None
        return compute_leaf_design_effects(tables, self.clusters.count_moments(parts, len(tables)))

    def measure_all(self, parts: Iterable[IntArray], tables: Iterable[CountArray]) -> Any:
        """The same for several lists of tables."""
        if self.clusters is None:
            return None
        return [self.measure_effects(*each) for each in zip(parts, tables, strict=True)]


def make_criteria(
    view: ConjunctionView, criterion: Criterion | None, utility: Utility, in_play: CountArray
) -> CandidateCriteria | None:
    """The criteria of all candidates; None where plain numbers cannot express them."""
    settings, statistic = view.settings, _find_statistic(criterion)
    if statistic is None or settings.feature_weights is not None:
        return None
    if settings.evidence == "cumulative":
        return None
    n_samples = int(in_play.sum())
    dof = np.arange(1, in_play.shape[1])
    critical = np.full(in_play.shape[1], np.inf)
    if isinstance(criterion, PValueCriterion):
        critical[1:] = special.chdtri(dof, criterion.alpha)
    slack = _SLACK * critical + _SLACK_OF_SAMPLE * n_samples
    slack[~np.isfinite(critical)] = 0.0
    p_numerator, p_denominator = utility.ratio.as_integer_ratio()
    unreplicated_below, replicated_from = find_effective_bounds(in_play, settings.min_replication)
    min_evidence = 0.0 if settings.min_utility is None else settings.min_evidence
    return CandidateCriteria(
        is_inverted=view.inverted,
        p_numerator=p_numerator,
        p_denominator=p_denominator,
        min_rows=settings.min_samples_leaf,
        statistic=statistic,
        passes_below=critical - slack,
        fails_from=critical + slack,
        replication_factors=compute_factors(in_play),
        unreplicated_below=unreplicated_below,
        replicated_from=replicated_from,
        min_utility=utility.find_bound(settings.min_utility),
        positive_rates=in_play[1] / np.maximum(in_play.sum(axis=0), 1),
        min_evidence=min_evidence,
        evidence_slack=_SLACK * min_evidence + _SLACK_OF_SAMPLE * n_samples,
    )


def _find_statistic(criterion: Criterion | None) -> str | None:
    """The name of the test's statistic; None for tests that need more than a statistic."""
    if criterion is None:
        return "none"
    test: IndependenceTest | None = getattr(criterion, "test", None)
    if not isinstance(criterion, PValueCriterion) or type(test) not in (ChiSquaredTest, GTest):
        return None
    return "g" if isinstance(test, GTest) else "yates" if test.yates else "pearson"  # type: ignore[union-attr]
