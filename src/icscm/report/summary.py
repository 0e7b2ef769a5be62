"""A fitted learner as a plain dict: all that a report says, before anything is laid out.

`make_summary` returns values that JSON knows, under these keys:

- `about`: package, version and the version of this layout (`schema`).
- `title`: one line for the top of the page.
- `asked`: what was asked: data, rows, columns, label, settings with their meanings, the
  environments with rows and label rates, columns left out and why.
- `answers`: the four short answers: `rule`, `error`, `invariance`, `refused`. Each has the
  `question`, an `answer` and a `detail`.
- `model`: the rule as text and as a sentence and the `simple_rules` that these are made of (rules
  on one column joined), what it makes of missing values (`missing`), and all its rules with what
  each settles, others that would have settled the same (`equivalent`), and its share of
  what is settled correctly (`importance`).
- `tree`: the tree of a single branch: `nodes` with the answer that ends the way there, `leaves`.
- `leaves`: for each leaf counts, rate and interval overall and per environment, the p-value,
  the verdict (`conclusion`), the difference between environments and the detectable one; of one
  that is not invariant the few environments that break it (`breaking`), if it is these.
- `elsewhere`: what to expect in an environment not seen: a `text` that says what the intervals of
  the leaves (`new_interval`, with `tau`, `tau_interval` and `i2`) mean, or why there are none
  (`new_reason`); the numbers of the `leaves` that have one; the same of all samples (`overall`).
- `invariance`: by what the leaves were judged: level, margin, null hypothesis in words.
- `errors`: prediction error on the training data, overall, per environment, the `worst` and the
  `best`, and that of always saying the more frequent class (`majority_is_positive` tells which,
  `beats_majority` whether the model is wrong less often); beside it sensitivity, specificity, PPV
  and AUC, and how many samples have a probability that leans the other way (`n_contrary`).
- `search`: the steps with the candidates refused at each and why, the reason to stop, what the last
  look refused as a sentence (`refused_text`), the nearest misses and, where no rule was found or it
  is no better than always saying the same, what to try (`suggestions`); `sets` and `screening` of
  the exhaustive search.
- `pruning`: the tests by which rules were removed or kept.
- `set_aside`: rules that were found and are worth no more than none, with their `errors`; or None.
- `stability`: how often features, rules and models came back on halves; None where not asked for.
- `alpha_path`: the models at other levels; None where they were not computed.
- `notes`: what the learner wants known of how the counts came about.
- `meaning`: what the result `says` and what it `does_not_say`, and what to mind in this very one
  (`here`), as sentences.

Rates are shares between 0 and 1, intervals pairs of them. Names come from users: they are text
here, with what does not print written as an escape.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from icscm._version import __version__
from icscm.exceptions import IcscmError, Words
from icscm.model.learner import Learner, check_fitted
from icscm.model.plain import make_plain
from icscm.model.rule_sets import RuleSet
from icscm.report.advice import explain_alpha, explain_meaning, suggest
from icscm.report.answers import make_answers, make_sentence, make_title
from icscm.report.elsewhere import describe_elsewhere
from icscm.report.errors import describe_errors, format_error, say_measures
from icscm.report.leaves import (
    count_conclusions,
    describe_leaves,
    find_criterion,
    find_standard,
    judge,
)
from icscm.report.path import AlphaModel, AlphaPath
from icscm.report.steps import describe_pruning, describe_search
from icscm.report.words import (
    Names,
    Plain,
    count_samples,
    describe_counts,
    format_share,
    make_names,
)
from icscm.text import as_text, count, format_name

# Raised when a key is renamed or changes its meaning.
SCHEMA = 1

MEANINGS = {
    "p": "weight of a sample that a rule settles wrongly, against one that it settles rightly",
    "model_type": "whether all rules must hold (conjunction) or any one (disjunction)",
    "max_rules": "number of rules at which the search stops",
    "max_thresholds": "thresholds tried for each numeric column",
    "feature_weights": "preference for some columns",
    "n_jobs": "threads; changes nothing in the result",
    "alpha": "level of the tests by which rules or sets of rules are refused",
    "test": "the test of the label against the environment",
    "stop": "what ends the search besides the number of rules",
    "pruning": "whether columns not needed for invariance are removed at the end",
    "min_samples_leaf": "least number of samples that a rule must settle, and leave",
    "min_replication": "in how many environments the samples that a rule settles must lie",
    "min_utility": "least utility of a rule, and of all of them over always saying the same",
    "search": "step by step (greedy), or all sets of a few rules (exhaustive)",
    "evidence": "whether a rule once refused may be tried again",
    "n_candidates": "rules that the exhaustive search combines",
    "screen": "which rule of each column the exhaustive search considers",
    "criterion": "what counts as invariant: not refuted (pvalue), or shown (equivalence)",
    "margin": "difference between environments that still counts as none",
    "margin_on": "what the margin is measured on",
    "correction": "adjustment of p-values for the number of candidates",
    "missing": "what rules make of missing values",
    "keep_columns": "columns used although they look like identifiers or copies",
}

_MISSING = (
    '"missing: true" means that a missing value counts as fulfilling the rule, '
    '"missing: false" that it does not.'
)

LeftOut = Mapping[Any, str] | Iterable[tuple[str | int, str]]


def make_summary(
    learner: Learner,
    *,
    data_name: str | None = None,
    target: str | None = None,
    environment: str | None = None,
    left_out: LeftOut | None = None,
    alpha_path: AlphaPath | None = None,
    stability: Resampled | None = None,
    class_names: tuple[str, str] | None = None,
    words: Words = str,
) -> Plain:
    """All that a report says about a fitted learner, as the module describes.

    `data_name`, `target` and `environment` are what to call the data, the label's column and the
    environment's, `class_names` the negative and the positive class; `left_out` gives columns that
    were not used, with the reason (as the learner tells where it is None). `alpha_path` and
    `stability` are what learning again gave. `words` names parameters in advice: as Python does, or
    as the command line's options.
    """
    check_fitted(learner)
    left_out = learner.left_out_ if left_out is None else left_out
    model, trace = learner.model_, learner.trace_
    classes = class_names or trace.classes
    names = make_names(model, trace.environments, classes, target, environment)
    standard = find_standard(learner, names)
    verdicts, criterion = judge(model, trace, standard), find_criterion(trace, standard)
    leaves = describe_leaves(model, names, verdicts, standard, criterion)
    errors = describe_errors(model, names, make_plain(learner.get_params(deep=False)["p"]))
    search = describe_search(learner, names)
    search["suggestions"] = suggest(learner, search, errors, words)
    aside = trace.set_aside and _describe_set_aside(trace.set_aside, errors, names)
    returns = None if stability is None else _describe_stability(learner, stability)
    return {
        "about": {"package": "icscm", "version": __version__, "schema": SCHEMA},
        "title": make_title(learner, errors, names, aside),
        "asked": _describe_question(learner, names, data_name, left_out),
        "answers": make_answers(learner, names, leaves, errors, search, standard, aside),
        "model": _describe_model(learner, names),
        "tree": _describe_tree(model, leaves),
        "leaves": leaves,
        "elsewhere": describe_elsewhere(leaves, model.leaves, names),
        "invariance": standard,
        "errors": errors,
        "search": search,
        "pruning": describe_pruning(trace),
        "set_aside": aside,
        "stability": returns,
        "alpha_path": alpha_path and {**_describe_path(alpha_path, names), **explain_alpha(search)},
        "notes": list(trace.notes),
        "meaning": explain_meaning(learner, leaves, errors, standard, names, returns),
    }


def _describe_set_aside(model: RuleSet, errors: Plain, names: Names) -> Plain:
    """The rules that are worth no more than the model without any."""
    own = describe_errors(model, names)
    is_worse = own["n_errors"] >= errors["n_errors"]
    told = (
        f"The rules that were found ({model}) are wrong for {format_error(own)} "
        f"({say_measures(own)}), always saying {errors['majority_class']} for "
        f"{format_share(errors['error'])}: they were set aside."
    )
    worth = "no better than" if is_worse else "too little better than"  # of a least utility
    return {"text": str(model), "errors": own, "explanation": told, "worth": worth}


class Resampled(Protocol):
    """What learning from random halves gave; `icscm.stability_selection` returns one."""

    @property
    def model(self) -> RuleSet:
        """What all samples together give."""
        ...

    def describe(self) -> Plain:
        """How often features, rules and models came back, in plain values."""
        ...


def _describe_stability(learner: Learner, stability: Resampled) -> Plain:
    if stability.model != learner.model_:
        raise IcscmError(
            "stability was computed with other settings or data than fit: from these another "
            "model is learned; give stability_selection what the estimator was fitted on"
        )
    found = stability.describe()
    n, own = found["n_resamples"], round(found["model_frequency"] * found["n_resamples"])
    same = round(found["columns_frequency"] * n)
    told = (
        f"Learned again from {count(n, 'random half')} of the samples, this very model came back "
        f"{count(own, 'time')}, one of the same columns {count(same, 'time')}."
    )
    return {**found, "text": told}


def _describe_question(
    learner: Learner, names: Names, data_name: str | None, left_out: LeftOut | None
) -> Plain:
    totals = np.array(learner.model_.leaves, dtype=np.int64).sum(axis=0)
    overall, environments = describe_counts(totals.tolist(), names)
    pairs = left_out.items() if isinstance(left_out, Mapping) else left_out or ()
    return {
        "data": None if data_name is None else as_text(data_name),
        "n_rows": int(totals.sum()),
        "n_columns": int(learner.n_features_in_),
        "target": names.target,
        "environment": names.place_column or "environment",
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
        "left_out": [{"column": format_name(name), "reason": as_text(why)} for name, why in pairs],
    }


def _describe_settings(learner: Learner) -> list[Plain]:
    defaults, values = type(learner)().get_params(), learner.get_params(deep=False)
    used = getattr(learner, "alpha_", None)
    settings = []
    for name in sorted(values, key=[*MEANINGS, *values].index):
        value = _name_value(values[name])
        is_default, meaning = value == _name_value(defaults[name]), MEANINGS.get(name, "")
        if name == "alpha" and value == "auto" and used is not None:
            value = f"auto ({used:.4g})"
        setting = {"name": name, "value": value, "is_default": is_default, "meaning": meaning}
        settings.append(setting)
    return settings


def _name_value(value: Any) -> Any:
    """A setting's value as JSON knows it; what is long is only named."""
    plain = make_plain(value)
    if isinstance(plain, dict | list):
        return f"given for {len(plain):,} columns"
    return as_text(plain) if isinstance(plain, str) else plain


