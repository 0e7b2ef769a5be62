"""A fitted learner as a plain dict: all that a report says, before anything is laid out.

`make_summary` returns values that JSON knows, under these keys:

- `about`: package, version and the version of this layout (`schema`).
- `title`: one line for the top of the page.
- `asked`: what was asked: data, rows, columns, label, settings with their meanings, the
  environments with rows and label rates, columns left out and why.
- `answers`: the four short answers: `rule`, `error`, `invariance`, `refused`. Each has the
  `question`, an `answer` and a `detail`.
- `model`: the rule as text and as a sentence, what it makes of missing values (`missing`), and its
  rules with what each settles, others that would have settled the same (`equivalent`), and
  its share of what is settled correctly (`importance`).
- `tree`: the tree of a single branch: `nodes` with the answer that ends the way there, `leaves`.
- `leaves`: for each leaf counts, rate and interval overall and per environment, the p-value,
  the verdict (`conclusion`), the difference between environments and the detectable one.
- `invariance`: by what the leaves were judged: level, margin, null hypothesis in words.
- `errors`: prediction error on the training data, overall, per environment, the worst, and that
  of always saying the more frequent class.
- `search`: the steps with the candidates refused at each and why, the reason to stop, the nearest
  misses and what to try (`suggestions`); `sets` and `screening` of the exhaustive search.
- `pruning`: the tests by which rules were removed or kept.
- `alpha_path`: the models at other levels; None where they were not computed.
- `notes`: what the learner wants known of how the counts came about.
- `meaning`: what the result says and what it does not, as sentences.

Rates are shares between 0 and 1, intervals pairs of them. Names come from users: they are text
here, with what does not print written as an escape.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.utils.validation import check_is_fitted

import icscm
from icscm._constants import DEFAULT_MARGIN, VERDICT_CONFIDENCE, VERDICT_POWER
from icscm.estimators import Learner, SCMClassifier, check_learner
from icscm.models import LeafCounts, RuleSet
from icscm.report.terminal import count_samples, format_p
from icscm.rules import escape_controls, format_name
from icscm.stats.independence import make_test
from icscm.stats.verdicts import (
    INVARIANT,
    NOT_INVARIANT,
    TOO_LITTLE_DATA,
    Verdict,
    compute_wilson,
    make_verdicts,
)
from icscm.trace import Look, Refusal, Trace

if TYPE_CHECKING:
    from icscm.sensitivity import AlphaModel, AlphaPath

Plain = dict[str, Any]

# Raised when a key is renamed or changes its meaning.
SCHEMA = 1

# The level at which the leaves of a learner that tests nothing are judged afterwards.
AFTERWARDS_ALPHA = 0.05

MEANINGS = {
    "p": "weight of a sample that a rule settles wrongly, against one that it settles rightly",
    "model_type": "whether all rules must hold (conjunction) or any one (disjunction)",
    "max_rules": "number of rules at which the search stops",
    "max_thresholds": "thresholds tried for each numeric column",
    "feature_weights": "preference for some columns",
    "n_jobs": "threads; changes nothing in the result",
    "alpha": "level of the tests: a rule is refused when its p-value is not above it",
    "test": "the test of the label against the environment",
    "stop": "what ends the search besides the number of rules",
    "pruning": "whether columns not needed for invariance are removed at the end",
    "min_samples_leaf": "least number of samples that a rule must settle, and leave",
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

# What each conclusion means, in a word that can stand alone, a symbol, and a sentence.
CONCLUSIONS = {
    INVARIANT: "The test finds no shift, and the data rule out one beyond the margin.",
    NOT_INVARIANT: "The rate shifts between environments more than chance explains.",
    TOO_LITTLE_DATA: "No shift was found, but one beyond the margin is still possible.",
}

LeftOut = Mapping[Any, str] | Iterable[tuple[str | int, str]]


@dataclass(frozen=True)
class Names:
    """What the report calls things: text that came from users, made harmless for a line.

    `settled` is the label, 0 or 1, that a rule gives the samples it settles.
    """

    target: str
    environment: str
    classes: tuple[str, str]
    environments: tuple[str, ...]
    settled: int

    @property
    def negative(self) -> str:
        return f"{self.target} = {self.classes[0]}"

    @property
    def positive(self) -> str:
        return f"{self.target} = {self.classes[1]}"

    def predict(self, is_positive: bool) -> str:
        return self.positive if is_positive else self.negative

    def place(self, environment: Plain) -> str:
        """An environment in a sentence: `hospital 3`, but not `hospital Hospital 3`."""
        label: str = environment["environment"]
        if label.lower().startswith(self.environment.lower()):
            return label
        return f"{self.environment} {label}"


@dataclass(frozen=True)
class Standard:
    """By what leaves are judged; `alpha` is None where there is nothing to compare."""

    alpha: float | None
    margin: float
    margin_on: str
    afterwards: bool


def make_summary(
    learner: Learner,
    *,
    data_name: str | None = None,
    target: str | None = None,
    environment: str | None = None,
    left_out: LeftOut | None = None,
    alpha_path: AlphaPath | None = None,
) -> Plain:
    """All that a report says about a fitted learner, as the module describes.

    `data_name`, `target` and `environment` are what to call the data, the label's column and the
    environment's; `left_out` gives columns that were not used, with the reason (as the learner
    tells where it is None).
    """
    check_learner(learner)
    check_is_fitted(learner, "model_")
    left_out = getattr(learner, "left_out_", None) if left_out is None else left_out
    model, trace = learner.model_, learner.trace_
    names = _make_names(model, trace, target, environment)
    standard = _find_standard(learner)
    verdicts = _judge(model, trace, standard)
    leaves = _describe_leaves(model, names, verdicts, standard)
    errors = _describe_errors(model, names)
    search = _describe_search(learner, names)
    return {
        "about": {"package": "icscm", "version": icscm.__version__, "schema": SCHEMA},
        "title": _make_title(model, trace, names),
        "asked": _describe_question(learner, names, data_name, left_out),
        "answers": {
            "rule": _answer_rule(model, names),
            "error": _answer_error(errors, names),
            "invariance": _answer_invariance(leaves, names, standard),
            "refused": _answer_refused(learner, search),
        },
        "model": _describe_model(learner, names),
        "tree": _describe_tree(model, leaves),
        "leaves": leaves,
        "invariance": _describe_standard(standard, names),
        "errors": errors,
        "search": search,
        "pruning": _describe_pruning(trace),
        "alpha_path": alpha_path and _describe_path(alpha_path, names),
        "notes": list(trace.notes),
        "meaning": _explain_meaning(trace, leaves, standard, names),
    }


# --- names and numbers ------------------------------------------------------


def as_text(name: Any) -> str:
    """A user's name on one line; nothing in it acts on what shows it."""
    return escape_controls(str(name))


