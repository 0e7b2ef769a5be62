"""Section `nodes`: the model as a tree, and the search at each node: chosen and rejected."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from math import exp, sqrt
from typing import Any, Final

import numpy as np

from icscm._constants import VERDICT_CONFIDENCE
from icscm._lazy import special
from icscm.formatting import format_name
from icscm.model.saved import Learner
from icscm.model.splits import LeafCounts, walk
from icscm.report import formatting
from icscm.report.formatting import Names, Plain, count_samples, describe_rates
from icscm.report.sections.leaves import describe_extremes, describe_outliers, describe_verdict
from icscm.report.texts import write_text
from icscm.search import records
from icscm.search.records import Candidate, Rejection
from icscm.search.trace import Step, Trace
from icscm.stats.splits import measure_effects

# Odds ratios whose logarithm has a larger standard error are not named as extremes.
_MAX_ERROR: Final = 1.0
# Rules rejected because of a few environments that are listed.
_N_OUTLYING: Final = 3


def describe_nodes(learner: Learner, names: Names) -> Plain:
    """The nodes of the model, the chosen splits, and the scans with their rejected candidates."""
    trace, is_chain = learner.trace_, learner.trace_.invariance is None
    splits, scans = _describe_scans(learner, names)
    rejected = [{**each, "node": scan["node"]} for scan in scans for each in scan["rejected"]]
    used = [format_name(each) for each in learner.features_used_]
    rejections = write_text("rejections", scan=trace.last_scan, write=write_text)
    sets = sorted(trace.sets, key=lambda each: -each.p_value)
    return {
        "walk": [*walk_nodes(learner.model_, names)],
        "criterion": _find_criterion(learner),
        "is_tested": (trace.alpha if is_chain else trace.tolerance) is not None,
        **{key: getattr(trace, key) for key in ("alpha", "invariance", "tolerance", "stop_reason")},
        "stop_text": trace.stop_text if is_chain else None,
        "splits": splits,
        "scans": scans,
        "outliers": _list_outliers(splits, scans) if is_chain else [],
        "best_rejected": _find_best_rejected(rejected),
        "rejected_features": [] if is_chain else _list_rejected_features(rejected, used),
        "rejected_columns": [_describe_column(e, trace, names) for e in trace.rejected_columns],
        "rejected_text": (rejections or None) if is_chain else None,
        "nearest": [_describe_rejection(each, names, learner) for each in trace.nearest],
        "screening": [{**asdict(each), "rule": str(each.rule)} for each in trace.screening],
        "sets": [_name_features(each) for each in sets],
        "pruning": _describe_pruning(trace),
        "importances": [] if is_chain else _describe_importances(trace),
        "tried": [_name_features(each) for each in trace.tried],
    }


def _describe_scans(learner: Learner, names: Names) -> tuple[list[Plain], list[Plain]]:
    """The splits or rules that were chosen, and every scan with its rejected candidates."""
    trace, model, is_chain = learner.trace_, learner.model_, learner.trace_.invariance is None
    splits: list[Plain] = []
    scans = []
    for number, node in enumerate((*trace.steps, *trace.leaves), start=1):
        counts = {"n_candidates": node.n_candidates, "n_rejected": dict(node.n_rejected)}
        counts["n_rejected_all"] = sum(node.n_rejected.values())
        title = "Last scan" if is_chain else f"Leaf {number - len(splits)}"
        title = "All samples" if model.kind == "forest" else title
        if isinstance(node, Step):
            title = f"Step {number}" if is_chain else f"Split {number}, {node.chosen.rule}"
            chosen = describe_candidate(node.chosen, names, learner)
            if is_chain:
                chosen |= {
                    "in_model": node.chosen.rule in model.rules,
                    "n_uncovered": count_samples(node.uncovered),
                    "p_value_uncovered": node.p_value_uncovered,
                    "n_tied": node.n_tied,
                    "n_equivalent": len(node.equivalent),
                }
            splits.append({"number": number, **chosen, **counts})
        rejected = (_describe_rejection(each, names, learner) for each in node.best_rejected)
        scans.append(
            {
                "number": number,
                "title": title,
                "node": " and ".join(map(str, node.path)) or "all samples",
                **counts,
                "cutoff": node.cutoff,
                "rejected": [*rejected],
                "end": node.end,
                "end_text": node.end and records.STOP_REASONS[node.end],
            }
        )
    return splits, scans


def _name_features(record: Any) -> Plain:
    """A record of the search in plain values, features by their names."""
    fields = asdict(record)
    for key in ("features", "banned", "used"):
        if key in fields:
            fields[key] = [format_name(each) for each in fields[key]]
    return fields


def _find_criterion(learner: Learner) -> str | None:
    """The criterion of rejection: sets, a margin, p-values (corrected or not), or effects."""
    trace, settings = learner.trace_, learner.get_params(deep=False)
    if trace.invariance is not None or trace.alpha is None:
        return trace.invariance and str(trace.invariance)
    if settings["search"] == "exhaustive":
        return "sets"
    if settings["criterion"] == "equivalence":
        return "margin"
    return "p-values" if settings["correction"] is None else str(settings["correction"])


def walk_nodes(model: Any, names: Names) -> Iterator[Plain]:
    """Nodes from the root down, the side of the leaf with the smaller number first.

    root            `split` numbers the splits, `leaf` the leaves, both from 1; `question` is the
    |- age > 63     rule of a split, and `answer` the one that leads to a node from above
    '- age <= 63
    """
    if not hasattr(model, "splits"):  # a forest
        return
    verdicts, splits = model.leaf_verdicts.tolist(), model.splits
    totals: dict[int, Any] = {~i: np.sum(leaf, axis=1) for i, leaf in enumerate(model.leaves)}
    first = {~i: i for i in range(len(model.leaves))}  # smallest leaf below each node
    answers: dict[int, str] = {}
    for number in reversed(range(len(splits))):
        children = splits[number].if_true, splits[number].if_false
        totals[number] = totals[children[0]] + totals[children[1]]
        first[number] = min(first[each] for each in children)
        answers |= zip(children, ("yes", "no"), strict=True)
    nodes = walk(splits, (0, "all samples"), lambda path, rule: (path[0] + 1, str(rule)))
    for node, (depth, text) in sorted(nodes, key=lambda each: (first[each[0]], each[1][0])):
        (rate,) = describe_rates([int(totals[node][1])], [int(totals[node].sum())])
        is_positive = verdicts[~node] if node < 0 else None
        yield {
            "depth": depth,
            "rule": text,
            "answer": answers.get(node),
            "question": f"{splits[node].rule}?" if node >= 0 else None,
            **rate,
            "split": node + 1 if node >= 0 else None,
            "leaf": ~node + 1 if node < 0 else None,
            "is_positive": is_positive,
            "predicts": None if is_positive is None else names.predict(is_positive),
        }


# --- candidates -----------------------------------------------------------------------------------


def describe_candidate(candidate: Candidate, names: Names, learner: Learner) -> Plain:
    """Of a rule its utility, test and counts; of a split deviance, heterogeneity and odds."""
    fields = {"rule": str(candidate.rule), "feature": format_name(candidate.rule.feature)}
    if candidate.utility is None:
        return {**fields, **_describe_split(candidate, names)}
    overall, environments = formatting.describe_counts(candidate.covered, names)
    right = int(learner.model_.covers_when)
    return {
        **fields,
        "utility": float(candidate.utility),
        "n": overall["n"],
        "n_right": sum(candidate.covered[right]),
        "n_wrong": sum(candidate.covered[1 - right]),
        "counts": [list(row) for row in candidate.covered],
        "replication": candidate.replication,
        **describe_extremes(environments, "rate"),
        **describe_verdict(candidate.verdict),
        "p_value": candidate.p_value,
    }


def measure_effect(candidate: Candidate) -> tuple[float, float, float]:
    """The deviance that the common effect of a split explains, its heterogeneity and share.

    From the counts of the split, for any requirement on its tree.
    """
    sides = candidate.if_true, candidate.if_false
    true, false = (np.array(each, dtype=np.int64) for each in sides)
    found = measure_effects(false[np.newaxis], true + false, 1)
    deviance, share = found.deviance_explained.item(), found.heterogeneity_share.item()
    return deviance, found.heterogeneity.item(), share


def _describe_split(candidate: Candidate, names: Names) -> Plain:
    _, heterogeneity, share = measure_effect(candidate)
    environments = _describe_odds(candidate.if_true, candidate.if_false, names)
    known = [each for each in environments if each["odds_ratio"] is not None]
    clear = [each for each in known if each["error"] <= _MAX_ERROR]
    variation = formatting.format_variation(share)
    return {
        "n": count_samples(candidate.if_true) + count_samples(candidate.if_false),
        "n_true": count_samples(candidate.if_true),
        "deviance_explained": candidate.deviance_explained,
        "rate_heterogeneity": candidate.rate_heterogeneity,
        "heterogeneity": heterogeneity,
        "heterogeneity_share": share,
        "variation": sqrt(share),
        "variation_text": variation if len(names.environments) > 1 else "",
        "odds_ratio": exp(candidate.log_odds_ratio or 0.0),
        "environments": environments,
        **describe_extremes(clear if len(clear) > 1 else known, "odds_ratio"),
        "n_seen": len(known),
    }


def _describe_odds(if_true: LeafCounts, if_false: LeafCounts, names: Names) -> list[Plain]:
    """The odds ratio in each environment with its interval.

    Half a sample is added to each cell (Haldane and Anscombe). None where a margin is zero: an
    environment that the split does not divide, or with one label only.
    """
    cells = np.array([*if_true, *if_false], dtype=np.float64)  # (true 0, true 1, false 0, false 1)
    margins = [cells[i] + cells[j] for i, j in ((0, 1), (2, 3), (0, 2), (1, 3))]
    is_known = np.min(margins, axis=0) > 0
    logs = np.log(cells + 0.5)
    log_odds = logs[1] - logs[0] - logs[3] + logs[2]
    errors = np.sqrt((1 / (cells + 0.5)).sum(axis=0))
    reach = float(special.ndtri((1 + VERDICT_CONFIDENCE) / 2)) * errors
    ratios, low, high = np.exp([log_odds, log_odds - reach, log_odds + reach]).tolist()
    return [
        {
            "environment": name,
            "n": int(cells[:, i].sum()),
            "odds_ratio": ratios[i] if is_known[i] else None,
            "odds_ratio_interval": [low[i], high[i]] if is_known[i] else None,
            "error": float(errors[i]) if is_known[i] else None,
        }
        for i, name in enumerate(names.environments)
    ]


def _describe_rejection(rejection: Rejection, names: Names, learner: Learner) -> Plain:
    """A rejected candidate, and the reason with the environments that it differs between."""
    candidate, reason = rejection.candidate, rejection.reason
    fields = describe_candidate(candidate, names, learner)
    fields.pop("environments", None)  # there are many of these, and the extremes are kept
    if candidate.utility is not None:
        criterion = learner.trace_.criterion if reason == "dependent" else None
        fields |= describe_outliers(candidate.covered, names, criterion, fields["n_seen"])
    columns = {each.rule.feature: each for each in learner.trace_.rejected_columns}
    if (column := columns.get(candidate.rule.feature)) is not None:
        fields |= {"replication": column.replication, "column_share": column.heterogeneity_share}
    why = write_text("rejection", reason=reason, each=fields, names=names)
    return {**fields, "reason": reason, "why": why}


def _describe_column(column: records.RejectedColumn, trace: Trace, names: Names) -> Plain:
    """A rejected column; the extremes of its effect as odds ratios relative to the common one."""
    fields = asdict(column) | {"rule": str(column.rule)}
    fields["feature"] = format_name(column.rule.feature)
    for key in ("lowest", "highest"):
        if (extreme := getattr(column, key)) is not None:
            name = names.environments[trace.environments.index(extreme[0])]
            fields[key] = {"environment": name, "odds_ratio": exp(extreme[1])}
    return fields


def _list_outliers(steps: Sequence[Plain], scans: Sequence[Plain]) -> list[Plain]:
    """Rules that would have been chosen but for a few environments, those of largest utility."""
    chosen = {step["number"]: step["utility"] for step in steps}
    found: dict[str, Plain] = {}
    for scan in scans:
        for each in scan["rejected"]:
            if each["outliers_text"] and each["utility"] > chosen.get(scan["number"], 0):
                kept = {key: each[key] for key in ("rule", "utility", "outliers_text")}
                found.setdefault(each["rule"], kept)
    return sorted(found.values(), key=lambda each: -each["utility"])[:_N_OUTLYING]


def _describe_pruning(trace: Trace) -> Plain:
    """The tests of pruning, what they removed, and the errors with and without it."""
    tests = [{**asdict(test), "feature": format_name(test.feature)} for test in trace.pruning]
    text = write_text("pruning", tests=tests, pruned=trace.pruned)
    removed = [each["feature"] for each in tests if each["removed"]]
    return {"removed": removed, "tests": tests, "text": text or None}


def _find_best_rejected(every: Sequence[Plain]) -> Plain | None:
    """The most useful or informative rejected candidate of all scans."""
    key = "utility" if any("utility" in each for each in every) else "deviance_explained"
    best = max(every, key=lambda each: each[key], default=None)
    return best and {name: best[name] for name in ("rule", "feature", "node", "reason", "why")}


def _list_rejected_features(rejected: Iterable[Plain], used: Sequence[str]) -> list[Plain]:
    """Columns that are not in the tree, each with its best rejected split."""
    best: dict[str, Plain] = {}
    for each in sorted(rejected, key=lambda each: -each["deviance_explained"]):
        best.setdefault(each["feature"], each)
    return [each for feature, each in best.items() if feature not in used]


def _describe_importances(trace: Trace) -> list[Plain]:
    """Deviance explained by each column of the tree, the most important first."""
    found = trace.list_importances()
    total = sum(deviance for deviance, _ in found.values()) or 1.0
    return [
        {
            "feature": format_name(feature),
            "deviance_explained": deviance,
            "share": deviance / total,
            "rate_heterogeneity": added,
        }
        for feature, (deviance, added) in sorted(found.items(), key=lambda item: -item[1][0])
    ]


def list_rejecting(nodes: Plain) -> list[Plain]:
    """The scans that list rejected candidates, without leaves that ended for other reasons."""
    scans = nodes["scans"]
    if nodes["invariance"] is not None and len(scans) > 1:
        scans = [each for each in scans if each["end"] in (None, "rejected")]
    return [each for each in scans if each["rejected"]]
