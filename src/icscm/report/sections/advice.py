"""Section `advice`: what the result means, warnings, and what to try where nothing was found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from icscm.exceptions import Parameter, Words
from icscm.formatting import count
from icscm.model.learner import Learner
from icscm.report.formatting import Names, Plain, format_p, join_words
from icscm.stats.verdicts import NOT_INVARIANT, TOO_LITTLE_DATA

# Below this level hardly any candidate is rejected, so that it is not suggested.
_LEAST_ALPHA = 1e-4


def make_advice(learner: Learner, names: Names, summary: Plain, words: Words) -> Plain:
    """What the result says and does not say, warnings about it, and suggestions."""
    is_rule = summary["model"]["noun"] == "rule"
    warnings = _warn_of_rules if is_rule else _warn_of_trees
    suggest = _suggest_rules if is_rule else _suggest_trees
    return {
        "says": _list_claims(learner, names, summary),
        "does_not_say": _list_limits(summary),
        "warnings": [*warnings(learner, summary)],
        "suggestions": [*suggest(learner, summary, words)],
    }


def _list_claims(learner: Learner, names: Names, summary: Plain) -> list[str]:
    nodes, requirement = summary["nodes"], summary["task"]["requirement"]
    noun = summary["model"]["noun"]
    if not nodes["is_tested"]:
        return [
            f"The {noun} describes these data as well as the search could. Environments were not "
            "used: a shortcut of one of them, or a child of the label, may be in it."
        ]
    if noun == "rule":
        claim = (
            f"The null hypothesis of every test: {names.target} does not depend on "
            f"{names.environment} in this leaf. A rule in the model was not rejected at level "
            f"{nodes['alpha']:g}: it is invariant across these environments as far as this many "
            "samples can show."
        )
        if nodes["criterion"] == "margin":
            claim = (
                f"It was shown, at level {nodes['alpha']:g}, that the rate of {names.positive} in "
                f"the leaf of each rule differs by at most {requirement['margin_text']} between "
                "any two of these environments."
            )
        return [claim, "The leaf of a rejected rule varies between environments, or may vary."]
    if nodes["invariance"] == "rate":
        return [
            learner.trace_.describe_excess()
            or f"In the leaves together, {names.target} depends on the {names.environment} by no "
            "more than the tolerance allows. Columns that made the leaves depend on it were "
            "excluded.",
            "Parents are found this way: if the environments do not act on the label itself, its "
            "rate given its causes is the same everywhere.",
        ]
    return [
        f"The effect of each split on the odds of {names.positive} is about the same in all of "
        "these environments. A shortcut that works better in some of them was rejected.",
        "Each environment may have its own rate, so a leaf that is not invariant is not a fault. "
        "The ranking of samples by risk carries over to a new environment; rates may differ there.",
    ]


def _list_limits(summary: Plain) -> list[str]:
    noun, nodes = summary["model"]["noun"], summary["nodes"]
    limits = [
        "It does not prove a cause. Invariance is evidence of a cause only if the environments act "
        "on the columns but not directly on the label, no hidden cause acts on both, and the label "
        "follows a noisy conjunction (or disjunction) of rules on its causes.",
        "With little data weak tests let rules on children of the label pass; with very much data "
        "trivial differences are rejected. The minimum detectable difference of each leaf shows "
        "which applies.",
        "A cause on which the environments do not act cannot be identified.",
    ]
    if noun != "rule":
        passes = (
            "A child of the label whose association is the same in these environments passes: "
            'effects must be homogeneous, but need not be causes (see invariance="rate").'
            if nodes["invariance"] == "effect"
            else "With little data columns pass that more data would reject, and growth is "
            "greedy: a cause without an association of its own may be missed."
        )
        limits = [
            "It does not prove a cause.",
            *([passes] if nodes["is_tested"] else []),
            "An association that all of these environments share may still be a shortcut; it may "
            "fail in a new one.",
        ]
    if summary["errors"]["is_out_of_bag"]:
        return limits
    return [
        *limits,
        f"The errors are those on the data that the {noun} was learned from. For errors in a new "
        "environment use icscm.leave_one_environment_out in Python.",
    ]


# --- warnings -------------------------------------------------------------------------------------


def _warn_of_rules(learner: Learner, summary: Plain) -> Iterator[str]:
    leaves, errors, stability = (summary[key] for key in ("leaves", "errors", "stability"))
    requirement = summary["task"]["requirement"]
    is_incomplete = len(leaves) > 1 and leaves[-1]["conclusion"] == NOT_INVARIANT
    if summary["nodes"]["is_tested"] and is_incomplete:
        yield (
            "The uncovered samples still depend on the environment: by the method's own criterion "
            "the rule is incomplete, and a cause may be missing from the columns."
        )
    n_blind = sum(leaf["conclusion"] == TOO_LITTLE_DATA for leaf in leaves)
    if n_blind and len(leaves) > 1:
        yield (
            f"{n_blind} of {count(len(leaves), 'leaf')} had too little data: the rule was not "
            "rejected there, but not shown to be invariant either."
        )
    if requirement["afterwards"]:
        yield (
            f"The leaves were tested after the search, with Pearson's test at level "
            f"{requirement['alpha']:g}; the search did not use environments."
        )
    for leaf in leaves if requirement["alpha"] is not None else ():
        if leaf["n_seen"] == 1:  # its p-value is 1 by definition
            where = f"of one environment only, {leaf['lowest']['environment']}: nothing was tested"
            if leaf["is_rest"]:
                yield f"The uncovered samples are {where}."
            else:
                rule = learner.model_.rules[leaf["number"] - 1]
                yield f"{rule} covers samples {where}; the rule may be a marker of it."
    if errors["n_contrary"]:
        numbers = ", ".join(map(str, errors["contrary_leaves"]))
        yield (
            f"For {errors['n_contrary']:,} of {count(errors['n'], 'sample')} prediction and "
            f"probability disagree: the majority in leaf {numbers} is of the other class."
        )
    if stability is not None and stability["model_frequency"] < 0.5:
        yield (
            "Most subsamples give another model (see Stability): this one is one of several that "
            "fit these data."
        )


def _warn_of_trees(learner: Learner, summary: Plain) -> Iterator[str]:
    trace, nodes, task = learner.trace_, summary["nodes"], summary["task"]
    noun, tolerance = summary["model"]["noun"], nodes["tolerance"]
    if trace.describe_excess():
        yield trace.describe_excess()
    if not task["has_environments"]:
        yield f"No environments were given, so nothing was tested: this is a plain {noun}."
    elif tolerance is None:
        yield f"No tolerance was given, so nothing was rejected: this is a plain {noun}."
    elif task["n_environments"] == 2:
        yield (
            "Two environments can show a difference, but not its heterogeneity: what both have in "
            "common may be a shortcut. Use three or more."
        )
    splits = nodes["splits"]
    if tolerance is not None and nodes["invariance"] == "effect":
        above = [str(each["number"]) for each in splits if each["heterogeneity_share"] > tolerance]
        if above and noun == "tree":
            yield (
                f"The effect of split {join_words(above)} varies by more than the tolerance, but "
                "little relative to the deviance that the whole tree explains."
            )
    if tolerance is not None and nodes["invariance"] == "rate" and splits:
        broken = [each for each in summary["leaves"] if each["conclusion"] == NOT_INVARIANT]
        if broken:
            numbers = join_words([str(leaf["number"]) for leaf in broken])
            yield f"The rate of leaf {numbers} varies between environments."
    if summary["model"]["n_rules"] and not summary["errors"]["beats_majority"]:
        yield "The probabilities may be useful even though the predictions are not: see the AUC."


# --- suggestions ----------------------------------------------------------------------------------


def _suggest_trees(_: Learner, summary: Plain, words: Words) -> Iterator[str]:
    """Suggestions where there is no split, or predictions no better than the baseline."""
    if summary["model"]["n_rules"]:
        if not summary["errors"]["beats_majority"]:
            yield (
                "Use the probabilities (predict_proba) with a threshold of your own: leaves may "
                "differ in risk though none predicts the rarer class."
            )
        return
    scan = summary["nodes"]["scans"][-1]
    if scan["end"] == "rejected":
        yield (
            f"All informative splits were rejected. A larger {words(Parameter('tolerance'))} "
            "accepts more of them, with less protection from shortcuts."
        )
        if scan["n_rejected"].get("unreplicated"):
            yield "Some splits lie in too few environments: compare environments that overlap more."
    if scan["end"] == "small":
        yield f"Use a smaller {words(Parameter('min_samples_leaf'))}, or more samples."
    if scan["end"] == "uninformative":
        yield "Add columns or samples: no column here is associated with the label."


def _suggest_rules(learner: Learner, summary: Plain, words: Words) -> Iterator[str]:
    """Suggestions where there is no rule, or one no better than the baseline."""
    nodes, settings = summary["nodes"], learner.get_params(deep=False)
    kinds = "conjunction", "disjunction"
    other = words(Parameter("model_type", kinds[settings["model_type"] == kinds[0]]))
    inverse = f"{other}: its rules cover the other label."
    if summary["model"]["n_rules"]:
        if not summary["errors"]["beats_majority"]:
            yield inverse
            yield from _suggest_for_worse(settings, words)
        return
    if not nodes["is_tested"]:
        yield inverse
        yield "Other columns: no rule on these covers samples correctly."
        return
    if summary["model"]["discarded"]:
        yield from _suggest_for_discarded(settings, words)
        yield inverse
    elif nodes["criterion"] == "sets":
        yield from _suggest_for_sets(nodes, settings, words)
        yield inverse
    else:
        nearest = next((each["p_value"] for each in nodes["nearest"]), None)
        found = [inverse]
        if nearest is not None and nodes["criterion"] != "margin":
            found.insert(nearest < _LEAST_ALPHA, _describe_nearest(nodes, nearest, words))
        yield from [*found, *_suggest_for_rejected(nodes, settings, words)]
    if not summary["model"]["discarded"]:
        checkup = words(Parameter("icscm.studies.checkup.check_environments"))
        yield f"{checkup}: finds columns that identify the environment, and environments to merge."
    yield f"{words(Parameter('SCMClassifier'))}: the best rule without invariance, to compare."


def _suggest_for_worse(settings: Plain, words: Words) -> Iterator[str]:
    if settings["p"] != 1:
        yield (
            f"p is {settings['p']}, so that one kind of error costs more: judge the rule by its "
            f"sensitivity and specificity, or use {words(Parameter('p', 1))}."
        )
    if settings.get("min_utility", 0) is None:
        yield f"{words(Parameter('min_utility', 0))} rejects rules that make the model worse."
    yield f"{words(Parameter('icscm.studies.choice.choose'))}: settings by cross-validation."


def _suggest_for_discarded(settings: Plain, words: Words) -> Iterator[str]:
    tree = words(Parameter("InvariantTreeClassifier"))
    yield f"{tree}: requires homogeneous effects, while each environment has its own rate."
    if settings["criterion"] == "pvalue":
        margin = words(Parameter("criterion", "equivalence"))
        yield f"{margin}, with a margin: smaller differences between rates count as none."
    if settings["p"] != "balanced":
        yield (
            f"{words(Parameter('p', 'balanced'))}: both classes have the same total weight; rules "
            "that find many samples of the rarer class are then kept."
        )
    yield f"{words(Parameter('min_utility', None))}: keeps the rules that were found."


def _describe_nearest(nodes: Plain, p_value: float, words: Words) -> str:
    """The p-value of the nearest miss, and whether a smaller alpha is worth trying."""
    alpha, scans = words(Parameter("alpha")), nodes["scans"]
    last = scans[-1] if len(scans) > len(nodes["splits"]) else {}
    cutoff = last.get("cutoff") or nodes["alpha"]
    what = "sets" if nodes["criterion"] == "sets" else "rules"
    text = f"The nearest miss has p = {format_p(p_value)}; {what} are rejected up to {cutoff:.3g}"
    if p_value < _LEAST_ALPHA:
        return f"{text}: a smaller {alpha} would not help."
    return (
        f"{text}. A smaller {alpha} rejects fewer; choose it beforehand, since a level chosen to "
        "let a rule pass is no evidence for it."
    )


def _suggest_for_rejected(nodes: Plain, settings: Plain, words: Words) -> Iterator[str]:
    """Settings or data with which rejected candidates might pass."""
    scans: list[Any] = nodes["scans"][len(nodes["splits"]) :]
    n_rejected = scans[-1]["n_rejected"] if scans else {}
    if n := n_rejected.get("small"):
        least = words(Parameter("min_samples_leaf"))
        yield f"{count(n, 'candidate')} had too few samples: lower {least}, or add data."
    if n := n_rejected.get("unreplicated"):
        yield (
            f"{count(n, 'candidate')} had samples in too few environments: compare environments "
            f"that overlap more. {words(Parameter('min_replication', 0))} accepts them, but such "
            "a rule may be a marker of one environment."
        )
    if n := n_rejected.get("unhelpful"):
        yield (
            f"{count(n, 'candidate')} passed the test but would cover too many samples wrongly: a "
            f"smaller {words(Parameter('p'))} (here {settings['p']}) gives those less weight."
        )
    if not n_rejected.get("dependent"):
        return
    if nodes["criterion"] == "margin":
        yield (
            "To show equivalence takes many samples in every environment: widen the margin, merge "
            f"small environments, use a larger {words(Parameter('alpha'))} (less evidence is "
            f"required), or {words(Parameter('criterion', 'pvalue'))}."
        )
    else:
        yield (
            "With very many samples trivial differences are rejected, too: "
            f"{words(Parameter('criterion', 'equivalence'))} accepts those within a margin."
        )
        yield (
            f"With few samples {words(Parameter('search', 'exhaustive'))}, best with "
            f"{words(Parameter('alpha', 'auto'))}, tests whole sets of rules and needs less data."
        )
    yield (
        "Check whether the environments record the label differently: no rule is invariant where "
        "the environment acts on the label itself. Compare other ones (years, regions, sites)."
    )
    yield "A column may be missing: with a hidden common cause no rule is invariant."


def _suggest_for_sets(nodes: Plain, settings: Plain, words: Words) -> Iterator[str]:
    """What might help the exhaustive search: the more sets are accepted, the less they share."""
    alpha = words(Parameter("alpha"))
    if nodes["stop_reason"] == "all_rejected":
        more = words(Parameter("n_candidates"))  # empty on the command line
        yield _describe_nearest(nodes, nodes["sets"][0]["p_value"], words)
        yield (
            "Every set of the screened rules was rejected: a cause is not among the columns, or "
            "the environments act on the label itself. Try other environments or more columns"
            f"{f', or a larger {more}' if more else ''}."
        )
    elif nodes["stop_reason"] == "empty_intersection":
        yield (
            "Several sets fit the data and share no rule: the environments differ too little to "
            "tell the sets apart. Add environments, or more samples."
        )
        yield (
            f"A larger {alpha} rejects more sets, and the remaining ones share more; the error "
            "rate of the result grows with it."
        )
    else:
        least = (("min_samples_leaf", 1), ("min_replication", 0))
        used = [words(Parameter(name)) for name, value in least if settings[name] > value]
        excluded = f" Rules are also excluded by {' and '.join(used)}." if used else ""
        yield (
            "No column is associated with the label strongly enough to be considered. Add samples "
            f"or columns; {alpha} does not matter here.{excluded}"
        )


# --- explanations ---------------------------------------------------------------------------------


def explain_alpha(criterion: str) -> Plain:
    """The direction in which alpha acts, and its effect at both ends of a path."""
    if criterion == "sets":
        text = "A larger alpha rejects more sets; the fewer are accepted, the more they share."
        return {"meaning": text, "ends": ["fewer sets rejected", "more rejected"]}
    if criterion == "margin":
        text = "A larger alpha requires less evidence, so that fewer rules are rejected."
        return {"meaning": text, "ends": ["more rules rejected", "fewer rejected"]}
    text = "A larger alpha rejects more rules, a smaller one fewer."
    return {"meaning": text, "ends": ["fewer rules rejected", "more rejected"]}


def explain_tests(nodes: Plain, requirement: Plain) -> str:
    """What the p-values of the steps test, and what decided."""
    text = (
        "p leaf: test that the label is independent of the environment among the samples that the "
        "rule covers; p rest: the same among the uncovered samples."
    )
    criterion, alpha = nodes["criterion"], f"{nodes['alpha']:g}"
    cutoffs = [f"{scan['cutoff']:.2g}" for scan in nodes["scans"] if scan["cutoff"] is not None]
    if criterion == "sets":
        return (
            f"{text} p of a set: in all leaves of its rules together; accepted if above {alpha}. "
            "The model is what all accepted sets share."
        )
    if criterion == "margin":
        return (
            f"{text} A rule is rejected unless shown, at level {alpha}, to differ by at most "
            f"{requirement['margin_text']} between environments; p-values do not decide."
        )
    if criterion != "p-values" and cutoffs:
        ends = sorted({min(cutoffs, key=float), max(cutoffs, key=float)}, key=float)
        alpha = f"{' to '.join(ends)}: {alpha}, corrected ({criterion})"
    return f"{text} Rejected unless p leaf is above {alpha}."
