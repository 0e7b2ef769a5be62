"""The model as a tree, and the search at each node: what was chosen and what was rejected.

A scan examines all candidates at a node: rules that could be added to a rule set, or splits of a
node of a tree. It chooses one, or ends there, and lists the best of those that it rejected.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import exp
from typing import Any, Final

from icscm.formatting import format_name
from icscm.model.forest import Forest
from icscm.model.saved import Learner
from icscm.report.content.candidates import (
    RuleCandidate,
    SplitCandidate,
    make_candidate,
    make_rule_candidate,
    make_split_candidate,
)
from icscm.report.content.leaves import find_outliers
from icscm.report.content.rates import count_rows
from icscm.report.content.tree_nodes import Node, walk_nodes
from icscm.report.formatting import Names
from icscm.search.records import RejectedColumn, Rejection
from icscm.search.trace import Scan, Step, Trace
from icscm.stats.giveaways import DETERMINES

# Rules rejected because of a few environments that are listed.
N_OUTLYING: Final = 3


class CriterionName(StrEnum):
    """What decided that a candidate was rejected."""

    SETS = "sets"
    MARGIN = "margin"
    P_VALUES = "p-values"


@dataclass(frozen=True, kw_only=True)
class ScanSize:
    """How many candidates a scan had, and how many were rejected by reason."""

    n_candidates: int
    n_rejected: dict[str, int]

    @property
    def n_rejected_all(self) -> int:
        """The number of rejected candidates, whatever the reason."""
        return sum(self.n_rejected.values())


@dataclass(frozen=True, kw_only=True)
class ChosenRule:
    """A rule that was added: the candidate, and what was left uncovered."""

    number: int
    candidate: RuleCandidate
    size: ScanSize
    in_model: bool
    n_uncovered: int
    p_value_uncovered: float | None
    n_tied: int
    n_equivalent: int


@dataclass(frozen=True, kw_only=True)
class ChosenSplit:
    """A split of the tree."""

    number: int
    candidate: SplitCandidate
    size: ScanSize


@dataclass(frozen=True, kw_only=True)
class RejectedCandidate:
    """A rejected candidate, the reason, and where.

    Parameters
    ----------
    candidate, reason : RuleCandidate or SplitCandidate, str
        As in `icscm.search.records.Rejection`.
    node : str
        The condition of the rows that were scanned.
    outliers : list of str or None
        The few environments without which a rule would have passed.
    column_share, column_replication : float or None
        Heterogeneity and replication of its column, where the column as a whole was rejected.
    """

    candidate: RuleCandidate | SplitCandidate
    reason: str
    node: str
    outliers: list[str] | None = None
    column_share: float | None = None
    column_replication: float | None = None
    is_of_rejected_column: bool = False

    @property
    def rule_candidate(self) -> RuleCandidate:
        """The candidate of a rule set's scan."""
        assert isinstance(self.candidate, RuleCandidate)
        return self.candidate


@dataclass(frozen=True, kw_only=True)
class ScanContent:
    """A scan of all candidates at a node.

    `title` names it, `node` is the condition of its rows, and `end` says why no candidate was
    chosen.
    """

    number: int
    title: str
    node: str
    size: ScanSize
    end: str | None
    rejected: list[RejectedCandidate]


@dataclass(frozen=True, kw_only=True)
class EffectExtreme:
    """The environment of an extreme effect of a column, relative to the common one."""

    environment: str
    odds_ratio: float


@dataclass(frozen=True, kw_only=True)
class RejectedColumnContent:
    """A column that a tree may not use, as `icscm.search.records.RejectedColumn`."""

    rule: str
    reason: str
    round: int
    replication: float | None
    heterogeneity_share: float | None
    p_value: float | None
    lowest: EffectExtreme | None
    highest: EffectExtreme | None
    feature: str


@dataclass(frozen=True, kw_only=True)
class TestedSet:
    """A set of columns tested by the exhaustive search."""

    features: list[str]
    p_value: float
    accepted: bool
    bic: float


@dataclass(frozen=True, kw_only=True)
class ScreenedRule:
    """The best rule of a column in the screen of the exhaustive search."""

    rule: str
    statistic: float
    p_value: float


@dataclass(frozen=True, kw_only=True)
class PruningTestContent:
    """A test of pruning, as `icscm.search.records.PruningTest`."""

    round: int
    feature: str
    statistic: float
    dof: int
    p_value: float
    removed: bool
    undone: bool


@dataclass(frozen=True, kw_only=True)
class Pruning:
    """The tests of pruning, its outcome, and rows predicted wrongly without it and with it."""

    tests: list[PruningTestContent]
    outcome: str | None
    n_wrong_before: int
    n_wrong_after: int


