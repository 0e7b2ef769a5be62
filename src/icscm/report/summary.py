"""A fitted learner as one dict of sections: everything that a report shows, before any layout.

`make_summary` returns values that JSON can hold, the same sections for rule sets, trees and
forests. `nodes`, `leaves` and `errors` are made in `icscm.report.sections`, the others here.

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

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from icscm._version import __version__
from icscm.exceptions import IcscmError, Parameter, Words
from icscm.formatting import as_text, format_name, make_plain
from icscm.model.saved import Learner, check_fitted
from icscm.model.splits import LeafCounts
from icscm.parameters import get_spec
from icscm.report import formatting
from icscm.report.formatting import Describable, Names, Plain, count_samples
from icscm.report.importances import PermutationImportance
from icscm.report.sections import leaves as of_leaves
from icscm.report.sections.nodes import describe_nodes, walk_nodes
from icscm.report.texts import write_lines, write_text
from icscm.stats.new_environments import CONFIDENCE, make_expectations
from icscm.stats.verdicts import INVARIANT, NOT_INVARIANT, TOO_LITTLE_DATA

if TYPE_CHECKING:
    from icscm.report.path import Path, PathPoint

DroppedColumns = Mapping[Any, str] | Iterable[tuple[str | int, str]]

# Fields of a leaf that depend on the level, or are long.
_LEFT_OUT = ("environments", "explanation", "conclusion", "detectable", "difference_interval")
# The schema is raised when a key is renamed or changes its meaning.
ABOUT: Plain = {"package": "icscm", "version": __version__, "schema": 2}


def make_summary(
    learner: Learner,
    *,
    data_name: str | None = None,
    target: str | None = None,
    environment: str | None = None,
    dropped: DroppedColumns | None = None,
    path: Path | None = None,
    stability: Any = None,
    n_returned: tuple[int, int] | None = None,
    validation: Describable | None = None,
    unvalidated: str = "icscm.leave_one_environment_out measures it",
    importances: PermutationImportance | None = None,
    commands: Mapping[str, str] | None = None,
    class_names: tuple[str, str] | None = None,
    words: Words = str,
) -> Plain:
    """The content of a report on a fitted learner, as described in the module.

    `data_name`, `target`, `environment` and `class_names` (negative, positive) name the data, the
    columns and the classes; `dropped` gives columns that were not used, with the reason (by default
    those of the learner). `path` and `stability` are results of learning again; `n_returned` is in
    how many of so many subsamples a model of the same columns was found, `unvalidated` why there is
    no performance in environments left out (`validation`). `importances` are those
    of the columns of a forest on its training rows. `words` names parameters
    in suggestions, as in Python or as options of the command line, where `commands` learn a "tree"
    and make a "screen" of the same data.
    """
    check_fitted(learner)
    trace, p = learner.trace_, make_plain(learner.get_params(deep=False).get("p", 1.0))
    classes = class_names or trace.classes
    names = formatting.make_names(trace.environments, classes, target, environment)
    requirement = of_leaves.find_requirement(learner, names)
    kind = learner.model_.kind
    requirement["text"] = write_text("requirement", trace=trace, names=names, kind=kind)
    nodes = describe_nodes(learner, names)
    if nodes["alpha"] is not None:
        nodes["tests_text"] = write_text("tests", nodes=nodes, requirement=requirement)
    if kind == "forest":
        errors = of_leaves.describe_out_of_bag(learner, names)
    else:
        errors = of_leaves.describe_errors(learner.model_, names, p)
    leaves = of_leaves.describe_model_leaves(learner, names, requirement)
    for leaf, scan in zip(leaves, nodes["scans"][len(nodes["splits"]) :], strict=False):
        leaf["end_text"] = None if kind not in ("tree", "forest") else scan["end_text"]
    requirement["bounds_text"] = write_text("bounds", leaves=leaves, requirement=requirement)
    for leaf in leaves:
        leaf["explanation"] = write_text("leaf", leaf=leaf, names=names, requirement=requirement)
    summary = {
        "about": ABOUT,
        "task": describe_task(learner, names, data_name, dropped, requirement),
        "headline": None,
        "model": describe_model(learner, names, nodes, errors, importances),
        "nodes": nodes,
        "leaves": leaves,
        "validation": {"reason": unvalidated, "lines": [], "pooled": {}}
        | ({} if validation is None else validation.to_dict()),
        "errors": errors,
        "new_environments": describe_new_environments(leaves, learner.class_counts_, names),
        "path": path and describe_path(path, names, nodes),
        "stability": stability and describe_stability(learner, stability),
        "n_returned": n_returned,
        "advice": None,
    }
    summary["advice"] = make_advice(learner, names, summary, words, commands or {})
    summary["headline"] = make_headline(learner, names, summary)
    return summary


def describe_task(
    learner: Learner,
    names: Names,
    data_name: str | None,
    dropped: DroppedColumns | None,
    requirement: Plain,
) -> Plain:
    """Names of the data, the environments with their rates, settings and requirement."""
    dropped = learner.dropped_columns_ if dropped is None else dropped
    pairs = dropped.items() if isinstance(dropped, Mapping) else dropped
    overall, environments = formatting.describe_counts(learner.class_counts_, names)
    return {
        "data": None if data_name is None else as_text(data_name),
        "n_rows": count_samples(learner.class_counts_),
        "n_columns": int(learner.n_features_in_),
        "target": names.target,
        "environment": names.column or "environment",
        "every": f"every {names.environment}",
        "classes": {"negative": names.classes[0], "positive": names.classes[1]},
        "negative": names.predict(False),
        "positive": names.positive,
        "overall": overall,
        "n_environments": len(names.environments),
        "has_environments": len(names.environments) > 1,
        "environments": environments,
        "learner": type(learner).__name__,
        "settings": _describe_settings(learner),
        "dropped": [{"column": format_name(name), "reason": as_text(why)} for name, why in pairs],
        "requirement": requirement,
        "notes": list(learner.trace_.notes),
    }


def _describe_settings(learner: Learner) -> list[Plain]:
    kind: Any = type(learner)
    defaults = kind().get_params()
    settings = []
    for name in inspect.signature(kind).parameters:
        setting = learner.get_params(deep=False)[name]
        value, default = _describe_value(setting), _describe_value(defaults[name])
        used = getattr(learner, f"{name}_", None)  # the value that "auto" stands for
        shown = f"auto ({used:.4g})" if value == "auto" and used is not None else value
        entry = {"name": name, "value": shown, "is_default": value == default}
        settings.append({**entry, "meaning": get_spec(name, kind).help})
    return settings


def _describe_value(value: Any) -> Any:
    """The value of a setting in JSON; of a long one only its length."""
    plain = make_plain(value)
    if isinstance(plain, dict | list):
        return f"given for {len(plain):,} columns"
    return as_text(plain) if isinstance(plain, str) else plain


def describe_model(
    learner: Learner,
    names: Names,
    nodes: Plain,
    errors: Plain,
    permuted: PermutationImportance | None,
) -> Plain:
    """The model in words and numbers; rules with importances are those of a rule set."""
    model = learner.model_
    noun = str(model.kind) if model.kind in ("tree", "forest", "score") else "rule"
    is_chain, is_forest = noun == "rule", noun == "forest"
    used = [each["feature"] for each in nodes["importances"] or ()]
    if noun != "tree":
        used = [format_name(each) for each in learner.features_used_]
    has_missing = any(getattr(rule, "missing", None) is not None for rule in model.rules)
    rows = model.list_rows() if noun == "score" else ()
    discarded = learner.trace_.discarded
    always = "" if is_forest else names.predict(bool(model.leaf_verdicts[0]))
    content = {"names": names, "used": used, "always": always, "is_discarded": bool(discarded)}
    content["model"] = model
    shape = getattr(learner, "shape_", None)
    chosen = {key: getattr(shape, key, None) for key in ("chosen", "prefers_tree")}
    return {
        "kind": model.kind,
        "noun": noun,
        "name": write_text("name", **content),
        "text": str(model),
        "sentence": write_text("sentence", **content),
        "at_threshold": model.at_threshold,
        "missing": formatting.MISSING if has_missing else None,
        "balanced": getattr(model, "balanced", False),
        "threshold": model.threshold,
        "n_rules": len(model.rules),
        "n_leaves": len(getattr(model, "leaves", ())),
        "depth": max((each["depth"] for each in nodes["walk"]), default=0),
        "features": used,
        "simple_rules": [*map(str, model.simple_rules)] if is_chain else [],
        "rules": _describe_rules(learner) if is_chain else [],
        "trees": _describe_trees(learner, permuted) if is_forest else None,
        **({"points": [row._asdict() for row in rows]} if rows else {}),
        **({"risks": model.compute_risks().tolist(), "bounds": model.bounds} if rows else {}),
        "discarded": discarded and _describe_discarded(discarded, errors, names),
        "shape": shape and {**chosen, **vars(shape)},
    }


def _describe_rules(learner: Any) -> list[Plain]:
    """The rules of a chain: samples covered, importance, and equivalent rules."""
    model = learner.model_
    parts = model.rules, learner.rule_importances_.tolist(), learner.equivalent_rules_
    return [
        {
            "number": i + 1,
            "text": str(rule),
            "feature": format_name(rule.feature),
            "importance": importance,
            "n_covered": count_samples(model.leaves[i]),
            "equivalent": [*map(str, equivalent)],
        }
        for i, (rule, importance, equivalent) in enumerate(zip(*parts, strict=True))
    ]


def _describe_trees(learner: Any, permuted: PermutationImportance | None) -> Plain:
    """Sizes of the trees of a forest; how many use each column, and its importances."""
    model = learner.model_
    sizes, uses = [len(tree.leaves) for tree in model.trees], model.count_uses()
    shares, places = learner.feature_importances_, {r.feature: r.column for r in model.rules}
    rows = []
    for feature, n in sorted(uses.items(), key=lambda each: -shares[places[each[0]]]):
        row = {"feature": format_name(feature), "n_trees": n, "share": n / len(sizes)}
        row["importance"] = float(shares[places[feature]])
        rows.append(row | ({} if permuted is None else permuted.describe(feature)))
    found = {"n_trees": len(sizes), "n_leaves": [min(sizes), max(sizes)], "uses": rows}
    text = write_text("importances", permuted=permuted)
    return {**found, "n_permuted": permuted and permuted.n_rows, "text": text}


def _describe_discarded(model: Any, errors: Plain, names: Names) -> Plain:
    """Rules that were found and are no better than the baseline, so that the model has none."""
    own = of_leaves.describe_errors(model, names)
    is_worse = own["n_errors"] >= errors["n_errors"]
    text = write_text("discarded", model=model, own=own, errors=errors)
    worth = "no better than" if is_worse else "not enough better than"  # less than min_utility
    return {"text": str(model), "errors": own, "explanation": text, "worth": worth}


def make_headline(learner: Learner, names: Names, summary: Plain) -> Plain:
    """A title, facts, and on each of four topics an answer and a detail."""
    counts = formatting.count_conclusions(leaf["conclusion"] for leaf in summary["leaves"])
    order = NOT_INVARIANT, TOO_LITTLE_DATA, INVARIANT
    conclusion = next((each for each in order if each in counts), None)
    content: Plain = {
        **summary,
        "names": names,
        "trace": learner.trace_,
        "tests_invariance": learner.tests_invariance,
        "conclusion": conclusion,
        "n_worst": counts.get(conclusion or "", 0),
    }
    headline: Plain = {"title": write_text("title", **content), "facts": list_facts(content)}
    for name in ("model", "new_sites", "error", "invariance", "rejected"):
        topic, answer, *details = write_lines(name, **content)
        texts = {"topic": topic, "answer": answer, "detail": " ".join(details)}
        headline[name] = {**texts, "conclusion": None}
    if summary["nodes"]["invariance"] != "effect":
        headline["invariance"]["conclusion"] = conclusion
    return headline


def list_facts(content: Plain) -> list[list[str]]:
    """Terms and texts: a warning if there is cause, the model, its error and metrics."""
    return [line.split(": ", 1) for line in write_lines("facts", **content)]


def make_advice(
    learner: Learner, names: Names, summary: Plain, words: Words, commands: Mapping[str, str]
) -> Plain:
    """What the result shows and does not show, warnings about it, and suggestions."""
    nodes = summary["nodes"]
    last = nodes["scans"][len(nodes["splits"]) :][-1:]  # the scan that found no rule
    misses = nodes["sets"] if nodes["criterion"] == "sets" else nodes["nearest"]
    content: Plain = {
        **summary,
        "names": names,
        "trace": learner.trace_,
        "settings": learner.get_params(deep=False),
        "n_rejected": dict.fromkeys(_REASONS, 0) | (last[0]["n_rejected"] if last else {}),
        "cutoff": (last and last[0]["cutoff"]) or nodes["alpha"],
        "nearest": next((each["p_value"] for each in misses), None),
        "option": lambda *parameter: words(Parameter(*parameter)),
        "commands": commands,
    }
    kind = "rules" if summary["model"]["noun"] == "rule" else "trees"
    blocks = "shows", "does_not_show", f"warnings_of_{kind}", f"suggestions_of_{kind}"
    return {block.partition("_of_")[0]: write_lines(block, **content) for block in blocks}


# Reasons of rejections that have suggestions.
_REASONS = ("small", "unreplicated", "unhelpful", "dependent")


def describe_new_environments(leaves: Sequence[Plain], totals: LeafCounts, names: Names) -> Plain:
    """The interval of all samples, which leaves have one, and what the intervals mean."""
    (overall,) = make_expectations([np.array(totals, dtype=np.int64)])
    known = [leaf["number"] for leaf in leaves if leaf["new_interval"] is not None]
    content = {"leaves": leaves, "known": known, "names": names, "confidence": CONFIDENCE}
    content |= {"overall": overall, "rate": sum(totals[1]) / max(sum(map(sum, totals)), 1)}
    return {
        "confidence": CONFIDENCE,
        "overall": of_leaves.describe_expectation(overall),
        "leaves": known,
        "text": write_text("new_environments", **content),
        "unknown_text": write_text("unknown_intervals", **content),
    }


def format_range(environments: Sequence[Plain]) -> str:
    """The rates in the training environments, from the lowest to the highest."""
    ends = of_leaves.find_extremes(environments, "rate")
    return " to ".join(formatting.format_share(e["rate"]) for e in ends if e) or "no sample"


def describe_stability(learner: Learner, stability: Any) -> Plain:
    """The frequencies, checked to be those of the learner's own model."""
    if stability.model != replace(learner.model_, threshold=None):
        raise IcscmError(
            "stability was computed with settings or data that give a different model than fit; "
            "call stability_selection with the settings and data of fit"
        )
    found = stability.describe()
    return {**found, "text": write_text("stability", kind=stability.model.kind, **found)}