def _describe_model(learner: Any, names: Names) -> Plain:
    model = learner.model_
    has_missing = any(getattr(rule, "missing", None) is not None for rule in model.rules)
    parts = model.rules, learner.rule_importances_.tolist(), learner.equivalent_rules_
    return {
        "kind": model.kind,
        "text": str(model),
        "simple_rules": [*map(str, model.simple_rules)],
        "sentence": make_sentence(model, names, learner.trace_.set_aside),
        "missing": _MISSING if has_missing else None,
        "n_rules": len(model),
        "features": [format_name(each) for each in learner.features_used_],
        "rules": [
            {
                "number": i + 1,
                "text": str(rule),
                "feature": format_name(rule.feature),
                "importance": importance,
                "n_settled": count_samples(model.leaves[i]),
                "equivalent": [*map(str, equivalent)],
            }
            for i, (rule, importance, equivalent) in enumerate(zip(*parts, strict=True))
        ],
    }


def _describe_tree(model: RuleSet, leaves: Sequence[Plain]) -> Plain:
    """Nodes and leaves of the single branch; `exit` is the answer that ends at the leaf."""
    exit_answer, onward = ("yes", "no") if model.settles_when else ("no", "yes")
    kept = "number", "predicts", "is_positive", "n", "n_positive", "rate", "conclusion"
    return {
        "exit": exit_answer,
        "onward": onward,
        "nodes": [
            {"number": number, "rule": str(rule), "leaf": number}
            for number, rule in enumerate(model.rules, start=1)
        ],
        "leaves": [{key: leaf[key] for key in kept} for leaf in leaves],
    }