@dataclass(frozen=True, kw_only=True)
class ColumnImportance:
    """Deviance explained by a column of a tree, and the heterogeneity of rates that it adds."""

    feature: str
    deviance_explained: float
    share: float
    rate_heterogeneity: float


@dataclass(frozen=True, kw_only=True)
class TriedTreeContent:
    """A tree that was grown for invariant rates, as `icscm.search.records.TriedTree`."""

    banned: list[str]
    used: list[str]
    deviance_explained: float
    rate_heterogeneity: float
    dof: int
    score: float


@dataclass(frozen=True, kw_only=True)
class Nodes:
    """The nodes of the model and the search.

    Parameters
    ----------
    is_chain : bool
        Whether the model is a rule set.
    walk : list of Node
        From the root down; empty for a forest.
    criterion : str or None
        What decided on rejections: a `CriterionName`; of trees "rate" or "effect".
    is_tested : bool
        Whether anything could be rejected.
    alpha, invariance, tolerance, stop_reason : float, str, float, str, each or None
        Of the trace.
    splits, scans : list of ChosenRule or ChosenSplit, list of ScanContent
        What was chosen, and every scan with its rejected candidates.
    last_scan : ScanContent or None
        Of a rule set: the scan that found no rule to add.
    outliers : list of RejectedCandidate
        Rules that would have been chosen but for a few environments, those of largest utility.
    best_rejected : RejectedCandidate or None
        The most useful or informative one of all scans.
    rejected_features, rejected_columns : list
        Of trees: the best rejected split of each column that is not in it, and the columns that
        were rejected as a whole.
    nearest : list of RejectedCandidate
        The candidates of the last scan with the largest p-values.
    screening, sets, pruning, importances, tried : list, list, Pruning, list, list
        Of the exhaustive search, of pruning, of trees, and of the search for invariant rates.
    """

    is_chain: bool
    walk: list[Node]
    criterion: str | None
    is_tested: bool
    alpha: float | None
    invariance: str | None
    tolerance: float | None
    stop_reason: str | None
    splits: list[ChosenRule] | list[ChosenSplit]
    scans: list[ScanContent]
    last_scan: ScanContent | None
    outliers: list[RejectedCandidate]
    best_rejected: RejectedCandidate | None
    rejected_features: list[RejectedCandidate]
    rejected_columns: list[RejectedColumnContent]
    nearest: list[RejectedCandidate]
    screening: list[ScreenedRule]
    sets: list[TestedSet]
    pruning: Pruning
    importances: list[ColumnImportance]
    tried: list[TriedTreeContent]

    @property
    def determining_columns(self) -> list[str]:
        """The columns that were rejected since they determine the environment."""
        return [column.feature for column in self.rejected_columns if column.reason == DETERMINES]

    @property
    def added_rules(self) -> list[ChosenRule]:
        """The steps of a rule set's search; empty for trees."""
        return [chosen for chosen in self.splits if isinstance(chosen, ChosenRule)]

    @property
    def tree_splits(self) -> list[ChosenSplit]:
        """The splits of a tree; empty for rule sets."""
        return [chosen for chosen in self.splits if isinstance(chosen, ChosenSplit)]


def make_nodes(learner: Learner, names: Names) -> Nodes:
    """Return the nodes of a fitted learner's model, and what its search chose and rejected.

    A search is a series of scans, each of which compares all candidates at one node. The scans
    that chose a rule or split (`trace.steps`) come first, then those that ended without.
    """
    trace: Trace = learner.trace_
    is_chain = trace.invariance is None  # a rule set, whose rules form a chain of nodes
    requirement = trace.alpha if is_chain else trace.tolerance
    chosen = make_chosen(learner, names)
    scans = [
        make_scan(number, scan, learner, names)
        for number, scan in enumerate(list_scans(trace), start=1)
    ]
    # the scan after which the search of a rule set stopped
    last_scan = scans[len(trace.steps)] if is_chain and trace.last_scan else None
    rejected = [candidate for scan in scans for candidate in scan.rejected]
    return Nodes(
        is_chain=is_chain,
        walk=[*walk_nodes(learner.model_, names)],
        criterion=find_criterion(learner),
        is_tested=requirement is not None,
        alpha=trace.alpha,
        invariance=trace.invariance,
        tolerance=trace.tolerance,
        stop_reason=trace.stop_reason,
        splits=chosen,
        scans=scans,
        last_scan=last_scan,
        outliers=list_outliers(chosen, scans),
        best_rejected=max(rejected, key=get_worth, default=None),
        rejected_features=[] if is_chain else list_rejected_features(rejected, learner),
        rejected_columns=[
            make_rejected_column(column, trace, names) for column in trace.rejected_columns
        ],
        nearest=[make_rejected(rejection, "", names, learner) for rejection in trace.nearest],
        screening=make_screened_rules(trace),
        sets=make_tested_sets(trace),
        pruning=make_pruning(trace),
        importances=[] if is_chain else make_importances(trace),
        tried=make_tried_trees(trace),
    )