def format_share(share: float | None) -> str:
    """A rate as a percentage; never rounded to 0 % or 100 % when it is not.

    >>> [format_share(each) for each in (0.1234, 0.0, 1.0, 0.00042, 0.99996, None)]
    ['12.3%', '0%', '100%', '0.042%', '99.996%', 'none']
    """
    if share is None:
        return "none"
    if share in (0.0, 1.0):
        return f"{share:.0%}"
    edge = min(share, 1.0 - share)
    if edge >= 0.001:
        return f"{share:.1%}"
    percent = float(f"{100 * edge:.2g}")
    return f"{percent:.10g}%" if share < 0.5 else f"{100 - percent:.10g}%"


def format_points(difference: float | None) -> str:
    """A difference of two rates in percentage points.

    >>> format_points(0.0512), format_points(0.0004), format_points(0.01), format_points(None)
    ('5.1 points', '0.04 points', '1 point', 'any number of points')
    """
    if difference is None:
        return "any number of points"
    points = 100 * difference
    text = f"{points:.2g}" if points < 1 else f"{points:.1f}".removesuffix(".0")
    return f"{text} point{'' if text == '1' else 's'}"


def _make_names(model: RuleSet, trace: Trace, target: str | None, environment: str | None) -> Names:
    texts = tuple(as_text(each) for each in trace.environments)
    if len(set(texts)) < len(texts):  # 1 and "1" are two environments
        texts = tuple(as_text(repr(each)) for each in trace.environments)
    negative, positive = map(as_text, trace.classes)
    return Names(
        target=as_text(target or "label"),
        environment=as_text(environment or "environment"),
        classes=(negative, positive),
        environments=texts,
        settled=int(model.settles_when),
    )


def _count(n: int, noun: str) -> str:
    """A number and its noun.

    >>> _count(1, "rule"), _count(1200, "leaf"), _count(3, "leaf")
    ('1 rule', '1,200 leaves', '3 leaves')
    """
    plural = "leaves" if noun == "leaf" else f"{noun}s"
    return f"{n:,} {noun if n == 1 else plural}"


def _compute_intervals(positives: Sequence[int], sizes: Sequence[int]) -> list[list[float] | None]:
    """Wilson's interval of each rate, the one that verdicts use; None without samples."""
    z = float(special.ndtri((1 + VERDICT_CONFIDENCE) / 2))
    low, high = compute_wilson(np.asarray(positives), np.asarray(sizes), z)
    ends = zip(sizes, low.tolist(), high.tolist(), strict=True)
    return [[start, end] if n else None for n, start, end in ends]


