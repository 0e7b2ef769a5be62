"""The splits of a tree: what each tells, by how much its effect differs, and what was refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp, sqrt
from operator import itemgetter
from typing import Final, NamedTuple

import numpy as np
from scipy import special

from icscm._constants import VERDICT_CONFIDENCE
from icscm.formatting import format_name
from icscm.model.leaves import LeafCounts
from icscm.report.words import Names, Plain, count_samples
from icscm.search.records import REJECTION_REASONS, STOP_REASONS, Candidate, Rejection
from icscm.search.trace import Scan, Trace
from icscm.stats.splits import measure_effects

# Odds ratios that are known this badly (standard error of the logarithm) are not named as ends.
_VAGUE: Final = 1.0


def describe_splits(trace: Trace, names: Names) -> list[Plain]:
    """Every split of the tree, with what was refused beside it."""
    described = []
    for number, look in enumerate(trace.splits, start=1):
        told = describe_candidate(look.chosen, names)
        described.append({"number": number, **told, **describe_look(look, names)})
    return described


def describe_look(look: Scan, names: Names) -> Plain:
    """The node, how many splits of it were refused, and the best of those; why it is a leaf."""
    return {
        "node": " and ".join(map(str, look.path)) or "all samples",
        "n_candidates": look.n_candidates,
        "n_refused": dict(look.n_rejected),
        "n_refused_all": sum(look.n_rejected.values()),
        "refused": [_describe_refusal(each, names) for each in look.best_rejected],
        "end": look.end,
        "end_text": look.end and STOP_REASONS[look.end],
    }


def describe_candidate(candidate: Candidate, names: Names) -> Plain:
    """What a split tells, and its odds ratio by environment.

    How far the effect differs is measured here from the counts, so that it is known of plain trees,
    too.
    """
    _, excess, share = measure_effect(candidate)
    environments = describe_odds(candidate.if_true, candidate.if_false, names)
    return {
        "rule": str(candidate.rule),
        "feature": format_name(candidate.rule.feature),
        "n": count_samples(candidate.if_true) + count_samples(candidate.if_false),
        "n_true": count_samples(candidate.if_true),
        "information": candidate.deviance_explained,
        "dependence": candidate.rate_heterogeneity,
        "excess": excess,
        "share": share,
        "variation": sqrt(share),
        "variation_text": say_variation(share) if len(names.environments) > 1 else "",
        "odds_ratio": exp(candidate.log_odds_ratio or 0.0),
        "environments": environments,
        **_find_ends(environments),
    }


class Effect(NamedTuple):
    """What a split tells of an effect common to all environments, and by how much it differs."""

    information: float
    excess: float
    share: float


def measure_effect(candidate: Candidate) -> Effect:
    """The same two numbers for every split, whatever its tree was asked for."""
    halves = candidate.if_true, candidate.if_false
    true, false = (np.array(each, dtype=np.int64) for each in halves)
    found = measure_effects(false[np.newaxis], true + false, 1)
    return Effect(
        *(
            float(each[0])
            for each in (found.deviance_explained, found.heterogeneity, found.heterogeneity_share)
        )
    )


def say_variation(share: float) -> str:
    """By how much an effect varies between environments, in words.

    >>> say_variation(0.0), say_variation(0.03), say_variation(1.7)
    ('no more than by chance', 'by about 17%', 'by more than it is large')
    """
    if share == 0:
        return "no more than by chance"
    return f"by about {max(sqrt(share), 0.01):.0%}" if share <= 1 else "by more than it is large"


def describe_odds(if_true: LeafCounts, if_false: LeafCounts, names: Names) -> list[Plain]:
    """The odds ratio in each environment and its interval; None where it has none.

    Half a sample is added to each cell (Haldane and Anscombe), as usual; an environment that the
    split does not divide, or of one label, tells nothing.
    """
    cells = np.array([*if_true, *if_false], dtype=np.float64)  # (not, is) where true, where false
    true_not, true_is, false_not, false_is = cells
    margins = true_not + true_is, false_not + false_is, true_not + false_not, true_is + false_is
    is_known = np.all(np.stack(margins) > 0, axis=0)
    logs = np.log(cells + 0.5)
    log_odds = logs[1] - logs[0] - logs[3] + logs[2]
    errors = np.sqrt((1 / (cells + 0.5)).sum(axis=0))
    reach = float(special.ndtri((1 + VERDICT_CONFIDENCE) / 2)) * errors
    ratios, low, high = np.exp([log_odds, log_odds - reach, log_odds + reach]).tolist()
    return [
        {
            "environment": name,
            "n": int(cells[:, i].sum()),
            "odds_ratio": ratios[i] if is_known[i] else None,
            "odds_ratio_interval": [low[i], high[i]] if is_known[i] else None,
            "error": float(errors[i]) if is_known[i] else None,
        }
        for i, name in enumerate(names.environments)
    ]


def _find_ends(environments: Sequence[Plain]) -> Plain:
    """The environments of smallest and largest odds ratio, of those in which it is well known."""
    known = [each for each in environments if each["odds_ratio"] is not None]
    clear = [each for each in known if each["error"] <= _VAGUE]
    named = clear if len(clear) > 1 else known
    ends = (find(named, key=itemgetter("odds_ratio"), default=None) for find in (min, max))
    kept = "environment", "n", "odds_ratio"
    told = [each and {key: each[key] for key in kept} for each in ends]
    return dict(zip(("n_seen", "lowest", "highest"), (len(known), *told), strict=True))


def _describe_refusal(refusal: Rejection, names: Names) -> Plain:
    fields = describe_candidate(refusal.candidate, names)
    why = REJECTION_REASONS[refusal.reason]
    if refusal.reason == "heterogeneous" and fields["n_seen"] > 1:
        why += f": {say_ends(fields, names)}"
    del fields["environments"]  # its ends tell enough, and there are many of these
    return {**fields, "reason": refusal.reason, "why": why}


def say_ends(fields: Plain, names: Names) -> str:
    """The range of the odds ratio over environments, in words."""
    ends = [
        f"{format_ratio(each['odds_ratio'])} ({names.place(each)})"
        for each in (fields["lowest"], fields["highest"])
    ]
    return f"odds ratio from {ends[0]} to {ends[1]}"


def format_ratio(ratio: float | None) -> str:
    """An odds ratio in two or three digits.

    >>> [format_ratio(each) for each in (2.104, 0.0321, 38.4, 1234.5, None)]
    ['2.1', '0.032', '38', '1,200', '-']
    """
    if ratio is None:
        return "-"
    return f"{float(f'{ratio:.2g}'):,g}"


def list_refusing(splits: Sequence[Plain], leaves: Sequence[Plain]) -> Iterator[Plain]:
    """Every node that refused something worth a line, with its name."""
    for split in splits:
        if split["refused"]:
            yield {**split, "title": f"Split {split['number']}, {split['rule']}"}
    for leaf in leaves:
        if leaf["refused"] and leaf["end"] == "rejected":
            yield {**leaf, "title": f"Leaf {leaf['number']}, not split"}


def list_refused_features(looks: Sequence[Plain], used: Sequence[str]) -> list[Plain]:
    """Features that are not in the tree, each by its most informative refused split."""
    found: dict[str, Plain] = {}
    for look in looks:
        for each in look["refused"]:
            best = found.get(each["feature"])
            if each["feature"] not in used and (
                best is None or each["information"] > best["information"]
            ):
                found[each["feature"]] = {**each, "node": look["node"]}
    return sorted(found.values(), key=lambda each: -each["information"])


def describe_importances(trace: Trace) -> list[Plain]:
    """Features of the tree in two columns, the most informative first."""
    found = trace.list_importances()
    total = sum(information for information, _ in found.values()) or 1.0
    return [
        {
            "feature": format_name(feature),
            "information": information,
            "part": information / total,
            "dependence": dependence,
        }
        for feature, (information, dependence) in sorted(
            found.items(), key=lambda item: -item[1][0]
        )
    ]


def describe_tried(trace: Trace) -> list[Plain]:
    """The trees that were grown on the way, those of invariant rates have some."""
    return [
        {
            "banned": [format_name(each) for each in tree.banned],
            "used": [format_name(each) for each in tree.used],
            "information": tree.deviance_explained,
            "dependence": tree.rate_heterogeneity,
            "dof": tree.dof,
            "score": tree.score,
        }
        for tree in trace.tried
    ]
