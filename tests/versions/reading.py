"""What came out of a fit, as plain facts with names of their own.

Only this page reads attributes of results. It asks for facts that any version must have (rules,
counts of leaves, probabilities, p-values, reasons of a rejection), not for texts: a later version
may word its reports anew. Texts of reports are kept apart from their numbers for that reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from versions.names import IS_BASE, load_name

N_SHOWN = 50  # rows whose predictions are compared one by one
PATH_VALUES = {"alphas": (0.001, 0.05, 0.3), "tolerances": (None, 0.03, 0.3)}

Facts = dict[str, Any]


def read_result(kind: str, fitted: Any, rows: Any) -> Facts:
    """The facts of a fitted estimator, and what it predicts for some rows."""
    if kind in ("icp", "tree icp"):
        return read_causal_prediction(fitted)
    if kind == "screen":
        return {"screen": read_screen(fitted), "predictions": read_predictions(fitted, rows)}
    facts = {
        "model": read_model(fitted.model_),
        "search": read_search(fitted.trace_),
        "learner": read_learner(kind, fitted),
        "predictions": read_predictions(fitted, rows),
    }
    if kind == "forest":
        facts["out_of_bag"] = read_frame(fitted.out_of_bag_.reset_index(names="environment"))
        facts["recalibration"] = read_recalibration(fitted.calibration_)
    if kind == "score":
        facts["screen"] = None if fitted.screen_ is None else read_frame(fitted.screen_)
    return facts


def read_learner(kind: str, fitted: Any) -> Facts:
    """What a learner keeps besides its model and the record of its search."""
    facts = {
        "classes": fitted.classes_,
        "environments": fitted.environments_,
        "rows_by_class_and_environment": fitted.class_counts_,
        "n_columns": fitted.n_features_in_,
        "columns_used": fitted.features_used_,
        "columns_dropped": fitted.dropped_columns_,
        "importances": fitted.feature_importances_,
    }
    if kind in ("tree", "rate tree", "forest", "score"):
        facts["tolerance"] = fitted.tolerance_
    if kind in ("plain rules", "rules"):
        facts["rule_importances"] = fitted.rule_importances_
        facts["equivalent_rules"] = [[*map(str, rules)] for rules in fitted.equivalent_rules_]
        if fitted.model_type == "auto":
            shape = fitted.shape_
            facts["shape"] = {"chosen": shape.chosen, "scores": shape.scores, "on": shape.held_out}
    if kind == "rules" and fitted.environments_ is not None:
        facts["alpha"] = fitted.alpha_
        facts["accepted_sets"] = read_sets(fitted.accepted_sets_)
        facts["p_values"] = fitted.p_values_ if fitted.accepted_sets_ else None
    if kind in ("rules", "tree", "rate tree"):
        facts["verdicts"] = [read_verdict(verdict) for verdict in fitted.verdicts_]
    return make_plain(facts)


def read_predictions(fitted: Any, rows: Any) -> Facts:
    """Classes and probabilities of the first rows, and the sums over all of them."""
    facts: Facts = {"classes": make_plain(fitted.predict(rows)[:N_SHOWN])}
    if hasattr(fitted, "predict_proba"):  # which a screen of another learner may lack
        probabilities = np.asarray(fitted.predict_proba(rows))
        facts["probabilities"] = make_plain(probabilities[:N_SHOWN, 1])
        facts["sum_of_probabilities"] = math.fsum(probabilities[:, 1])
    return facts


# --- models ---------------------------------------------------------------------------------------


def read_model(model: Any) -> Facts:
    facts: Facts = {
        "kind": model.kind,
        "calibration": model.calibration,
        "threshold": model.threshold,
    }
    if model.kind == "forest":
        facts["trees"] = [read_model(tree) for tree in model.trees]
    elif model.kind == "score":
        facts["points"] = [[read_rule(rule), points] for rule, points in model.terms]
        facts["risks"] = model.compute_risks()
        facts["class_bounds"] = model.bounds
    else:
        facts["splits"] = [
            {"rule": read_rule(split.rule), "if_true": split.if_true, "if_false": split.if_false}
            for split in model.splits
        ]
    if model.kind != "forest":
        facts["leaves"] = model.leaves
        facts["leaf_probabilities"] = model.leaf_probabilities()
        facts["leaf_predictions"] = model.leaf_verdicts
    return make_plain(facts)


def read_rule(rule: Any) -> Facts:
    """A rule as text, and its numbers and levels in full."""
    fields = {"text": str(rule), "kind": rule.kind, "column": rule.column}
    if rule.kind == "threshold":
        fields["threshold"] = rule.threshold
    if rule.kind == "category":
        fields["levels"] = rule.levels
    fields["if_missing"] = None if rule.kind in ("missing", "presence") else rule.missing
    return make_plain(fields)


# --- searches -------------------------------------------------------------------------------------


def read_search(trace: Any) -> Facts:
    """What each scan of the candidates chose and rejected, and what followed from it."""
    pruned, discarded = trace.pruned, trace.discarded
    facts = {
        "scans": [read_scan(scan) for scan in trace.nodes],
        "ended_because": trace.stop_reason,
        "alpha": trace.alpha,
        "verdicts": [read_verdict(verdict) for verdict in trace.verdicts],
        "pruning": [
            {
                "round": test.round,
                "column": test.feature,
                "statistic": test.statistic,
                "dof": test.dof,
                "p_value": test.p_value,
                "is_removed": test.removed,
                "is_undone": test.undone,
            }
            for test in trace.pruning
        ],
        "pruned": pruned and [pruned.outcome, pruned.n_wrong_before, pruned.n_wrong_after],
        "candidate_columns": [
            [str(each.rule), each.statistic, each.p_value] for each in trace.screening
        ],
        "sets": [
            {"columns": test.features, "p_value": test.p_value, "bic": test.bic}
            | {"is_accepted": test.accepted}
            for test in trace.sets
        ],
        "discarded": discarded and read_model(discarded),
        "tolerance": trace.tolerance,
        "rejected_columns": [read_rejected_column(column) for column in trace.rejected_columns],
        "trees_tried": [
            {
                "without": tree.banned,
                "columns": tree.used,
                "deviance": tree.deviance_explained,
                "heterogeneity": tree.rate_heterogeneity,
                "dof": tree.dof,
                "score": tree.score,
            }
            for tree in trace.tried
        ],
        "lone_environment": trace.lone_environment,
        "heterogeneity_share": trace.heterogeneity_share,
    }
    return make_plain(facts)


def read_scan(scan: Any) -> Facts:
    """One scan of all candidates; a scan that chose one has more facts."""
    facts = {
        "path": [str(rule) for rule in scan.path],
        "n_candidates": scan.n_candidates,
        "n_rejected": {reason: n for reason, n in scan.n_rejected.items() if n},
        "rejected": [[each.reason, read_candidate(each.candidate)] for each in scan.best_rejected],
        "nearest": [[each.reason, read_candidate(each.candidate)] for each in scan.nearest],
        "ended_because": scan.end,
    }
    chosen = getattr(scan, "chosen", None)
    if chosen is not None:
        uncovered = scan.verdict_uncovered
        facts["chosen"] = read_candidate(chosen)
        facts["uncovered"] = scan.uncovered
        facts["uncovered_p_value"] = scan.p_value_uncovered
        facts["uncovered_verdict"] = uncovered and read_verdict(uncovered)
        facts["uncovered_design_effect"] = scan.effect_uncovered
        facts["equivalent"] = [str(rule) for rule in scan.equivalent]
        facts["n_tied"] = scan.n_tied
    return facts


def read_candidate(candidate: Any) -> Facts:
    verdict = candidate.verdict
    return {
        "rule": read_rule(candidate.rule),
        "utility": candidate.utility,
        "covered": candidate.covered,
        "verdict": verdict and read_verdict(verdict),
        "replication": candidate.replication,
        "design_effect": candidate.design_effect,
        "if_true": candidate.if_true,
        "if_false": candidate.if_false,
        "deviance": candidate.deviance_explained,
        "rate_heterogeneity": candidate.rate_heterogeneity,
        "heterogeneity": candidate.heterogeneity,
        "heterogeneity_share": candidate.heterogeneity_share,
        "log_odds_ratio": candidate.log_odds_ratio,
    }


def read_rejected_column(column: Any) -> Facts:
    return {
        "rule": read_rule(column.rule),
        "reason": column.reason,
        "round": column.round,
        "replication": column.replication,
        "heterogeneity_share": column.heterogeneity_share,
        "p_value": column.p_value,
        "lowest": column.lowest,
        "highest": column.highest,
    }


def read_verdict(verdict: Any) -> Facts:
    return make_plain(
        {
            "conclusion": verdict.conclusion,
            "p_value": verdict.p_value,
            "rates": verdict.rates,
            "rate_intervals": verdict.rate_intervals,
            "difference": verdict.difference,
            "difference_interval": verdict.difference_interval,
            "detectable_difference": verdict.minimum_detectable_difference,
            "alpha": verdict.alpha,
            "design_effect": verdict.design_effect,
        }
    )


def read_recalibration(found: Any) -> Facts | None:
    if found is None:
        return None
    facts = {"slope": found.slope, "intercepts": found.intercepts, "errors": found.standard_errors}
    facts["pooled"] = {name: getattr(found.pooled, name) for name in ("mean", "tau", "interval")}
    return make_plain(facts)


def read_causal_prediction(fitted: Any) -> Facts:
    facts = {
        "parents": fitted.parents_,
        "accepted_sets": read_sets(fitted.accepted_sets_),
        "bic": read_sets(fitted.bic_),
        "p_values": fitted.p_values_,
        "n_sets_tested": fitted.n_sets_tested_,
        "environments": fitted.environments_,
        "is_kept": fitted.get_support(),
    }
    return make_plain(facts)


def read_sets(values: Mapping[Any, float]) -> list[Any]:
    """A number for each of several sets of columns, in their order."""
    return [[list(columns), value] for columns, value in values.items()]


def read_screen(fitted: Any) -> Facts:
    facts = {
        "kept": fitted.kept_,
        "rejected": fitted.rejected_,
        "columns": read_frame(fitted.screen_),
        "effects": read_frame(fitted.effects_),
        "rounds": read_frame(fitted.rounds_),
        "classes": fitted.classes_,
        "environments": fitted.environments_,
    }
    return make_plain(facts)


# --- views of a fitted estimator, and studies -----------------------------------------------------


def read_views(kind: str, fitted: Any, views: Sequence[str], rows: Facts) -> Facts:
    """Reports, descriptions and other views that a case asks for, given the rows of the fit."""
    facts: Facts = {}
    if "leaves" in views:
        facts["leaves"] = read_frame(fitted.describe_leaves())
        facts["leaves_at_prevalence"] = read_frame(fitted.describe_leaves(prevalence=0.4))
    if IS_BASE:
        return facts | read_methods(kind, fitted, views, rows)
    parts: Facts = {}
    if "validation" in views:
        parts["validation"] = load_name("icscm:leave_one_environment_out")(fitted, **rows)
        facts["validation"] = split_texts(make_plain(parts["validation"].to_dict()))
    if "report" in views:
        if kind == "forest":
            permute = load_name("icscm.validation.importances:permutation_importance")
            parts["importances"] = permute(fitted, **rows, n_repeats=3, max_rows=3_000)
        elif kind not in ("screen", "score"):
            parts["path"] = follow_path(kind, fitted, rows, PATH_VALUES)
        report = fitted.report(data_name="zoo.csv", **parts)
        facts["report"] = split_texts(make_plain(report.to_dict()))
    if "path" in views:
        facts["path"] = read_frame(follow_path(kind, fitted, rows, {}).to_frame())
    return facts


def follow_path(kind: str, fitted: Any, rows: Facts, values: Facts) -> Any:
    """The models at other levels or tolerances; None where nothing was tested."""
    if rows.get("environments") is None or kind == "plain rules" or is_plain_tree(fitted):
        return None
    if kind == "rules":
        alphas = {"alphas": values["alphas"]} if values else {}
        return load_name("icscm.validation.path:alpha_path")(fitted, **rows, **alphas)
    tolerances = {"tolerances": values["tolerances"]} if values else {}
    study = load_name("icscm.validation.path:tolerance_path")
    return study(fitted, **rows, **tolerances, leave_one_out=False)


def is_plain_tree(fitted: Any) -> bool:
    return getattr(fitted, "tolerance_", "no tree") is None


def read_methods(kind: str, fitted: Any, views: Sequence[str], rows: Facts) -> Facts:
    """The same views of version 0.3, which were methods of the learner."""
    facts: Facts = {}
    if "validation" in views:
        facts["validation"] = split_texts(make_plain(fitted.validate(**rows).to_dict()))
    if "report" in views:
        names = {"data_name": "zoo.csv"}
        if kind in ("screen", "score"):
            report = fitted.report(**names)
        elif kind == "forest":
            report = fitted.report(**rows, **names)
        else:
            values = "alphas" if kind in ("rules", "plain rules") else "tolerances"
            report = fitted.report(**rows, **names, **{values: PATH_VALUES[values]})
        facts["report"] = split_texts(make_plain(report.to_dict()))
    if "path" in views:
        facts["path"] = read_frame(fitted.tolerance_path(**rows).to_frame())
    return facts


def read_frame(frame: pd.DataFrame) -> Facts:
    return {str(name): make_plain(frame[name].tolist()) for name in frame.columns}


def split_texts(value: Any) -> Facts:
    """Numbers and texts of a report apart, since its words may change and its numbers may not."""
    return {"numbers": keep_kind(value, is_text=False), "texts": keep_kind(value, is_text=True)}


def keep_kind(value: Any, *, is_text: bool) -> Any:
    """The same nested value with texts only, or without any; lists keep their lengths."""
    if isinstance(value, dict):
        kept = {key: keep_kind(part, is_text=is_text) for key, part in value.items()}
        return {key: part for key, part in kept.items() if part is not None}
    if isinstance(value, list):
        return [keep_kind(part, is_text=is_text) for part in value]
    return value if isinstance(value, str) == is_text else None


def make_plain(value: Any) -> Any:
    """Values that JSON can hold: texts, numbers, booleans, None, lists and dicts with text keys."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return float(value)
    if value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, np.generic):
        return make_plain(value.item())
    if isinstance(value, np.ndarray | pd.Series | pd.Index):
        return make_plain(value.tolist())
    if isinstance(value, pd.DataFrame):
        return read_frame(value)
    if isinstance(value, Mapping):
        return {str(key): make_plain(part) for key, part in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    if isinstance(value, Iterable):
        return [make_plain(part) for part in value]
    return str(value)
