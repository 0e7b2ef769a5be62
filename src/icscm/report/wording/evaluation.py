"""An evaluation on new rows: its headline, notes, leaves, prediction intervals and decisions."""

from collections.abc import Sequence

from icscm.formatting import as_text, count, shorten_list
from icscm.report.content.evaluation import (
    CalibratedLeaf,
    EvaluatedRows,
    EvaluationContent,
    RateCheck,
    Scores,
)
from icscm.report.content.validation import Score
from icscm.report.formatting import format_p, format_score, format_share

NOT_SHOWN = "not shown to be better"
UNDEFINED = "No value: one class only, or no probabilities."
# Measures that are shares; the others are numbers.
SHARES = ("error", "balanced_accuracy", "sensitivity", "specificity", "ppv", "npv")


def write_measure(scores: Scores, name: str) -> str:
    """Return the value of a measure: a share in percent, others as numbers; - where undefined."""
    score = scores[name]
    return "-" if score is None else write_number(score.value, name)


def write_bounds(scores: Scores, name: str) -> str:
    """Return the confidence interval of a measure."""
    score = scores[name]
    if score is None:
        return ""
    return f"{write_number(score.low, name)} to {write_number(score.high, name)}"


def write_number(value: float | None, name: str) -> str:
    """Return a value as its measure is written."""
    return format_share(value) if name in SHARES else format_score(value)


# --- the headline ---------------------------------------------------------------------------------


def describe_evaluation(
    rows: EvaluatedRows,
    *,
    verdict: str,
    p_value: float,
    at: str,
    baseline_class: str,
    baseline_is_of_training: bool,
) -> str:
    """Return sentences on discrimination, on calibration, and on the model against the baseline.

    The verdict, such as `better`, compares Brier scores or, where the model has no probabilities,
    errors. `at` says how rows were predicted, such as `at threshold 0.5`.
    """
    scores = rows.scores
    auc = scores["auc"]
    error = scores["error"]
    brier = scores["brier"]
    baseline_error = rows.baseline["error"]
    baseline_brier = rows.baseline["brier"]
    assert error is not None
    assert baseline_error is not None

    sentences = []
    if auc is not None:
        sentences.append(describe_auc(auc, rows.n_samples))
    if scores["observed_expected"] is not None:
        sentences.append(describe_calibration(scores))

    # a p-value is given only where it explains why the model is not called better
    verdict_test = f", p = {format_p(p_value)}" if verdict == NOT_SHOWN else ""
    model_error = f"Error {at}: {format_share(error.value)}"
    baseline = f"majority-class baseline (always {baseline_class})"
    error_of_baseline = format_share(baseline_error.value)

    if brier is None or baseline_brier is None:  # there are no probabilities
        interval = f"95% interval {format_share(error.low)} to {format_share(error.high)}"
        sentences.append(
            f"{model_error} ({interval}), {verdict} than that of the {baseline}, "
            f"{error_of_baseline}{verdict_test}."
        )
        return " ".join(sentences)

    origin = "of training" if baseline_is_of_training else "of these data"
    sentences.append(
        f"Brier score {format_score(brier.value)}, {verdict} than that of the constant rate "
        f"{origin}, {format_score(baseline_brier.value)}{verdict_test}."
    )
    sentences.append(f"{model_error}, {baseline} {error_of_baseline}.")
    return " ".join(sentences)


def describe_auc(auc: Score, n_rows: int) -> str:
    """Return the AUC with its interval and the number of rows."""
    interval = f"95% interval {auc.low:.2f} to {auc.high:.2f}"
    return f"AUC {auc.value:.2f} ({interval}) in {count(n_rows, 'sample')}."


def describe_calibration(scores: Scores) -> str:
    """Return slope and intercept, where they are defined, and observed / expected."""
    slope, intercept = scores["slope"], scores["intercept"]
    ratio = scores["observed_expected"]
    assert ratio is not None
    parts = []
    if slope is not None:
        parts.append(f"slope {slope.value:.2f}")
    if intercept is not None:
        parts.append(f"intercept {intercept.value:z.2f}")
    parts.append(f"observed / expected {ratio.value:.2f}")
    return f"Calibration: {', '.join(parts)}."


def describe_baseline(label: str, origin: str) -> str:
    """Return what the baseline predicts; `origin` is "training" where its majority is known."""
    where = describe_baseline_place(origin)
    return f"always {label}, the majority class {where}; its probability is the constant rate there"


def describe_baseline_place(origin: str) -> str:
    """Return where the class that the baseline predicts is the majority."""
    if origin == "training":
        return "in training"
    return "in these data (that of training is not known)"


# --- notes ----------------------------------------------------------------------------------------


def note_single_classes(
    rows: EvaluatedRows, environments: Sequence[EvaluatedRows], classes: Sequence[object]
) -> list[str]:
    """Return where only one class occurs, so that scores are undefined."""
    if has_single_class(rows):
        label = as_text(classes[1 if rows.n_positive else 0])
        return [
            f"All samples are {label}: balanced accuracy and AUC, which need both classes, are "
            "undefined."
        ]
    undefined = [environment for environment in environments if has_single_class(environment)]
    if not undefined:
        return []
    return [f"One class only, so AUC and balanced accuracy are undefined: {list_names(undefined)}."]


