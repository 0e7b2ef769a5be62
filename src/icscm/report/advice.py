"""What a result says and does not say, what to mind in it, and what to try where it is empty."""

from __future__ import annotations

from collections.abc import Sequence

from icscm.exceptions import Parameter, Words
from icscm.formatting import count
from icscm.model.learner import Learner
from icscm.report.steps import list_looks
from icscm.report.words import Names, Plain, format_p
from icscm.stats.verdicts import NOT_INVARIANT, TOO_LITTLE_DATA

# A level below this refuses next to nothing, so that it is no advice.
_WORTH_A_TRY = 1e-4


def explain_meaning(
    learner: Learner,
    leaves: Sequence[Plain],
    errors: Plain,
    standard: Plain,
    names: Names,
    stability: Plain | None,
) -> Plain:
    """What the result says and what it does not, in sentences."""
    is_shown = learner.get_params(deep=False).get("criterion") == "equivalence"
    return {
        "says": _explain_says(learner.trace_.alpha, names, standard if is_shown else None),
        "does_not_say": [
            "It is no proof of cause. Invariance is evidence of cause only if the environments act "
            "on the columns but not directly on the label, no hidden cause acts on both, and the "
            "label follows a noisy conjunction (or disjunction) of rules on its causes.",
            "With little data weak tests let rules on effects pass; with a great deal they refuse "
            "rules for trivial differences. The detectable difference of each leaf tells which.",
            "A cause that the environments leave untouched gives no sign of itself.",
            "The errors are those on the data that the rule was learned from. How it does in an "
            "environment not seen is another question: in Python, "
            "icscm.leave_one_environment_out asks it.",
        ],
        "here": [
            *_list_cautions(learner, leaves, standard),
            *_name_contrary(errors),
            *_name_unstable(learner, stability),
        ],
    }


def _explain_says(alpha: float | None, names: Names, shown: Plain | None) -> list[str]:
    if alpha is None:
        return [
            "The rule describes these data as well as the search could. Nothing was asked about "
            "environments while it was learned: a column that is an effect of the label, or a "
            "mark of one environment, may well be in it."
        ]
    told = (
        f"The null hypothesis of every test is: {names.target} does not depend on "
        f"{names.environment} in this leaf. A rule in the model was not refused at level "
        f"{alpha:g}: it is invariant across these environments as far as this many samples "
        "can tell."
    )
    if shown is not None:
        told = (
            f"Of a rule in the model it was shown, at level {alpha:g}, that the rate of "
            f"{names.positive} in its leaf differs by at most {shown['margin_text']} between any "
            "two of these environments."
        )
    return [
        told,
        "A refused rule is one under which the label's rate was seen to shift between "
        "environments, or not shown to stay.",
    ]


def _list_cautions(learner: Learner, leaves: Sequence[Plain], standard: Plain) -> list[str]:
    """Warnings that this very result calls for."""
    found = []
    is_incomplete = len(leaves) > 1 and leaves[-1]["conclusion"] == NOT_INVARIANT
    if learner.trace_.alpha is not None and is_incomplete:
        found.append(
            "The samples that no rule settles still depend on the environment: by the method's "
            "own criterion the rule is incomplete, and a cause may be absent from the columns."
        )
    n_blind = sum(leaf["conclusion"] == TOO_LITTLE_DATA for leaf in leaves)
    if n_blind and len(leaves) > 1:
        found.append(
            f"{n_blind} of {count(len(leaves), 'leaf')} had too little data to tell: there the "
            "rule was not refuted, which is less than shown to hold."
        )
    if standard["afterwards"]:
        found.append(
            f"The leaves were judged afterwards, with Pearson's test at {standard['alpha']:g}; "
            "they had no say in the search."
        )
    if standard["alpha"] is not None:
        found += [_name_uncompared(learner, leaf) for leaf in leaves if leaf["n_seen"] == 1]
    return found


def _name_uncompared(learner: Learner, leaf: Plain) -> str:
    """Of a leaf of one environment: its p-value is 1 by definition, which reads like evidence."""
    told = f"of one environment only, {leaf['lowest']['environment']}: nothing could be compared"
    if leaf["is_rest"]:
        return f"The samples that no rule settles are {told} there."
    rule = learner.model_.rules[leaf["number"] - 1]
    return f"{rule} settles rows {told} there; such a rule may be a mark of the site."


def _name_contrary(errors: Plain) -> list[str]:
    """Where prediction and probability disagree."""
    if not errors["n_contrary"]:
        return []
    numbers = ", ".join(map(str, errors["contrary_leaves"]))
    return [
        f"For {errors['n_contrary']:,} of {count(errors['n'], 'sample')} the probability leans the "
        f"other way than the prediction: leaf {numbers} holds more of the class that it does not "
        "predict."
    ]


