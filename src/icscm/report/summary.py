"""A fitted learner as one dict of sections: everything that a report shows, as JSON holds it.

`make_summary` joins the records of `icscm.report.content` and the sentences of
`icscm.report.wording`. Its values are those that JSON can hold, in the same sections for rule sets,
trees and forests:

- `about`: package, version and the version of this layout (`schema`).
- `task`: data, rows, columns, label, environments with their rates, settings with their meanings,
  dropped columns, the `requirement` (level, margin, null hypothesis, in words) and `notes`.
- `headline`: a `title`, and under `model`, `new_sites`, `error`, `invariance` and `rejected` a
  `topic`, an `answer` and a `detail`.
- `model`: kind, text, sentence, size and columns; the `rules` of a rule set with importance and
  equivalent rules; the `trees` of a forest; rules that were `discarded` as no better than the
  majority-class baseline.
- `nodes`: the nodes from the root down (`walk`), the `splits` (of a rule set its steps), and the
  `scans` over all candidates with the rejected ones and the reasons. Of rule sets also why the
  search stopped, the nearest misses, the `sets` and `screening` of the exhaustive search and
  `pruning`; of trees `importances`, `rejected_features`, `rejected_columns` and the trees
  `tried` for invariant rates.
- `leaves`: counts, rates and intervals overall and by environment, verdict, outlying environments,
  prediction interval; of trees why the leaf was not split.
- `validation`: performance in environments left out, by environment and pooled, with its sentences
  (`lines`) and curves; where it is not known (`pooled` is empty) the `reason`.
- `errors`: errors overall and by environment, beside those of the majority-class baseline.
- `new_environments`: prediction intervals for a new environment, and what they assume.
- `path`: models at other levels or tolerances; None where they were not computed.
- `stability`: frequencies on subsamples; None where they were not computed. `n_returned`: in how
  many of so many subsamples a model of the same columns was found, or None.
- `advice`: what the result `shows` and `does_not_show`, `warnings` and `suggestions`.

Rates are shares between 0 and 1, intervals pairs of them. Names come from users: characters that
do not print are escaped.
"""

from dataclasses import asdict
from typing import Any

from icscm._constants import VERDICT_CONFIDENCE, VERDICT_POWER
from icscm._version import __version__
from icscm.model.saved import Learner
from icscm.report.content.candidates import RuleCandidate, SplitCandidate
from icscm.report.content.errors import ErrorInEnvironment, Errors
from icscm.report.content.learner import LearnerContent, make_learner_content
from icscm.report.content.leaves import Leaf
from icscm.report.content.model import ColumnUse, Discarded
from icscm.report.content.nodes import (
    ChosenRule,
    ChosenSplit,
    Pruning,
    RejectedCandidate,
    ScanContent,
    ScanSize,
)
from icscm.report.content.paths import LevelModel
from icscm.report.formatting import Names, Plain
from icscm.report.wording.advice import list_not_shown, list_shown, list_warnings
from icscm.report.wording.errors import name_measured_rows
from icscm.report.wording.headline import write_headline
from icscm.report.wording.importances import describe_importances
from icscm.report.wording.intervals import describe_new_environments, describe_unknown_intervals
from icscm.report.wording.invariance import CONCLUSIONS
from icscm.report.wording.leaves import explain_leaf
from icscm.report.wording.model import (
    MISSING,
    describe_model,
    describe_worst,
    explain_discarded,
    judge_discarded,
    name_model,
)
from icscm.report.wording.paths import CAUTION, describe_path, explain_alpha
from icscm.report.wording.ranges import describe_outliers, describe_variation
from icscm.report.wording.rejections import (
    describe_pruning,
    explain_rejection,
)
from icscm.report.wording.requirement import (
    describe_bounds,
    describe_margin,
    describe_null_hypothesis,
    describe_requirement,
    describe_tests,
)
from icscm.report.wording.search import (
    describe_last_rejections,
    describe_own_stop,
    describe_stop,
)
from icscm.report.wording.stability import describe_own_frequencies
from icscm.report.wording.suggestions import list_suggestions
from icscm.search.records import STOP_REASONS

