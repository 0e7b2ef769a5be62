"""A fitted tree as a plain dict: all that its report says, before anything is laid out.

`make_tree_summary` returns what `icscm.report.summary` describes under `about`, `title`, `asked`,
`answers`, `leaves`, `elsewhere`, `invariance`, `errors`, `notes` and `meaning`, and:

- `model`: `kind` "tree", the tree as text, its `features` from the most informative, its size.
- `tree`: its `nodes` in the order of a walk that goes where rules are true first: depth, rule,
  counts and rate, and the number of the `leaf` or of the `split`.
- `splits`: for each split its node, what it tells (`information`, a deviance), how far its effect
  differs between environments (`share`, the square of a coefficient of variation, and in words),
  the `dependence` on the environment that it brings or explains, its odds ratio and that of every
  environment, and the best of what was refused there, with why.
- `leaves`: as for rule sets; also why it was not split (`end_text`) and what was refused there.
- `refused_features`: columns that are not in the tree, each by the best split that was refused.
- `importances`: information and dependence of each column of the tree.
- `tried`: the trees tried on the way to one of invariant rates.
- `search`: what was asked (`invariance`, `tolerance`), in words (`text`), and `suggestions`.
- `tolerance_path`: trees of other tolerances; None where they were not grown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import sqrt

from icscm.exceptions import Parameter, Words
from icscm.formatting import count, format_name, format_number
from icscm.model.learner import Learner
from icscm.model.tree import Tree
from icscm.report.answers import answer_error
from icscm.report.effects import (
    describe_importances,
    describe_look,
    describe_splits,
    describe_tried,
    list_refused_features,
    list_refusing,
    say_ends,
    say_variation,
)
from icscm.report.elsewhere import describe_elsewhere
from icscm.report.errors import describe_errors, say_fault
from icscm.report.leaves import (
    AFTERWARDS_ALPHA,
    count_conclusions,
    describe_leaves,
    find_criterion,
    judge,
    make_standard,
    say_conclusions,
)
from icscm.report.question import ABOUT, LeftOut, describe_question
from icscm.report.tolerance import CAUTION, TolerancePath, name_tolerance
from icscm.report.words import MISSING, Names, Plain, describe_rates, join_words, make_names
from icscm.search.trace import Trace
from icscm.stats.verdicts import NOT_INVARIANT

# Features that a sentence names.
_N_NAMED = 6
# Of a tree along the tolerance.
_MEASURES = ("information", "differs")


def make_tree_summary(
    learner: Learner,
    *,
    data_name: str | None = None,
    target: str | None = None,
    environment: str | None = None,
    left_out: LeftOut | None = None,
    tolerance_path: TolerancePath | None = None,
    class_names: tuple[str, str] | None = None,
    words: Words = str,
) -> Plain:
    """All that a report says about a fitted tree, as the module describes."""
    model, trace = learner.model_, learner.trace_
    left_out = learner.dropped_columns_ if left_out is None else left_out
    names = make_names(model, trace.environments, class_names or trace.classes, target, environment)
    standard = make_standard(names)
    if len(names.environments) > 1:
        standard = make_standard(names, AFTERWARDS_ALPHA, afterwards=True)
    judged = judge(model, trace, standard)
    criterion = None if standard["alpha"] is None else find_criterion(trace, standard)
    ends = [describe_look(look, names) for look in trace.leaves]
    described = describe_leaves(model, names, judged, standard, criterion)
    leaves = [{**leaf, **end} for leaf, end in zip(described, ends, strict=True)]
    splits, errors = describe_splits(trace, names), describe_errors(model, names)
    importances = describe_importances(trace)
    features = [each["feature"] for each in importances]
    refused = list_refused_features([*splits, *leaves], features)
    parts = {"splits": splits, "leaves": leaves, "refused_features": refused}
    return {
        "about": ABOUT,
        "title": _make_title(trace, model, errors, names),
        "asked": describe_question(learner, names, data_name, left_out),
        "answers": _make_answers(learner, names, parts, errors, features),
        "model": _describe_model(model, names, features),
        "tree": {"nodes": [*_describe_nodes(model, names)]},
        **parts,
        "elsewhere": describe_elsewhere(leaves, model.leaves, names),
        "invariance": standard,
        "errors": errors,
        "importances": importances,
        "tried": describe_tried(trace),
        "search": {
            "invariance": trace.invariance,
            "tolerance": trace.tolerance,
            "is_tested": trace.tolerance is not None,
            "text": _say_asked(trace, names),
            "suggestions": _suggest(trace, model, errors, words),
        },
        "tolerance_path": tolerance_path and describe_tolerance_path(tolerance_path),
        "notes": list(trace.notes),
        "meaning": {
            "says": _explain_says(trace, names),
            "does_not_say": _list_limits(trace),
            "here": [*_list_cautions(trace, splits, leaves, errors)],
        },
    }


def _describe_model(model: Tree, names: Names, features: Sequence[str]) -> Plain:
    has_missing = any(getattr(rule, "missing", None) is not None for rule in model.rules)
    size = f"tree of {count(len(model.leaves), 'leaf')}"
    on = f" on {_name_features(features)}" if features else ""
    return {
        "kind": model.kind,
        "name": f"{size}{on}",
        "text": str(model),
        "sentence": _make_sentence(model, names, features),
        "missing": MISSING if has_missing else None,
        "balanced": model.balanced,
        "n_rules": len(model),
        "n_leaves": len(model.leaves),
        "depth": max(node.depth for node in model.list_nodes()) if model.splits else 0,
        "features": [*features],
    }


def _name_features(features: Sequence[str]) -> str:
    if len(features) <= _N_NAMED:
        return join_words(features)
    return f"{', '.join(features[:_N_NAMED])} and {len(features) - _N_NAMED:,} more"


def _make_sentence(model: Tree, names: Names, features: Sequence[str]) -> str:
    if not model.splits:
        return f"Always predict {names.predict(bool(model.leaf_verdicts[0]))}: no split was made."
    n_positive = sum(model.leaf_verdicts.tolist())
    return (
        f"A tree on {_name_features(features)}, of {count(len(model.leaves), 'leaf')}; "
        f"{n_positive:,} of these predict {names.positive}."
    )


def _describe_nodes(model: Tree, names: Names) -> Iterator[Plain]:
    verdicts, n_splits = model.leaf_verdicts.tolist(), 0
    if not model.splits:
        return
    for node in model.list_nodes():
        (rate,) = describe_rates([node.counts[1]], [sum(node.counts)])
        is_positive = None if node.leaf is None else verdicts[node.leaf]
        n_splits += node.leaf is None
        yield {
            "depth": node.depth,
            "rule": "all samples" if node.depth == 0 else node.text,
            **rate,
            "split": n_splits if node.leaf is None else None,
            "leaf": None if node.leaf is None else node.leaf + 1,
            "is_positive": is_positive,
            "predicts": None if is_positive is None else names.predict(is_positive),
        }


def _make_title(trace: Trace, model: Tree, errors: Plain, names: Names) -> str:
    if not model.splits:
        return "No split was made"
    if not errors["beats_majority"]:
        always = f"always saying {errors['majority_class']}"
        return f"A tree whose predictions are {say_fault(errors, always)}"
    if trace.tolerance is None:
        return "A plain tree: nothing was asked about environments"
    if trace.describe_excess():
        return f"No tree has leaves of the same rate in every {names.environment}: the nearest"
    if trace.invariance == "rate":
        return f"A tree whose leaves were asked to have the same rate in every {names.environment}"
    return f"A tree whose splits were asked to have the same effect in every {names.environment}"


def _make_answers(
    learner: Learner, names: Names, parts: Plain, errors: Plain, features: Sequence[str]
) -> Plain:
    trace, model = learner.trace_, learner.model_
    is_effect = trace.invariance == "effect"
    what = "Do its splits do the same" if is_effect else "Do its leaves have the same rate"
    answers = {
        "rule": (
            "What is the tree?",
            _make_sentence(model, names, features),
            "No split was made. What was tried and refused is told below."
            if not model.splits
            else _say_asked(trace, names),
        ),
        "error": ("How good is it?", *answer_error(model, errors, names)),
        "invariance": (
            f"{what} in every {names.environment}?",
            *(_answer_effects(trace, parts, names) if is_effect else _answer_rates(trace, parts)),
            None,
        ),
        "refused": ("What was refused?", *_answer_refused(trace, parts)),
    }
    keys = "question", "answer", "detail", "conclusion"
    return {name: dict(zip(keys, answer, strict=False)) for name, answer in answers.items()}


def _say_asked(trace: Trace, names: Names) -> str:
    """What the tolerance asked for, as a sentence."""
    if trace.tolerance is None:
        return "A plain tree: environments had no say in it, and nothing was refused."
    tolerance = format_number(trace.tolerance)
    if trace.invariance == "rate":
        return (
            f"The rate of {names.positive} in each leaf was asked to be the same in every "
            f"{names.environment}: at most {tolerance} of what the tree tells may be owed to "
            "differences (tolerance)."
        )
    return (
        f"The effect of each split (its odds ratio) was asked to be the same in every "
        f"{names.environment}, whatever the rate there is: it may vary by "
        f"{sqrt(trace.tolerance):.0%} (tolerance {tolerance})."
    )


def _answer_effects(trace: Trace, parts: Plain, names: Names) -> tuple[str, str]:
    splits = parts["splits"]
    if len(trace.environments) < 2:
        return "Not asked", "The data name no environments, so that there is nothing to compare."
    if not splits:
        return "There is no split to judge", "All samples are in one leaf."
    n_same = sum(split["share"] == 0 for split in splits)
    worst = max(splits, key=lambda split: split["share"])
    own = " It was not asked to: this is a plain tree." if trace.tolerance is None else ""
    if n_same == len(splits):
        return (
            "Yes, as far as these data can tell",
            f"No odds ratio of {count(len(splits), 'split')} varies more than by chance.{own}",
        )
    ends = f"; {say_ends(worst, names)}" if worst["n_seen"] > 1 else ""
    return (
        f"{n_same:,} of {count(len(splits), 'split')} vary no more than by chance",
        f"Most of all varies {worst['rule']} (split {worst['number']}): "
        f"{say_variation(worst['share'])}{ends}.{own}",
    )


def _answer_rates(trace: Trace, parts: Plain) -> tuple[str, str]:
    if len(trace.environments) < 2:
        return "Not asked", "The data name no environments, so that there is nothing to compare."
    counts = count_conclusions(leaf["conclusion"] for leaf in parts["leaves"])
    n_broken, leaves = counts.get(NOT_INVARIANT, 0), count(len(parts["leaves"]), "leaf")
    return (
        f"{n_broken:,} of {leaves} not invariant",
        f"Each leaf, judged afterwards: {say_conclusions(counts)}. The tree was asked to depend "
        "on the environment little as a whole; a leaf may still be seen to.",
    )


def _answer_refused(trace: Trace, parts: Plain) -> tuple[str, str]:
    if trace.tolerance is None:
        return "Nothing", "A plain tree refuses nothing."
    first = (*parts["splits"], *parts["leaves"])[0]
    refused = parts["refused_features"]
    answer = f"{first['n_refused_all']:,} of {count(first['n_candidates'], 'split')} of all samples"
    if not refused:
        return answer, "No column was kept out of the tree altogether by what was refused."
    named, best = _name_features([each["feature"] for each in refused]), refused[0]
    told = f"Not in the tree though they tell something: {named}."
    return answer, f"{told} The most telling, {best['rule']}: {best['why']}."


def _explain_says(trace: Trace, names: Names) -> list[str]:
    if trace.tolerance is None:
        return [
            "The tree describes these data as well as its growth could. Nothing was asked about "
            "environments: a shortcut of one of them, or an effect of the label, may well be in it."
        ]
    if trace.invariance == "rate":
        return [
            trace.describe_excess()
            or f"In the leaves together, {names.target} depends on the {names.environment} by no "
            "more than the tolerance allows. Columns that made the leaves depend on it were left "
            "out.",
            "This is the notion by which parents are found: if the environments do not act on the "
            "label itself, its rate given its causes is the same everywhere.",
        ]
    return [
        f"What each split does to the odds of {names.positive} is about the same in all of these "
        "environments. A shortcut that works better in some places than in others was refused.",
        "Every environment may have its own rate: leaves are not asked to be invariant, and where "
        "a leaf is found not to be, that is no fault of the tree. What carries over to a new place "
        "is the order of samples by risk; the rates themselves may be others there.",
    ]


def _list_limits(trace: Trace) -> list[str]:
    passes = (
        "An effect of the label whose relation to it is the same in these environments passes: "
        'effects are asked to be the same, not causes to be found (that is invariance="rate").'
        if trace.invariance == "effect"
        else "With little data columns pass that more data would refuse, and growth is greedy: "
        "a cause that tells nothing by itself may be missed."
    )
    return [
        "It is no proof of cause.",
        *([passes] if trace.tolerance is not None else []),
        "What these environments have in common may still be a habit of all of them; a new one may "
        "break it.",
        "The errors are those on the data that the tree was learned from. How it does in an "
        "environment not seen is another question: in Python, icscm.leave_one_environment_out and "
        "icscm.tolerance_path ask it.",
    ]


def _list_cautions(
    trace: Trace, splits: Sequence[Plain], leaves: Sequence[Plain], errors: Plain
) -> Iterator[str]:
    """Warnings that this very result calls for."""
    beyond = trace.describe_excess()
    if beyond is not None:
        yield beyond
    if len(trace.environments) < 2:
        yield "No environments were given, so that nothing could be compared: this is a plain tree."
    elif trace.tolerance is None:
        yield "No tolerance was given, so that nothing was refused: this is a plain tree."
    elif len(trace.environments) == 2:
        yield (
            "Two environments can show a difference, but not how effects vary: what both have in "
            "common may be a habit of these two. Three or more tell more."
        )
    bound = trace.tolerance
    if bound is not None and trace.invariance == "effect":
        above = [split for split in splits if split["share"] > bound]
        if above:
            numbers = join_words([str(split["number"]) for split in above])
            yield (
                f"The effect of split {numbers} varies by more than the tolerance; it was let in "
                "since the difference is small beside what the tree as a whole tells."
            )
    if trace.invariance == "rate" and bound is not None:
        broken = [str(leaf["number"]) for leaf in leaves if leaf["conclusion"] == NOT_INVARIANT]
        if broken and splits:
            yield f"The rate of leaf {join_words(broken)} is seen to shift between environments."
    if splits and not errors["beats_majority"]:
        yield "The probabilities may be of use though the predictions are not: see the AUC."


def _suggest(trace: Trace, model: Tree, errors: Plain, words: Words) -> list[str]:
    """What to try where there is no split, or none that changes a prediction."""
    if model.splits and errors["beats_majority"]:
        return []
    if model.splits:
        return [
            "Use the probabilities (predict_proba) with a threshold of your own: that a leaf is "
            "less likely than not to be positive does not make it like the others."
        ]
    looks = trace.leaves[0]
    found = []
    if looks.end == "refused":
        found.append(
            f"Splits that tell something were refused. A larger {words(Parameter('tolerance'))} "
            "lets more of them in, at the price of what it protects from."
        )
        if looks.n_rejected.get("unreplicated"):
            found.append(
                "Some show in too few environments to be compared: environments that have more in "
                "common would tell."
            )
    if looks.end == "small":
        found.append(f"A smaller {words(Parameter('min_samples_leaf'))}, or more samples.")
    if looks.end == "uninformative":
        found.append("Other columns, or more samples: of these columns none tells of the label.")
    return found


def describe_tolerance_path(path: TolerancePath) -> Plain:
    """Every tolerance with its tree in numbers, and what leaves it."""
    points: list[Plain] = []
    for point, (left, entered) in zip(path.points, path.list_changes(), strict=True):
        held_out = point.held_out
        points.append(
            {
                "tolerance": point.tolerance,
                "name": name_tolerance(point.tolerance),
                "is_own": point.tolerance == path.own,
                "n_leaves": len(point.model.leaves),
                "features": [format_name(each) for each in point.features],
                "leave": left,
                "enter": entered,
                "information": point.information,
                "excess": point.excess,
                "dependence": point.dependence,
                "differs": point.differs,
                "auc_left_out": held_out and held_out.mean,
                "worst_auc_left_out": held_out and held_out.worst,
                "aucs_left_out": held_out and [*held_out.aucs],
                "text": str(point.model),
            }
        )
    has_scores = any(each["aucs_left_out"] is not None for each in points)
    return {
        "own": path.own,
        "points": points,
        "seconds": path.seconds,
        "has_scores": has_scores,
        "caution": CAUTION,
        "text": _say_path(points),
    }


def _say_path(points: Sequence[Plain]) -> str:
    """What the tolerance costs, in short."""
    plain, own = points[0], next(each for each in points if each["is_own"])
    if plain["tolerance"] is not None or not plain["information"]:
        return f"The tree was grown at {count(len(points), 'tolerance')}."
    told, differs = (f"{own[key]:,.0f} against {plain[key]:,.0f}" for key in _MEASURES)
    told = f"Beside a plain tree: information {told}, what differs {differs}"
    gone = [each for each in plain["features"] if each not in own["features"]]
    less = f"; without {_name_features(gone)}" if gone else ""
    scores = ""
    if own["auc_left_out"] is not None and plain["auc_left_out"] is not None:
        scores = (
            f" In environments left out its AUC is {own['auc_left_out']:.3f} on average, that of "
            f"the plain tree {plain['auc_left_out']:.3f}."
        )
    return f"{told}{less}.{scores}"


def list_tree_looks(summary: Plain) -> list[Plain]:
    """The nodes at which something worth a line was refused."""
    return [*list_refusing(summary["splits"], summary["leaves"])]


def is_of_tree(summary: Plain) -> bool:
    """Whether a summary is one of a tree."""
    return "splits" in summary
