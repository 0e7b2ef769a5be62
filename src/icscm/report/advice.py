"""What a result says and does not say, what to mind in it, and what to try where it is empty."""

from __future__ import annotations

from collections.abc import Sequence

from icscm.exceptions import Parameter, Words
from icscm.model.learner import Learner
from icscm.report.words import Names, Plain, format_p
from icscm.stats.verdicts import NOT_INVARIANT, TOO_LITTLE_DATA
from icscm.text import count

# A level below this refuses next to nothing, so that it is no advice.
_WORTH_A_TRY = 1e-4


def explain_meaning(
    learner: Learner, leaves: Sequence[Plain], standard: Plain, names: Names
) -> Plain:
    """What the result says and what it does not, in sentences."""
    return {
        "says": _explain_says(learner.trace_.alpha, names),
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
        "here": _list_cautions(learner, leaves, standard),
    }


def _explain_says(alpha: float | None, names: Names) -> list[str]:
    if alpha is None:
        return [
            "The rule describes these data as well as the search could. Nothing was asked about "
            "environments while it was learned: a column that is an effect of the label, or a "
            "mark of one environment, may well be in it."
        ]
    return [
        f"The null hypothesis of every test is: {names.target} does not depend on "
        f"{names.environment} in this leaf. A rule in the model was not refused at level "
        f"{alpha:g}: it is invariant across these environments as far as this many samples "
        "can tell.",
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
    if n_blind:
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


def suggest(learner: Learner, search: Plain, words: Words) -> list[str]:
    """What might lead to a rule where there is none, the most promising first."""
    settings = learner.get_params(deep=False)
    kinds = "conjunction", "disjunction"
    other = words(Parameter("model_type", kinds[settings["model_type"] == kinds[0]]))
    turned = f"{other}: its rules settle the other label."
    if not search["is_tested"]:
        return [turned, f"Other columns, or a smaller {words(Parameter('p'))}."]
    if learner.trace_.set_aside is not None:
        balanced = words(Parameter("p", "balanced"))
        kept = words(Parameter("min_utility", None))
        return [
            f"{balanced}: both classes weigh the same, whatever their sizes; rules that find many "
            "of the rarer class are then kept though always saying the other is less often wrong.",
            turned,
            f"{kept}: the rules as they were found, whatever they are worth.",
            f"{words(Parameter('SCMClassifier'))}: the best rule without invariance, to compare.",
        ]
    found = [turned]
    nearest = next((each["p_value"] for each in search["nearest"]), None)
    if nearest is not None:
        found.insert(nearest < _WORTH_A_TRY, _describe_nearest(search, nearest, words))
    checkup = words(Parameter("icscm.studies.checkup.check_environments"))
    return [
        *found,
        *_suggest_for_refused(search, settings["criterion"], words),
        *_suggest_for_sets(search["stop_reason"], words),
        f"{checkup}: columns that give the environment away, environments to merge.",
        f"{words(Parameter('SCMClassifier'))}: the best rule without invariance, to compare.",
    ]


def _describe_nearest(search: Plain, p_value: float, words: Words) -> str:
    alpha, cutoff = words(Parameter("alpha")), search["last_look"]["cutoff"] or search["alpha"]
    told = f"The nearest miss has p = {format_p(p_value)}, and rules are refused up to {cutoff:.3g}"
    if p_value < _WORTH_A_TRY:
        return f"{told}: no smaller {alpha} is worth a try."
    return (
        f"{told}. A smaller {alpha} refuses fewer rules; choose it before looking, since a level "
        "chosen to let a rule pass is no evidence for it."
    )


def _suggest_for_refused(search: Plain, criterion: str, words: Words) -> list[str]:
    """What might let refused candidates pass."""
    n_refused = (search["last_look"] or {}).get("n_refused", {})
    found = []
    if n_refused.get("small"):
        found.append(
            f"{count(n_refused['small'], 'candidate')} had too few samples: lower "
            f"{words(Parameter('min_samples_leaf'))}, or bring more data."
        )
    if not n_refused.get("dependent"):
        return found
    if criterion == "equivalence":
        found.append(
            "Equivalence must be shown, which takes many samples in every environment: widen the "
            f"margin, join small environments, or use {words(Parameter('criterion', 'pvalue'))}."
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


def _suggest_for_sets(stop_reason: str, words: Words) -> list[str]:
    """What might help the exhaustive search."""
    more = words(Parameter("n_candidates"))  # none on the command line
    suggestions = {
        "all_rejected": "Every set of the screened rules was rejected: some cause is not among the "
        "columns, or the environments act on the label itself. Try other environments, more "
        f"columns{f', or a larger {more}' if more else ''}.",
        "empty_intersection": "Several sets explain the data and share no rule: the environments "
        "change too little to tell the sets apart. Add environments, or more samples.",
        "nothing_associated": "No column goes with the label strongly enough to be looked at. More "
        "samples or other columns are needed.",
    }
    return [suggestions[stop_reason]] if stop_reason in suggestions else []