def _describe_rates(positives: Sequence[int], sizes: Sequence[int]) -> list[Plain]:
    intervals = _compute_intervals(positives, sizes)
    return [
        {
            "n": n,
            "n_positive": positive,
            "rate": positive / n if n else None,
            "rate_interval": interval,
        }
        for positive, n, interval in zip(positives, sizes, intervals, strict=True)
    ]


def _describe_rate(positives: int, n: int) -> Plain:
    return _describe_rates([positives], [n])[0]


def _describe_counts(counts: LeafCounts, names: Names) -> list[Plain]:
    """Rate and interval in each environment."""
    rates = _describe_rates(counts[1], _sum_labels(counts))
    return [
        {"environment": name, **rate} for name, rate in zip(names.environments, rates, strict=True)
    ]


def _sum_labels(counts: LeafCounts) -> list[int]:
    return [negative + positive for negative, positive in zip(*counts, strict=True)]


# --- what was asked ---------------------------------------------------------


def _describe_question(
    learner: Learner, names: Names, data_name: str | None, left_out: LeftOut | None
) -> Plain:
    totals = np.array(learner.model_.leaves, dtype=np.int64).sum(axis=0)
    pairs = left_out.items() if isinstance(left_out, Mapping) else left_out or ()
    return {
        "data": None if data_name is None else as_text(data_name),
        "n_rows": int(totals.sum()),
        "n_columns": int(learner.n_features_in_),
        "target": names.target,
        "environment": names.environment,
        "classes": {"negative": names.classes[0], "positive": names.classes[1]},
        "negative": names.negative,
        "positive": names.positive,
        "overall": _describe_rate(int(totals[1].sum()), int(totals.sum())),
        "n_environments": len(names.environments),
        "has_environments": _can_compare(learner.trace_),
        "environments": _describe_counts(totals.tolist(), names),
        "learner": type(learner).__name__,
        "settings": _describe_settings(learner),
        "left_out": [{"column": format_name(name), "reason": as_text(why)} for name, why in pairs],
    }


def _can_compare(trace: Trace) -> bool:
    return len(trace.environments) > 1


def _describe_settings(learner: Learner) -> list[Plain]:
    defaults = type(learner)().get_params()
    settings = [
        {
            "name": name,
            "value": _as_plain(value),
            "is_default": _as_plain(value) == _as_plain(defaults[name]),
            "meaning": MEANINGS.get(name, ""),
        }
        for name, value in learner.get_params(deep=False).items()
    ]
    order = {name: place for place, name in enumerate(MEANINGS)}
    settings.sort(key=lambda each: order.get(str(each["name"]), len(order)))
    used = getattr(learner, "alpha_", None)
    for setting in settings:
        if setting["name"] == "alpha" and setting["value"] == "auto" and used is not None:
            setting["value"] = f"auto ({used:.4g})"
    return settings


def _as_plain(value: Any) -> Any:
    """A setting's value as JSON knows it; what is long or strange is only named."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return as_text(value)
    if isinstance(value, Mapping | Sequence | np.ndarray):
        return f"given for {len(value):,} columns"
    return as_text(type(value).__name__)


# --- the model --------------------------------------------------------------


def _describe_model(learner: Learner, names: Names) -> Plain:
    model = learner.model_
    importances = learner.rule_importances_.tolist()
    return {
        "kind": model.kind,
        "text": str(model),
        "sentence": make_sentence(model, names),
        "missing": _explain_missing(model),
        "n_rules": len(model),
        "features": [format_name(each) for each in learner.features_used_],
        "rules": [
            {
                "number": i + 1,
                "text": str(rule),
                "feature": format_name(rule.feature),
                "importance": importances[i],
                "n_settled": count_samples(model.leaves[i]),
                "equivalent": [str(other) for other in learner.equivalent_rules_[i]],
            }
            for i, rule in enumerate(model.rules)
        ],
    }


def _explain_missing(model: RuleSet) -> str | None:
    """What the words on missing values in the rules mean; None where there are none."""
    if all(getattr(rule, "missing", None) is None for rule in model.rules):
        return None
    return (
        '"missing: true" means that a missing value counts as fulfilling the rule, '
        '"missing: false" that it does not.'
    )


def make_sentence(model: RuleSet, names: Names) -> str:
    """The whole rule in words."""
    if not model.rules:
        always = names.predict(not model.settles_when)
        return f"Always predict {always}: no rule was found."
    verb = " or " if model.settles_when else " and "
    return (
        f"Predict {names.positive} when {verb.join(map(str, model.rules))}; "
        f"otherwise {names.negative}."
    )


def _describe_tree(model: RuleSet, leaves: Sequence[Plain]) -> Plain:
    """Nodes and leaves of the single branch; `exit` is the answer that ends at the leaf."""
    exit_answer, onward = ("yes", "no") if model.settles_when else ("no", "yes")
    kept = "number", "predicts", "is_positive", "n", "n_positive", "rate", "conclusion"
    return {
        "exit": exit_answer,
        "onward": onward,
        "nodes": [
            {"number": i + 1, "rule": str(rule), "leaf": i + 1}
            for i, rule in enumerate(model.rules)
        ],
        "leaves": [{key: leaf[key] for key in kept} for leaf in leaves],
    }


# --- leaves -----------------------------------------------------------------


def _find_standard(learner: Learner) -> Standard:
    """The learner's own standard, or the usual one where it tests nothing itself."""
    trace = learner.trace_
    if not _can_compare(trace):
        return Standard(None, DEFAULT_MARGIN, "rate", afterwards=False)
    if isinstance(learner, SCMClassifier) or trace.alpha is None:
        return Standard(AFTERWARDS_ALPHA, DEFAULT_MARGIN, "rate", afterwards=True)
    return Standard(trace.alpha, learner.margin, learner.margin_on, afterwards=False)


