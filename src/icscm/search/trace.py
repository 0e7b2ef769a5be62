"""The record of a search, for reports and debugging.

One record serves every search. Each node of a tree, and each step of a rule set, is a `Scan` of all
candidates; where one was chosen, a rule that was added or a split that was made, it is a `Step`:

    rule set    Step  Step  Scan         the last scan found no candidate that was allowed
    tree        Step  Scan  Step  ..     a node that was split, or that became a leaf

Everything is plain immutable values, so two traces can be compared with `==`. Counts are by outcome
(in the order of the classes) and environment. Fields that do not apply are None or empty.

Some fields take longer than a small fit and are seldom read. They may be *deferred*: made when they
are first read (`Trace.defer`).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from icscm._repr import Display, DisplayMixin
from icscm.engine.counts import RowSource
from icscm.formatting import format_number
from icscm.model.rules import Rule
from icscm.model.splits import LeafCounts
from icscm.model.tree import Tree
from icscm.search import records
from icscm.search.comparable import ComparableColumns
from icscm.search.records import Candidate, Rejection
from icscm.stats.criteria import Criterion, find_outlier_environments
from icscm.stats.replication import describe_lone, find_lone_environment
from icscm.stats.verdicts import Verdict

if TYPE_CHECKING:
    import pandas

# The columns of a displayed trace; those with ">" hold numbers, which are aligned to the right.
RULE_HEADER: Final[tuple[str, ...]] = (
    "rule",
    ">utility",
    ">covered",
    ">p covered",
    ">p uncovered",
    ">rejected",
)
SPLIT_HEADER: Final[tuple[str, ...]] = (
    "split",
    ">samples",
    ">deviance",
    ">heterogeneity",
    ">rejected",
)


@dataclass(frozen=True, kw_only=True)
class Scan:
    """One scan of all candidates at a node.

    Parameters
    ----------
    path : tuple of Rule
        For trees: the rules that are true of the node's rows.
    n_candidates : int
        How many candidates there were.
    n_rejected : dict
        How many were rejected, by reason; for trees, of those that explain more deviance than
        chance.
    best_rejected : tuple of Rejection
        For rule sets, those of largest utility; for trees, for each column the one that explains
        most deviance.
    end : str or None
        Why no candidate was chosen: a key of `STOP_REASONS`.
    nearest : tuple of Rejection
        For rule sets where none was chosen: those whose p-values came nearest to alpha.
    """

    path: tuple[Rule, ...] = ()
    n_candidates: int
    n_rejected: dict[str, int]
    best_rejected: tuple[Rejection, ...] = ()
    end: str | None = None
    nearest: tuple[Rejection, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Step(Scan):
    """A scan that added a rule to the model, or split a node.

    Parameters
    ----------
    chosen : Candidate
        The rule or split.
    uncovered : tuple of tuple of int
        For rule sets: the rows that no rule has covered so far, by outcome and environment.
    p_value_uncovered : float or None
        For rule sets: that of the test on these rows, criterion (ii).
    verdict_uncovered : Verdict or None
        For rule sets: the verdict on these rows.
    effect_uncovered : float or None
        The design effect of the uncovered rows, where rows come in groups or have weights.
    equivalent : tuple of Rule
        Other rules that would have covered exactly the same rows.
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
        On the model's leaves; for a rule set the last is on the uncovered rows.
    stop_reason : str or None
        For rule sets, a key of `STOP_REASONS`.
    alpha : float or None
        For rule sets: the level of the tests.
    criterion : object or None
        For rule sets: what decided whether a leaf is invariant.
    pruning : tuple of PruningTest
        The tests made for pruning.
    pruned : PruningOutcome or None
        The result of pruning; None without it.
    screening : tuple of Screened
        The candidates of the exhaustive search.
    sets : tuple of SetTest
        The sets that the exhaustive search tested.
    untested : str or None
        Which sets it did not test, since there is a limit; a sentence.
    discarded : Tree or None
        Rules that were found and are no better than the majority-class baseline, so that the
        model has no rule.
    invariance : str or None
        For trees: what had to be homogeneous over environments, `"effect"` or `"rate"`.
    tolerance : float or None
        For trees: by how much it may differ; None for a plain tree.
    rejected_columns : tuple of RejectedColumn
        The columns that the model may not use, in the order in which they were rejected: those
        that determine the environment and, for invariant effects, those whose effects differ.
    tried : tuple of TriedTree
        For invariant rates, the best trees grown on the way, by rising score, and last the one
        that was chosen, whose score may be a little lower: it does without idle columns.
    lone_environment : object or None
        The environment that has nearly all information on the outcome, if any has: replication
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

    # --- deferred fields ----------------------------------------------------------

    def defer(self, name: str, make: Callable[[], Any]) -> "Trace":
        """Return the same trace, with a field that is made when it is first read.

        Python looks for an attribute among those of the object first, and calls `__getattr__` only
        if it has none of that name. So the field is removed, and the function that makes it kept.
        """
        deferred = object.__new__(Trace)  # without `__init__`, which would need every field
        attributes = vars(deferred)
        attributes.update(vars(self))
        attributes.pop(name, None)
        attributes[f"_make_{name}"] = make
        return deferred

    if not TYPE_CHECKING:  # mypy would accept any name

        def __getattr__(self, name: str) -> Any:
            """Make a field that was deferred."""
            attributes = vars(self)
            make = attributes.get(f"_make_{name}")
            if make is None:
                message = f"{type(self).__name__!r} object has no attribute {name!r}"
                raise AttributeError(message)
            attributes[name] = make()  # from now on it is found without this method
            attributes.pop(f"_make_{name}", None)
            return attributes[name]

    def __getstate__(self) -> dict[str, Any]:
        """Return all fields, deferred ones included, to be pickled or copied."""
        return {part.name: getattr(self, part.name) for part in fields(self)}

    # --- steps, leaves and rejections ---------------------------------------------

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
    def best_rejected(self) -> Rejection | None:
        """Of all nodes and reasons the rejected rule of largest utility, or most informative split.

        The first of equals.
        """
        rejections = [rejection for node in self.nodes for rejection in node.best_rejected]
        return max(rejections, key=lambda rejection: rejection.candidate.worth, default=None)

    @property
    def stop_text(self) -> str:
        """Why the search of a rule set ended, as a sentence."""
        reason = records.STOP_REASONS[self.stop_reason or "no_candidate"]
        return f"The search stopped because {reason}."

    # --- what a reader should know ----------------------------------------------

    def find_outlier_environments(
        self, leaf: LeafCounts, effect: float | None = None
    ) -> tuple[Any, ...] | None:
        """The environments without which a leaf would be accepted as invariant.

        Parameters
        ----------
        leaf : tuple of tuple of int
            Its rows by outcome and environment.
        effect : float, optional
            Its design effect, where rows come in groups or have weights.

        Returns
        -------
        tuple or None
            Their names, the one that stands out most first; empty where the leaf passes as it
            is, None where leaving out fewer than half does not help, or nothing was tested.
        """
        if self.criterion is None:
            return None
        outliers = find_outlier_environments(np.array(leaf), self.criterion, effect=effect)
        if outliers is None:
            return None
        return tuple(self.environments[number] for number in outliers)

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
        share = self.heterogeneity_share
        tolerance = self.tolerance
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

    # --- sums and plain values --------------------------------------------------

    def list_importances(self) -> dict[str | int, tuple[float, float]]:
        """Deviance that each column explains, and heterogeneity of rates that it adds.

        Returns
        -------
        dict
            Sums over its splits, by name of the column.
        """
        importances: dict[str | int, tuple[float, float]] = {}
        for step in self.splits:
            column = step.chosen.rule.feature
            explained, heterogeneity = importances.get(column, (0.0, 0.0))
            explained += step.chosen.deviance_explained or 0.0
            heterogeneity += step.chosen.rate_heterogeneity or 0.0
            importances[column] = (explained, heterogeneity)
        return importances

    def to_dict(self) -> dict[str, Any]:
        """Everything in plain values.

        Returns
        -------
        dict
            Dataclasses as dicts, rules as text, tuples as lists.
        """
        # The criterion is no value: it is an object that tests, perhaps a user's.
        plain: dict[str, Any] = _as_plain(replace(self, criterion=None))
        del plain["criterion"]
        return plain

    # --- tables -----------------------------------------------------------------

    def to_frame(self, what: str = "steps") -> "pandas.DataFrame":
        """A table of one part.

        Parameters
        ----------
        what : {"steps", "splits", "rejected", "columns", "pruning", "sets", "tried"}
            The rules added or splits made, the best candidates rejected at each node, the columns
            that the model may not use, the tests made for pruning, the sets tested by the
            exhaustive search, or the trees tried.

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

        describe_parts: dict[str, Callable[[], Iterable[dict[str, Any]]]] = {
            "steps": self._describe_steps,
            "splits": self._describe_steps,
            "rejected": self._describe_rejected,
            "columns": lambda: [column.describe() for column in self.rejected_columns],
            "pruning": lambda: [asdict(test) for test in self.pruning],
            "sets": lambda: [asdict(test) for test in self.sets],
            "tried": lambda: [asdict(tree) for tree in self.tried],
        }
        if what not in describe_parts:
            parts = ", ".join(map(repr, describe_parts))
            raise ValueError(f"to_frame gives {parts}, not {what!r}")
        return pandas.DataFrame(list(describe_parts[what]()))

    @property
    def _is_rule_set(self) -> bool:
        """Whether this is the search for a rule set, rather than for a tree."""
        return self.invariance is None

    def _describe_steps(self) -> Iterator[dict[str, Any]]:
        """Make a line of the table for each rule that was added, or split that was made."""
        for number, step in enumerate(self.steps, start=1):
            verdict = step.verdict_uncovered
            numbers = _drop_none(
                p_value_uncovered=step.p_value_uncovered,
                verdict_uncovered=None if verdict is None else verdict.conclusion,
                n_candidates=step.n_candidates,
                n_rejected=sum(step.n_rejected.values()),
                n_tied=step.n_tied if self._is_rule_set else None,
                n_equivalent=len(step.equivalent) if self._is_rule_set else None,
            )
            yield {
                "step": number,
                **self._describe_candidate(step, step.chosen),
                **numbers,
                **self._list_counts("covered", step.chosen.covered),
                **self._list_counts("uncovered", step.uncovered),
            }

    def _describe_rejected(self) -> Iterator[dict[str, Any]]:
        """Make a line of the table for each of the best rejected candidates."""
        for number, node in enumerate(self.nodes, start=1):
            for rejection in node.best_rejected:
                line = self._describe_candidate(node, rejection.candidate)
                line["reason"] = rejection.reason
                if self._is_rule_set:  # a tree has a column for the node instead of the step
                    outliers = self._list_outliers(rejection)
                    line = {"step": number, **line, "outlier_environments": outliers}
                line |= self._list_counts("covered", rejection.candidate.covered)
                yield line

    def _list_outliers(self, rejection: Rejection) -> list[Any] | None:
        """List the environments for which a rule was rejected; None if it was not for a few."""
        if rejection.reason != "dependent":
            return None
        candidate = rejection.candidate
        outliers = self.find_outlier_environments(candidate.covered, candidate.design_effect)
        return list(outliers) if outliers else None

    def _describe_candidate(self, node: Scan, candidate: Candidate) -> dict[str, Any]:
        """Make the columns of a table that describe a rule or a split; without those of None."""
        path = " and ".join(str(rule) for rule in node.path) or "all"
        verdict = candidate.verdict
        log_odds_ratio = candidate.log_odds_ratio
        return _drop_none(
            node=None if self._is_rule_set else path,
            rule=str(candidate.rule),
            feature=candidate.rule.feature,
            utility=candidate.utility,
            p_value=candidate.p_value,
            replication=candidate.replication,
            verdict=None if verdict is None else verdict.conclusion,
            deviance_explained=candidate.deviance_explained,
            rate_heterogeneity=candidate.rate_heterogeneity,
            heterogeneity=candidate.heterogeneity,
            heterogeneity_share=candidate.heterogeneity_share,
            odds_ratio=None if log_odds_ratio is None else float(np.exp(log_odds_ratio)),
        )

    def _list_counts(self, prefix: str, counts: LeafCounts) -> dict[str, int]:
        """Make a column of a table for each count (outcome, environment); none without counts."""
        if not counts:
            return {}
        columns: dict[str, int] = {}
        for outcome, counts_of_outcome in zip(self.classes, counts, strict=True):
            for environment, n_rows in zip(self.environments, counts_of_outcome, strict=True):
                columns[f"{prefix} {outcome} in {environment}"] = n_rows
        return columns

    # --- display ----------------------------------------------------------------

    def _display(self) -> Display:
        """Show the steps, and why the search ended or what was required."""
        if self._is_rule_set:
            heading = self.stop_text
            header = RULE_HEADER
            lines = [self._display_rule(step) for step in self.steps]
        else:
            heading = self._describe_requirement()
            header = SPLIT_HEADER
            lines = [self._display_split(step) for step in self.steps]
        return Display(heading, header if lines else (), lines)

    def _display_rule(self, step: Step) -> tuple[str, ...]:
        """Make a line of the display for a rule that was added, with the texts of `RULE_HEADER`."""
        chosen = step.chosen
        return (
            str(chosen.rule),
            format_number(chosen.utility or 0.0),
            f"{_count_rows(chosen.covered):,}",
            _format_p_value(chosen.p_value),
            _format_p_value(step.p_value_uncovered),
            _format_rejected(step),
        )

    def _display_split(self, step: Step) -> tuple[str, ...]:
        """Make a line of the display for a split that was made, as `SPLIT_HEADER` says."""
        chosen = step.chosen
        n_rows = _count_rows(chosen.if_true) + _count_rows(chosen.if_false)
        return (
            str(chosen.rule),
            f"{n_rows:,}",
            f"{chosen.deviance_explained or 0.0:,.0f}",
            f"{chosen.heterogeneity_share or 0.0:.3f}",
            _format_rejected(step),
        )

    def _describe_requirement(self) -> str:
        """Describe in a sentence what was required of a tree."""
        if self.tolerance is None:
            return "A plain tree: nothing was rejected."
        what = "effect of each column" if self.invariance == "effect" else "rate of a leaf"
        tolerance = format_number(self.tolerance)
        return f"The {what} must be the same in all environments (tolerance {tolerance})."


def make_trace(
    source: RowSource,
    nodes: Iterable[Scan],
    *,
    comparable: ComparableColumns | None = None,
    **parts: Any,
) -> Trace:
    """Make the trace of a search over a source; `parts` are other fields of it.

    Parts may have notes of their own, which are taken instead of the source's. `comparable` knows
    the columns that were rejected before the search, which come first; it knows none where the
    search did not count all rows by column, as when it stops before its first scan.
    """
    if comparable is not None and comparable.is_examined:
        rejected_columns = (*comparable.list_records(), *parts.get("rejected_columns", ()))
        notes = (*parts.get("notes", source.notes), *comparable.list_notes())
        parts |= {"rejected_columns": rejected_columns, "notes": notes}
    about_source = {
        "classes": tuple(source.classes),
        "environments": tuple(source.environments),
        "notes": tuple(source.notes),
    }
    # A lone environment matters only where replication is required: where effects have a
    # tolerance, or rules are tested at a level.
    requirement = "tolerance" if parts.get("invariance") == "effect" else "alpha"
    lone_environment = None
    if parts.get(requirement) is not None:
        lone_environment = _find_lone_environment(source)
    return Trace(nodes=tuple(nodes), lone_environment=lone_environment, **(about_source | parts))


def _find_lone_environment(source: RowSource) -> Any:
    """Find the environment that has nearly all information on the outcome; None if none has."""
    if len(source.environments) < 2:
        return None
    number = find_lone_environment(source.count_rows())
    return None if number is None else source.environments[number]


def _drop_none(**columns: Any) -> dict[str, Any]:
    """Return those of the columns of a table that have a value."""
    return {name: value for name, value in columns.items() if value is not None}


def _count_rows(counts: LeafCounts) -> int:
    """Count the rows of a leaf, which may be empty."""
    return sum(sum(counts_of_outcome) for counts_of_outcome in counts)


def _format_p_value(p_value: float | None) -> str:
    """Format a p-value; a dash if nothing was tested."""
    return "-" if p_value is None else f"{p_value:.2g}"


def _format_rejected(step: Step) -> str:
    """Format how many of the candidates of a step were rejected."""
    return f"{sum(step.n_rejected.values()):,} of {step.n_candidates:,}"


def _as_plain(value: Any) -> Any:
    """Return dataclasses as dicts, rules as text, tuples as lists."""
    if isinstance(value, Rule):
        return str(value)
    if is_dataclass(value):
        return {part.name: _as_plain(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, tuple):
        return [_as_plain(entry) for entry in value]
    return value