# The schema is raised when a key is renamed or changes its meaning.
ABOUT: Plain = {"package": "icscm", "version": __version__, "schema": 2}
# Fields of a leaf that depend on the level, or are long.
NOT_IN_PATHS = ("environments", "explanation", "conclusion", "detectable", "difference_interval")


def make_summary(learner: Learner, **options: Any) -> Plain:
    """Return the content of a report on a fitted learner, as described in the module.

    Parameters
    ----------
    learner : estimator
        A fitted one.
    **options : optional
        `data_name`, `target`, `environment` and `class_names` (negative, positive) name the data,
        the columns and the classes; `dropped` gives columns that were not used, with the reason (by
        default those of the learner). `validation`, `path` and `stability` are results of
        learning again; `unvalidated` says why there is no `validation`, and `n_returned` is in how
        many of so many subsamples a model of the same columns was found. `importances` are those
        of the columns of a forest on its training rows. `words` is a function that names
        parameters in suggestions, as in Python or as options of the command line, and `commands`
        are those that learn a "tree" or a "score", or make a "screen", of the same data.

    Returns
    -------
    dict
        Values that JSON can hold.
    """
    return summarize(make_learner_content(learner, **options))


def summarize(content: LearnerContent) -> Plain:
    """Return the records and the sentences about them in one dict."""
    return {
        "about": ABOUT,
        "task": summarize_task(content),
        "headline": summarize_headline(content),
        "model": summarize_model(content),
        "nodes": summarize_nodes(content),
        "leaves": [summarize_leaf(leaf, content) for leaf in content.leaves],
        "validation": summarize_validation(content),
        "errors": summarize_errors(content.errors, content.names),
        "new_environments": summarize_new_environments(content),
        "path": summarize_path(content),
        "stability": summarize_stability(content),
        "n_returned": content.n_returned,
        "advice": {
            "shows": list_shown(content),
            "does_not_show": list_not_shown(content),
            "warnings": list_warnings(content),
            "suggestions": list_suggestions(content, content.words, content.commands),
        },
    }


# --- task and headline ----------------------------------------------------------------------------


def summarize_task(content: LearnerContent) -> Plain:
    """Return the names of the data, environments, settings and the requirement."""
    task, names = content.task, content.names
    negative, positive = names.classes
    return {
        "data": task.data,
        "n_rows": task.n_rows,
        "n_columns": task.n_columns,
        "target": names.target,
        "environment": names.place,
        "every": f"every {names.environment}",
        "classes": {"negative": negative, "positive": positive},
        "negative": names.negative,
        "positive": names.positive,
        "overall": asdict(task.overall),
        "n_environments": task.n_environments,
        "has_environments": task.has_environments,
        "environments": [asdict(rate) for rate in task.environments],
        "learner": task.learner,
        "settings": [asdict(setting) for setting in task.settings],
        "dropped": [asdict(column) for column in task.dropped],
        "requirement": summarize_requirement(content),
        "notes": task.notes,
    }


def summarize_requirement(content: LearnerContent) -> Plain:
    """Return level, margin and null hypothesis, with what they mean."""
    requirement, names = content.task.requirement, content.names
    margin = describe_margin(requirement)
    return {
        **asdict(requirement),
        "margin_text": margin,
        "confidence": VERDICT_CONFIDENCE,
        "difference_confidence": requirement.difference_confidence,
        "power": VERDICT_POWER,
        "conclusions": CONCLUSIONS,
        "null_hypothesis": describe_null_hypothesis(names),
        "text": describe_requirement(content.nodes, names, content.model.kind),
        "bounds_text": describe_bounds(content.leaves, margin),
    }