def find_criterion(learner: Learner) -> str | None:
    """Return what decided on rejections; None where nothing did."""
    trace, settings = learner.trace_, learner.get_params(deep=False)
    if trace.invariance is not None:
        return str(trace.invariance)
    if trace.alpha is None:
        return None
    if settings["search"] == "exhaustive":
        return CriterionName.SETS
    return CriterionName.P_VALUES if settings["margin"] is None else CriterionName.MARGIN


# --- scans ----------------------------------------------------------------------------------------


def list_scans(trace: Trace) -> list[Scan]:
    """Return the scans: first those that added a rule or split a node."""
    return [*trace.steps, *trace.leaves]


def make_scan(number: int, scan: Scan, learner: Learner, names: Names) -> ScanContent:
    """Return a scan, by its number from 1, with its rejected candidates."""
    node = " and ".join(map(str, scan.path)) or "all samples"
    return ScanContent(
        number=number,
        title=name_scan(number, scan, learner),
        node=node,
        size=make_scan_size(scan),
        end=scan.end,
        rejected=[
            make_rejected(rejection, node, names, learner) for rejection in scan.best_rejected
        ],
    )


def name_scan(number: int, scan: Scan, learner: Learner) -> str:
    """Return the name of a scan in lists."""
    trace = learner.trace_
    is_chain = trace.invariance is None
    if isinstance(scan, Step):
        return f"Step {number}" if is_chain else f"Split {number}, {scan.chosen.rule}"
    if isinstance(learner.model_, Forest):
        return "All samples"
    if is_chain:
        return "Last scan"
    leaf_number = number - len(trace.steps)
    return f"Leaf {leaf_number}"


def make_scan_size(scan: Scan) -> ScanSize:
    """Return how many candidates a scan had and rejected."""
    return ScanSize(n_candidates=scan.n_candidates, n_rejected=dict(scan.n_rejected))


def make_chosen(learner: Learner, names: Names) -> list[ChosenRule] | list[ChosenSplit]:
    """Return the rules that were added, or the splits that were made."""
    steps = list(enumerate(learner.trace_.steps, start=1))
    if learner.trace_.invariance is not None:
        return [
            ChosenSplit(
                number=number,
                candidate=make_split_candidate(step.chosen, names),
                size=make_scan_size(step),
            )
            for number, step in steps
        ]
    return [
        ChosenRule(
            number=number,
            candidate=make_rule_candidate(step.chosen, names, learner),
            size=make_scan_size(step),
            in_model=step.chosen.rule in learner.model_.rules,
            n_uncovered=count_rows(step.uncovered),
            p_value_uncovered=step.p_value_uncovered,
            n_tied=step.n_tied,
            n_equivalent=len(step.equivalent),
        )
        for number, step in steps
    ]


# --- what was rejected ----------------------------------------------------------------------------


def make_rejected(
    rejection: Rejection, node: str, names: Names, learner: Learner
) -> RejectedCandidate:
    """Return a rejected candidate, and what explains the rejection.

    Of a rule whose rates differ between environments, that is the few environments that stand out;
    of a split, that its column was rejected before the tree was grown.
    """
    trace = learner.trace_
    candidate = rejection.candidate
    is_rule = candidate.utility is not None
    outliers = None
    if is_rule and rejection.reason == "dependent":
        outliers = find_outliers(candidate.covered, names, trace.criterion)

    rejected_columns = {column.rule.feature: column for column in trace.rejected_columns}
    column = rejected_columns.get(candidate.rule.feature)
    return RejectedCandidate(
        candidate=make_candidate(candidate, names, learner),
        reason=rejection.reason,
        node=node,
        outliers=outliers,
        column_share=None if column is None else column.heterogeneity_share,
        column_replication=None if column is None else column.replication,
        is_of_rejected_column=column is not None,
    )


def get_worth(rejected: RejectedCandidate) -> float:
    """Return the utility of a rejected rule, or the deviance that a rejected split explains."""
    return rejected.candidate.worth


