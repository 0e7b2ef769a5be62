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

from collections.abc import Sequence
from typing import Any, Protocol

from icscm.exceptions import IcscmError, Words
from icscm.formatting import count, format_name
from icscm.model.learner import Learner, check_fitted
from icscm.model.plain import make_plain
from icscm.model.tree import Tree
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
from icscm.report.question import ABOUT, LeftOut, describe_question
from icscm.report.steps import describe_pruning, describe_search
from icscm.report.tolerance import TolerancePath
from icscm.report.tree_summary import make_tree_summary
from icscm.report.words import MISSING, Names, Plain, count_samples, format_share, make_names


def make_summary(
    learner: Learner,
    *,
    data_name: str | None = None,
    target: str | None = None,
    environment: str | None = None,
    left_out: LeftOut | None = None,
    alpha_path: AlphaPath | None = None,
    stability: Resampled | None = None,
    tolerance_path: TolerancePath | None = None,
    class_names: tuple[str, str] | None = None,
    words: Words = str,
) -> Plain:
    """All that a report says about a fitted learner, as the module describes.

    `data_name`, `target` and `environment` are what to call the data, the label's column and the
    environment's, `class_names` the negative and the positive class; `left_out` gives columns that
    were not used, with the reason (as the learner tells where it is None). `alpha_path`,
    `stability` and, of trees, `tolerance_path` are what learning again gave. `words` names
    parameters in advice: as Python does, or as the command line's options. Of trees see
    `icscm.report.tree_summary`.
    """
    check_fitted(learner)
    if learner.model_.kind == "tree":
        return make_tree_summary(
            learner,
            data_name=data_name,
            target=target,
            environment=environment,
            left_out=left_out,
            tolerance_path=tolerance_path,
            class_names=class_names,
            words=words,
        )
    if not isinstance(learner.model_, Tree):
        raise IcscmError(
            f"there is no report on a {learner.model_.kind} yet, only on trees and on rules; print "
            "the model instead"
        )
    left_out = learner.dropped_columns_ if left_out is None else left_out
    model, trace = learner.model_, learner.trace_
    classes = class_names or trace.classes
    names = make_names(model, trace.environments, classes, target, environment)
    standard = find_standard(learner, names)
    verdicts, criterion = judge(model, trace, standard), find_criterion(trace, standard)
    leaves = describe_leaves(model, names, verdicts, standard, criterion)
    errors = describe_errors(model, names, make_plain(learner.get_params(deep=False)["p"]))
    search = describe_search(learner, names)
    search["suggestions"] = suggest(learner, search, errors, words)
    aside = trace.discarded and _describe_set_aside(trace.discarded, errors, names)
    returns = None if stability is None else _describe_stability(learner, stability)
    return {
        "about": ABOUT,
        "title": make_title(learner, errors, names, aside),
        "asked": describe_question(learner, names, data_name, left_out),
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


def _describe_set_aside(model: Tree, errors: Plain, names: Names) -> Plain:
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
    def model(self) -> Tree:
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


def _describe_model(learner: Any, names: Names) -> Plain:
    model = learner.model_
    has_missing = any(getattr(rule, "missing", None) is not None for rule in model.rules)
    parts = model.rules, learner.rule_importances_.tolist(), learner.equivalent_rules_
    return {
        "kind": model.kind,
        "name": str(model),
        "text": str(model),
        "simple_rules": [*map(str, model.simple_rules)],
        "sentence": make_sentence(model, names, learner.trace_.discarded),
        "missing": MISSING if has_missing else None,
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


def _describe_tree(model: Tree, leaves: Sequence[Plain]) -> Plain:
    """Nodes and leaves of the single branch; `exit` is the answer that ends at the leaf."""
    exit_answer, onward = ("yes", "no") if model.covers_when else ("no", "yes")
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
    filled = [each for each in path.models if each.model.rules]
    shown = len({str(each.model) for each in filled})  # some differ in what was settled first
    told = [f"{levels} give {count(shown, 'different model')}"]
    for own in (each for each in filled if path.own_alpha in each.alphas):
        told[0] += f", this one {_say_levels(own)}"
    if filled:
        errors = [each["errors"]["error"] or 0.0 for each in models if each["n_rules"]]
        ends = dict.fromkeys(format_share(end) for end in (min(errors), max(errors)))
        told.append(f"wrong for {' to '.join(ends)}")
        features = [{rule.feature for rule in each.model.rules} for each in filled]
        shared = sorted(map(format_name, set.intersection(*features)))
        told.append(f"in all: {', '.join(shared)}" if shared else "no column is in all of them")
    empty = [_say_levels(each, "at") for each in path.models if not each.model.rules]
    told += [f"no rule is found {' and '.join(empty)}"] if empty else []
    return "; ".join(told) + "."


def _say_levels(each: AlphaModel, single: str = "only at") -> str:
    ends = dict.fromkeys(f"{end:g}" for end in (each.alpha_from, each.alpha_to))
    return f"{'from' if len(ends) > 1 else single} {' to '.join(ends)}"


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