def _judge(model: RuleSet, trace: Trace, standard: Standard) -> Sequence[Verdict | None]:
    """The search's own verdicts, or those of Pearson's test where it made none."""
    if standard.alpha is None:
        return [None] * len(model.leaves)
    if trace.verdicts:
        return trace.verdicts
    return make_verdicts(model.leaves, make_test("chi2"), standard.alpha, standard.margin)


def _describe_leaves(
    model: RuleSet, names: Names, verdicts: Sequence[Verdict | None], standard: Standard
) -> list[Plain]:
    return [
        _describe_leaf(model, names, number, verdict, standard)
        for number, verdict in enumerate(verdicts)
    ]


def _describe_leaf(
    model: RuleSet, names: Names, number: int, verdict: Verdict | None, standard: Standard
) -> Plain:
    counts = model.leaves[number]
    is_positive = model.settles_when == (number < len(model.rules))
    leaf = {
        "number": number + 1,
        "condition": _describe_condition(model, number),
        "is_rest": number == len(model.rules),
        "predicts": names.predict(is_positive),
        "is_positive": is_positive,
        **_describe_rate(sum(counts[1]), count_samples(counts)),
        "environments": _describe_counts(counts, names),
        **_find_extremes(counts, names),
        **_describe_verdict(verdict),
    }
    leaf["explanation"] = _explain_leaf(leaf, names, standard)
    return leaf


def _describe_condition(model: RuleSet, number: int) -> str:
    """What brings a sample into this leaf, given that it came to its node."""
    if not model.rules:
        return "every sample"
    if number == len(model.rules):
        return "no rule is true" if model.settles_when else "every rule is true"
    rule = model.rules[number]
    return str(rule if model.settles_when else rule.negate())


def _find_extremes(counts: LeafCounts, names: Names) -> Plain:
    """The environments of lowest and highest rate, None without samples."""
    seen = [
        {"environment": name, "n": n, "rate": positive / n}
        for name, n, positive in zip(
            names.environments, _sum_labels(counts), counts[1], strict=True
        )
        if n
    ]
    return {
        "n_seen": len(seen),
        "lowest": min(seen, key=_get_rate, default=None),
        "highest": max(seen, key=_get_rate, default=None),
    }


def _get_rate(each: Plain) -> float:
    rate: float = each["rate"]
    return rate


def _describe_verdict(verdict: Verdict | None) -> Plain:
    """The verdict's fields that are not rates; all None where nothing was judged."""
    keys = "conclusion", "p_value", "difference", "difference_interval", "detectable"
    fields = {} if verdict is None else verdict.to_dict()
    return {key: fields.get(key) for key in keys}


def _explain_leaf(leaf: Plain, names: Names, standard: Standard) -> str:
    """What the numbers of a leaf say, in sentences."""
    if leaf["conclusion"] is None:
        return "Nothing to compare: the data name no environments."
    if leaf["difference"] is None:
        return (
            f"Only {_count(leaf['n_seen'], names.environment)} has samples here, so that there is "
            "nothing to compare."
        )
    lowest, highest = leaf["lowest"], leaf["highest"]
    spread = (
        f"The rate of {names.positive} lies between {format_share(lowest['rate'])} "
        f"({names.place(lowest)}) and {format_share(highest['rate'])} "
        f"({names.place(highest)})."
    )
    return f"{spread} {_explain_conclusion(leaf, standard)}"


