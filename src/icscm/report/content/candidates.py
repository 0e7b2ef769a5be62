"""Rules and splits that a scan examined, with the numbers that decided whether they were chosen."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, sqrt
from typing import Final

import numpy as np

from icscm._constants import VERDICT_CONFIDENCE
from icscm._lazy import special
from icscm.formatting import format_name
from icscm.model.saved import Learner
from icscm.model.splits import LeafCounts
from icscm.report.content.leaves import Judgement, make_judgement
from icscm.report.content.rates import (
    RateExtreme,
    count_rows,
    find_extreme_rows,
    make_environment_rates,
    make_rate_range,
)
from icscm.report.formatting import Names
from icscm.search.records import Candidate
from icscm.stats.splits import measure_effects

# Odds ratios whose logarithm has a larger standard error are not named as extremes.
MAX_ERROR: Final = 1.0


@dataclass(frozen=True, kw_only=True)
class OddsRatio:
    """The odds ratio of a split in one environment; None where a margin is empty.

    `error` is the standard error of its logarithm.
    """

    environment: str
    n: int
    odds_ratio: float | None
    odds_ratio_interval: list[float] | None
    error: float | None


@dataclass(frozen=True, kw_only=True)
class RatioExtreme:
    """The environment of the lowest or the highest odds ratio."""

    environment: str
    n: int
    odds_ratio: float


@dataclass(frozen=True, kw_only=True)
class RuleCandidate(Judgement):
    """A rule that a scan of a rule set examined: utility, rows covered, test of its leaf."""

    rule: str
    feature: str
    utility: float
    n: int
    n_right: int
    n_wrong: int
    counts: list[list[int]]
    replication: float | None
    n_seen: int
    lowest: RateExtreme | None
    highest: RateExtreme | None

    @property
    def worth(self) -> float:
        """The utility."""
        return self.utility


@dataclass(frozen=True, kw_only=True)
class SplitCandidate:
    """A split that a scan of a tree examined: deviance, heterogeneity and odds ratios.

    `n_seen` counts the environments with an odds ratio; extremes pass over imprecise ones.
    """

    rule: str
    feature: str
    n: int
    n_true: int
    deviance_explained: float
    rate_heterogeneity: float | None
    heterogeneity: float
    heterogeneity_share: float
    odds_ratio: float
    environments: list[OddsRatio]
    n_seen: int
    lowest: RatioExtreme | None
    highest: RatioExtreme | None

    @property
    def worth(self) -> float:
        """The deviance that the split explains."""
        return self.deviance_explained

    @property
    def variation(self) -> float:
        """The coefficient of variation of the effect over environments."""
        return sqrt(self.heterogeneity_share)


def make_candidate(
    candidate: Candidate, names: Names, learner: Learner
) -> RuleCandidate | SplitCandidate:
    """Return a rule, or a split, that a scan examined."""
    if candidate.utility is None:
        return make_split_candidate(candidate, names)
    return make_rule_candidate(candidate, names, learner)


def make_rule_candidate(candidate: Candidate, names: Names, learner: Learner) -> RuleCandidate:
    """Return a rule with its utility and the test of its leaf.

    `candidate.covered` counts the rows that the rule covers, by (outcome, environment). They are
    covered rightly if they have the outcome that a covered row of this model is predicted.
    """
    assert candidate.utility is not None
    environments = make_environment_rates(candidate.covered, names)
    predicted_outcome = int(learner.model_.covers_when)
    # the p-value of the search counts, which is that of the verdict where there is one
    judgement = vars(make_judgement(candidate.verdict)) | {"p_value": candidate.p_value}
    return RuleCandidate(
        rule=str(candidate.rule),
        feature=format_name(candidate.rule.feature),
        utility=float(candidate.utility),
        n=count_rows(candidate.covered),
        n_right=sum(candidate.covered[predicted_outcome]),
        n_wrong=sum(candidate.covered[1 - predicted_outcome]),
        counts=[list(row) for row in candidate.covered],
        replication=candidate.replication,
        **vars(make_rate_range(environments)),
        **judgement,
    )


@dataclass(frozen=True)
class CommonEffect:
    """The effect of a split that all environments share.

    Parameters
    ----------
    deviance_explained : float
        The deviance that it explains.
    heterogeneity, heterogeneity_share : float
        The deviance of the differences between environments beyond chance, and that as a share of
        the deviance explained.
    """

    deviance_explained: float
    heterogeneity: float
    heterogeneity_share: float


def measure_effect(candidate: Candidate) -> CommonEffect:
    """Return the common effect of a split, from its counts, whatever was required of its tree."""
    if_true = np.array(candidate.if_true, dtype=np.int64)
    if_false = np.array(candidate.if_false, dtype=np.int64)
    effects = measure_effects(if_false[np.newaxis], if_true + if_false, 1)
    return CommonEffect(
        deviance_explained=effects.deviance_explained.item(),
        heterogeneity=effects.heterogeneity.item(),
        heterogeneity_share=effects.heterogeneity_share.item(),
    )


def make_split_candidate(candidate: Candidate, names: Names) -> SplitCandidate:
    """Return a split with its odds ratio in each environment."""
    assert candidate.deviance_explained is not None
    effect = measure_effect(candidate)
    environments = make_odds_ratios(candidate.if_true, candidate.if_false, names)
    extremes = find_ratio_extremes(environments)
    n_true = count_rows(candidate.if_true)
    n_false = count_rows(candidate.if_false)
    return SplitCandidate(
        rule=str(candidate.rule),
        feature=format_name(candidate.rule.feature),
        n=n_true + n_false,
        n_true=n_true,
        deviance_explained=candidate.deviance_explained,
        rate_heterogeneity=candidate.rate_heterogeneity,
        heterogeneity=effect.heterogeneity,
        heterogeneity_share=effect.heterogeneity_share,
        odds_ratio=exp(candidate.log_odds_ratio or 0.0),
        environments=environments,
        n_seen=sum(ratio.odds_ratio is not None for ratio in environments),
        lowest=None if extremes is None else extremes.lowest,
        highest=None if extremes is None else extremes.highest,
    )


# --- odds ratios by environment -------------------------------------------------------------------


def make_odds_ratios(if_true: LeafCounts, if_false: LeafCounts, names: Names) -> list[OddsRatio]:
    """Return the odds ratio in each environment with its Wald interval.

    `if_true` and `if_false` count the rows of which a rule is true or false, by (outcome,
    environment). With half a row added to each count (Haldane 1956, Anscombe 1956),

                      positives if true / negatives if true
        odds ratio = ---------------------------------------
                     positives if false / negatives if false

    and the standard error of its logarithm is the root of the sum of 1 / count over the four.

    It is None in an environment that the split does not divide, or that has one outcome only.
    """
    # by (truth of the rule, outcome, environment)
    counts = np.array([if_true, if_false], dtype=np.float64)
    n_rows = counts.sum(axis=(0, 1))
    is_divided = (counts.sum(axis=1) > 0).all(axis=0)
    has_both_outcomes = (counts.sum(axis=0) > 0).all(axis=0)
    is_known = is_divided & has_both_outcomes

    finite_counts = counts + 0.5
    logs_if_true, logs_if_false = np.log(finite_counts)
    negatives_if_true, positives_if_true = logs_if_true
    negatives_if_false, positives_if_false = logs_if_false
    log_ratios = positives_if_true - negatives_if_true - positives_if_false + negatives_if_false
    errors = np.sqrt((1 / finite_counts).reshape(4, -1).sum(axis=0))

    z = float(special.ndtri((1 + VERDICT_CONFIDENCE) / 2))
    half_widths = z * errors
    logs = [log_ratios, log_ratios - half_widths, log_ratios + half_widths]
    ratios, lows, highs = np.exp(logs).tolist()

    odds_ratios = []
    for number, name in enumerate(names.environments):
        known = is_known[number]
        odds_ratio = OddsRatio(
            environment=name,
            n=int(n_rows[number]),
            odds_ratio=ratios[number] if known else None,
            odds_ratio_interval=[lows[number], highs[number]] if known else None,
            error=float(errors[number]) if known else None,
        )
        odds_ratios.append(odds_ratio)
    return odds_ratios


@dataclass(frozen=True)
class RatioRange:
    """The environments between which an odds ratio differs most."""

    lowest: RatioExtreme
    highest: RatioExtreme


def find_ratio_extremes(ratios: Sequence[OddsRatio]) -> RatioRange | None:
    """Find the environments of the lowest and the highest odds ratio; None if none is known.

    Imprecise ratios are extreme by chance: they are named only where fewer than two others are
    known.
    """
    known = [ratio for ratio in ratios if ratio.odds_ratio is not None]
    precise = [ratio for ratio in known if ratio.error is not None and ratio.error <= MAX_ERROR]
    named = precise if len(precise) > 1 else known
    ends = find_extreme_rows([ratio.odds_ratio for ratio in named], [ratio.n for ratio in named])
    if ends is None:
        return None
    lowest, highest = (make_ratio_extreme(named[number]) for number in ends)
    return RatioRange(lowest=lowest, highest=highest)


def make_ratio_extreme(ratio: OddsRatio) -> RatioExtreme:
    """Return an environment with its known odds ratio."""
    assert ratio.odds_ratio is not None
    return RatioExtreme(environment=ratio.environment, n=ratio.n, odds_ratio=ratio.odds_ratio)