def _name_unstable(learner: Learner, stability: Plain | None) -> list[str]:
    """Of a model that halves of the samples mostly do not give."""
    if stability is None or stability["model_frequency"] >= 0.5:
        return []
    what = "this rule is" if learner.model_.rules else "finding no rule is"
    return [
        f"Halves of the samples mostly give another model, as told below: {what} one answer of "
        "several that these data allow."
    ]


def suggest(learner: Learner, search: Plain, errors: Plain, words: Words) -> list[str]:
    """What might lead to a better rule where there is none, or one that is worth nothing."""
    if learner.model_.rules:
        return [] if errors["beats_majority"] else _suggest_for_worse(learner, words)
    settings = learner.get_params(deep=False)
    turned = _suggest_other_type(settings, words)
    if not search["is_tested"]:
        return [turned, "Other columns: of these none settles samples rightly."]
    compared = f"{words(Parameter('SCMClassifier'))}: the best rule without invariance, to compare."
    if learner.trace_.discarded is not None:
        return [*_suggest_for_set_aside(settings, words), turned, compared]
    checkup = words(Parameter("icscm.studies.checkup.check_environments"))
    if search["decided_by"] == "sets":
        found = [*_suggest_for_sets(search, settings, words), turned]
    else:
        found = [turned]
        nearest = next((each["p_value"] for each in search["nearest"]), None)
        if nearest is not None and search["decided_by"] != "margin":
            found.insert(nearest < _WORTH_A_TRY, _describe_nearest(search, nearest, words))
        found += _suggest_for_refused(search, settings, words)
    return [
        *found,
        f"{checkup}: columns that give the environment away, environments to merge.",
        compared,
    ]


def _suggest_other_type(settings: Plain, words: Words) -> str:
    kinds = "conjunction", "disjunction"
    other = words(Parameter("model_type", kinds[settings["model_type"] == kinds[0]]))
    return f"{other}: its rules settle the other label."


def _suggest_for_worse(learner: Learner, words: Words) -> list[str]:
    """Where a rule is wrong at least as often as always saying the same."""
    settings = learner.get_params(deep=False)
    found = [_suggest_other_type(settings, words)]
    if settings["p"] != 1:
        found.append(
            f"p is {settings['p']}, so that errors of one kind weigh more: judge the rule by its "
            f"sensitivity and specificity, or use {words(Parameter('p', 1))}."
        )
    if settings.get("min_utility", 0) is None:
        found.append(
            f"{words(Parameter('min_utility', 0))} refuses rules that make the model worse."
        )
    chosen = words(Parameter("icscm.studies.choice.choose"))
    return [*found, f"{chosen}: what does best on rows that were held out."]


def _suggest_for_set_aside(settings: Plain, words: Words) -> list[str]:
    tree = words(Parameter("InvariantTreeClassifier"))
    found = [f"{tree}: asks that effects be alike everywhere, while each environment has its rate."]
    if settings["criterion"] == "pvalue":
        margin = words(Parameter("criterion", "equivalence"))
        found.append(f"{margin}, with a margin: rates that differ by less count as the same.")
    if settings["p"] != "balanced":
        found.append(
            f"{words(Parameter('p', 'balanced'))}: both classes weigh the same, whatever their "
            "sizes; rules that find many of the rarer class are then kept though always saying "
            "the other is less often wrong."
        )
    kept = words(Parameter("min_utility", None))
    return [*found, f"{kept}: the rules as they were found, whatever they are worth."]


def _describe_nearest(search: Plain, p_value: float, words: Words) -> str:
    """The refused rule, or set, that came nearest, and whether a smaller level is worth a try."""
    alpha = words(Parameter("alpha"))
    cutoff = (search["last_look"] or {}).get("cutoff") or search["alpha"]
    what = "sets are rejected" if search["decided_by"] == "sets" else "rules are refused"
    told = f"The nearest miss has p = {format_p(p_value)}, and {what} up to {cutoff:.3g}"
    if p_value < _WORTH_A_TRY:
        return f"{told}: no smaller {alpha} is worth a try."
    return (
        f"{told}. A smaller {alpha} refuses fewer; choose it before looking, since a level "
        "chosen to let a rule pass is no evidence for it."
    )