def summarize_headline(content: LearnerContent) -> Plain:
    """Return the headline; facts are pairs of a term and a text."""
    plain = asdict(write_headline(content))
    return plain | {"facts": [list(fact) for fact in plain["facts"]]}


# --- the model ------------------------------------------------------------------------------------


def summarize_model(content: LearnerContent) -> Plain:
    """Return the model in words and numbers."""
    model = content.model
    sentence = describe_model(
        content.learned, content.names, model.features, is_discarded=model.discarded is not None
    )
    summary = {
        "kind": model.kind,
        "noun": model.noun,
        "name": name_model(content.learned, model.features),
        "text": model.text,
        "sentence": sentence,
        "at_threshold": model.at_threshold,
        "missing": MISSING if model.has_missing else None,
        "balanced": model.balanced,
        "threshold": model.threshold,
        "n_rules": model.n_rules,
        "n_leaves": model.n_leaves,
        "depth": model.depth,
        "features": model.features,
        "simple_rules": model.simple_rules,
        "rules": [asdict(rule) for rule in model.rules],
        "trees": summarize_forest(content),
        "discarded": summarize_discarded(model.discarded, content),
        "shape": None if model.shape is None else asdict(model.shape),
    }
    if model.score is not None:
        summary |= asdict(model.score)
    return summary


def summarize_forest(content: LearnerContent) -> Plain | None:
    """Return the trees of a forest, with what importances mean."""
    forest = content.model.forest
    if forest is None:
        return None
    return {
        "n_trees": forest.n_trees,
        "n_leaves": forest.n_leaves,
        "uses": [summarize_use(use) for use in forest.uses],
        "n_permuted": forest.n_permuted,
        "text": describe_importances(forest.n_permuted),
    }


def summarize_use(use: ColumnUse) -> Plain:
    """Return a column of a forest, with the losses where it is permuted."""
    summary = asdict(use)
    del summary["losses"]
    return summary if use.losses is None else summary | use.losses.to_dict()


def summarize_discarded(discarded: Discarded | None, content: LearnerContent) -> Plain | None:
    """Return rules that were discarded, with the reason."""
    if discarded is None:
        return None
    return {
        "text": discarded.text,
        "errors": summarize_errors(discarded.errors, content.names),
        "explanation": explain_discarded(discarded, content.errors.error),
        "worth": judge_discarded(discarded),
    }


# --- the search -----------------------------------------------------------------------------------


def summarize_nodes(content: LearnerContent) -> Plain:
    """Return nodes, chosen and rejected candidates, and why the search ended."""
    nodes = content.nodes
    rejected_features = [
        summarize_rejected(rejected, content) | {"node": rejected.node}
        for rejected in nodes.rejected_features
    ]
    summary = {
        "walk": [asdict(node) for node in nodes.walk],
        "criterion": nodes.criterion,
        "is_tested": nodes.is_tested,
        "alpha": nodes.alpha,
        "invariance": nodes.invariance,
        "tolerance": nodes.tolerance,
        "stop_reason": nodes.stop_reason,
        "stop_text": describe_own_stop(content),
        "splits": [summarize_chosen(chosen, content) for chosen in nodes.splits],
        "scans": [summarize_scan(scan, content) for scan in nodes.scans],
        "outliers": [summarize_outlying(outlying) for outlying in nodes.outliers],
        "best_rejected": summarize_best_rejected(nodes.best_rejected, content.names),
        "rejected_features": rejected_features,
        "rejected_columns": [asdict(column) for column in nodes.rejected_columns],
        "rejected_text": describe_last_rejections(nodes),
        "nearest": [summarize_rejected(candidate, content) for candidate in nodes.nearest],
        "screening": [asdict(screened) for screened in nodes.screening],
        "sets": [asdict(candidate_set) for candidate_set in nodes.sets],
        "pruning": summarize_pruning(nodes.pruning),
        "importances": [asdict(importance) for importance in nodes.importances],
        "tried": [asdict(tree) for tree in nodes.tried],
    }
    if nodes.alpha is not None:
        margin = describe_margin(content.task.requirement)
        summary["tests_text"] = describe_tests(nodes, margin)
    return summary