def _describe_path(path: AlphaPath, names: Names) -> Plain:
    models = [_describe_path_model(each, path, names, i) for i, each in enumerate(path.models)]
    costs = {"n_searches": len(path.alphas), "seconds": path.seconds}
    told = {"text": _say_path(path, models), "models": models}
    return {"own_alpha": path.own_alpha, **costs, **told}


def _say_path(path: AlphaPath, models: Sequence[Plain]) -> str:
    """How the model depends on alpha, in short."""
    levels = f"{len(path.alphas)} levels alpha from {min(path.alphas):g} to {max(path.alphas):g}"
    if len(models) == 1:
        return f"At {levels} this same model is learned."
    told = [f"{levels} give {len(models)} different models"]
    for own in (each for each in models if each["is_own"]):
        ends = dict.fromkeys(f"{own[end]:g}" for end in ("alpha_from", "alpha_to"))
        told[0] += f", this one {'from' if len(ends) > 1 else 'only at'} {' to '.join(ends)}"
    errors = [each["errors"]["error"] or 0.0 for each in models]
    told.append(f"they are wrong for {format_share(min(errors))} to {format_share(max(errors))}")
    features = [{rule.feature for rule in each.model.rules} for each in path.models]
    shared = sorted(map(format_name, set.intersection(*features)))
    told.append(f"in all of them: {', '.join(shared)}" if shared else "no column is in all of them")
    return "; ".join(told) + "."


def _describe_path_model(each: AlphaModel, path: AlphaPath, names: Names, number: int) -> Plain:
    """One model: all that does not depend on the level, and what was concluded at each."""
    model = each.model
    leaves = describe_leaves(model, names, each.traces[0].verdicts)
    dropped = "environments", "explanation", "conclusion", "detectable", "difference_interval"
    errors = describe_errors(model, names)
    return {
        "name": _name_model(number),
        "alpha_from": each.alpha_from,
        "alpha_to": each.alpha_to,
        "is_own": path.own_alpha in each.alphas,
        "text": str(model),
        "sentence": make_sentence(model, names),
        "n_rules": len(model),
        "tree": _describe_tree(model, [{**leaf, "conclusion": None} for leaf in leaves]),
        "leaves": [{k: v for k, v in leaf.items() if k not in dropped} for leaf in leaves],
        "errors": {key: errors[key] for key in ("error", "n_errors", "n", "worst")},
        "levels": [
            {
                "alpha": alpha,
                "is_own": alpha == path.own_alpha,
                "stop_text": trace.stop_text,
                "conclusions": count_conclusions(leaf.conclusion for leaf in trace.verdicts),
            }
            for alpha, trace in zip(each.alphas, each.traces, strict=True)
        ],
    }


def _name_model(number: int) -> str:
    """A, B, .., Z, A2, B2, ..

    >>> _name_model(0), _name_model(25), _name_model(26)
    ('A', 'Z', 'A2')
    """
    turn, letter = divmod(number, 26)
    return "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[letter] + (str(turn + 1) if turn else "")
