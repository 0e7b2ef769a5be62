"""Performance in environments left out: discrimination, calibration, Brier score, and a caution.

Each line is a term and a text, such as `Calibration: slope 0.9 in 4 environments left out: ...`. A
line claims no more than its interval shows.
"""

from collections.abc import Mapping, Sequence
from math import exp

from icscm.formatting import count, shorten_list
from icscm.report.content.validation import PooledScore
from icscm.report.formatting import join_words
from icscm.report.wording.estimates import (
    describe_estimate,
    has_interval,
    has_prediction_interval,
)
from icscm.tables.suspicion import EMPTY

# Scores with a line of their own.
DESCRIBED = ("auc", "slope", "intercept", "brier", "skill")
# Beyond these log odds the ratio of odds is given as a bound: exp(4.6) is about 100.
MAX_SHIFT = 4.6
# From this shift of the log odds on (a factor of two), risks are misleading without recalibration.
LARGE_SHIFT = 0.7


def describe_validation(
    pooled: Mapping[str, PooledScore | None],
    titles: Mapping[str, str],
    n_environments: int,
    dropped: Mapping[str, Sequence[str]] | None = None,
) -> list[str]:
    """Return the lines on each score, and cautions.

    `dropped` are columns that hold no value without an environment, by its name.
    """
    auc = pooled.get("auc")
    slope = pooled.get("slope")
    intercept = pooled.get("intercept")
    brier = pooled.get("brier")
    skill = pooled.get("skill")

    lines = []
    if auc is not None:
        lines.append(describe_discrimination(auc, n_environments))
    if intercept is not None:
        lines.append(describe_calibration(slope, intercept, n_environments))
    if brier is not None and skill is not None:
        lines.append(describe_brier_score(brier, skill, n_environments))

    for name, title in titles.items():
        if name not in DESCRIBED:
            score = pooled[name]
            text = "by environment" if score is None else describe_estimate(score)
            lines.append(f"{title}: {text} {describe_place(n_environments)}")

    if dropped:
        lines.append(f"Dropped: {list_dropped(dropped)}")
    caution = describe_few_environments(n_environments)
    return lines if caution is None else [*lines, caution]


def list_dropped(dropped: Mapping[str, Sequence[str]]) -> str:
    """List the columns that are dropped where an environment is left out, and why.

    >>> list_dropped({"north": ["lactate"], "south": ["ph", "bmi"]})
    'lactate without north, ph and bmi without south (all values are missing)'
    """
    parts = [
        f"{join_words(list(columns))} without {environment}"
        for environment, columns in dropped.items()
    ]
    return f"{shorten_list(parts)} ({EMPTY})"


def describe_place(n_environments: int) -> str:
    """Return `in 4 environments left out`."""
    return f"in {count(n_environments, 'environment')} left out"


def describe_discrimination(auc: PooledScore, n_environments: int) -> str:
    """Return the line on the AUC, with the number of environments that have one."""
    line = f"Discrimination: AUC {describe_estimate(auc)} {describe_place(n_environments)}"
    if auc.n_environments < n_environments:
        line += f" ({auc.n_environments} with both classes)"
    if has_interval(auc):
        line += f": {judge_discrimination(auc)}"
    return line + describe_new_auc(auc)


def judge_discrimination(auc: PooledScore) -> str:
    """Return whether the interval of the AUC lies above chance, below it, or on both sides."""
    if auc.low > 0.5:
        return "better than chance"
    if auc.high < 0.5:
        return "worse than chance"
    return "not shown to be better than chance"


def describe_new_auc(auc: PooledScore) -> str:
    """Return the prediction interval of the AUC as the end of a line; empty where it is unknown."""
    if not has_prediction_interval(auc):
        return ""
    ends = f"{auc.new_low:.2f} to {auc.new_high:.2f}"
    return f"; 95% prediction interval for a new environment {ends}"


def describe_calibration(
    slope: PooledScore | None, intercept: PooledScore, n_environments: int
) -> str:
    """Return the line on calibration: the slope decides, then the intercept."""
    line = "Calibration: "
    if slope is not None:
        line += f"slope {describe_estimate(slope)}, "
    line += f"intercept {describe_estimate(intercept)} {describe_place(n_environments)}"
    line += f": {judge_calibration(slope, intercept)}"
    return line + describe_new_intercept(intercept)


def judge_calibration(slope: PooledScore | None, intercept: PooledScore) -> str:
    """Return what is wrong with the predicted risks, as far as the intervals show it."""
    if slope is not None and has_interval(slope):
        if slope.low > 1:
            return "predicted risks are too moderate"
        if slope.high < 1:
            return "predicted risks are too extreme"
    if has_interval(intercept):
        if intercept.low > 0:
            return "predicted risks are too low"
        if intercept.high < 0:
            return "predicted risks are too high"
    return "no common miscalibration is detected"


def describe_new_intercept(intercept: PooledScore) -> str:
    """Return by what factor odds may be off in a new environment, and whether to recalibrate."""
    if not has_prediction_interval(intercept):
        return ""
    low = "0.01 or less" if intercept.new_low < -MAX_SHIFT else f"{exp(intercept.new_low):.2g}"
    high = "100 or more" if intercept.new_high > MAX_SHIFT else f"{exp(intercept.new_high):.2g}"
    text = f"; in a new environment the odds may be {low} to {high} times those predicted"
    if intercept.new_low < -LARGE_SHIFT or intercept.new_high > LARGE_SHIFT:
        text += ": recalibrate the model there before using its risks"
    return text


def describe_brier_score(brier: PooledScore, skill: PooledScore, n_environments: int) -> str:
    """Return the line on the Brier score and its skill relative to the rate in training."""
    line = (
        f"Brier score: {describe_estimate(brier)} {describe_place(n_environments)}, "
        f"skill {describe_estimate(skill)} against the majority-class baseline "
        "(the rate in training)"
    )
    if not has_interval(skill):
        return line
    if skill.low > 0:
        return f"{line}: better"
    if skill.high < 0:
        return f"{line}: worse"
    return f"{line}: not shown to be better"


def describe_few_environments(n_environments: int) -> str | None:
    """Return a caution where environments are too few to estimate how much they vary."""
    if n_environments < 3:
        return (
            f"Caution: with {n_environments} environments each score comes from a model trained on "
            "a single environment; the variation between environments cannot be estimated"
        )
    if n_environments < 5:
        return (
            f"Caution: {n_environments} environments are too few for a precise estimate of the "
            "variation between environments; the intervals are therefore wide"
        )
    return None
