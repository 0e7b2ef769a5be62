"""Settings of a search for a rule set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from icscm._constants import DEFAULT_MARGIN
from icscm._types import FloatArray
from icscm.model.splits import LeafCounts
from icscm.stats.criteria import Criterion, EquivalenceCriterion, PValueCriterion
from icscm.stats.independence import IndependenceTest
from icscm.stats.verdicts import Verdict, make_verdicts


@dataclass(frozen=True)
class Settings:
    """What the search needs besides the counts.

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
    search: str = "greedy"
    feature_weights: FloatArray | None = None
    evidence: str = "step"
    n_candidates: int = 8
    screen: str = "association"
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
    ) -> tuple[Verdict, ...]:
        """The verdict on each leaf by the settings' own or another test; none without a test.

        A leaf that the criterion accepts is never *not invariant*. `levels` are those at which
        criterion (i) tested the leaves, None for alpha.
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
        )