def _explain_conclusion(leaf: Plain, standard: Standard) -> str:
    possible = format_points(leaf["difference_interval"][1])
    margin = _format_margin(standard)
    if leaf["conclusion"] == INVARIANT:
        if standard.margin_on == "odds_ratio":
            return f"The data rule out a shift beyond the margin, {margin}."
        return (
            f"The data rule out a difference of more than {possible}, which is inside the "
            f"margin of {margin}."
        )
    if leaf["conclusion"] == NOT_INVARIANT:
        return (
            f"If the label did not depend on the environment here, a shift this large would "
            f"come about by chance with probability {format_p(leaf['p_value'])}."
        )
    seen = (
        "the test could not have seen any"
        if leaf["detectable"] is None
        else f"the test would likely have seen {format_points(leaf['detectable'])}"
    )
    return (
        f"That may be chance; but a true difference of up to {possible} is still possible, "
        f"and {seen}."
    )


def _format_margin(standard: Standard) -> str:
    if standard.margin_on == "odds_ratio":
        return f"an odds ratio of {standard.margin:g}"
    return format_points(standard.margin)


def _describe_standard(standard: Standard, names: Names) -> Plain:
    alpha = standard.alpha
    return {
        "alpha": alpha,
        "margin": standard.margin,
        "margin_on": standard.margin_on,
        "margin_text": _format_margin(standard),
        "afterwards": standard.afterwards,
        "confidence": VERDICT_CONFIDENCE,
        "difference_confidence": None if alpha is None else max(1 - 2 * alpha, 0.0),
        "power": VERDICT_POWER,
        "conclusions": CONCLUSIONS,
        "null_hypothesis": (
            f"within this leaf, {names.target} does not depend on {names.environment}. A small "
            "p-value speaks against that, and so against invariance; a large one does not prove it."
        ),
    }


# --- errors -----------------------------------------------------------------


def _describe_errors(model: RuleSet, names: Names) -> Plain:
    """Errors from the leaves' counts: for the training data these are exact."""
    counts = np.array(model.leaves, dtype=np.int64)
    is_rest = np.arange(len(counts)) == len(model.rules)
    is_positive = is_rest != model.settles_when
    # by (label, environment): samples in all, and those whose leaf predicts their label
    totals = counts.sum(axis=0)
    right = np.stack((counts[~is_positive, 0].sum(axis=0), counts[is_positive, 1].sum(axis=0)))
    majority = int(2 * totals[1].sum() > totals.sum())
    environments = [
        {"environment": name, **_describe_error(totals[:, k], right[:, k], majority)}
        for k, name in enumerate(names.environments)
    ]
    seen = [each for each in environments if each["n"]]
    return {
        "on": "the training data",
        **_describe_error(totals.sum(axis=1), right.sum(axis=1), majority),
        "majority_class": names.predict(bool(majority)),
        "environments": environments,
        "worst": max(seen, key=lambda each: each["error"]) if len(seen) > 1 else None,
    }


def _describe_error(totals: NDArray[np.int64], right: NDArray[np.int64], majority: int) -> Plain:
    """Error, and how many of each label are found, from samples and right ones by label."""
    n, wrong = int(totals.sum()), int((totals - right).sum())
    found = [int(r) / int(t) if t else None for r, t in zip(right, totals, strict=True)]
    return {
        "n": n,
        "n_errors": wrong,
        "error": wrong / n if n else None,
        "error_interval": _compute_intervals([wrong], [n])[0],
        "sensitivity": found[1],
        "specificity": found[0],
        "majority_error": int(totals[1 - majority]) / n if n else None,
    }


# --- the search -------------------------------------------------------------


def _describe_search(learner: Learner, names: Names) -> Plain:
    trace = learner.trace_
    kept = set(learner.model_.rules)
    last = trace.last_look
    return {
        "stop_reason": trace.stop_reason,
        "stop_text": trace.stop_text,
        "alpha": trace.alpha,
        "is_tested": trace.alpha is not None,
        "is_exhaustive": bool(trace.sets),
        "steps": [
            {
                "number": number,
                "rule": str(step.chosen.rule),
                "in_model": step.chosen.rule in kept,
                **_describe_candidate(step.chosen, names),
                "n_remaining": count_samples(step.remaining),
                "p_value_remaining": step.p_value_remaining,
                "n_tied": step.n_tied,
                "n_equivalent": len(step.equivalent),
                "look": _describe_look(step.look, names),
            }
            for number, step in enumerate(trace.steps, start=1)
        ],
        "last_look": last and _describe_look(last, names),
        "nearest": [_describe_refusal(each, names) for each in trace.nearest],
        "screening": [
            {"rule": str(each.rule), "statistic": each.statistic, "p_value": each.p_value}
            for each in trace.screening
        ],
        "sets": [
            {
                "features": [format_name(each) for each in test.features],
                "p_value": test.p_value,
                "accepted": test.accepted,
            }
            for test in trace.sets
        ],
        "suggestions": [] if kept else _suggest(learner),
    }


