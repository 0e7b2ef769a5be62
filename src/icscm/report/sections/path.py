"""Section `path`: the models at other levels alpha, or the trees at other tolerances."""

from __future__ import annotations

from collections.abc import Sequence

from icscm.formatting import format_name
from icscm.report.formatting import Names, Plain, count_conclusions
from icscm.report.path import CAUTION, Path, PathPoint
from icscm.report.sections.leaves import describe_errors, describe_leaves
from icscm.report.sections.nodes import walk_nodes
from icscm.report.texts import write_lines, write_text

# Fields of a leaf that depend on the level, or are long.
_LEFT_OUT = ("environments", "explanation", "conclusion", "detectable", "difference_interval")


def describe_path(path: Path, names: Names, nodes: Plain) -> Plain:
    """Every value tried, with the models that they give and a short text."""
    if path.parameter == "alpha":
        models = [_describe_group(group, path, names, i) for i, group in enumerate(path.groups)]
        used = [{rule.feature for rule in group[0].model.rules} for group in path.groups]
        filled = [each for each in used if each]
        text = write_text(
            "alphas",
            models=models,
            n_levels=len(path.points),
            first=path.points[0].value,
            last=path.points[-1].value,
            shared=sorted(map(format_name, set.intersection(*filled))) if filled else [],
        )
        meaning, *ends = write_lines("alpha_path", criterion=nodes["criterion"])
        found: Plain = {"models": models, "meaning": meaning, "ends": ends}
    else:
        points = path.describe_points()
        text = write_text("tolerances", points=points)
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