def summarize_pruning(pruning: Pruning) -> Plain:
    """Return the tests of rules or columns that pruning may remove, and those that it removed."""
    return {
        "removed": [test.feature for test in pruning.tests if test.removed],
        "tests": [asdict(test) for test in pruning.tests],
        "text": describe_pruning(pruning) or None,
    }


def summarize_chosen(chosen: ChosenRule | ChosenSplit, content: LearnerContent) -> Plain:
    """Return a rule that was added, or a split."""
    summary = {
        "number": chosen.number,
        **summarize_candidate(chosen.candidate, content),
        **summarize_size(chosen.size),
    }
    if isinstance(chosen, ChosenRule):
        summary |= {
            "in_model": chosen.in_model,
            "n_uncovered": chosen.n_uncovered,
            "p_value_uncovered": chosen.p_value_uncovered,
            "n_tied": chosen.n_tied,
            "n_equivalent": chosen.n_equivalent,
        }
    return summary


def summarize_candidate(
    candidate: RuleCandidate | SplitCandidate, content: LearnerContent
) -> Plain:
    """Return a rule or a split that was examined."""
    names = {"rule": candidate.rule, "feature": candidate.feature}
    if isinstance(candidate, RuleCandidate):
        return names | asdict(candidate)
    variation = describe_variation(
        candidate.heterogeneity_share, has_environments=content.task.has_environments
    )
    return (
        names | asdict(candidate) | {"variation": candidate.variation, "variation_text": variation}
    )


def summarize_size(size: ScanSize) -> Plain:
    """Return how many candidates a scan had and rejected."""
    return {**asdict(size), "n_rejected_all": size.n_rejected_all}


def summarize_scan(scan: ScanContent, content: LearnerContent) -> Plain:
    """Return a scan with its rejected candidates."""
    return {
        "number": scan.number,
        "title": scan.title,
        "node": scan.node,
        **summarize_size(scan.size),
        "rejected": [summarize_rejected(rejected, content) for rejected in scan.rejected],
        "end": scan.end,
        "end_text": scan.end and STOP_REASONS[scan.end],
    }


def summarize_rejected(rejected: RejectedCandidate, content: LearnerContent) -> Plain:
    """Return a rejected candidate with the reason in words."""
    candidate = rejected.candidate
    summary = summarize_candidate(candidate, content)
    if isinstance(candidate, RuleCandidate):
        outliers = describe_outliers(rejected.outliers, candidate.n_seen)
        summary |= {"outliers": rejected.outliers, "outliers_text": outliers}
    else:
        del summary["environments"]  # there are many of these, and the extremes are kept
    if rejected.is_of_rejected_column:
        summary |= {
            "replication": rejected.column_replication,
            "column_share": rejected.column_share,
        }
    why = explain_rejection(rejected, content.names)
    return {**summary, "reason": rejected.reason, "why": why}


def summarize_outlying(rejected: RejectedCandidate) -> Plain:
    """Return a rule that a few environments spoil."""
    candidate = rejected.candidate
    return {
        "rule": candidate.rule,
        "utility": candidate.worth,
        "outliers_text": describe_outliers(rejected.outliers, candidate.n_seen),
    }


def summarize_best_rejected(best: RejectedCandidate | None, names: Names) -> Plain | None:
    """Return the best rejected candidate of all scans."""
    if best is None:
        return None
    return {
        "rule": best.candidate.rule,
        "feature": best.candidate.feature,
        "node": best.node,
        "reason": best.reason,
        "why": explain_rejection(best, names),
    }


# --- leaves, errors and new environments ----------------------------------------------------------


