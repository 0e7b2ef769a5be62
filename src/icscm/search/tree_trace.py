"""How a tree came about: its splits, what else was looked at, and why it ended.

Everything is plain immutable values, so two traces can be compared with `==`. Information and
dependence are deviances.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from icscm._repr import Display, DisplayMixin
from icscm.formatting import format_number
from icscm.model.leaves import LeafCounts
from icscm.model.rules import Rule
from icscm.search.trace import as_plain
from icscm.stats.verdicts import Verdict

if TYPE_CHECKING:
    import pandas

# Why a split was not allowed.
SPLIT_REFUSALS = {
    "unreplicated": "it shows in too few environments to be compared",
    "dependent": "its effect differs between environments by more than the tolerance",
    "remembered": "its feature's effect differed by more than the tolerance further up",
    "banned": "with its feature the leaves depend on the environment by more than the tolerance",
    "idle": "its feature brings next to nothing that others do not bring",
}

# Why a leaf was not split, in words that complete "it was not split because ...".
LEAF_ENDS = {
    "max_leaves": "the largest allowed number of leaves was reached",
    "small": "it is too small, or of one label only",
    "uninformative": "no split tells more than chance would",
    "refused": "all splits that tell something were refused",
}


@dataclass(frozen=True)
class SplitCandidate:
    """One split that was looked at.

    Parameters
    ----------
    rule : Rule
        What it asks.
    information : float
        What it tells of the label: of an effect common to all environments, or, for rates, of all
        samples together.
    dependence : float
        By how much it changes the label's dependence on the environment, the G statistic: below 0
        it explains some.
    excess : float
        By how much its effect differs between environments beyond chance.
    share : float
        The same relative to the effect: the square of its coefficient of variation.
    log_odds : float
        The common effect: log odds ratio of the label where the rule is true against where not.
    if_true, if_false : tuple of tuple of int
        Samples by label and environment.
    """

    rule: Rule
    information: float
    dependence: float
    excess: float
    share: float
    log_odds: float
    if_true: LeafCounts
    if_false: LeafCounts


@dataclass(frozen=True)
class SplitRefusal:
    """A split that was not allowed.

    Parameters
    ----------
    candidate, reason : SplitCandidate, str
        What was refused, and why: a key of `SPLIT_REFUSALS`.
    """

    candidate: SplitCandidate
    reason: str


@dataclass(frozen=True)
class NodeLook:
    """One look at all splits of a node.

    Parameters
    ----------
    path : tuple of Rule
        The rules that are true of its samples.
    n_candidates, n_refused : int, dict
        How many splits there were, and how many that tell something were refused, by reason.
    best_refused : tuple of SplitRefusal
        The most informative refused ones, one of each feature.
    chosen : SplitCandidate or None
        The split that was made.
    end : str or None
        Why none was: a key of `LEAF_ENDS`.
    """

    path: tuple[Rule, ...]
    n_candidates: int
    n_refused: dict[str, int]
    best_refused: tuple[SplitRefusal, ...]
    chosen: SplitCandidate | None = None
    end: str | None = None


@dataclass(frozen=True)
class TriedTree:
    """A tree that was grown without some features, on the way to one of invariant rates.

    Parameters
    ----------
    banned, used : tuple of str or int
        The features that it might not use, and those that it uses.
    information, dependence, dof : float, float, int
        Of the whole tree: what it tells, the sum of the G statistics of its leaves, and their
        degrees of freedom.
    score : float
        Information less what of the dependence is beyond chance, divided by the tolerance.
    """

    banned: tuple[str | int, ...]
    used: tuple[str | int, ...]
    information: float
    dependence: float
    dof: int
    score: float


@dataclass(frozen=True, repr=False)
class TreeTrace(DisplayMixin):
    """The whole growth of a tree.

    Parameters
    ----------
    splits : tuple of NodeLook
        One for each split of the tree, in its order.
    leaves : tuple of NodeLook
        One for each leaf, in its order: why it was not split.
    invariance, tolerance : str, float or None
        What had to be the same in all environments, and how far; None for a plain tree.
    classes, environments : tuple
        The order of all counts.
    notes : tuple of str
        What a user should know of how the counts came about.
    tried : tuple of TriedTree
        For invariant rates, the best trees grown on the way, better and better, and last the one
        that was chosen, whose score may be a little lower: it does without idle features.
    verdicts : tuple of Verdict
        Of the leaves: whether the label's rate is the same in all environments.
    share : float or None
        For invariant rates, what of the tree's information is owed to differences between
        environments, which `tolerance` bounds if it can be bounded.
    """

    splits: tuple[NodeLook, ...]
    leaves: tuple[NodeLook, ...]
    invariance: str
    tolerance: float | None
    classes: tuple[Any, ...]
    environments: tuple[Any, ...]
    notes: tuple[str, ...] = ()
    tried: tuple[TriedTree, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    share: float | None = None

    def say_beyond(self) -> str | None:
        """That no tree of invariant rates was found and this is the nearest, if that is so.

        Returns
        -------
        str or None
            A sentence, or None where rates are the same, or need not be.
        """
        if self.share is None or self.tolerance is None or self.share <= self.tolerance:
            return None
        if not self.splits:
            return (
                "The label's rate differs between environments, and no tree was found whose "
                "leaves have the same rate in all of them."
            )
        return (
            "No tree was found whose leaves have the same rate of the label in all environments: "
            f"in this one, differences between them amount to {self.share:.1%} of what it tells, "
            f"where {self.tolerance:.1%} is tolerated."
        )

    def list_importances(self) -> dict[str | int, tuple[float, float]]:
        """What each used feature tells, and the dependence that it brought or took away.

        Returns
        -------
        dict
            Sums over its splits, by feature.
        """
        found: dict[str | int, tuple[float, float]] = {}
        for look in self.splits:
            if look.chosen is not None:
                told, brought = found.get(look.chosen.rule.feature, (0.0, 0.0))
                sums = told + look.chosen.information, brought + look.chosen.dependence
                found[look.chosen.rule.feature] = sums
        return found

    def to_dict(self) -> dict[str, Any]:
        """Everything in plain values.

        Returns
        -------
        dict
            Dataclasses as dicts, rules as text, tuples as lists.
        """
        plain: dict[str, Any] = as_plain(self)
        return plain

    def to_frame(self, what: str = "splits") -> pandas.DataFrame:
        """A table of one part.

        Parameters
        ----------
        what : {"splits", "refused", "tried"}, default="splits"
            The splits of the tree, the best splits refused at each node, or the trees tried.

        Returns
        -------
        pandas.DataFrame
            A row for each.

        Raises
        ------
        ValueError
            If there is no such part.
        """
        import pandas

        makers = {"splits": self._list_splits, "refused": self._list_refused}
        makers["tried"] = lambda: ({**vars(each)} for each in self.tried)
        if what not in makers:
            raise ValueError(f"to_frame gives {', '.join(map(repr, makers))}, not {what!r}")
        return pandas.DataFrame(list(makers[what]()))

    def _list_splits(self) -> Iterator[dict[str, Any]]:
        for number, look in enumerate(self.splits, start=1):
            if look.chosen is not None:
                counts = {"n_candidates": look.n_candidates, "n_refused": _add(look.n_refused)}
                yield {"split": number, **_describe(look.path, look.chosen), **counts}

    def _list_refused(self) -> Iterator[dict[str, Any]]:
        for look in (*self.splits, *self.leaves):
            for refusal in look.best_refused:
                described = _describe(look.path, refusal.candidate)
                yield {**described, "reason": refusal.reason}

    def _display(self) -> Display:
        """The splits, and what was refused."""
        rows = []
        for look in self.splits:
            if look.chosen is None:
                continue
            chosen = look.chosen
            told = f"{sum(map(sum, chosen.if_true)) + sum(map(sum, chosen.if_false)):,}"
            numbers = f"{chosen.information:,.0f}", f"{chosen.share:.3f}"
            refused = f"{_add(look.n_refused):,} of {look.n_candidates:,}"
            rows.append((str(chosen.rule), told, *numbers, refused))
        columns = "split", ">samples", ">information", ">differs", ">refused"
        return Display(self._say_kind(), columns if rows else (), rows)

    def _say_kind(self) -> str:
        if self.tolerance is None:
            return "A plain tree: nothing was refused."
        what = "The effect of each split" if self.invariance == "effect" else "The rate of a leaf"
        bound = f"(tolerance {format_number(self.tolerance)})"
        return f"{what} must be the same in all environments {bound}."


def _add(counts: dict[str, int]) -> int:
    return sum(counts.values())


def _describe(path: tuple[Rule, ...], candidate: SplitCandidate) -> dict[str, Any]:
    return {
        "node": " and ".join(map(str, path)) or "all",
        "rule": str(candidate.rule),
        "feature": candidate.rule.feature,
        "information": candidate.information,
        "dependence": candidate.dependence,
        "excess": candidate.excess,
        "share": candidate.share,
        "odds_ratio": float(np.exp(candidate.log_odds)),
    }