def list_outliers(
    chosen: Sequence[ChosenRule | ChosenSplit], scans: Iterable[ScanContent]
) -> list[RejectedCandidate]:
    """Return rules that would have been chosen but for a few environments, the best ones.

    Such a rule is worth more than what its scan chose. It may be rejected in several scans, of
    which the first counts.
    """
    worth_of_chosen = {step.number: step.candidate.worth for step in chosen}
    first_rejections: dict[str, RejectedCandidate] = {}
    for scan in scans:
        least_worth = worth_of_chosen.get(scan.number, 0)
        for rejected in scan.rejected:
            if rejected.outliers and get_worth(rejected) > least_worth:
                first_rejections.setdefault(rejected.candidate.rule, rejected)
    best_first = sorted(first_rejections.values(), key=get_worth, reverse=True)
    return best_first[:N_OUTLYING]


def list_rejected_features(
    rejected: Iterable[RejectedCandidate], learner: Learner
) -> list[RejectedCandidate]:
    """Return for each column that is not in the tree its best rejected split."""
    used = {format_name(column) for column in learner.features_used_}
    best_of_columns: dict[str, RejectedCandidate] = {}
    for candidate in sorted(rejected, key=get_worth, reverse=True):
        best_of_columns.setdefault(candidate.candidate.feature, candidate)
    return [best for column, best in best_of_columns.items() if column not in used]


def make_rejected_column(
    column: RejectedColumn, trace: Trace, names: Names
) -> RejectedColumnContent:
    """Return a rejected column, with the environments of its extreme effects."""
    return RejectedColumnContent(
        rule=str(column.rule),
        reason=column.reason,
        round=column.round,
        replication=column.replication,
        heterogeneity_share=column.heterogeneity_share,
        p_value=column.p_value,
        lowest=make_effect_extreme(column.lowest, trace, names),
        highest=make_effect_extreme(column.highest, trace, names),
        feature=format_name(column.rule.feature),
    )


def make_effect_extreme(
    extreme: tuple[Any, float] | None, trace: Trace, names: Names
) -> EffectExtreme | None:
    """Return the environment of an extreme effect, given as label and log odds ratio.

    The odds ratio is relative to the one that is common to all environments.
    """
    if extreme is None:
        return None
    label, log_odds_ratio = extreme
    number = trace.environments.index(label)
    return EffectExtreme(environment=names.environments[number], odds_ratio=exp(log_odds_ratio))


# --- sets, pruning, importances and trees tried ---------------------------------------------------


def make_screened_rules(trace: Trace) -> list[ScreenedRule]:
    """Return the best rule of each column, among which the exhaustive search chose its sets."""
    return [
        ScreenedRule(
            rule=str(screened.rule), statistic=screened.statistic, p_value=screened.p_value
        )
        for screened in trace.screening
    ]


def make_tested_sets(trace: Trace) -> list[TestedSet]:
    """Return the sets of the exhaustive search, those of largest p-value first."""
    return [
        TestedSet(
            features=[format_name(column) for column in tested.features],
            p_value=tested.p_value,
            accepted=tested.accepted,
            bic=tested.bic,
        )
        for tested in sorted(trace.sets, key=lambda tested: -tested.p_value)
    ]


def make_pruning(trace: Trace) -> Pruning:
    """Return the tests of pruning and what it cost."""
    tests = [
        PruningTestContent(**vars(test) | {"feature": format_name(test.feature)})
        for test in trace.pruning
    ]
    pruned = trace.pruned
    return Pruning(
        tests=tests,
        outcome=None if pruned is None else pruned.outcome,
        n_wrong_before=0 if pruned is None else pruned.n_wrong_before,
        n_wrong_after=0 if pruned is None else pruned.n_wrong_after,
    )


def make_importances(trace: Trace) -> list[ColumnImportance]:
    """Return the deviance explained by each column of the tree, the most important first."""
    importances = [
        ColumnImportance(
            feature=format_name(column),
            deviance_explained=deviance,
            share=0.0,
            rate_heterogeneity=heterogeneity,
        )
        for column, (deviance, heterogeneity) in trace.list_importances().items()
    ]
    total = sum(importance.deviance_explained for importance in importances) or 1.0
    importances.sort(key=lambda importance: -importance.deviance_explained)
    return [
        replace(importance, share=importance.deviance_explained / total)
        for importance in importances
    ]


def make_tried_trees(trace: Trace) -> list[TriedTreeContent]:
    """Return the trees that were grown in the search for invariant rates."""
    return [
        TriedTreeContent(
            banned=[format_name(column) for column in tree.banned],
            used=[format_name(column) for column in tree.used],
            deviance_explained=tree.deviance_explained,
            rate_heterogeneity=tree.rate_heterogeneity,
            dof=tree.dof,
            score=tree.score,
        )
        for tree in trace.tried
    ]