def _describe_look(look: Look, names: Names) -> Plain:
    return {
        "n_candidates": look.n_candidates,
        "n_refused": dict(look.n_refused),
        "n_refused_all": sum(look.n_refused.values()),
        "cutoff": look.cutoff,
        "refused": [_describe_refusal(each, names) for each in look.best_refused],
    }


def _describe_refusal(refusal: Refusal, names: Names) -> Plain:
    fields = _describe_candidate(refusal.candidate, names)
    return {
        "rule": str(refusal.candidate.rule),
        **fields,
        "reason": refusal.reason,
        "why": _explain_refusal(refusal.reason, fields, names),
    }


def _describe_candidate(candidate: Any, names: Names) -> Plain:
    """Utility, test and counts of a candidate, and between which environments it differs most."""
    return {
        "utility": float(candidate.utility),
        "n": count_samples(candidate.leaf),
        "n_right": sum(candidate.leaf[names.settled]),
        "n_wrong": sum(candidate.leaf[1 - names.settled]),
        "counts": [list(row) for row in candidate.leaf],
        **_find_extremes(candidate.leaf, names),
        **_describe_verdict(candidate.verdict),
        "p_value": candidate.p_value,
    }


def _explain_refusal(reason: str, fields: Plain, names: Names) -> str:
    if reason == "small":
        return "too few samples in its leaf, or left after it"
    if fields["conclusion"] == TOO_LITTLE_DATA:
        return "too little data to show that the label is the same in every environment"
    lowest, highest = fields["lowest"], fields["highest"]
    if lowest is None or fields["n_seen"] < 2:
        return "the label's rate shifts between environments"
    return (
        f"the rate of {names.positive} shifts, from {format_share(lowest['rate'])} "
        f"({names.place(lowest)}) to {format_share(highest['rate'])} ({names.place(highest)})"
    )


def _suggest(learner: Learner) -> list[str]:
    """What to try when there is no rule."""
    trace = learner.trace_
    last = trace.last_look
    found = _SUGGESTIONS.get(trace.stop_reason, ())
    if last is None or trace.alpha is None:
        return list(found)
    suggestions = []
    if trace.nearest and trace.nearest[0].candidate.p_value is not None:
        p = trace.nearest[0].candidate.p_value
        suggestions.append(
            f"The nearest miss has p = {format_p(p)}, and rules are refused up to "
            f"{last.cutoff or trace.alpha:.3g}. A smaller alpha refuses fewer rules; choose it "
            "before looking, since a level chosen to let a rule pass is no evidence for it."
        )
    if last.n_refused.get("small", 0):
        suggestions.append(
            f"{_count(last.n_refused['small'], 'candidate')} had too few samples: lower "
            "min_samples_leaf, or bring more data."
        )
    if last.n_refused.get("dependent", 0):
        suggestions += _suggest_for_dependent(getattr(learner, "criterion", "pvalue"))
    return [*suggestions, *found]


def _suggest_for_dependent(criterion: str) -> list[str]:
    advice = [
        "Look at the environments: do they differ in how the label is recorded? Environments that "
        "act on the label itself leave no rule invariant. Compare others (years, regions, sites).",
        "A column that matters may be absent from the data: a hidden common cause makes every "
        "rule shift.",
    ]
    if criterion == "equivalence":
        return [
            "Equivalence must be shown, which takes many samples in every environment: widen the "
            "margin, join small environments, or use criterion='pvalue'.",
            *advice,
        ]
    return [
        "With very many samples trivial shifts are refused too: criterion='equivalence' accepts "
        "those inside a margin that you state.",
        "With few samples, search='exhaustive' tests whole sets of rules and needs less data.",
        *advice,
    ]


_SUGGESTIONS = {
    "all_rejected": (
        "Every set of the screened rules was rejected: some cause is not among the columns, or "
        "the environments act on the label itself. Try other environments, more columns, or a "
        "larger n_candidates.",
    ),
    "empty_intersection": (
        "Several sets explain the data and share no rule: the environments change too little to "
        "tell the sets apart. Add environments, or more samples.",
    ),
    "nothing_associated": (
        "No column goes with the label strongly enough to be looked at. More samples or other "
        "columns are needed.",
    ),
    "no_candidate": ("The other model_type, conjunction or disjunction, may fit better.",),
}


def _describe_pruning(trace: Trace) -> Plain:
    return {
        "removed": [format_name(test.feature) for test in trace.pruning if test.removed],
        "tests": [
            {
                "round": test.round,
                "feature": format_name(test.feature),
                "statistic": test.statistic,
                "dof": test.dof,
                "p_value": test.p_value,
                "removed": test.removed,
            }
            for test in trace.pruning
        ],
    }


