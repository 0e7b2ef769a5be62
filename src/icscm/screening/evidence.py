"""When a column is rejected: the rule of the screen, on one page.

A column is judged by its worth in a new environment (`icscm.screening.worth`). The tolerance says
how much of its worth it may lose there: it must be worth more than

    needed = 1 - tolerance

in 19 of 20 new environments. At the default, 1/2, using a column that is worth less does more harm
than good (squared loss). There are three reasons to reject a column:

    separately   its worth differs between environments, all other columns held fixed, and may be
                 below what is needed; and so it is by itself, or the differences are no trifle and
                 what the model learned of it is no chance
    jointly      the same of its worth in a regression on the contributions of all columns
    supported    by itself it may be reversed in a new environment, and the model, in which other
                 columns may stand in for it, points the same way

To *differ* is to be significant by Cochran's Q, corrected for all columns and both tests. That
holds for effects that the model has learned. Where there is nothing to learn, models of folds learn
from each other's rows by chance, the worth of a column is about 0, and Q is too large too often: so
what the model learned must be worth more than 0 on average, unless the column clearly differs by
itself.

A column that no reason rejects is kept, unless the data cannot tell: it matters to the model, its
worth in a new environment may be below what is needed, but its differences may be chance.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from icscm._constants import CHANCE_LEVEL
from icscm.screening.own_effects import OwnEffect
from icscm.screening.worth import PooledWorth

# Heterogeneity beyond chance that matters, as a part of the explained or of the null deviance.
MIN_SHARE: Final = 0.01
# Heterogeneity beyond chance of a joint worth that is no trifle, in units of deviance.
MIN_JOINT_EXCESS: Final = 3.0
# A column may be reversed if its own worth in a new environment is so much below what is needed.
REVERSED_BELOW: Final = 0.5
# A column matters if this part of what the model explains would change with it.
MIN_STAKE: Final = 0.01
# A mean worth of so many standard errors is no chance.
MIN_RATIO: Final = 2.0
# With fewer environments there is one difference, which any cause may have.
MIN_ENVIRONMENTS: Final = 3


class Verdict(StrEnum):
    """What the screen says of a column."""

    KEPT = "kept"
    CANNOT_TELL = "cannot tell"
    REJECTED = "rejected"


class Reason(StrEnum):
    """Which evidence rejects a column."""

    SEPARATELY = "separately"
    JOINTLY = "jointly"
    SUPPORTED = "supported"


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a round of the screen has measured of a column that the model uses.

    Attributes
    ----------
    separate : PooledWorth
        Its worth, all other columns as the model has them.
    joint : PooledWorth or None
        Its worth in one regression with the columns that contribute most; None if it is not among
        them.
    own : OwnEffect
        What it says by itself.
    share : float
        Heterogeneity beyond chance of the separate worth, as a part of the deviance that the model
        explains within environments.
    stake : float
        The information on its worth, as a part of the same: the deviance that changes if its worth
        changes by 1.
    """

    separate: PooledWorth
    joint: PooledWorth | None
    own: OwnEffect
    share: float
    stake: float

    @property
    def excess(self) -> float:
        """The heterogeneity by which columns are rejected in turn, in units of deviance."""
        joint_excess = 0.0 if self.joint is None else self.joint.excess
        return max(self.separate.excess, joint_excess)

    @property
    def worst_low(self) -> float:
        """The smaller of the separate and the joint worth in a new environment."""
        if self.joint is None:
            return self.separate.low
        return min(self.separate.low, self.joint.low)


@dataclass(frozen=True)
class Standard:
    """What a column is held to: the worth that is needed, and the columns compared in the round."""

    tolerance: float
    n_columns: int

    @property
    def needed(self) -> float:
        """The worth that a column must have in 19 of 20 new environments."""
        return 1.0 - self.tolerance

    @property
    def test_level(self) -> float:
        """The level of a test, corrected for all columns (Bonferroni) and two tests of each."""
        return CHANCE_LEVEL / (2 * max(self.n_columns, 1))

    def differs(self, worth: PooledWorth) -> bool:
        """Return whether a worth differs between environments."""
        return worth.p_value < self.test_level

    def is_own_below(self, own: OwnEffect, bound: float) -> bool:
        """Return whether the own worth differs, and may be below a bound in a new environment."""
        own_level = CHANCE_LEVEL / max(self.n_columns, 1)
        return own.worth.p_value < own_level and own.worth.low < bound


def find_reason(evidence: Evidence, standard: Standard) -> Reason | None:
    """Find the evidence that rejects a column; None if it is not rejected."""
    separate, joint, own = evidence.separate, evidence.joint, evidence.own
    if separate.dof + 1 < MIN_ENVIRONMENTS:
        return None

    may_fail = separate.low < standard.needed
    is_weak_alone = standard.is_own_below(own, standard.needed)
    is_clear_alone = is_weak_alone and own.part > MIN_SHARE
    is_no_trifle = is_weak_alone or evidence.share > MIN_SHARE
    is_no_chance = is_clear_alone or separate.ratio > MIN_RATIO
    if standard.differs(separate) and may_fail and is_no_trifle and is_no_chance:
        return Reason.SEPARATELY

    if (
        joint is not None
        and standard.differs(joint)
        and is_no_chance
        and joint.low < standard.needed
        and joint.excess > MIN_JOINT_EXCESS
    ):
        return Reason.JOINTLY

    is_reversed_alone = standard.is_own_below(own, standard.needed - REVERSED_BELOW)
    points_the_same_way = separate.p_value < CHANCE_LEVEL and may_fail
    if is_reversed_alone and own.part > MIN_SHARE and points_the_same_way:
        return Reason.SUPPORTED
    return None


def is_undecided(evidence: Evidence, standard: Standard) -> bool:
    """Return whether a column that is not rejected might be a shortcut all the same.

    It matters to the model, and is worth something on average: a column that is worth nothing
    anywhere is no shortcut, however inexactly that is known.
    """
    if evidence.stake <= MIN_STAKE:
        return False
    separate = evidence.separate
    if separate.mean < MIN_RATIO * separate.error:
        return False
    return evidence.worst_low < standard.needed