def summarize_leaf(leaf: Leaf, content: LearnerContent) -> Plain:
    """Return a leaf with its verdict in words."""
    summary = {"number": leaf.number, "condition": leaf.condition, **asdict(leaf)}
    end = summary.pop("end")
    return {
        **summary,
        "outliers_text": describe_outliers(leaf.outliers, leaf.n_seen),
        "end_text": end and STOP_REASONS[end],
        "explanation": explain_leaf(leaf, content.names, content.task.requirement),
    }


def summarize_errors(errors: Errors, names: Names) -> Plain:
    """Return errors; those in training have no Brier score, and an AUC only overall."""
    summary = {"on": name_measured_rows(errors), **asdict(errors)}
    summary["environments"] = [summarize_error(errors, place) for place in errors.environments]
    if errors.worst is not None:
        text = describe_worst(errors, names)
        summary["worst"] = {**summarize_error(errors, errors.worst), "text": text}
    if errors.best is not None:
        summary["best"] = summarize_error(errors, errors.best)
    if not errors.is_out_of_bag:
        del summary["brier"]
    return summary


def summarize_error(errors: Errors, place: ErrorInEnvironment) -> Plain:
    """Return the errors in one environment."""
    summary = {"environment": place.environment, **asdict(place)}
    if not errors.is_out_of_bag:
        del summary["auc"], summary["brier"]
    return summary


def summarize_new_environments(content: LearnerContent) -> Plain:
    """Return the interval of all rows, which leaves have one, and what the intervals mean."""
    intervals = content.new_environments
    return {
        "confidence": intervals.confidence,
        "overall": asdict(intervals.overall),
        "leaves": intervals.leaves,
        "text": describe_new_environments(intervals, content.names),
        "unknown_text": describe_unknown_intervals(intervals),
    }


# --- results of learning again --------------------------------------------------------------------


def summarize_validation(content: LearnerContent) -> Plain:
    """Return performance in environments left out, or why it is not known."""
    summary: Plain = {"reason": content.unvalidated, "lines": [], "pooled": {}}
    return summary if content.validation is None else summary | content.validation.to_dict()


def summarize_stability(content: LearnerContent) -> Plain | None:
    """Return the frequencies on subsamples, with a sentence."""
    stability = content.stability
    if stability is None:
        return None
    is_forest = content.model.noun == "forest"
    text = describe_own_frequencies(stability, is_forest=is_forest)
    return {**asdict(stability), "text": text}


def summarize_path(content: LearnerContent) -> Plain | None:
    """Return every value tried, with the models that they give and a short text."""
    path = content.path
    if path is None:
        return None
    summary = {
        "parameter": path.parameter,
        "own": path.own,
        "n_searches": path.n_searches,
        "n_models": path.n_models,
        "text": describe_path(path),
    }
    if path.parameter == "alpha":
        models = [summarize_level_model(model, content) for model in path.models]
        return summary | {"models": models, "meaning": explain_alpha(content.nodes.criterion)}
    points = [asdict(tree) for tree in path.points]
    return summary | {"points": points, "has_scores": path.has_scores, "caution": CAUTION}


def summarize_level_model(model: LevelModel, content: LearnerContent) -> Plain:
    """Return one model along alpha."""
    leaves = [summarize_leaf(leaf, content) for leaf in model.leaves]
    errors = summarize_errors(model.errors, content.names)
    levels = [
        {
            "alpha": level.alpha,
            "is_own": level.is_own,
            "stop_text": describe_stop(level.stop_reason),
            "conclusions": level.conclusions,
        }
        for level in model.levels
    ]
    return {
        **asdict(model),
        "leaves": [
            {key: value for key, value in leaf.items() if key not in NOT_IN_PATHS}
            for leaf in leaves
        ],
        "errors": {key: errors[key] for key in ("error", "n_errors", "n", "worst")},
        "levels": levels,
    }