# --- models along alpha -----------------------------------------------------


def _describe_path(path: AlphaPath, names: Names) -> Plain:
    models = [_describe_path_model(each, path, names, i) for i, each in enumerate(path.models)]
    return {
        "own_alpha": path.own_alpha,
        "n_searches": len(path.alphas),
        "seconds": path.seconds,
        "models": models,
    }


def _describe_path_model(each: AlphaModel, path: AlphaPath, names: Names, number: int) -> Plain:
    """One model: all that does not depend on the level, and what was concluded at each."""
    model = each.model
    judged = [trace.verdicts for trace in each.traces]
    # the margin matters only to the explanation, which is not shown here
    leaves = _describe_leaves(model, names, judged[0], Standard(None, 0.0, "rate", False))
    dropped = "environments", "explanation", "conclusion", "detectable", "difference_interval"
    errors = _describe_errors(model, names)
    compact = [{k: v for k, v in leaf.items() if k not in dropped} for leaf in leaves]
    return {
        "name": _name_model(number),
        "alpha_from": each.alpha_from,
        "alpha_to": each.alpha_to,
        "is_own": path.own_alpha in each.alphas,
        "text": str(model),
        "sentence": make_sentence(model, names),
        "n_rules": len(model),
        "tree": _describe_tree(model, [{**leaf, "conclusion": None} for leaf in leaves]),
        "leaves": compact,
        "errors": {key: errors[key] for key in ("error", "n_errors", "n", "worst")},
        "levels": [
            {
                "alpha": alpha,
                "is_own": alpha == path.own_alpha,
                "stop_text": trace.stop_text,
                "conclusions": count_conclusions(verdicts),
            }
            for alpha, trace, verdicts in zip(each.alphas, each.traces, judged, strict=True)
        ],
    }


