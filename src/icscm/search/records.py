"""Records that a trace is made of: candidates, rejections, and tests of columns, sets and trees.

They are immutable and hold plain values, so that a trace can be compared, stored and printed. Their
fields are public: they are the keys of `Trace.to_dict`. What all rule sets and trees have in common
is in `icscm.search.trace`.
"""

from dataclasses import dataclass
from typing import Any

from icscm.model.rules import Rule
from icscm.model.splits import LeafCounts
from icscm.stats.verdicts import Verdict

# Why a search ended, to complete "the search stopped because ..."; why a leaf of a tree was not
# split, to complete "it was not split because ...".
STOP_REASONS = {
    "covered": "no uncovered sample is left that another rule could cover correctly",
    "independence": "the label of the uncovered samples no longer depends on the environment",
    "max_rules": "the largest allowed number of rules was reached",
    "no_candidate": "no acceptable candidate rule was left",
    "intersection": "all sets were tested, and the accepted sets share these rules",
    "empty_intersection": "all sets were tested, and the accepted sets share no rule",
    "all_rejected": "all sets were tested, and every one was rejected",
    "nothing_associated": "no feature is significantly associated with the label",
    "max_leaves": "the largest allowed number of leaves was reached",
    "small": "it has too few samples, or one label only",
    "uninformative": "no split explains more deviance than expected by chance",
    "rejected": "all splits that explain more deviance than expected by chance were rejected",
}


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A rule, or the split of a node, that a scan examined.

    Parameters
    ----------
    rule : Rule
        As the model prints it.
    covered : tuple of tuple of int
        For rule sets: the rows that it covers, by outcome and environment.
    utility : float or None
        For rule sets: abs(A) - p abs(B), with the rows A that it covers rightly and B wrongly.
    verdict : Verdict or None
        For rule sets: the verdict on the leaf, the rows that it covers.
    replication : float or None
        For rule sets: the effective number of informative environments, minus 1, relative to those
        that could be; None where it cannot be assessed.
    design_effect : float or None
        Of the leaf, where rows come in groups or have weights.
    if_true, if_false : tuple of tuple of int
        For trees: the rows on either side, by outcome and environment.
    deviance_explained : float or None
        By an effect common to all environments or, for rates, over all rows together.
    rate_heterogeneity : float or None
        By how much the split changes the outcome's dependence on the environment, the G
        statistic; below 0 it explains some.
    heterogeneity : float or None
        By how much its effect differs between environments beyond chance.
    heterogeneity_share : float or None
        The same relative to the effect: the square of its coefficient of variation.
    log_odds_ratio : float or None
        The common effect: log odds ratio of the outcome where the rule is true against where not.
    """

    rule: Rule
    covered: LeafCounts = ()
    utility: float | None = None
    verdict: Verdict | None = None
    replication: float | None = None
    if_true: LeafCounts = ()
    if_false: LeafCounts = ()
    deviance_explained: float | None = None
    rate_heterogeneity: float | None = None
    heterogeneity: float | None = None
    heterogeneity_share: float | None = None
    log_odds_ratio: float | None = None
    design_effect: float | None = None

    @property
    def worth(self) -> float:
        """What candidates are ranked by: the utility of a rule, the deviance a split explains."""
        if self.utility is not None:
            return self.utility
        return self.deviance_explained or 0.0

    @property
    def p_value(self) -> float | None:
        """Of the test of independence in the leaf."""
        return None if self.verdict is None else self.verdict.p_value


@dataclass(frozen=True)
class Rejection:
    """A candidate that was rejected.

    Parameters
    ----------
    candidate : Candidate
        The candidate.
    reason : str
        Why: `"dependent"`, `"unreplicated"` or `"unhelpful"` of a rule, `"heterogeneous"`,
        `"reversed"`, `"unreplicated"`, `"banned"` or `"idle"` of a split.
    """

    candidate: Candidate
    reason: str


@dataclass(frozen=True)
class RejectedColumn:
    """A column that a model may not use.

    Parameters
    ----------
    rule : Rule
        The split of the column that was judged.
    reason : str
        Why it was rejected: `"determines the environment"` (`icscm.stats.giveaways`) and, for
        invariant effects, `"unreplicated"`, `"heterogeneous"` or `"reversed"`.
    round : int
        The round of the screen that rejected it; 0 for replication, which is tested first.
    replication : float or None
        For columns that are not replicated: the effective number of informative environments,
        minus 1, relative to those that could be.
    heterogeneity_share : float or None
        By how much the effect of the split, given the tree, differs between environments beyond
        chance, relative to the deviance that the tree explains.
    p_value : float or None
        That of Cochran's Q for these differences, corrected for all splits.
    lowest, highest : tuple of environment and float, or None
        The environments of the lowest and the highest effect: log odds relative to the common
        effect, given the tree, shrunken by their sampling error.
    """

    rule: Rule
    reason: str
    round: int
    replication: float | None = None
    heterogeneity_share: float | None = None
    p_value: float | None = None
    lowest: tuple[Any, float] | None = None
    highest: tuple[Any, float] | None = None

    def describe(self) -> dict[str, Any]:
        """Return the fields as a row of a table.

        Returns
        -------
        dict
            Plain values by name.
        """
        lowest_environment, lowest_effect = self.lowest or (None, None)
        highest_environment, highest_effect = self.highest or (None, None)
        return {
            "feature": self.rule.feature,
            "rule": str(self.rule),
            "reason": self.reason,
            "round": self.round,
            "replication": self.replication,
            "heterogeneity_share": self.heterogeneity_share,
            "p_value": self.p_value,
            "lowest_environment": lowest_environment,
            "lowest_effect": lowest_effect,
            "highest_environment": highest_environment,
            "highest_effect": highest_effect,
        }


@dataclass(frozen=True)
class PruningTest:
    """One conditional test of Proposition 3.2: outcome against environment without a column.

    Parameters
    ----------
    round : int
        The round of tests, from 1 on; each removes at most one column.
    feature : str or int
        The column without which is tested.
    statistic : float
        G, summed over the combinations of truths of the other columns' rules.
    dof : int
        Its degrees of freedom.
    p_value : float
        The p-value of the test.
    removed : bool
        Whether the column was removed.
    undone : bool
        Whether the removal was undone, since a leaf of the remaining rules did not pass.
    """

    round: int
    feature: str | int
    statistic: float
    dof: int
    p_value: float
    removed: bool
    undone: bool = False


@dataclass(frozen=True)
class PruningOutcome:
    """The result of pruning, and its cost.

    Parameters
    ----------
    outcome : str
        `"removed"`, `"needed"`, `"single"` or `"not_ended"`.
    n_wrong_before, n_wrong_after : int
        Wrong predictions of training rows, without pruning and with it.
    """

    outcome: str
    n_wrong_before: int
    n_wrong_after: int


@dataclass(frozen=True)
class Screened:
    """A column's best rule that passed the screen of the exhaustive search.

    Parameters
    ----------
    rule : Rule
        The rule.
    statistic : float
        Pearson's statistic of the rule against the outcome.
    p_value : float
        Its p-value, corrected for all rules tried.
    """

    rule: Rule
    statistic: float
    p_value: float


@dataclass(frozen=True)
class SetTest:
    """One set of columns tested by the exhaustive search.

    Parameters
    ----------
    features : tuple of str or int
        The set, by names of columns.
    p_value : float
        That of the test over the leaves of its conjunction.
    accepted : bool
        Whether the test was passed.
    bic : float
        Deviance of the outcome given the leaf, and log(rows) for each leaf.
    """

    features: tuple[str | int, ...]
    p_value: float
    accepted: bool
    bic: float


@dataclass(frozen=True)
class TriedTree:
    """A tree that was grown without some columns, in the search for invariant rates.

    Parameters
    ----------
    banned, used : tuple of str or int
        The columns that it was not allowed to use, and those that it uses.
    deviance_explained : float
        By the whole tree.
    rate_heterogeneity : float
        The sum of the G statistics of its leaves, of outcome against environment.
    dof : int
        Their degrees of freedom.
    score : float
        Deviance explained less the heterogeneity beyond chance, divided by the tolerance.
    """

    banned: tuple[str | int, ...]
    used: tuple[str | int, ...]
    deviance_explained: float
    rate_heterogeneity: float
    dof: int
    score: float
