"""The section on the search: what was chosen and what was rejected."""

from dataclasses import dataclass

from icscm.report.content.candidates import RuleCandidate
from icscm.report.content.learner import LearnerContent
from icscm.report.content.nodes import (
    ChosenRule,
    CriterionName,
    Nodes,
    RejectedCandidate,
    RejectedColumnContent,
    ScanContent,
    TestedSet,
    TriedTreeContent,
)
from icscm.report.drawing import Limits
from icscm.report.formatting import (
    Names,
    format_deviance,
    format_p,
    format_share,
    format_utility,
)
from icscm.report.selection import list_rejecting
from icscm.report.wording.model import explain_discarded
from icscm.report.wording.rejections import describe_pruning, explain_rejection
from icscm.report.wording.requirement import SHARED_BY_SETS
from icscm.report.wording.search import describe_end


@dataclass(frozen=True, kw_only=True)
class RejectedRow:
    """A rejected candidate: why, and two numbers as text.

    They are utility and p-value of a rule; deviance explained and variation of a split.
    """

    rule: str
    why: str
    numbers: list[str]


@dataclass(frozen=True, kw_only=True)
class RejectingScan:
    """A scan with its rejected candidates."""

    title: str
    n_rejected: int
    n_candidates: int
    rejected: list[RejectedRow]


@dataclass(frozen=True, kw_only=True)
class RejectedColumnRow:
    """A rejected column, with its share of heterogeneity as text."""

    column: RejectedColumnContent
    share_text: str


@dataclass(frozen=True, kw_only=True)
class TriedRow:
    """A tree that was tried, with the columns that it went without and those that it used."""

    tree: TriedTreeContent
    banned_text: str
    used_text: str


@dataclass(frozen=True, kw_only=True)
class SearchSection:
    """What was chosen and what was rejected.

    Parameters
    ----------
    end_text : str
        Of a rule set: why the search stopped, and what its last scan rejected.
    is_greedy : bool
        Whether candidate rules were tested one by one, not in sets.
    steps_caption, steps_columns, steps : str, list of str, list of ChosenRule
        Of the table of the rules that were added.
    rejected_caption, rejected_columns, scans : str, list of str, list of RejectingScan
        Of the table of rejected candidates; no scans where sets were tested.
    level_text : str
        The p-value up to which scans rejected; empty where p-values did not decide.
    has_no_rejected_split : bool
        Whether it is to be said that no candidate split was rejected.
    columns : list of RejectedColumnRow
        Columns that a tree may not use.
    nearest : list of RejectedRow
        The candidates with the largest p-values.
    sets_text, sets, n_more_sets : str, list of TestedSet, int
        Of the exhaustive search: what the model is, and the sets that it tested.
    tried_caption, tried : str, list of TriedRow
        Trees that were grown for invariant rates.
    pruning_text, discarded_text : str
        What pruning removed, and why rules were discarded; empty where nothing was.
    """

    end_text: str
    is_greedy: bool
    steps_caption: str
    steps_columns: list[str]
    steps: list[ChosenRule]
    rejected_caption: str
    rejected_columns: list[str]
    scans: list[RejectingScan]
    level_text: str
    has_no_rejected_split: bool
    columns: list[RejectedColumnRow]
    nearest: list[RejectedRow]
    sets_text: str
    sets: list[TestedSet]
    n_more_sets: int
    tried_caption: str
    tried: list[TriedRow]
    pruning_text: str
    discarded_text: str


