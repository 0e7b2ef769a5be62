"""The model as a tree, and the search at each node: what was chosen and what was rejected."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import exp, sqrt
from typing import Final

import numpy as np

from icscm._constants import VERDICT_CONFIDENCE
from icscm._lazy import special
from icscm.formatting import format_name
from icscm.model.forest import Forest, Model
from icscm.model.saved import Learner
from icscm.model.splits import LeafCounts, walk
from icscm.model.tree import Tree
from icscm.report.content.leaves import Judgement, find_outliers, make_judgement
from icscm.report.content.rates import (
    RateExtreme,
    count_rows,
    find_extreme_rows,
    make_environment_rates,
    make_rate_range,
    make_rates,
)
from icscm.report.formatting import Names
from icscm.search.records import Candidate, RejectedColumn, Rejection
from icscm.search.trace import Scan, Step, Trace
from icscm.stats.splits import measure_effects

# Odds ratios whose logarithm has a larger standard error are not named as extremes.
MAX_ERROR: Final = 1.0
# Rules rejected because of a few environments that are listed.
N_OUTLYING: Final = 3


class CriterionName(StrEnum):
    """What decided that a candidate was rejected."""

    SETS = "sets"
    MARGIN = "margin"
    P_VALUES = "p-values"


@dataclass(frozen=True, kw_only=True)
class Node:
    """A node of the model, as `walk_nodes` lists them.

    Parameters
    ----------
    depth, rule : int, str
        Levels below the root, and the rule that leads to it.
    answer, question : str or None
        "yes" or "no" of the split above, and the rule of its own split.
    n, n_positive, rate, rate_interval : int, int, float or None, list of two floats or None
        As of `Rate`.
    split, leaf : int or None
        Its number among the splits or among the leaves, from 1.
    is_positive, predicts : bool or None, str or None
        Of a leaf: its prediction.
    """

    depth: int
    rule: str
    answer: str | None
    question: str | None
    n: int
    n_positive: int
    rate: float | None
    rate_interval: list[float] | None
    split: int | None
    leaf: int | None
    is_positive: bool | None
    predicts: str | None


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
    def added_rules(self) -> list[ChosenRule]:
        """The steps of a rule set's search; empty for trees."""
        return [chosen for chosen in self.splits if isinstance(chosen, ChosenRule)]

    @property
    def tree_splits(self) -> list[ChosenSplit]:
        """The splits of a tree; empty for rule sets."""
        return [chosen for chosen in self.splits if isinstance(chosen, ChosenSplit)]


