"""How a search came to its model: the one source for reports and debugging.

One record serves every search. The nodes of a tree, and the steps of a rule set, which is a chain,
are scans of all candidates; a node that was split, or a rule that was added, is a `Step`.
Everything is plain immutable values, so two traces can be compared with `==`. Counts are by
label (in the order of the classes) and environment. Fields that do not apply are None or empty.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from icscm._repr import Display, DisplayMixin
from icscm.formatting import format_number
from icscm.model.leaves import LeafCounts
from icscm.model.rules import Rule
from icscm.model.tree import Tree
from icscm.stats.criteria import Criterion, find_outlier_environments
from icscm.stats.verdicts import Verdict

if TYPE_CHECKING:
    import pandas

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

# Names of an earlier version.
_OLD_NAMES = {"looks": "nodes", "last_look": "last_scan", "set_aside": "discarded"}


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A rule, or the split of a node, that a scan examined.

    Parameters
    ----------
    rule : Rule
        As the model prints it.
    covered, utility, verdict : tuple of tuple of int, float or None, Verdict or None
        For rule sets: the samples that it covers, abs(A) - p abs(B) times the weight of its
        feature, and the verdict on the leaf.
    if_true, if_false : tuple of tuple of int
        For trees: the samples on either side.
    deviance_explained : float or None
        By an effect common to all environments or, for rates, over all samples together.
    rate_heterogeneity : float or None
        By how much the split changes the label's dependence on the environment, the G statistic;
        below 0 it explains some.
    heterogeneity, heterogeneity_share : float or None
        By how much its effect differs between environments beyond chance; the same relative to
        the effect, the square of its coefficient of variation.
    log_odds_ratio : float or None
        The common effect: log odds ratio of the label where the rule is true against where not.
    """

    rule: Rule
    covered: LeafCounts = ()
    utility: float | None = None
    verdict: Verdict | None = None
    if_true: LeafCounts = ()
    if_false: LeafCounts = ()
    deviance_explained: float | None = None
    rate_heterogeneity: float | None = None
    heterogeneity: float | None = None
    heterogeneity_share: float | None = None
    log_odds_ratio: float | None = None

    @property
    def p_value(self) -> float | None:
        """Of the test of independence in the leaf."""
        return None if self.verdict is None else self.verdict.p_value


@dataclass(frozen=True)
class Rejection:
    """A candidate that was rejected.

    Parameters
    ----------
    candidate, reason : Candidate, str
        The candidate, and why: a key of `REJECTION_REASONS`.
    """

    candidate: Candidate
    reason: str


