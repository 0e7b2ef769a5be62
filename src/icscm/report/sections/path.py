"""Section `path`: the models at other levels alpha, or the trees at other tolerances."""

from __future__ import annotations

from collections.abc import Sequence

from icscm.formatting import count, format_name
from icscm.report.formatting import Names, Plain, format_share
from icscm.report.path import CAUTION, Path, PathPoint, format_tolerance
from icscm.report.sections.advice import explain_alpha
from icscm.report.sections.errors import describe_errors
from icscm.report.sections.leaves import count_conclusions, describe_leaves
from icscm.report.sections.model import name_features
from icscm.report.sections.nodes import walk_nodes

# Fields of a leaf that depend on the level, or are long.
_LEFT_OUT = ("environments", "explanation", "conclusion", "detectable", "difference_interval")


def describe_path(path: Path, names: Names, nodes: Plain) -> Plain:
    """Every value tried, with the models that they give and a short text."""
    if path.parameter == "alpha":
        models = [_describe_group(group, path, names, i) for i, group in enumerate(path.groups)]
        text = _summarize_alphas(path, models)
        found = {"models": models, **explain_alpha(nodes["criterion"])}
    else:
        points = _describe_points(path)
        text = _summarize_tolerances(points)
        has_scores = path.points[0].aucs is not None
        found = {"points": points, "has_scores": has_scores, "caution": CAUTION}
    shared = {"parameter": path.parameter, "own": path.own, "seconds": path.seconds}
    return {
        **shared,
        "n_searches": len(path.points),
        "n_models": len(path.groups),
        "text": text,
        **found,
    }


def _describe_group(group: Sequence[PathPoint], path: Path, names: Names, number: int) -> Plain:
    """One model, with the levels that give it and the conclusions at each."""
    model = group[0].model
    leaves = describe_leaves(model, names, group[0].trace.verdicts)
    errors = describe_errors(model, names)
    turn, letter = divmod(number, 26)  # A, B, .., Z, A2, B2, ..
    return {
        "name": chr(ord("A") + letter) + (str(turn + 1) if turn else ""),
        "alpha_from": group[0].value,
        "alpha_to": group[-1].value,
        "is_own": any(each.value == path.own for each in group),
        "text": str(model),
        "n_rules": len(model.rules),
        "walk": [*walk_nodes(model, names)],
        "leaves": [{k: v for k, v in leaf.items() if k not in _LEFT_OUT} for leaf in leaves],
        "errors": {key: errors[key] for key in ("error", "n_errors", "n", "worst")},
        "levels": [
            {
                "alpha": each.value,
                "is_own": each.value == path.own,
                "stop_text": each.trace.stop_text,
                "conclusions": count_conclusions(leaf.conclusion for leaf in each.trace.verdicts),
            }
            for each in group
        ],
    }


def _summarize_alphas(path: Path, models: Sequence[Plain]) -> str:
    """How the model depends on alpha."""
    ends = f"from {path.points[0].value:g} to {path.points[-1].value:g}"
    levels = f"{len(path.points)} levels alpha {ends}"
    if len(models) == 1:
        return f"The same model is learned at {levels}."
    filled = [each for each in models if each["n_rules"]]
    texts = [f"{levels} give {count(len({each['text'] for each in filled}), 'different model')}"]
    texts[0] += "".join(f", this one {_format_levels(each)}" for each in filled if each["is_own"])
    if filled:
        errors = [each["errors"]["error"] or 0.0 for each in filled]
        ends = " to ".join(dict.fromkeys(map(format_share, (min(errors), max(errors)))))
        texts.append(f"errors {ends}")
        used = [{rule.feature for rule in each[0].model.rules} for each in path.groups]
        shared = sorted(map(format_name, set.intersection(*filter(None, used))))
        texts.append(f"in all: {', '.join(shared)}" if shared else "no column is in all of them")
    empty = [_format_levels(each, "at") for each in models if not each["n_rules"]]
    texts += [f"no rule is found {' and '.join(empty)}"] if empty else []
    return "; ".join(texts) + "."


def _format_levels(each: Plain, single: str = "only at") -> str:
    ends = dict.fromkeys(f"{end:g}" for end in (each["alpha_from"], each["alpha_to"]))
    return f"{'from' if len(ends) > 1 else single} {' to '.join(ends)}"


def _describe_points(path: Path) -> list[Plain]:
    """Every tolerance with its tree in numbers, and the columns that leave or enter."""
    return [
        {
            "tolerance": point.value,
            "name": format_tolerance(point.value),
            "is_own": point.value == path.own,
            "n_leaves": len(point.model.leaves),
            "features": [format_name(each) for each in point.features],
            "leave": left,
            "enter": entered,
            "deviance_explained": point.deviance_explained,
            "heterogeneity": point.heterogeneity,
            "rate_heterogeneity": point.rate_heterogeneity,
            "varies": point.varies,
            "mean_auc": point.mean_auc,
            "worst_auc": point.worst_auc,
            "aucs": None if point.aucs is None else [*point.aucs],
            "text": str(point.model),
        }
        for point, (left, entered) in zip(path.points, path.list_changes(), strict=True)
    ]


def _summarize_tolerances(points: Sequence[Plain]) -> str:
    """The tree against a plain one: deviance, heterogeneity, columns and AUC."""
    plain, own = points[0], next(each for each in points if each["is_own"])
    if plain["tolerance"] is not None or not plain["deviance_explained"]:
        return f"The tree was grown at {count(len(points), 'tolerance')}."
    keys = "deviance_explained", "varies"
    deviance, varies = (f"{own[key]:,.0f} against {plain[key]:,.0f}" for key in keys)
    text = f"Compared with a plain tree: deviance explained {deviance}, heterogeneity {varies}"
    gone = [each for each in plain["features"] if each not in own["features"]]
    text += f"; without {name_features(gone)}." if gone else "."
    if own["mean_auc"] is not None and plain["mean_auc"] is not None:
        text += (
            f" Mean leave-one-environment-out AUC: {own['mean_auc']:.3f}, of the plain tree "
            f"{plain['mean_auc']:.3f}."
        )
    return text
