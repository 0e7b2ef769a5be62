"""What to try next: other settings, other learners, other data."""

from collections.abc import Callable, Mapping

from icscm.exceptions import Parameter, Words
from icscm.formatting import count
from icscm.report.content.candidates import RuleCandidate
from icscm.report.content.learner import LearnerContent
from icscm.report.content.nodes import CriterionName, Nodes
from icscm.report.formatting import format_p, format_score
from icscm.report.wording.advice import has_useless_predictions

# With a smaller p-value no level is small enough to let a rule pass.
HOPELESS = 0.0001

# Names a parameter, with the value to give it, as in Python or as an option of the command line.
NameOption = Callable[..., str]


def list_suggestions(
    content: LearnerContent, words: Words, commands: Mapping[str, str]
) -> list[str]:
    """Return what to try next; `commands` learn a "tree" or make a "screen" of the same data."""

    def name_option(*parameter: object) -> str:
        return words(Parameter(*parameter))  # type: ignore[arg-type]

    if not content.model.is_rule_set:
        return suggest_for_tree(content, name_option)
    return [
        *suggest_other_learners(content, name_option, commands),
        *suggest_for_rules(content, name_option),
    ]


# --- trees, forests and scores --------------------------------------------------------------------


def suggest_for_tree(content: LearnerContent, name_option: NameOption) -> list[str]:
    """Return what to try where a tree has no split, or predicts poorly."""
    nodes = content.nodes
    if has_useless_predictions(content.model, content.errors):
        return [
            "Use the probabilities (predict_proba) with your own threshold: leaves may differ in "
            "risk although none predicts the rarer class."
        ]
    if content.model.n_rules:
        return []

    # there is no split, and why the last scan for one ended says what would help
    no_association = "Add columns or samples: no column here is associated with the label."
    tolerance = name_option("tolerance")
    if not nodes.scans:
        if not nodes.rejected_columns:
            return [no_association]
        return [f"A larger {tolerance} keeps more columns, with less protection from shortcuts."]
    last_scan = nodes.scans[-1]
    if last_scan.end == "small":
        return [f"Use a smaller {name_option('min_samples_leaf')}, or more samples."]
    if last_scan.end == "uninformative":
        return [no_association]
    if last_scan.end != "rejected":
        return []

    suggestions = [
        f"All informative splits were rejected. A larger {tolerance} accepts more of them, with "
        "less protection from shortcuts."
    ]
    if last_scan.size.n_rejected.get("unreplicated"):
        suggestions.append(
            "Some columns are informative in too few of the environments that could show their "
            "effect: compare environments that overlap more, or lower "
            f"{name_option('min_replication')}."
        )
    return suggestions


# --- rule sets ------------------------------------------------------------------------------------


def suggest_other_learners(
    content: LearnerContent, name_option: NameOption, commands: Mapping[str, str]
) -> list[str]:
    """Return a tree where it ranks better, or what allows each environment its own rate."""
    shape = content.model.shape
    if shape is not None and shape.prefers_tree:
        tree = commands.get("tree") or name_option("InvariantTreeClassifier")
        return [
            "A tree ranks the samples of held-out environments better (AUC "
            f"{format_score(shape.scores['tree'])} against "
            f"{format_score(shape.scores[shape.chosen])}), though children of the label may be in "
            f"it: {tree}"
        ]
    if content.model.n_rules or not content.nodes.is_tested:
        return []

    # no rule is invariant: effects may be although rates are not
    if "tree" in commands:
        suggestions = [
            f"Grow a tree, which allows each environment its own rate: {commands['tree']}"
        ]
    else:
        suggestions = [
            f"{name_option('InvariantTreeClassifier')}: requires homogeneous effects, while each "
            "environment has its own rate."
        ]
    if "score" in commands:
        suggestions.append(
            "Or learn a points score, on columns whose effect is the same in all environments: "
            f"{commands['score']}"
        )
    if "screen" in commands:
        suggestions.append(
            "Or reject the columns whose effect differs between environments, for any classifier: "
            f"{commands['screen']}"
        )
    return suggestions