def has_single_class(rows: EvaluatedRows) -> bool:
    """Return whether all rows are of the same class."""
    return rows.n_positive in (0, rows.n_samples)


def note_no_better(environments: Sequence[EvaluatedRows], *, has_probabilities: bool) -> list[str]:
    """Return in which environments the model is no better than the baseline."""
    if has_probabilities:
        measure, title, baseline = "brier", "Brier score", "constant rate"
    else:
        measure, title, baseline = "error", "error", "majority-class baseline"
    no_better = [environment for environment in environments if is_no_better(environment, measure)]
    if not no_better or len(environments) < 2:
        return []
    return [
        f"In {len(no_better)} of {len(environments)} environments the {title} is not below that of "
        f"the {baseline}: {list_names(no_better)}."
    ]


def is_no_better(rows: EvaluatedRows, measure: str) -> bool:
    """Return whether a loss is known to be no smaller than that of the baseline."""
    score = rows.scores[measure]
    baseline = rows.baseline[measure]
    return score is not None and baseline is not None and score.value >= baseline.value


def note_new_environments(environments: Sequence[EvaluatedRows]) -> list[str]:
    """Return which environments did not occur in training."""
    new_environments = [environment for environment in environments if environment.is_new]
    if not new_environments:
        return []
    n_rows = sum(environment.n_samples for environment in new_environments)
    rows = count(n_rows, "sample")
    return [f"Not in the training data, {rows}: {list_names(new_environments)}."]


def list_names(environments: Sequence[EvaluatedRows]) -> str:
    """Return the names of environments, the first few of many."""
    return shorten_list([as_text(environment.environment) for environment in environments])


# --- leaves ---------------------------------------------------------------------------------------


def describe_leaves(leaves: Sequence[CalibratedLeaf]) -> str:
    """Return which leaves have another rate than in training."""
    tested = [leaf for leaf in leaves if leaf.has_moved is not None]
    moved = [str(leaf.leaf) for leaf in tested if leaf.has_moved]
    return describe_moved_leaves(moved, n_tested=len(tested))


def describe_checks(content: EvaluationContent) -> str:
    """Return how many rates of leaves in new environments are within their interval."""
    checks = [check for leaf in content.leaves for check in leaf.interval_checks]
    return describe_interval_checks(
        n_rates=len(checks),
        n_inside=sum(check.is_inside for check in checks),
        n_new_environments=len({str(check.environment) for check in checks}),
        has_environments=bool(content.environments),
    )


def describe_moved_leaves(moved: Sequence[str], n_tested: int) -> str:
    """Return which leaves have another rate than in training, of those with rows to compare."""
    if not n_tested:
        return "No leaf has samples to compare."
    leaves = count(n_tested, "leaf")
    if not moved:
        return f"The rate of none of {leaves} differs from training."
    noun = "leaf" if len(moved) == 1 else "leaves"
    return (
        f"The rates of {len(moved)} of {leaves} differ from training: {noun} {shorten_list(moved)}."
    )


def describe_movement(has_moved: bool | None) -> str:
    """Return whether the rate of a leaf differs; empty where it does not."""
    if has_moved is None:
        return "no samples"
    return "differs" if has_moved else ""


def describe_interval_check(checks: Sequence[RateCheck]) -> str:
    """Return the environments in which the rate of a leaf is outside the interval, or `within`."""
    if not checks:
        return ""
    outside = [describe_check(check) for check in checks if not check.is_inside]
    return f"outside: {shorten_list(outside)}" if outside else "within"


def describe_check(check: RateCheck) -> str:
    """Return `hospital 3 (12.3%)`: the environment, if there are any, and the rate."""
    rate = format_share(check.n_positive / check.n_samples)
    if check.environment is None:
        return f"({rate})"
    return f"{as_text(check.environment)} ({rate})"


def describe_interval_checks(
    *, n_rates: int, n_inside: int, n_new_environments: int, has_environments: bool
) -> str:
    """Return how many rates of leaves in new environments are within their prediction interval."""
    if not n_rates:
        return ""
    place = "these samples, taken as a new environment,"
    if has_environments:
        place = f"{count(n_new_environments, 'environment')} not seen in training"
    verb = "is" if n_inside == 1 else "are"
    return (
        f"Of {count(n_rates, 'rate')} of leaves in {place} {n_inside:,} {verb} within the 95% "
        "prediction interval."
    )


# --- decisions ------------------------------------------------------------------------------------


def describe_decisions(
    thresholds: Sequence[float], net_benefit: Sequence[float], treat_all: Sequence[float]
) -> str:
    """Return at which thresholds the model is of more use than treating all or none.

    The net benefit of treating none is 0 at every threshold.
    """
    useful = [
        threshold
        for threshold, of_model, of_all in zip(thresholds, net_benefit, treat_all, strict=True)
        if of_model > max(of_all, 0.0)
    ]
    limits = f"{thresholds[0]:.2g} to {thresholds[-1]:.2g}"
    if not useful:
        return (
            f"The net benefit of the model is at no threshold from {limits} above that of treating "
            "all and of treating none."
        )
    return (
        "The net benefit of the model is above that of treating all and of treating none at "
        f"{len(useful) / len(thresholds):.0%} of the thresholds from {limits}, between "
        f"{useful[0]:.2g} and {useful[-1]:.2g}."
    )