def lay_out_search(content: LearnerContent, limits: Limits) -> SearchSection:
    """Return what was chosen and what was rejected, as the page shows it.

    Rules are searched step by step or, by the exhaustive search, in sets (`nodes.sets`); trees by
    splits. The page has the tables of the search that took place.
    """
    model = content.model
    nodes = content.nodes
    names = content.names
    tested_sets = nodes.sets

    steps_caption = "Rules added"
    if tested_sets:
        steps_caption = f"Rules of the model: {SHARED_BY_SETS}"
    steps_columns = [">step", "rule", ">correctly covered", ">wrongly", ">utility"]
    if nodes.is_tested:
        steps_columns += [">p covered", ">p uncovered"]
    steps_columns.append(">rejected")

    if model.is_rule_set:
        rejected_caption = "Rejected candidates: the most useful ones"
        measures = [">utility", ">p"]
    else:
        rejected_caption = "Rejected splits: of every column the one that explains most"
        measures = [">deviance", ">differs"]
    rejecting_scans = list_rejecting(nodes)[: limits.leaves]
    rejected_columns = nodes.rejected_columns[: limits.environments]

    discarded_text = ""
    if model.discarded is not None:
        discarded_text = explain_discarded(model.discarded, content.errors.error)
    return SearchSection(
        end_text=describe_end(content),
        is_greedy=nodes.is_tested and not tested_sets,
        steps_caption=steps_caption,
        steps_columns=steps_columns,
        steps=nodes.added_rules,
        rejected_caption=rejected_caption,
        rejected_columns=["rejected candidate, and why", *measures],
        # the exhaustive search rejects sets, not the candidates of a scan
        scans=[] if tested_sets else [lay_out_scan(scan, names) for scan in rejecting_scans],
        level_text=describe_level(nodes),
        has_no_rejected_split=not model.is_rule_set and not rejecting_scans,
        columns=[lay_out_column(column) for column in rejected_columns],
        nearest=[lay_out_rejected(rejected, names) for rejected in nodes.nearest],
        sets_text=SHARED_BY_SETS,
        sets=tested_sets[: limits.sets],
        n_more_sets=max(len(tested_sets) - limits.sets, 0),
        tried_caption=describe_tried(len(nodes.tried), limits),
        tried=[lay_out_tried(tree) for tree in nodes.tried[: limits.sets]],
        pruning_text=describe_pruning(nodes.pruning),
        discarded_text=discarded_text,
    )


def lay_out_scan(scan: ScanContent, names: Names) -> RejectingScan:
    """Return a scan with its rejected candidates."""
    return RejectingScan(
        title=scan.title,
        n_rejected=scan.size.n_rejected_all,
        n_candidates=scan.size.n_candidates,
        rejected=[lay_out_rejected(rejected, names) for rejected in scan.rejected],
    )


def lay_out_rejected(rejected: RejectedCandidate, names: Names) -> RejectedRow:
    """Return a rejected candidate with its numbers, and why it was rejected."""
    candidate = rejected.candidate
    if isinstance(candidate, RuleCandidate):
        numbers = [format_utility(candidate.utility), format_p(candidate.p_value)]
    else:
        numbers = [format_deviance(candidate.deviance_explained), f"{candidate.variation:.0%}"]
    return RejectedRow(rule=candidate.rule, why=explain_rejection(rejected, names), numbers=numbers)


def lay_out_column(column: RejectedColumnContent) -> RejectedColumnRow:
    """Return a rejected column; its share is a dash where it is not known."""
    share = column.heterogeneity_share
    return RejectedColumnRow(
        column=column, share_text="-" if share is None else format_share(share)
    )


def lay_out_tried(tree: TriedTreeContent) -> TriedRow:
    """Return a tree that was tried, with its columns in words."""
    return TriedRow(
        tree=tree,
        banned_text=", ".join(tree.banned) or "none",
        used_text=", ".join(tree.used) or "none",
    )


def describe_tried(n_tried: int, limits: Limits) -> str:
    """Return the caption of the trees that were tried; of many the first are listed."""
    if n_tried <= limits.sets:
        return "Trees tried"
    return f"Trees tried, the first {limits.sets} of {n_tried}"


def describe_level(nodes: Nodes) -> str:
    """Return the p-value up to which scans rejected; empty where p-values did not decide."""
    if nodes.criterion != CriterionName.P_VALUES:
        return ""
    return f", p up to {format_p(nodes.alpha)}"
