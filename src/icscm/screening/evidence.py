"""When a column is rejected: the rule of the screen, on one page.

A column is judged by its worth in a new environment (`icscm.screening.worth`). The tolerance says
how much of its worth it may lose there: it must be worth more than

    needed = 1 - tolerance

in 19 of 20 new environments, as a part of its mean worth if that is above 1. At the default, 1/2,
using a column that is worth less does more harm than good (squared loss). Of several classes half
of that is enough: one worth for all classes is a coarse description, which differs between
environments a little if it differs between classes. There are three reasons to reject a column:

    separately   its worth differs between environments, all other columns held fixed, by more than
                 a trifle, and may be below what is needed in a new one
    jointly      the same of its worth in one regression on the contributions of all columns
    supported    by itself it may be reversed in a new environment, and the model, in which other
                 columns may stand in for it, points the same way

To *differ* is to be significant by Cochran's Q, corrected for all columns and both tests. That
holds for effects that the model has learned; of others the first two reasons say nothing.

A column that no reason rejects is kept, unless the data cannot tell: it matters to the model, its
worth in a new environment may be below what is needed, but its differences may be chance.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from icscm._constants import CHANCE_LEVEL
from icscm.screening.own_effects import OwnEffect
from icscm.stats.worth import PooledWorth

# Heterogeneity beyond chance that matters, as a part of the explained or of the null deviance.
MIN_SHARE: Final = 0.01
# Heterogeneity beyond chance of a joint worth that is no trifle, in units of deviance. Of a few
# columns, for which little is corrected, a true cause failed jointly without it.
MIN_JOINT_EXCESS: Final = 3.0
# Of several classes, the part of the worth needed that is enough.
NEEDED_OF_SEVERAL_CLASSES: Final = 0.5
# A column may be reversed if its own worth in a new environment is so much below what is needed.
REVERSED_BELOW: Final = 0.5
# A column matters if this part of what the model explains would change with it.
MIN_STAKE: Final = 0.01
# A mean worth of so many standard errors is no chance.
MIN_RATIO: Final = 2.0
# An own worth so many standard errors below 0 is a contradiction between environments.
MIN_CONTRADICTION: Final = 3.0
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
        """The smaller part of its separate and its joint worth that a new environment keeps."""
        if self.joint is None:
            return self.separate.low_share
        return min(self.separate.low_share, self.joint.low_share)


@dataclass(frozen=True)
class Standard:
    """What a column is held to: the worth that is needed, and how many columns are compared."""

    tolerance: float
    n_columns: int
    n_environments: int
    has_several_classes: bool = False

    @property
    def needed(self) -> float:
        """The worth that a column must have in 19 of 20 new environments."""
        needed = 1.0 - self.tolerance
        if self.has_several_classes and needed > 0:
            return NEEDED_OF_SEVERAL_CLASSES * needed
        return needed

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
        return own.worth.p_value < own_level and own.worth.low_share < bound


def find_reason(evidence: Evidence, standard: Standard) -> Reason | None:
    """Find the evidence that rejects a column; None if it is not rejected.

    With two environments nothing is rejected: they show one difference.
    """
    if standard.n_environments < MIN_ENVIRONMENTS:
        return None
    if fails_separately(evidence, standard):
        return Reason.SEPARATELY
    if fails_jointly(evidence, standard):
        return Reason.JOINTLY
    if fails_with_support(evidence, standard):
        return Reason.SUPPORTED
    return None


def fails_separately(evidence: Evidence, standard: Standard) -> bool:
    """Return whether a column fails by its own slope, all other columns held fixed.

    The difference must be no trifle: with many rows, any cause whose effect varies a little differs
    significantly.
    """
    worth = evidence.separate
    if evidence.share <= MIN_SHARE or not is_learned(worth, evidence.own, standard):
        return False
    return standard.differs(worth) and worth.low_share < standard.needed


def fails_jointly(evidence: Evidence, standard: Standard) -> bool:
    """Return whether a column fails in one regression with the columns that contribute most.

    Whether the model has learned something of it is asked of the separate worth: by chance a joint
    one is above 0 too often.
    """
    worth = evidence.joint
    if worth is None or not is_learned(evidence.separate, evidence.own, standard):
        return False
    is_large = worth.excess > MIN_JOINT_EXCESS
    return is_large and standard.differs(worth) and worth.low_share < standard.needed


def is_learned(worth: PooledWorth, own: OwnEffect, standard: Standard) -> bool:
    """Return whether the model has learned something of a column, or the column says it by itself.

    Where there is nothing to learn, the models of different folds learn from each other's rows by
    chance, so that the worth of a column is about 0 and Cochran's Q is too large too often. A
    shortcut that is reversed in some environments is worth about 0, too. But by itself it differs
    clearly, or is worth less than 0 wherever one looks: an environment contradicts the others.
    """
    if worth.ratio > MIN_RATIO:
        return True
    if own.worth.ratio < -MIN_CONTRADICTION:
        return True
    return own.part > MIN_SHARE and standard.is_own_below(own, standard.needed)


def fails_with_support(evidence: Evidence, standard: Standard) -> bool:
    """Return whether a column may be reversed by itself, and the model points the same way.

    Where other columns stand in for a shortcut, its worth beside them is known less exactly than
    its worth alone. So its difference beside them need not be significant after correction.
    """
    own = evidence.own
    may_be_reversed = standard.is_own_below(own, standard.needed - REVERSED_BELOW)
    if not may_be_reversed or own.part <= MIN_SHARE:
        return False
    worth = evidence.separate
    return worth.p_value < CHANCE_LEVEL and worth.low_share < standard.needed


def is_undecided(evidence: Evidence, standard: Standard) -> bool:
    """Return whether a column that is not rejected might be a shortcut all the same.

    It matters to the model, and is worth something on average: a column that is worth nothing
    anywhere is no shortcut, however inexactly that is known.
    """
    if evidence.stake <= MIN_STAKE:
        return False
    if says_nothing(evidence.separate.mean, evidence.separate.error):
        return False
    return evidence.worst_low < standard.needed


def says_nothing(worth: float, error: float) -> bool:
    """Return whether a mean worth is no more than chance: beside the others it says nothing.

    Its worth in a new environment is then far below 0 only because it is known so inexactly.

    >>> says_nothing(0.9, error=0.1), says_nothing(0.1, error=0.3), says_nothing(-0.6, error=0.5)
    (False, True, True)
    """
    return worth < MIN_RATIO * error