def describe_path(path: Path, names: Names, nodes: Plain) -> Plain:
    """Every value tried, with the models that they give and a short text."""
    if path.parameter == "alpha":
        models = [_describe_group(group, path, names, i) for i, group in enumerate(path.groups)]
        used = [{rule.feature for rule in group[0].model.rules} for group in path.groups]
        filled = [each for each in used if each]
        text = write_text(
            "alphas",
            models=models,
            n_levels=len(path.points),
            first=path.points[0].value,
            last=path.points[-1].value,
            shared=sorted(map(format_name, set.intersection(*filled))) if filled else [],
        )
        meaning = write_text("alpha_path", criterion=nodes["criterion"])
        found: Plain = {"models": models, "meaning": meaning}
    else:
        points = path.describe_points()
        text = write_text("tolerances", points=points)
        found = {"points": points, "has_scores": path.points[0].aucs is not None}
        found["caution"] = write_text("path_caution")
    shared = {"parameter": path.parameter, "own": path.own}
    n_models = len({str(each.model) for each in path.points})  # a model may occur twice
    sizes = {"n_searches": len(path.points), "n_models": n_models}
    return {**shared, **sizes, "text": text, **found}


def _describe_group(group: Sequence[PathPoint], path: Path, names: Names, number: int) -> Plain:
    """One model, with the levels that give it and the conclusions at each."""
    model = group[0].model
    leaves = of_leaves.describe_leaves(model, names, group[0].trace.verdicts)
    errors = of_leaves.describe_errors(model, names)
    turn, letter = divmod(number, 26)  # A, B, .., Z, A2, B2, ..
    return {
        "name": chr(ord("A") + letter) + (str(turn + 1) if turn else ""),
        "alpha_from": group[0].value,
        "alpha_to": group[-1].value,
        "is_own": any(each.value == path.own for each in group),
        "text": str(model),
        "n_rules": len(model.rules),
        "walk": [*walk_nodes(model, names)],
        "leaves": [{k: v for k, v in leaf.items() if k not in _LEFT_OUT} for leaf in leaves],
        "errors": {key: errors[key] for key in ("error", "n_errors", "n", "worst")},
        "levels": [
            {
                "alpha": each.value,
                "is_own": each.value == path.own,
                "stop_text": each.trace.stop_text,
                "conclusions": formatting.count_conclusions(
                    leaf.conclusion for leaf in each.trace.verdicts
                ),
            }
            for each in group
        ],
    }