def suggest_for_rules(content: LearnerContent, name_option: NameOption) -> list[str]:
    """Return what to try where rules are poor, or where none was found, by why none was."""
    if content.model.n_rules:
        if content.errors.beats_majority or content.model.threshold:
            return []
        return suggest_for_poor_rules(content, name_option)

    inverse = suggest_inverse(content, name_option)
    if not content.nodes.is_tested:
        return [*inverse, "Use other columns: no rule on these covers samples correctly."]

    plain = f"{name_option('SCMClassifier')}: the best rule without invariance, to compare."
    if content.model.discarded is not None:
        return [*suggest_for_discarded(content, name_option), *inverse, plain]

    # every rule, or every set of rules, was rejected
    check_up = (
        f"{name_option('icscm.validation.checkup.check_environments')}: finds columns that "
        "identify the environment, and environments to merge."
    )
    if content.nodes.criterion == CriterionName.SETS:
        return [*suggest_for_sets(content, name_option), *inverse, check_up, plain]
    return [
        *suggest_levels(content, name_option),
        *suggest_for_rejected(content, name_option),
        check_up,
        plain,
    ]


def suggest_inverse(content: LearnerContent, name_option: NameOption) -> list[str]:
    """Return the other type of rule set, whose rules cover the other label."""
    model_type = content.settings["model_type"]
    if model_type == "auto":
        return []
    other = "disjunction" if model_type == "conjunction" else "conjunction"
    return [f"{name_option('model_type', other)}: its rules cover the other label."]


def suggest_for_poor_rules(content: LearnerContent, name_option: NameOption) -> list[str]:
    """Return what to try where rules are no better than the majority-class baseline."""
    settings = content.settings
    suggestions = suggest_inverse(content, name_option)
    if settings["p"] != 1:
        suggestions.append(
            f"p is {settings['p']}, so that one kind of error costs more: judge the rule by its "
            f"sensitivity and specificity, or use {name_option('p', 1)}."
        )
    if settings.get("min_utility", 0) is None:
        suggestions.append(
            f"{name_option('min_utility', 0)} rejects rules that make the model worse."
        )
    grid_search = name_option("icscm.validation.tuning.grid_search")
    return [*suggestions, f"{grid_search}: settings by cross-validation."]


def suggest_for_discarded(content: LearnerContent, name_option: NameOption) -> list[str]:
    """Return what keeps rules that were discarded, or finds better ones."""
    settings = content.settings
    suggestions = []
    if settings.get("margin", ...) is None:
        suggestions.append(
            f"{name_option('margin', 0.05)}: smaller differences between rates count as none."
        )
    if settings["p"] != "balanced":
        suggestions.append(
            f"{name_option('p', 'balanced')}: both classes have the same total weight; rules that "
            "find many samples of the rarer class are then kept."
        )
    return [*suggestions, f"{name_option('min_utility', None)}: keeps the rules that were found."]


# --- no rule passed -------------------------------------------------------------------------------


def find_nearest_p_value(nodes: Nodes) -> float | None:
    """Return the largest p-value among the rejected sets or rules."""
    if nodes.criterion == CriterionName.SETS:
        return nodes.sets[0].p_value if nodes.sets else None
    if not nodes.nearest:
        return None
    candidate = nodes.nearest[0].candidate
    return candidate.p_value if isinstance(candidate, RuleCandidate) else None


def suggest_levels(content: LearnerContent, name_option: NameOption) -> list[str]:
    """Return the nearest miss and the other type of rule set, the more promising one first."""
    inverse = suggest_inverse(content, name_option)
    nearest = find_nearest_p_value(content.nodes)
    if nearest is None or content.nodes.criterion == CriterionName.MARGIN:
        return inverse
    assert content.nodes.alpha is not None
    miss = describe_nearest_miss(
        nearest,
        alpha=content.nodes.alpha,
        are_sets=False,
        alpha_name=name_option("alpha"),
    )
    return [*inverse, miss] if nearest < HOPELESS else [miss, *inverse]


