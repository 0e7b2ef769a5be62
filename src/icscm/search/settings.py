"""Settings of the search for a rule set."""

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
    """Settings of the search for a rule set.

    The parameters of the learners have the same names; here they have their final values.

    Parameters
    ----------
    p : float
        The cost of a positive that a rule covers: the utility of a rule is |A| - p |B|.
    model_type : {"conjunction", "disjunction"}
        How the rules are joined.
    max_rules : int
        The largest number of rules.
    alpha : float
        The level of criteria (i) and (ii).
    test : IndependenceTest, optional
        Without a test nothing is rejected for depending on the environment: the plain SCM.
    stop : {"coverage", "independence"}
        Whether criterion (ii) may end the search.
    pruning : bool or "always"
        Whether Proposition 3.2 is applied: where it holds, or for whatever reason the search ended.
    min_replication : float
        Of a rule: see `icscm.stats.replication`.
    min_utility : float, optional
        Of a rule, and of all rules together.
    min_evidence : float
        Of a rule, that it is not due to chance; only with `min_utility`.
    search : {"greedy", "exhaustive"}
        The search.
    margin : float, optional
        With a margin, criteria (i) and (ii) accept only leaves whose rates are shown to differ by
        no more than that; without one, leaves whose rates are not shown to differ.
    """

    p: float = 1.0
    model_type: str = "conjunction"
    max_rules: int = 10
    alpha: float = 0.05
    test: IndependenceTest | None = None
    stop: str = "coverage"
    pruning: bool | str = False
    min_replication: float = 0.0
    min_utility: float | None = None
    min_evidence: float = 0.0
    search: str = "greedy"
    margin: float | None = None

    @property
    def needs_replication(self) -> bool:
        """Whether a rule must be informative in several environments."""
        return self.test is not None and self.min_replication > 0

    def make_criterion(self) -> Criterion | None:
        """Make the criterion by which (i) and (ii) accept a leaf; None if nothing is tested."""
        if self.test is None:
            return None
        if self.margin is not None:
            return EquivalenceCriterion(self.alpha, self.margin)
        return PValueCriterion(self.test, self.alpha)

    def make_verdicts(
        self,
        leaves: Sequence[LeafCounts],
        *,
        test: IndependenceTest | None = None,
        effects: FloatArray | None = None,
    ) -> tuple[Verdict, ...]:
        """Make the verdict on each leaf, by the settings' test or another one; none without a test.

        A leaf that the criterion accepts is never *not invariant*. `effects` are the design effects
        of the leaves, where rows come in clusters.
        """
        test = test or self.test
        if test is None:
            return ()
        # Without a margin of their own, verdicts say whether a usual one is shown to hold.
        margin = DEFAULT_MARGIN if self.margin is None else self.margin
        return make_verdicts(
            leaves,
            test,
            self.alpha,
            margin,
            trivial_is_invariant=self.margin is not None,
            effects=effects,
        )
