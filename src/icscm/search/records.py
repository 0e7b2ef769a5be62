"""Reasons in words, and the records of pruning, screening and tried trees that a trace holds."""

from __future__ import annotations

from dataclasses import dataclass

from icscm.model.rules import Rule

# Why a search ended, to complete "the search stopped because ..."; why a leaf of a tree was not
# split, to complete "it was not split because ...".
STOP_REASONS = {
    "covered": "no uncovered sample is left that another rule could cover correctly",
    "independence": "the label of the uncovered samples no longer depends on the environment",
    "max_rules": "the largest allowed number of rules was reached",
    "no_candidate": "no candidate rule was left that may be added",
    "intersection": "all sets were tested, and the accepted sets share these rules",
    "empty_intersection": "all sets were tested, and the accepted sets share no rule",
    "all_rejected": "all sets were tested, and every one was rejected",
    "nothing_associated": "no feature is significantly associated with the label",
    "max_leaves": "the largest allowed number of leaves was reached",
    "small": "it is too small, or of one label only",
    "uninformative": "no split explains more deviance than chance would",
    "rejected": "all splits that explain more deviance than chance were rejected",
}

# Why a candidate, a rule or a split, was rejected.
REJECTION_REASONS = {
    # the candidate's verdict tells the two apart
    "dependent": "the label depends on the environment in its leaf, or was not shown not to",
    "small": "its leaf, or the uncovered samples, would be too few",
    "unreplicated": "its samples lie in too few environments to be compared",
    "unhelpful": "it would cover too many samples wrongly for those that it covers correctly",
    "heterogeneous": "its effect differs between environments by more than the tolerance",
    "remembered": "the effect of its feature differed by more than the tolerance at a node above",
    "banned": "with its feature, rates in the leaves differ between environments by more than the "
    "tolerance",
    "idle": "its feature explains next to no deviance that others do not explain",
}

# Results of pruning, as sentences.
PRUNING_OUTCOMES = {
    "removed": "Pruning removed rules that invariance does not need.",
    "needed": "Pruning removed nothing: without any one of the columns a leaf would not be "
    "invariant.",
    "single": "Nothing to prune: the rules use a single column.",
    "not_ended": "Nothing was pruned: Proposition 3.2 requires that the search ended because the "
    "label of the uncovered samples is independent of the environment.",
}


@dataclass(frozen=True)
class PruningTest:
    """One conditional test of Proposition 3.2: label against environment without a feature.

    Parameters
    ----------
    round, feature, removed : int, str or int, bool
        The feature left out, and whether it was removed; each round removes at most one.
    statistic, dof, p_value : float, int, float
        Of the conditional G-test.
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
        A key of `PRUNING_OUTCOMES`.
    n_wrong_before, n_wrong_after : int
        Misclassified training samples, without pruning and with it.
    """

    outcome: str
    n_wrong_before: int
    n_wrong_after: int


@dataclass(frozen=True)
class Screened:
    """A feature's best rule that passed the screen of the exhaustive search.

    Parameters
    ----------
    rule, statistic, p_value : Rule, float, float
        Pearson's statistic of the rule against the label, and its p-value corrected for all tried.
    """

    rule: Rule
    statistic: float
    p_value: float


@dataclass(frozen=True)
class SetTest:
    """One set of features tested by the exhaustive search.

    Parameters
    ----------
    features, p_value, accepted : tuple of str or int, float, bool
        The set, the test over the leaves of its conjunction, and whether it was passed.
    """

    features: tuple[str | int, ...]
    p_value: float
    accepted: bool


@dataclass(frozen=True)
class TriedTree:
    """A tree that was grown without some features, in the search for invariant rates.

    Parameters
    ----------
    banned, used : tuple of str or int
        The features that it was not allowed to use, and those that it uses.
    deviance_explained, rate_heterogeneity, dof : float, float, int
        Of the whole tree; the heterogeneity of rates is the sum of the G statistics of its
        leaves, and `dof` are their degrees of freedom.
    score : float
        Deviance explained less the heterogeneity beyond chance, divided by the tolerance.
    """

    banned: tuple[str | int, ...]
    used: tuple[str | int, ...]
    deviance_explained: float
    rate_heterogeneity: float
    dof: int
    score: float