def count_conclusions(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """How many leaves came to each conclusion, those that occur, the best first."""
    found = [verdict.conclusion for verdict in verdicts]
    return {each: found.count(each) for each in CONCLUSIONS if each in found}


def _name_model(number: int) -> str:
    """A, B, .., Z, A2, B2, ..

    >>> _name_model(0), _name_model(25), _name_model(26)
    ('A', 'Z', 'A2')
    """
    turn, letter = divmod(number, 26)
    return "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[letter] + (str(turn + 1) if turn else "")


# --- the four answers -------------------------------------------------------


def _make_title(model: RuleSet, trace: Trace, names: Names) -> str:
    if trace.alpha is None:
        return "A rule that was not asked to hold in every environment"
    if not model.rules:
        return f"No rule was found that holds in every {names.environment}"
    return f"A rule that was tested in every {names.environment}"


def _answer_rule(model: RuleSet, names: Names) -> Plain:
    detail = {
        0: "No rule passed. What was tried, and what to try next, is told below.",
        1: "A single rule.",
    }.get(len(model), f"{len(model)} rules, asked in this order.")
    return {
        "question": "What is the rule?",
        "answer": make_sentence(model, names),
        "detail": detail,
    }


def _answer_error(errors: Plain, names: Names) -> Plain:
    worst = errors["worst"]
    at_worst = (
        f" At worst, in {names.place(worst)}, for {format_share(worst['error'])}." if worst else ""
    )
    return {
        "question": "How good is it?",
        "answer": f"Wrong for {format_share(errors['error'])} of {_count(errors['n'], 'sample')}",
        "detail": (
            f"Always saying {errors['majority_class']} would be wrong for "
            f"{format_share(errors['majority_error'])}.{at_worst} These are the training data; "
            "expect somewhat more errors on new ones."
        ),
    }


def _answer_invariance(leaves: Sequence[Plain], names: Names, standard: Standard) -> Plain:
    question = f"Does it hold in every {names.environment}?"
    if standard.alpha is None:
        return {
            "question": question,
            "conclusion": None,
            "answer": "Not tested",
            "detail": "The data name no environments, so that there is nothing to compare.",
        }
    if len(leaves) == 1:
        return {
            "question": question,
            "conclusion": leaves[0]["conclusion"],
            "answer": "There is no rule to judge",
            "detail": f"Among all samples: {leaves[0]['explanation']}",
        }
    found = [leaf["conclusion"] for leaf in leaves]
    counts = {each: found.count(each) for each in CONCLUSIONS}
    worst = next(each for each in (NOT_INVARIANT, TOO_LITTLE_DATA, INVARIANT) if counts[each])
    n = len(leaves)
    answer = {
        NOT_INVARIANT: f"Not everywhere: {_of(counts[NOT_INVARIANT], n)} not invariant",
        TOO_LITTLE_DATA: f"Cannot be told for {_of(counts[TOO_LITTLE_DATA], n)}",
        INVARIANT: "Yes, as far as these data can tell",
    }[worst]
    each = ", ".join(f"{counts[key]} {key}" for key in CONCLUSIONS if counts[key])
    note = " The search itself did not look at environments." if standard.afterwards else ""
    return {
        "question": question,
        "conclusion": worst,
        "answer": answer,
        "detail": (
            f"Of the {n} groups (leaves) that the rule sorts samples into: {each}. "
            f"{CONCLUSIONS[worst]} Margin "
            f"{_format_margin(standard)}, level {standard.alpha:g}.{note}"
        ),
    }


def _of(n: int, total: int) -> str:
    return f"{n} of {_count(total, 'leaf')}"


def _answer_refused(learner: Learner, search: Plain) -> Plain:
    question = "What was refused?"
    if not search["is_tested"]:
        why = (
            "The plain set covering machine tests nothing"
            if isinstance(learner, SCMClassifier)
            else "Without environments nothing can be tested"
        )
        return {"question": question, "answer": "Nothing", "detail": f"{why}."}
    if search["is_exhaustive"]:
        return _answer_rejected_sets(question, search["sets"])
    looks = [step["look"] for step in search["steps"]] + [search["last_look"]]
    look = next((each for each in looks if each), None)
    if look is None or not look["n_refused_all"]:
        return {
            "question": question,
            "answer": "Nothing at the first step",
            "detail": "No candidate rule was refused there.",
        }
    best = next((each for each in look["refused"]), None)
    detail = "" if best is None else f"The most useful of them, {best['rule']}: {best['why']}."
    return {
        "question": question,
        "answer": (
            f"{look['n_refused_all']:,} of {_count(look['n_candidates'], 'candidate rule')} "
            "at the first step"
        ),
        "detail": detail,
    }


def _answer_rejected_sets(question: str, sets: Sequence[Plain]) -> Plain:
    n_rejected = sum(not each["accepted"] for each in sets)
    return {
        "question": question,
        "answer": f"{n_rejected:,} of {_count(len(sets), 'set')} of rules",
        "detail": (
            "In a rejected set's leaves the label still depends on the environment. The model "
            "is what all accepted sets share."
        ),
    }


# --- what it means ----------------------------------------------------------


def _explain_meaning(
    trace: Trace, leaves: Sequence[Plain], standard: Standard, names: Names
) -> Plain:
    return {
        "says": _explain_says(trace, names),
        "does_not_say": [
            "It is no proof of cause. Invariance is evidence of cause only if the environments act "
            "on the columns but not directly on the label, no hidden cause acts on both, and the "
            "label follows a noisy conjunction (or disjunction) of rules on its causes.",
            "With little data weak tests let rules on effects pass; with a great deal they refuse "
            "rules for trivial differences. The detectable difference of each leaf tells which.",
            "A cause that the environments leave untouched gives no sign of itself.",
            "The errors are those on the data that the rule was learned from. How it does in an "
            "environment not seen is another question: leave_one_environment_out asks it.",
        ],
        "here": _explain_case(trace, leaves, standard),
    }


def _explain_says(trace: Trace, names: Names) -> list[str]:
    if trace.alpha is None:
        return [
            "The rule describes these data as well as the search could. Nothing was asked about "
            "environments while it was learned: a column that is an effect of the label, or a "
            "mark of one environment, may well be in it.",
        ]
    return [
        f"The null hypothesis of every test is: {names.target} does not depend on "
        f"{names.environment} in this leaf. A rule in the model was not refused at level "
        f"{trace.alpha:g}: it is invariant across these environments as far as this many samples "
        "can tell.",
        "A refused rule is one under which the label's rate was seen to shift between "
        "environments, or not shown to stay.",
    ]


def _explain_case(trace: Trace, leaves: Sequence[Plain], standard: Standard) -> list[str]:
    """Warnings that this very result calls for."""
    found = []
    is_incomplete = len(leaves) > 1 and leaves[-1]["conclusion"] == NOT_INVARIANT
    if trace.alpha is not None and is_incomplete:
        found.append(
            "The samples that no rule settles still depend on the environment: by the method's "
            "own criterion the rule is incomplete, and a cause may be absent from the columns."
        )
    n_blind = sum(leaf["conclusion"] == TOO_LITTLE_DATA for leaf in leaves)
    if n_blind:
        found.append(
            f"{_of(n_blind, len(leaves))} had too little data to tell: there the rule was not "
            "refuted, which is less than shown to hold."
        )
    if standard.afterwards:
        found.append(
            f"The leaves were judged afterwards, with Pearson's test at {standard.alpha:g}; they "
            "had no say in the search."
        )
    return found