def make_nodes(learner: Learner, names: Names) -> Nodes:
    """Return the nodes of a fitted learner's model and of its search."""
    trace: Trace = learner.trace_
    is_chain = trace.invariance is None
    splits = make_chosen(learner, names)
    scans = [make_scan(number, learner, names) for number in range(1, len(list_scans(trace)) + 1)]
    rejected = [each for scan in scans for each in scan.rejected]
    used = [format_name(feature) for feature in learner.features_used_]
    return Nodes(
        is_chain=is_chain,
        walk=[*walk_nodes(learner.model_, names)],
        criterion=find_criterion(learner),
        is_tested=(trace.alpha if is_chain else trace.tolerance) is not None,
        alpha=trace.alpha,
        invariance=trace.invariance,
        tolerance=trace.tolerance,
        stop_reason=trace.stop_reason,
        splits=splits,
        scans=scans,
        last_scan=scans[len(trace.steps)] if is_chain and trace.last_scan else None,
        outliers=list_outliers(splits, scans),
        best_rejected=max(rejected, key=lambda each: each.candidate.worth, default=None),
        rejected_features=[] if is_chain else list_rejected_features(rejected, used),
        rejected_columns=[
            make_rejected_column(each, trace, names) for each in trace.rejected_columns
        ],
        nearest=[make_rejected(each, "", names, learner) for each in trace.nearest],
        screening=[
            ScreenedRule(rule=str(each.rule), statistic=each.statistic, p_value=each.p_value)
            for each in trace.screening
        ],
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


# --- nodes ----------------------------------------------------------------------------------------


def walk_nodes(model: Model, names: Names) -> Iterator[Node]:
    """Return nodes from the root down, the side of the leaf with the smaller number first.

    root            `split` numbers the splits, `leaf` the leaves, both from 1; `question` is the
    |- age > 63     rule of a split, and `answer` the one that leads to a node from above
    '- age <= 63
    """
    if not isinstance(model, Tree):
        return
    verdicts, splits = model.leaf_verdicts.tolist(), model.splits
    totals = {~i: np.sum(leaf, axis=1) for i, leaf in enumerate(model.leaves)}
    smallest_leaf = {~i: i for i in range(len(model.leaves))}
    answers: dict[int, str] = {}
    for number in reversed(range(len(splits))):
        if_true, if_false = splits[number].if_true, splits[number].if_false
        totals[number] = totals[if_true] + totals[if_false]
        smallest_leaf[number] = min(smallest_leaf[if_true], smallest_leaf[if_false])
        answers |= {if_true: "yes", if_false: "no"}

    nodes = walk(splits, (0, "all samples"), lambda path, rule: (path[0] + 1, str(rule)))
    for node, (depth, rule) in sorted(nodes, key=lambda each: (smallest_leaf[each[0]], each[1][0])):
        is_leaf = node < 0  # leaf i is written as ~i
        is_positive = verdicts[~node] if is_leaf else None
        (rate,) = make_rates([int(totals[node][1])], [int(totals[node].sum())])
        yield Node(
            depth=depth,
            rule=rule,
            answer=answers.get(node),
            question=None if is_leaf else f"{splits[node].rule}?",
            **vars(rate),
            split=None if is_leaf else node + 1,
            leaf=~node + 1 if is_leaf else None,
            is_positive=is_positive,
            predicts=None if is_positive is None else names.predict(is_positive),
        )


# --- scans ----------------------------------------------------------------------------------------


def list_scans(trace: Trace) -> list[Scan]:
    """Return the scans: first those that added a rule or split a node."""
    return [*trace.steps, *trace.leaves]


def make_scan(number: int, learner: Learner, names: Names) -> ScanContent:
    """Return the scan of this number, from 1."""
    trace = learner.trace_
    scan = list_scans(trace)[number - 1]
    node = " and ".join(map(str, scan.path)) or "all samples"
    return ScanContent(
        number=number,
        title=name_scan(number, scan, learner),
        node=node,
        size=make_scan_size(scan),
        end=scan.end,
        rejected=[make_rejected(each, node, names, learner) for each in scan.best_rejected],
    )


def name_scan(number: int, scan: Scan, learner: Learner) -> str:
    """Return the name of a scan in lists."""
    trace = learner.trace_
    is_chain = trace.invariance is None
    if isinstance(scan, Step):
        return f"Step {number}" if is_chain else f"Split {number}, {scan.chosen.rule}"
    if isinstance(learner.model_, Forest):
        return "All samples"
    return "Last scan" if is_chain else f"Leaf {number - len(trace.steps)}"


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


# --- candidates -----------------------------------------------------------------------------------


def make_candidate(
    candidate: Candidate, names: Names, learner: Learner
) -> RuleCandidate | SplitCandidate:
    """Return a rule, or a split, that a scan examined."""
    if candidate.utility is None:
        return make_split_candidate(candidate, names)
    return make_rule_candidate(candidate, names, learner)


def make_rule_candidate(candidate: Candidate, names: Names, learner: Learner) -> RuleCandidate:
    """Return a rule with its utility and the test of its leaf."""
    assert candidate.utility is not None
    environments = make_environment_rates(candidate.covered, names)
    label_covered = int(learner.model_.covers_when)
    judgement = vars(make_judgement(candidate.verdict)) | {"p_value": candidate.p_value}
    return RuleCandidate(
        rule=str(candidate.rule),
        feature=format_name(candidate.rule.feature),
        utility=float(candidate.utility),
        n=count_rows(candidate.covered),
        n_right=sum(candidate.covered[label_covered]),
        n_wrong=sum(candidate.covered[1 - label_covered]),
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
    effect = measure_effect(candidate)
    environments = make_odds_ratios(candidate.if_true, candidate.if_false, names)
    known = [each for each in environments if each.odds_ratio is not None]
    precise = [each for each in known if each.error is not None and each.error <= MAX_ERROR]
    named = precise if len(precise) > 1 else known
    ends = find_extreme_rows([each.odds_ratio for each in named], [each.n for each in named])
    extremes: list[RatioExtreme | None] = [None, None]
    if ends is not None:
        extremes = [
            RatioExtreme(
                environment=named[i].environment,
                n=named[i].n,
                odds_ratio=named[i].odds_ratio or 0.0,
            )
            for i in ends
        ]
    assert candidate.deviance_explained is not None
    return SplitCandidate(
        rule=str(candidate.rule),
        feature=format_name(candidate.rule.feature),
        n=count_rows(candidate.if_true) + count_rows(candidate.if_false),
        n_true=count_rows(candidate.if_true),
        deviance_explained=candidate.deviance_explained,
        rate_heterogeneity=candidate.rate_heterogeneity,
        heterogeneity=effect.heterogeneity,
        heterogeneity_share=effect.heterogeneity_share,
        odds_ratio=exp(candidate.log_odds_ratio or 0.0),
        environments=environments,
        n_seen=len(known),
        lowest=extremes[0],
        highest=extremes[1],
    )


def make_odds_ratios(if_true: LeafCounts, if_false: LeafCounts, names: Names) -> list[OddsRatio]:
    """Return the odds ratio in each environment with its interval.

    Half a row is added to each cell (Haldane and Anscombe). None where a margin is zero: an
    environment that the split does not divide, or with one label only.
    """
    cells = np.array([*if_true, *if_false], dtype=np.float64)  # (true 0, true 1, false 0, false 1)
    margins = [cells[i] + cells[j] for i, j in ((0, 1), (2, 3), (0, 2), (1, 3))]
    is_known = np.min(margins, axis=0) > 0
    logs = np.log(cells + 0.5)
    log_odds = logs[1] - logs[0] - logs[3] + logs[2]
    errors = np.sqrt((1 / (cells + 0.5)).sum(axis=0))
    reach = float(special.ndtri((1 + VERDICT_CONFIDENCE) / 2)) * errors
    ratios, lows, highs = np.exp([log_odds, log_odds - reach, log_odds + reach]).tolist()
    return [
        OddsRatio(
            environment=name,
            n=int(cells[:, k].sum()),
            odds_ratio=ratios[k] if is_known[k] else None,
            odds_ratio_interval=[lows[k], highs[k]] if is_known[k] else None,
            error=float(errors[k]) if is_known[k] else None,
        )
        for k, name in enumerate(names.environments)
    ]


# --- what was rejected ----------------------------------------------------------------------------


def make_rejected(
    rejection: Rejection, node: str, names: Names, learner: Learner
) -> RejectedCandidate:
    """Return a rejected candidate, and the environments that stand out if those are few."""
    candidate, trace = rejection.candidate, learner.trace_
    outliers = None
    if candidate.utility is not None and rejection.reason == "dependent":
        outliers = find_outliers(candidate.covered, names, trace.criterion)
    columns = {each.rule.feature: each for each in trace.rejected_columns}
    column = columns.get(candidate.rule.feature)
    return RejectedCandidate(
        candidate=make_candidate(candidate, names, learner),
        reason=rejection.reason,
        node=node,
        outliers=outliers,
        column_share=None if column is None else column.heterogeneity_share,
        column_replication=None if column is None else column.replication,
        is_of_rejected_column=column is not None,
    )


def list_outliers(
    chosen: Sequence[ChosenRule | ChosenSplit], scans: Iterable[ScanContent]
) -> list[RejectedCandidate]:
    """Return rules that would have been chosen but for a few environments, the best ones."""
    utilities = {each.number: each.candidate.worth for each in chosen}
    first: dict[str, RejectedCandidate] = {}
    for scan in scans:
        for each in scan.rejected:
            if each.outliers and each.candidate.worth > utilities.get(scan.number, 0):
                first.setdefault(each.candidate.rule, each)
    return sorted(first.values(), key=lambda each: -each.candidate.worth)[:N_OUTLYING]


def list_rejected_features(
    rejected: Iterable[RejectedCandidate], used: Sequence[str]
) -> list[RejectedCandidate]:
    """Return for each column that is not in the tree its best rejected split."""
    best: dict[str, RejectedCandidate] = {}
    for each in sorted(rejected, key=lambda each: -each.candidate.worth):
        best.setdefault(each.candidate.feature, each)
    return [each for feature, each in best.items() if feature not in used]


def make_rejected_column(
    column: RejectedColumn, trace: Trace, names: Names
) -> RejectedColumnContent:
    """Return a rejected column; its extreme effects are odds ratios relative to the common one."""

    def name_extreme(extreme: tuple[object, float] | None) -> EffectExtreme | None:
        if extreme is None:
            return None
        environment, log_odds_ratio = extreme
        name = names.environments[trace.environments.index(environment)]
        return EffectExtreme(environment=name, odds_ratio=exp(log_odds_ratio))

    return RejectedColumnContent(
        rule=str(column.rule),
        reason=column.reason,
        round=column.round,
        replication=column.replication,
        heterogeneity_share=column.heterogeneity_share,
        p_value=column.p_value,
        lowest=name_extreme(column.lowest),
        highest=name_extreme(column.highest),
        feature=format_name(column.rule.feature),
    )


def make_tested_sets(trace: Trace) -> list[TestedSet]:
    """Return the sets of the exhaustive search, those of largest p-value first."""
    return [
        TestedSet(
            features=[format_name(feature) for feature in each.features],
            p_value=each.p_value,
            accepted=each.accepted,
            bic=each.bic,
        )
        for each in sorted(trace.sets, key=lambda each: -each.p_value)
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
    by_feature = trace.list_importances()
    total = sum(deviance for deviance, _ in by_feature.values()) or 1.0
    return [
        ColumnImportance(
            feature=format_name(feature),
            deviance_explained=deviance,
            share=deviance / total,
            rate_heterogeneity=heterogeneity,
        )
        for feature, (deviance, heterogeneity) in sorted(
            by_feature.items(), key=lambda item: -item[1][0]
        )
    ]


def make_tried_trees(trace: Trace) -> list[TriedTreeContent]:
    """Return the trees that were grown in the search for invariant rates."""
    return [
        TriedTreeContent(
            banned=[format_name(feature) for feature in each.banned],
            used=[format_name(feature) for feature in each.used],
            deviance_explained=each.deviance_explained,
            rate_heterogeneity=each.rate_heterogeneity,
            dof=each.dof,
            score=each.score,
        )
        for each in trace.tried
    ]