def describe_nearest_miss(p_value: float, *, alpha: float, are_sets: bool, alpha_name: str) -> str:
    """Return how near a set or rule came to passing, and whether a smaller alpha would help.

    >>> describe_nearest_miss(1e-9, alpha=0.05, are_sets=False, alpha_name="alpha")
    'The nearest miss has p = 1e-09; rules are rejected up to 0.05: a smaller alpha would not help.'
    """
    kind = "sets" if are_sets else "rules"
    text = f"The nearest miss has p = {format_p(p_value)}; {kind} are rejected up to {alpha:.3g}"
    if p_value < HOPELESS:
        return f"{text}: a smaller {alpha_name} would not help."
    return (
        f"{text}. A smaller {alpha_name} rejects fewer; choose it beforehand, since a level chosen "
        "to let a rule pass is no evidence for it."
    )


def suggest_for_rejected(content: LearnerContent, name_option: NameOption) -> list[str]:
    """Return what to try, by the reasons for which the last scan rejected candidates."""
    settings = content.settings
    last_scan = content.nodes.last_scan
    n_rejected = {} if last_scan is None else last_scan.size.n_rejected  # by reason

    suggestions = []
    n_unreplicated = n_rejected.get("unreplicated", 0)
    if n_unreplicated:
        verb = "was" if n_unreplicated == 1 else "were"
        suggestions.append(
            f"{count(n_unreplicated, 'candidate')} {verb} informative in too few of the "
            "environments that could show an effect: compare environments that overlap more. "
            f"{name_option('min_replication', 0)} accepts them, but such a rule may be a marker "
            "of one environment."
        )

    n_unhelpful = n_rejected.get("unhelpful", 0)
    if n_unhelpful:
        text = (
            f"{count(n_unhelpful, 'candidate')} passed the test but would cover too many samples "
            f"wrongly, or no more correctly than chance would: a smaller {name_option('p')} (here "
            f"{settings['p']}) gives less weight to samples covered wrongly"
        )
        if settings["min_utility"] == "auto":
            utility = name_option("min_utility", 0)
            text += f", {utility} also accepts rules that are no better than chance"
        suggestions.append(f"{text}.")

    if n_rejected.get("dependent", 0):
        suggestions += suggest_for_dependent(content.nodes, name_option)
    return suggestions


def suggest_for_dependent(nodes: Nodes, name_option: NameOption) -> list[str]:
    """Return what to try where rates differ between environments, or may differ."""
    if nodes.criterion == CriterionName.MARGIN:
        suggestions = [
            "To show equivalence takes many samples in every environment: widen the margin, merge "
            f"small environments, use a larger {name_option('alpha')} (less evidence is required), "
            f"or {name_option('margin', None)}."
        ]
    else:
        suggestions = [
            "With very many samples trivial differences are rejected, too: "
            f"{name_option('margin', 0.05)} accepts those within a margin.",
            f"With few samples {name_option('search', 'exhaustive')}, best with "
            f"{name_option('alpha', 'auto')}, tests whole sets of rules and needs less data.",
        ]
    return [
        *suggestions,
        "Check whether the environments record the label differently: no rule is invariant where "
        "the environment acts on the label itself. Try other environments (years, regions, sites).",
        "A column may be missing: with a hidden common cause no rule is invariant.",
    ]


def suggest_for_sets(content: LearnerContent, name_option: NameOption) -> list[str]:
    """Return what to try where the exhaustive search found no rule, by why it found none."""
    nodes = content.nodes
    if nodes.stop_reason == "all_rejected":
        nearest = find_nearest_p_value(nodes)
        assert nearest is not None
        assert nodes.alpha is not None
        return [
            describe_nearest_miss(
                nearest,
                alpha=nodes.alpha,
                are_sets=True,
                alpha_name=name_option("alpha"),
            ),
            "Every set of the screened rules was rejected: a cause is not among the columns, or "
            "the environments act on the label itself. Try other environments or more columns.",
        ]
    if nodes.stop_reason == "empty_intersection":
        return [
            "Several sets fit the data and share no rule: the environments differ too little to "
            "tell the sets apart. Add environments, or more samples.",
            f"A larger {name_option('alpha')} rejects more sets, and the remaining ones share "
            "more; the error rate of the result grows with it.",
        ]
    text = (
        "No column is associated with the label strongly enough to be considered. Add samples or "
        f"columns; {name_option('alpha')} does not matter here."
    )
    if content.settings["min_replication"] > 0:
        text += f" Rules are also excluded by {name_option('min_replication')}."
    return [text]
