"""The record of a search, for reports and debugging.

One record serves every search. The nodes of a tree, and the steps of a rule set, which is a chain,
are scans of all candidates; a node that was split, or a rule that was added, is a `Step`.
Everything is plain immutable values, so two traces can be compared with `==`. Counts are by
label (in the order of the classes) and environment. Fields that do not apply are None or empty.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from icscm._repr import Display, DisplayMixin
from icscm.engine.counts import CountSource
from icscm.formatting import format_number
from icscm.model.rules import Rule
from icscm.model.splits import LeafCounts
from icscm.model.tree import Tree
from icscm.search import records
from icscm.search.records import Candidate, Rejection
from icscm.stats.criteria import Criterion, find_outlier_environments
from icscm.stats.replication import describe_lone, find_lone_environment
from icscm.stats.verdicts import Verdict

if TYPE_CHECKING:
    import pandas


# The numbers of a split in a frame.
_DEVIANCES = "deviance_explained", "rate_heterogeneity", "heterogeneity", "heterogeneity_share"


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
        For rule sets, those of largest utility; for trees, for each feature the one that explains
        most deviance.
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
    effect_uncovered : float or None
        The design effect of the uncovered samples, where rows come in groups or have weights.
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
    effect_uncovered: float | None = None


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
        Facts about how the counts were made.
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
    untested : str or None
        Which sets it did not test, since there is a limit; a sentence.
    discarded : Tree or None
        Rules that were found and are no better than the majority-class baseline, so that the
        model has no rule.
    invariance, tolerance : str or None, float or None
        For trees: what had to be homogeneous, and the tolerance; None for a plain tree.
    rejected_columns : tuple of RejectedColumn
        For invariant effects, the columns that the tree may not use, in the order in which they
        were rejected.
    tried : tuple of TriedTree
        For invariant rates, the best trees grown on the way, by rising score, and last the one
        that was chosen, whose score may be a little lower: it does without idle features.
    lone_environment : object or None
        The environment that has nearly all information on the label, if there is one: replication
        cannot be assessed then, and nothing is rejected for it.
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
    verdicts: tuple[Verdict, ...] = field(default_factory=tuple)  # no default: it may be deferred
    stop_reason: str | None = None
    alpha: float | None = None
    criterion: Criterion | None = field(default=None, compare=False)
    pruning: tuple[records.PruningTest, ...] = ()
    pruned: records.PruningOutcome | None = None
    screening: tuple[records.Screened, ...] = ()
    sets: tuple[records.SetTest, ...] = ()
    untested: str | None = None
    discarded: Tree | None = None
    invariance: str | None = None
    tolerance: float | None = None
    rejected_columns: tuple[records.RejectedColumn, ...] = ()
    tried: tuple[records.TriedTree, ...] = ()
    lone_environment: Any = None
    heterogeneity_share: float | None = None

    def defer(self, name: str, make: Callable[[], Any]) -> "Trace":
        """The same trace; this field of it is made when it is first read."""
        deferred = object.__new__(Trace)
        vars(deferred).update(vars(self), **{f"_make_{name}": make})
        vars(deferred).pop(name, None)
        return deferred

    if not TYPE_CHECKING:  # mypy would accept any name

        def __getattr__(self, name: str) -> Any:
            """A field that was deferred."""
            if (make := vars(self).get(f"_make_{name}")) is not None:
                made = vars(self)[name] = make()
                vars(self).pop(f"_make_{name}", None)
                return made
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __getstate__(self) -> dict[str, Any]:
        """Plain values, complete, to be pickled or copied."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @property
    def steps(self) -> tuple[Step, ...]:
        """The rules that were added, or the splits that were made."""
        return tuple([node for node in self.nodes if isinstance(node, Step)])

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
    def best_rejected(self) -> Rejection | None:
        """Of all nodes and reasons the rejected rule of largest utility, or most informative split.

        The first of equals.
        """
        every = (each for node in self.nodes for each in node.best_rejected)
        return max(every, key=lambda each: each.candidate.worth, default=None)

    @property
    def stop_text(self) -> str:
        """Why the search of a rule set ended, as a sentence."""
        reason = records.STOP_REASONS[self.stop_reason or "no_candidate"]
        return f"The search stopped because {reason}."

    def find_outlier_environments(
        self, leaf: LeafCounts, effect: float | None = None
    ) -> tuple[Any, ...] | None:
        """The environments without which a leaf would be accepted as invariant.

        Parameters
        ----------
        leaf : tuple of tuple of int
            Its samples by label and environment.
        effect : float, optional
            Its design effect, where rows come in groups or have weights.

        Returns
        -------
        tuple or None
            Their labels, the one that stands out most first; empty where the leaf passes as it
            is, None where leaving out fewer than half does not help, or nothing was tested.
        """
        if self.criterion is None:
            return None
        found = find_outlier_environments(np.array(leaf), self.criterion, effect=effect)
        return None if found is None else tuple(self.environments[k] for k in found)

    def describe_lone(self) -> str | None:
        """A warning if one environment has nearly all information.

        Returns
        -------
        str or None
            A sentence, or None.
        """
        return None if self.lone_environment is None else describe_lone(self.lone_environment)

    def describe_excess(self) -> str | None:
        """A warning if no tree of invariant rates was found and this is the nearest.

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
            f"explained; the tolerance is {tolerance:.1%}."
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

    def to_frame(self, what: str = "steps") -> "pandas.DataFrame":
        """A table of one part.

        Parameters
        ----------
        what : {"steps", "splits", "rejected", "columns", "pruning", "sets", "tried"}
            The rules added or splits made, the best candidates rejected at each node, the columns
            that a tree may not use, the tests made for pruning, the sets tested by the exhaustive
            search, or the trees tried.

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

        if what in ("steps", "splits"):
            rows = [self._describe_step(number, each) for number, each in enumerate(self.steps, 1)]
        elif what == "rejected":
            rows = list(self._describe_rejected())
        elif what == "columns":
            rows = [each.describe() for each in self.rejected_columns]
        elif what in ("pruning", "sets", "tried"):
            rows = [asdict(each) for each in getattr(self, what)]
        else:
            parts = "'steps', 'splits', 'rejected', 'columns', 'pruning', 'sets', 'tried'"
            raise ValueError(f"to_frame gives {parts}, not {what!r}")
        return pandas.DataFrame(rows)

    def _describe_step(self, number: int, step: Step) -> dict[str, Any]:
        verdict, is_chain = step.verdict_uncovered, self.invariance is None
        row = {"step": number, **self._describe_candidate(step, step.chosen)}
        row |= _drop_none(
            p_value_uncovered=step.p_value_uncovered,
            verdict_uncovered=verdict and verdict.conclusion,
            n_candidates=step.n_candidates,
            n_rejected=sum(step.n_rejected.values()),
            n_tied=step.n_tied if is_chain else None,
            n_equivalent=len(step.equivalent) if is_chain else None,
        )
        row |= self._count_columns("covered", step.chosen.covered)
        return row | self._count_columns("uncovered", step.uncovered)

    def _describe_rejected(self) -> Iterator[dict[str, Any]]:
        for number, node in enumerate(self.nodes, start=1):
            for each in node.best_rejected:
                row = self._describe_candidate(node, each.candidate) | {"reason": each.reason}
                if self.invariance is None:
                    outliers = None
                    if each.reason == "dependent":
                        own = each.candidate.covered, each.candidate.design_effect
                        outliers = self.find_outlier_environments(*own)
                    listed = list(outliers or ()) or None
                    row = {"step": number, **row, "outlier_environments": listed}
                yield row | self._count_columns("covered", each.candidate.covered)

    def _describe_candidate(self, node: Scan, candidate: Candidate) -> dict[str, Any]:
        ratio = candidate.log_odds_ratio
        return _drop_none(
            node=None if self.invariance is None else " and ".join(map(str, node.path)) or "all",
            rule=str(candidate.rule),
            feature=candidate.rule.feature,
            utility=candidate.utility,
            p_value=candidate.p_value,
            replication=candidate.replication,
            verdict=candidate.verdict and candidate.verdict.conclusion,
            **{name: getattr(candidate, name) for name in _DEVIANCES},
            odds_ratio=None if ratio is None else float(np.exp(ratio)),
        )

    def _count_columns(self, prefix: str, counts: LeafCounts) -> dict[str, int]:
        return {
            f"{prefix} {label} in {environment}": n
            for label, row in zip(self.classes, counts, strict=bool(counts))
            for environment, n in zip(self.environments, row, strict=True)
        }

    def _display(self) -> Display:
        """The steps, and why the search ended or what was required."""
        is_chain, rows = self.invariance is None, []
        for step in self.steps:
            chosen = step.chosen
            n = f"{sum(map(sum, (*chosen.covered, *chosen.if_true, *chosen.if_false))):,}"
            if is_chain:
                p_values = chosen.p_value, step.p_value_uncovered
                tests = ("-" if p is None else f"{p:.2g}" for p in p_values)
                cells = [format_number(chosen.utility or 0.0), n, *tests]
            else:
                explained, share = chosen.deviance_explained, chosen.heterogeneity_share
                cells = [n, f"{explained or 0.0:,.0f}", f"{share or 0.0:.3f}"]
            rejected = f"{sum(step.n_rejected.values()):,} of {step.n_candidates:,}"
            rows.append((str(chosen.rule), *cells, rejected))
        of_chain = "rule", ">utility", ">covered", ">p covered", ">p uncovered", ">rejected"
        of_tree = "split", ">samples", ">deviance", ">heterogeneity", ">rejected"
        line = self.stop_text
        if not is_chain:
            what = "effect of each column" if self.invariance == "effect" else "rate of a leaf"
            bound = f"(tolerance {format_number(self.tolerance or 0.0)})"
            line = f"The {what} must be the same in all environments {bound}."
            line = line if self.tolerance is not None else "A plain tree: nothing was rejected."
        return Display(line, (of_chain if is_chain else of_tree) if rows else (), rows)


def make_trace(source: CountSource, nodes: Iterable[Scan], **fields: Any) -> "Trace":
    """The trace of a search over a source."""
    about = {name: tuple(getattr(source, name)) for name in ("classes", "environments", "notes")}
    level = fields.get("tolerance" if fields.get("invariance") == "effect" else "alpha")
    lone = None if level is None else find_lone_environment(source.count_totals())
    if lone is not None and len(source.environments) > 1:
        fields["lone_environment"] = source.environments[lone]
    return Trace(nodes=tuple(nodes), **{**about, **fields})


def _drop_none(**columns: Any) -> dict[str, Any]:
    return {name: value for name, value in columns.items() if value is not None}


def _as_plain(value: Any) -> Any:
    """Dataclasses as dicts, rules as text, tuples as lists."""
    if isinstance(value, Rule):
        return str(value)
    if is_dataclass(value):
        return {each.name: _as_plain(getattr(value, each.name)) for each in fields(value)}
    return [_as_plain(each) for each in value] if isinstance(value, tuple) else value
