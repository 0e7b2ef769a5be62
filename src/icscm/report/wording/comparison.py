"""A comparison of learners: who ranks best, who errs least, and by how much.

A *way* is how scores were measured: in environments left out, or by cross-validation of rows. A
*kind* of learner is the baseline, other (plain ones), rules, or one that compares environments:
invariant (rule sets), trees, scores.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from icscm.formatting import as_text

# Differences between errors below this are none.
NEGLIGIBLE = 0.0005
# Slopes of calibration outside are worth a remark.
GOOD_SLOPES = (0.8, 1.25)


class Way(StrEnum):
    """How scores were measured."""

    ENVIRONMENTS = "Leave-one-environment-out"
    ROWS = "Cross-validation by rows"


# Kinds of learners that compare environments; groups whose best is named, by their kinds; and
# families, of whose best the change of the AUC is told.
COMPARING = ("invariant", "trees", "scores")
GROUPS = {
    ("rules", "invariant"): "rule sets",
    ("invariant",): "rule sets tested for invariance",
    ("trees",): "trees tested for invariance",
    ("scores",): "points scores",
}
FAMILIES = (("other",), ("rules", "invariant"), ("trees",), ("scores",))


class Candidate(Protocol):
    """A learner and its mean scores, in environments left out and by rows.

    `intervals` are those of the scores in environments. `gain` is by how much its error by rows is
    below the baseline's, with the ends of its interval.
    """

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def environments(self) -> Mapping[str, float | None]: ...
    @property
    def rows(self) -> Mapping[str, float | None]: ...
    @property
    def intervals(self) -> Mapping[str, tuple[float, float] | None]: ...
    @property
    def gain(self) -> tuple[float, float, float] | None: ...


@dataclass(frozen=True)
class Ranked:
    """A candidate with its score in one way of measuring."""

    candidate: Candidate
    score: float

    @property
    def name(self) -> str:
        return as_text(self.candidate.name)

    @property
    def kind(self) -> str:
        return self.candidate.kind


def describe_comparison(
    candidates: Sequence[Candidate], *, n_left_out: int, n_environments: int
) -> list[str]:
    """Return the conclusions: AUC and calibration first, then the error at 0.5."""
    sentences = caution_about_environments(n_left_out, n_environments)
    by_auc = {way: rank(candidates, way, "auc", largest_first=True) for way in Way}
    for way in Way:
        if len(by_auc[way]) > 1:
            sentences.append(describe_best_auc(by_auc[way], way))
            if way is Way.ENVIRONMENTS:
                sentences += describe_slopes(candidates)
    sentences += describe_changes(by_auc[Way.ROWS], by_auc[Way.ENVIRONMENTS])

    for way in Way:
        ranked = rank(candidates, way, "error")
        if len(ranked) > 1:
            sentences += describe_errors(ranked, way)
    return sentences


def rank(
    candidates: Sequence[Candidate], way: Way, measure: str, *, largest_first: bool = False
) -> list[Ranked]:
    """Return the candidates that have the score, the best first; ties in the order given."""
    ranked = []
    for candidate in candidates:
        score = find_scores(candidate, way)[measure]
        if score is not None:
            ranked.append(Ranked(candidate, score))
    return sorted(ranked, key=lambda learner: learner.score, reverse=largest_first)


def find_scores(candidate: Candidate, way: Way) -> Mapping[str, float | None]:
    """Return the mean scores of a candidate in one way of measuring."""
    return candidate.environments if way is Way.ENVIRONMENTS else candidate.rows


def caution_about_environments(n_left_out: int, n_environments: int) -> list[str]:
    """Return a caution where too few environments could be left out."""
    if n_environments == 2 and n_left_out:
        return [
            "There are two environments: each held-out score comes from a model learned in one "
            "environment, which compares none. Use three or more."
        ]
    if n_left_out == 1:
        return [
            "One environment is large enough to be held out: all leave-one-environment-out scores "
            "are from that one."
        ]
    return []


# --- AUC and calibration --------------------------------------------------------------------------


def describe_best_auc(by_auc: Sequence[Ranked], way: Way) -> str:
    """Return the candidate of the largest AUC, and the best of those that compare environments."""
    best = by_auc[0]
    sentence = f"{way}: {best.name} has the largest AUC, {describe_scores(best.candidate, way)}"
    comparing = find_best(by_auc, COMPARING)
    if comparing is not None and comparing is not best:
        scores = describe_scores(comparing.candidate, way)
        sentence += f"; of the learners that compare environments, {comparing.name}: {scores}"
    return f"{sentence}."


def find_best(ranked: Sequence[Ranked], kinds: Sequence[str]) -> Ranked | None:
    """Return the first candidate of these kinds."""
    for learner in ranked:
        if learner.kind in kinds:
            return learner
    return None


def describe_scores(candidate: Candidate, way: Way) -> str:
    """Return the AUC and the slope of calibration, with their intervals over environments."""
    text = describe_score(candidate, way, "auc", n_digits=3)
    if find_scores(candidate, way)["slope"] is None:
        return text
    slope = describe_score(candidate, way, "slope", n_digits=2)
    return f"{text}, with calibration slope {slope}"


def describe_score(candidate: Candidate, way: Way, measure: str, *, n_digits: int) -> str:
    """Return a mean score; over environments with its interval, where there is one."""
    text = f"{find_scores(candidate, way)[measure]:.{n_digits}f}"
    interval = candidate.intervals[measure]
    if way is Way.ROWS or interval is None:
        return text
    low, high = interval
    return f"{text} ({low:.{n_digits}f} to {high:.{n_digits}f})"


def describe_slopes(candidates: Sequence[Candidate]) -> list[str]:
    """Return whose predictions are too extreme or too moderate at new environments."""
    low, high = GOOD_SLOPES
    miscalibrated = []
    for candidate in candidates:
        slope = candidate.environments["slope"]
        if slope and not low <= slope <= high:
            miscalibrated.append(f"{candidate.name} ({slope:.2f})")
    if not miscalibrated:
        return []
    return [
        f"Calibration slope at new environments below {low} (predictions too extreme) or above "
        f"{high} (too moderate): {', '.join(miscalibrated)}."
    ]


def describe_changes(by_rows: Sequence[Ranked], by_environments: Sequence[Ranked]) -> list[str]:
    """Return by how much the AUC falls from rows to environments, for the best of each family."""
    auc_left_out = {learner.candidate.name: learner.score for learner in by_environments}
    measured_twice = [learner for learner in by_rows if learner.candidate.name in auc_left_out]
    changes = []
    for kinds in FAMILIES:
        best = find_best(measured_twice, kinds)
        if best is not None:
            change = auc_left_out[best.candidate.name] - best.score
            changes.append(f"{best.name} {change:+.3f}")
    if len(changes) < 2:
        return []
    return [f"Change of the AUC from rows to held-out environments: {', '.join(changes)}."]


# --- the error at 0.5 -----------------------------------------------------------------------------


def describe_errors(ranked: Sequence[Ranked], way: Way) -> list[str]:
    """Return the smallest error, the best of each group, and who is worse than the baseline."""
    best = ranked[0]
    baseline = find_best(ranked, ("baseline",))
    assert baseline is not None  # every comparison has one
    sentences = [describe_smallest_error(best, baseline, way)]

    already_named = [best, baseline]
    for kinds, group in GROUPS.items():
        leader = find_best(ranked, kinds)
        if leader is None or leader in already_named:
            continue
        already_named.append(leader)
        excess = leader.score - best.score
        sentence = f"Best of the {group} at 0.5: {leader.name}, {leader.score:.1%}"
        if best is not baseline and excess >= NEGLIGIBLE:
            sentence += f", {100 * excess:.1f} points more than {best.name}"
        sentences.append(f"{sentence}; {compare_errors(leader, baseline, way)}.")
    return sentences + describe_worse(ranked, baseline, way)


def describe_smallest_error(best: Ranked, baseline: Ranked, way: Way) -> str:
    """Return the candidate of the smallest error, or that none is better than the baseline."""
    if best is baseline:
        return (
            f"{way}: no candidate has a smaller error at 0.5 than the majority-class baseline, "
            f"{baseline.score:.1%}."
        )
    return (
        f"{way}: {best.name} has the smallest error at 0.5, {best.score:.1%}, "
        f"{compare_errors(best, baseline, way)}."
    )


def compare_errors(learner: Ranked, baseline: Ranked, way: Way) -> str:
    """Return by how much an error differs from the baseline's, if significantly.

    By rows the interval of the difference decides; over environments there is none.
    """
    gain = baseline.score - learner.score
    if abs(gain) < NEGLIGIBLE:
        return f"the same as the baseline ({baseline.score:.1%})"
    if way is Way.ROWS and learner.candidate.gain:
        _, low, high = learner.candidate.gain
        if low <= 0 <= high:
            return f"not significantly different from the baseline ({baseline.score:.1%})"
    direction = "less" if gain > 0 else "more"
    return f"{100 * abs(gain):.1f} points {direction} than the baseline"


def describe_worse(ranked: Sequence[Ranked], baseline: Ranked, way: Way) -> list[str]:
    """Return which of our learners have a larger error than the baseline."""
    worse = []
    for learner in ranked:
        is_ours = learner.kind not in ("baseline", "other")
        excess = learner.score - baseline.score
        if is_ours and excess >= NEGLIGIBLE:
            worse.append(f"{learner.name} (by {100 * excess:.1f} points)")
    if not worse:
        return []
    return [f"{way}: a larger error at 0.5 than the majority-class baseline: {', '.join(worse)}."]