@dataclass(frozen=True, kw_only=True)
class Scan:
    """One scan of all candidates at a node.

    Parameters
    ----------
    path : tuple of Rule
        For trees: the rules that are true of the node's samples.
    n_candidates, n_rejected : int, dict
        How many there were, and how many were rejected by reason; for trees, of those that
        explain more deviance than chance.
    best_rejected : tuple of Rejection
        Those of largest utility, or, one for each feature, that explain most deviance.
    cutoff : float or None
        The p-value up to which candidates were rejected: alpha, or what a correction made of it;
        None where p-values did not decide.
    end : str or None
        Why no candidate was chosen: a key of `STOP_REASONS`.
    nearest : tuple of Rejection
        For rule sets where none was chosen: those whose p-values came nearest to alpha.
    """

    path: tuple[Rule, ...] = ()
    n_candidates: int
    n_rejected: dict[str, int]
    best_rejected: tuple[Rejection, ...] = ()
    cutoff: float | None = None
    end: str | None = None
    nearest: tuple[Rejection, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Step(Scan):
    """A scan that added a rule to the model, or split a node.

    Parameters
    ----------
    chosen : Candidate
        The rule or split.
    uncovered, p_value_uncovered, verdict_uncovered : tuple, float or None, Verdict or None
        For rule sets: the samples that no rule has covered so far, and the test on these
        (criterion (ii)).
    equivalent : tuple of Rule
        Other rules that would have covered exactly the same samples.
    n_tied : int
        Candidates that shared the largest utility, the chosen one included.
    """

    chosen: Candidate
    uncovered: LeafCounts = ()
    p_value_uncovered: float | None = None
    verdict_uncovered: Verdict | None = None
    equivalent: tuple[Rule, ...] = ()
    n_tied: int = 1


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


@dataclass(frozen=True, repr=False, kw_only=True)
class Trace(DisplayMixin):
    """The whole search.

    Parameters
    ----------
    nodes : tuple of Scan
        The scans of all candidates. For a tree one for each node, in the order of its splits and
        leaves; for a rule set one for each step and, where no candidate was left, the last.
    classes, environments : tuple
        The order of all counts.
    notes : tuple of str
        Facts about how the counts came about.
    verdicts : tuple of Verdict
        On the model's leaves; for a rule set the last is on the uncovered samples.
    stop_reason : str or None
        For rule sets, a key of `STOP_REASONS`.
    alpha, criterion : float or None, object or None
        For rule sets: the level of the tests, and what decided whether a leaf is invariant.
    pruning, pruned : tuple of PruningTest, PruningOutcome or None
        The tests made for pruning and its result; None without pruning.
    screening, sets : tuple of Screened, tuple of SetTest
        The candidates of the exhaustive search and the sets tested.
    discarded : Tree or None
        Rules that were found and are no better than the majority-class baseline, so that the
        model has no rule.
    invariance, tolerance : str or None, float or None
        For trees: what had to be homogeneous, and the tolerance; None for a plain tree.
    tried : tuple of TriedTree
        For invariant rates, the best trees grown on the way, by rising score, and last the one
        that was chosen, whose score may be a little lower: it does without idle features.
    heterogeneity_share : float or None
        For invariant rates, the part of the deviance explained that is due to differences between
        environments, which `tolerance` bounds where possible.

    Examples
    --------
    >>> from icscm import ICSCMClassifier
    >>> from icscm.datasets import make_conjunction
    >>> data = make_conjunction(random_state=1)
    >>> trace = ICSCMClassifier().fit(data.X, data.y, environments=data.environments).trace_
    >>> trace.to_frame()[["rule", "utility", "n_rejected"]]
         rule  utility  n_rejected
    0  A1 > 0  13222.0          10
    1  A2 > 0   3893.0           9
    """

    nodes: tuple[Scan, ...]
    classes: tuple[Any, ...]
    environments: tuple[Any, ...]
    notes: tuple[str, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    stop_reason: str | None = None
    alpha: float | None = None
    criterion: Criterion | None = field(default=None, compare=False)
    pruning: tuple[PruningTest, ...] = ()
    pruned: PruningOutcome | None = None
    screening: tuple[Screened, ...] = ()
    sets: tuple[SetTest, ...] = ()
    discarded: Tree | None = None
    invariance: str | None = None
    tolerance: float | None = None
    tried: tuple[TriedTree, ...] = ()
    heterogeneity_share: float | None = None

    def defer_nodes(self, make: Callable[[], tuple[Scan, ...]]) -> Trace:
        """The same trace; its nodes are made when they are first read."""
        deferred = object.__new__(Trace)
        vars(deferred).update(vars(self), _make_nodes=make)
        del vars(deferred)["nodes"]
        return deferred

    if not TYPE_CHECKING:  # mypy would accept any name

        def __getattr__(self, name: str) -> Any:
            """The nodes, where they were deferred; attributes by their old names."""
            if name == "nodes" and "_make_nodes" in vars(self):
                vars(self)["nodes"] = vars(self).pop("_make_nodes")()
                return self.nodes
            if name in _OLD_NAMES:
                now = _OLD_NAMES[name]
                warnings.warn(f"Trace.{name} is now Trace.{now}", FutureWarning, stacklevel=2)
                return getattr(self, now)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __getstate__(self) -> dict[str, Any]:
        """Plain values, complete, to be pickled or copied."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @property
    def steps(self) -> tuple[Step, ...]:
        """The rules that were added, or the splits that were made."""
        return tuple(node for node in self.nodes if isinstance(node, Step))

    splits = steps

    @property
    def leaves(self) -> tuple[Scan, ...]:
        """The nodes of a tree that were not split."""
        return tuple(node for node in self.nodes if not isinstance(node, Step))

    @property
    def last_scan(self) -> Scan | None:
        """For rule sets, the scan that found no candidate to add, if the search ended so."""
        return next(iter(self.leaves), None)

    @property
    def nearest(self) -> tuple[Rejection, ...]:
        """The rejected candidates of the last scan whose p-values came nearest to alpha."""
        return self.last_scan.nearest if self.last_scan else ()

    @property
    def stop_text(self) -> str:
        """Why the search of a rule set ended, as a sentence."""
        return f"The search stopped because {STOP_REASONS[self.stop_reason or 'no_candidate']}."

    def find_outlier_environments(self, leaf: LeafCounts) -> tuple[Any, ...] | None:
        """The environments without which a leaf would be taken for invariant.

        Parameters
        ----------
        leaf : tuple of tuple of int
            Its samples by label and environment.

        Returns
        -------
        tuple or None
            Their labels, the one that stands out most first; empty where the leaf passes as it
            is, None where leaving out fewer than half does not help, or nothing was tested.
        """
        if self.criterion is None:
            return None
        found = find_outlier_environments(np.array(leaf), self.criterion)
        return None if found is None else tuple(self.environments[k] for k in found)

    def describe_excess(self) -> str | None:
        """That no tree of invariant rates was found and this is the nearest, if that is so.

        Returns
        -------
        str or None
            A sentence, or None where rates are homogeneous, or need not be.
        """
        share, tolerance = self.heterogeneity_share, self.tolerance
        if share is None or tolerance is None or share <= tolerance:
            return None
        if not self.splits:
            return (
                "The label's rate differs between environments, and no tree was found whose "
                "leaves have the same rate in all of them."
            )
        return (
            "No tree was found whose leaves have the same rate of the label in all environments: "
            f"in this one, differences between them amount to {share:.1%} of the deviance "
            f"explained, where {tolerance:.1%} is tolerated."
        )

    def list_importances(self) -> dict[str | int, tuple[float, float]]:
        """Deviance that each feature explains, and heterogeneity of rates that it adds.

        Returns
        -------
        dict
            Sums over its splits, by feature.
        """
        found: dict[str | int, tuple[float, float]] = {}
        for chosen in (step.chosen for step in self.splits):
            explained, added = found.get(chosen.rule.feature, (0.0, 0.0))
            explained += chosen.deviance_explained or 0.0
            found[chosen.rule.feature] = explained, added + (chosen.rate_heterogeneity or 0.0)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Everything in plain values.

        Returns
        -------
        dict
            Dataclasses as dicts, rules as text, tuples as lists.
        """
        plain: dict[str, Any] = _as_plain(replace(self, criterion=None))
        del plain["criterion"]
        return plain

    def to_frame(self, what: str = "steps") -> pandas.DataFrame:
        """A table of one part.

        Parameters
        ----------
        what : {"steps", "splits", "rejected", "pruning", "sets", "tried"}, default="steps"
            The rules added or splits made, the best candidates rejected at each node, the tests
            made for pruning, the sets tested by the exhaustive search, or the trees tried.

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

        if what == "refused":
            warnings.warn('to_frame("refused") is now "rejected"', FutureWarning, stacklevel=2)
            what = "rejected"
        if what in ("steps", "splits"):
            rows = [self._describe_step(number, each) for number, each in enumerate(self.steps, 1)]
        elif what == "rejected":
            rows = list(self._describe_rejected())
        elif what in ("pruning", "sets", "tried"):
            rows = [asdict(each) for each in getattr(self, what)]
        else:
            parts = "'steps', 'splits', 'rejected', 'pruning', 'sets', 'tried'"
            raise ValueError(f"to_frame gives {parts}, not {what!r}")
        return pandas.DataFrame(rows)

    def _describe_step(self, number: int, step: Step) -> dict[str, Any]:
        verdict, is_chain = step.verdict_uncovered, self.invariance is None
        return {
            "step": number,
            **self._describe_candidate(step, step.chosen),
            **_drop_none(
                p_value_uncovered=step.p_value_uncovered,
                verdict_uncovered=verdict and verdict.conclusion,
                n_candidates=step.n_candidates,
                n_rejected=sum(step.n_rejected.values()),
                n_tied=step.n_tied if is_chain else None,
                n_equivalent=len(step.equivalent) if is_chain else None,
            ),
            **self._count_columns("covered", step.chosen.covered),
            **self._count_columns("uncovered", step.uncovered),
        }

    def _describe_rejected(self) -> Iterator[dict[str, Any]]:
        for number, node in enumerate(self.nodes, start=1):
            for each in node.best_rejected:
                row = self._describe_candidate(node, each.candidate) | {"reason": each.reason}
                if self.invariance is None:
                    outliers = None
                    if each.reason == "dependent":
                        outliers = self.find_outlier_environments(each.candidate.covered)
                    listed = list(outliers or ()) or None
                    row = {"step": number, **row, "outlier_environments": listed}
                yield row | self._count_columns("covered", each.candidate.covered)

    def _describe_candidate(self, node: Scan, candidate: Candidate) -> dict[str, Any]:
        log_odds_ratio = candidate.log_odds_ratio
        return _drop_none(
            node=None if self.invariance is None else " and ".join(map(str, node.path)) or "all",
            rule=str(candidate.rule),
            feature=candidate.rule.feature,
            utility=candidate.utility,
            p_value=candidate.p_value,
            verdict=candidate.verdict and candidate.verdict.conclusion,
            deviance_explained=candidate.deviance_explained,
            rate_heterogeneity=candidate.rate_heterogeneity,
            heterogeneity=candidate.heterogeneity,
            heterogeneity_share=candidate.heterogeneity_share,
            odds_ratio=None if log_odds_ratio is None else float(np.exp(log_odds_ratio)),
        )

    def _count_columns(self, prefix: str, counts: LeafCounts) -> dict[str, int]:
        return {
            f"{prefix} {label} in {environment}": n
            for label, row in zip(self.classes, counts, strict=bool(counts))
            for environment, n in zip(self.environments, row, strict=True)
        }

    def _display(self) -> Display:
        """The steps, and why the search ended or what was required."""
        rows = []
        for step in self.steps:
            chosen = step.chosen
            n_samples = sum(map(sum, (*chosen.covered, *chosen.if_true, *chosen.if_false)))
            cells: tuple[str, ...]
            if self.invariance is None:
                tests = chosen.p_value, step.p_value_uncovered
                p_values = ("-" if p is None else f"{p:.2g}" for p in tests)
                cells = format_number(chosen.utility or 0.0), f"{n_samples:,}", *p_values
            else:
                share = chosen.heterogeneity_share or 0.0
                cells = f"{n_samples:,}", f"{chosen.deviance_explained or 0.0:,.0f}", f"{share:.3f}"
            rejected = f"{sum(step.n_rejected.values()):,} of {step.n_candidates:,}"
            rows.append((str(chosen.rule), *cells, rejected))
        columns = "rule", ">utility", ">covered", ">p covered", ">p uncovered", ">rejected"
        if self.invariance is not None:
            columns = "split", ">samples", ">deviance", ">heterogeneity", ">rejected"  # type: ignore[assignment]
        return Display(self._describe_kind(), columns if rows else (), rows)

    def _describe_kind(self) -> str:
        if self.invariance is None:
            return self.stop_text
        if self.tolerance is None:
            return "A plain tree: nothing was rejected."
        what = "The effect of each split" if self.invariance == "effect" else "The rate of a leaf"
        bound = f"(tolerance {format_number(self.tolerance)})"
        return f"{what} must be the same in all environments {bound}."


def _drop_none(**columns: Any) -> dict[str, Any]:
    return {name: value for name, value in columns.items() if value is not None}


def _as_plain(value: Any) -> Any:
    """Dataclasses as dicts, rules as text, tuples as lists."""
    if isinstance(value, Rule):
        return str(value)
    if is_dataclass(value):
        return {each.name: _as_plain(getattr(value, each.name)) for each in fields(value)}
    return [_as_plain(each) for each in value] if isinstance(value, tuple) else value