def _suggest_for_refused(search: Plain, settings: Plain, words: Words) -> list[str]:
    """What might let refused candidates pass."""
    n_refused = (search["last_look"] or {}).get("n_refused", {})
    found = []
    if n := n_refused.get("small"):
        found.append(
            f"{count(n, 'candidate')} had too few samples: lower "
            f"{words(Parameter('min_samples_leaf'))}, or bring more data."
        )
    if n := n_refused.get("unreplicated"):
        found.append(
            f"{count(n, 'candidate')} lay in too few environments to be compared: environments "
            f"that have more in common would tell. {words(Parameter('min_replication', 0))} lets "
            "them in, but such a rule may be a mark of the site."
        )
    if n := n_refused.get("unhelpful"):
        found.append(
            f"{count(n, 'candidate')} passed the test and would settle too many samples wrongly: a "
            f"smaller {words(Parameter('p'))} (here {settings['p']}) weighs those less."
        )
    if not n_refused.get("dependent"):
        return found
    if search["decided_by"] == "margin":
        found.append(
            "Equivalence must be shown, which takes many samples in every environment: widen the "
            f"margin, join small environments, use a larger {words(Parameter('alpha'))} (less "
            f"proof is asked for), or {words(Parameter('criterion', 'pvalue'))}."
        )
    else:
        found += [
            "With very many samples trivial shifts are refused too: "
            f"{words(Parameter('criterion', 'equivalence'))} accepts those inside a margin that "
            "you state.",
            f"With few samples {words(Parameter('search', 'exhaustive'))}, best with "
            f"{words(Parameter('alpha', 'auto'))}, tests whole sets of rules and needs less data.",
        ]
    return [
        *found,
        "Look at the environments: do they differ in how the label is recorded? Environments that "
        "act on the label itself leave no rule invariant. Compare others (years, regions, sites).",
        "A column that matters may be absent from the data: a hidden common cause makes every "
        "rule shift.",
    ]


def _suggest_for_sets(search: Plain, settings: Plain, words: Words) -> list[str]:
    """What might help the exhaustive search: more accepted sets share less, not more."""
    more = words(Parameter("n_candidates"))  # none on the command line
    if search["stop_reason"] == "all_rejected":
        return [
            _describe_nearest(search, search["sets"][0]["p_value"], words),
            "Every set of the screened rules was rejected: some cause is not among the columns, or "
            "the environments act on the label itself. Try other environments or more columns"
            f"{f', or a larger {more}' if more else ''}.",
        ]
    if search["stop_reason"] == "empty_intersection":
        return [
            "Several sets explain the data and share no rule: the environments change too little "
            "to tell the sets apart. Add environments, or more samples.",
            f"A larger {words(Parameter('alpha'))} rejects more sets, and fewer share more (a "
            "smaller one makes it worse); what is found is wrong in up to that share of the runs.",
        ]
    asked = [
        words(Parameter(name))
        for name, least in (("min_samples_leaf", 1), ("min_replication", 0))
        if settings[name] > least
    ]
    lower = f" Rules are also kept out by {' and '.join(asked)}." if asked else ""
    return [
        "No column goes with the label strongly enough to be looked at. More samples or other "
        f"columns are needed; {words(Parameter('alpha'))} has no say in it.{lower}"
    ]


def explain_alpha(search: Plain) -> Plain:
    """What a larger level does, and what the smallest and the largest tried do."""
    told = {
        "sets": (
            "A larger one rejects more sets of rules; the fewer are accepted, the more they share.",
            ("fewer sets rejected", "more rejected"),
        ),
        "margin": (
            "A larger one asks for less proof, so that fewer rules are refused.",
            ("more rules refused", "fewer refused"),
        ),
    }
    by_p = "A larger one refuses more rules, a smaller one fewer."
    meaning, ends = told.get(search["decided_by"], (by_p, ("fewer rules refused", "more refused")))
    return {"meaning": meaning, "ends": list(ends)}


def explain_tests(search: Plain, standard: Plain) -> str:
    """What the p-values in a table of steps mean, and what decided."""
    decided, cutoffs = search["decided_by"], [look["cutoff"] for look in list_looks(search)]
    asked = "p leaf: is the label independent of the environment among the rows that the rule "
    rest = "p rest: the same for the rows that remain."
    above = f"above {search['alpha']:g}."
    if decided == "sets":
        return (
            f"{asked}settles? {rest} p of a set: in all leaves of its rules together; accepted if "
            f"{above} The model is what all accepted sets share."
        )
    if decided == "margin":
        return (
            f"{asked}settles? {rest} They decide nothing here: a rule is refused unless shown, at "
            f"level {search['alpha']:g}, to differ by at most {standard['margin_text']} between "
            "environments."
        )
    if decided != "p-values" and cutoffs:
        ends = list(dict.fromkeys(f"{each:.2g}" for each in (min(cutoffs), max(cutoffs))))
        above = f"above {' to '.join(ends)}: {search['alpha']:g}, corrected ({decided})."
    return f"{asked}settles? Refused unless {above} {rest}"
