"""Rows that are weighted or belong together: only ratios of weights matter, and no name of a group.

Weights are multiplied by a factor. Groups lie within environments, across them, or both; they are
named otherwise, and their rows come in another order. The model must be the same.
"""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from random import Random
from typing import Any

import icscm
from fuzz.judging import DONE, find_faults
from fuzz.models import read_predictions
from fuzz.newcomers import (
    LEARNERS,
    Rows,
    draw_table,
    fit_frame,
    listen,
    make_frame,
    make_rows,
    predict_probabilities,
    report_faults,
    run_fit,
    take_columns,
)
from fuzz.parallel import make_learner
from fuzz.processes import call
from fuzz.tables import Spec
from icscm.exceptions import IcscmError

_MODELS = ("rule", "rule", "tree", "tree", "scm", "forest", "score")
_FACTORS = (1e-9, 1e-3, 0.1, 1 / 3, 7.0, 1e12, 2.0**-29, 2.0**-3, 2.0**10, 2.0**39)
_WEIGHTS = ("whole", "drawn", "zeros", "extreme")
_LAYOUTS = ("within", "across", "mixed")
_TOLERANCE = 1e-9


def make(rng: Random) -> Spec:
    """A table, weights and a factor, or groups in a layout."""
    what = rng.choice(("weights", "groups"))
    return {
        "what": what,
        "way": rng.choice(("python", "python", "command")),
        **draw_table(rng),
        "model": rng.choice(_MODELS),
        "jobs": 1,
        "weights": rng.choice(_WEIGHTS) if what == "weights" or rng.random() < 0.3 else None,
        "factor": rng.choice(_FACTORS),
        "layout": rng.choice(_LAYOUTS) if what == "groups" or rng.random() < 0.3 else None,
        "size": rng.choice((1, 2, 5, 5, 30, 500)),
        "validated": rng.random() < 0.3,
    }


def judge(spec: Spec, folder: Path) -> list[str]:
    """What is wrong with the models of the same rows, described in two ways."""
    if spec["way"] == "command":
        faults = _judge_files(spec, folder)
    else:
        function = try_weights if spec["what"] == "weights" else try_groups
        faults = report_faults(folder, function, spec)
    about = spec["factor"] if spec["what"] == "weights" else f"{spec['layout']} {spec['size']}"
    what = f"{spec['what']} {spec['model']} {spec['way']} {spec['weights']} {about}"
    return [f"{fault} [{what}]" for fault in faults]


def draw_weights(spec: Spec) -> list[float]:
    """Weights of a kind, of which some rows of each class and site have more than none."""
    rng = random.Random(spec["seed"] + 3)
    n_rows = len(spec["rows"])
    match spec["weights"]:
        case "whole":
            return [float(rng.randrange(1, 8)) for _ in range(n_rows)]
        case "zeros":
            return [rng.choice((0.0, 1.0, 1.5)) for _ in range(n_rows)]
        case "extreme":
            return [10.0 ** rng.uniform(-6, 2) for _ in range(n_rows)]
    return [rng.lognormvariate(0, 0.8) for _ in range(n_rows)]


def draw_groups(spec: Spec, rows: Rows) -> list[str]:
    """A group of each row: within a site, across all, or some groups so and some so."""
    rng = random.Random(spec["seed"] + 4)
    n_groups = max(1, len(spec["rows"]) // spec["size"])
    is_across = {"within": 0.0, "across": 1.0, "mixed": 0.5}[spec["layout"]]
    spans = [rng.random() < is_across for _ in range(n_groups)]
    groups = [rng.randrange(n_groups) for _ in spec["rows"]]
    return [
        f"patient {group}" if spans[group] else f"patient {group} {site}"
        for group, site in zip(groups, rows["site"], strict=True)
    ]


def _describe_rows(spec: Spec, rows: Rows) -> dict[str, Any]:
    """The weights and groups of a case, as `fit` takes them."""
    described: dict[str, Any] = {}
    if spec["weights"]:
        described["sample_weight"] = draw_weights(spec)
    if spec["layout"]:
        described["groups"] = draw_groups(spec, rows)
    return described


def try_weights(spec: Spec) -> list[str]:
    """Only the ratios of weights matter."""
    rows = make_rows(spec)
    described = _describe_rows(spec, rows)
    weights = described["sample_weight"]
    scaled = [weight * spec["factor"] for weight in weights]
    frame = make_frame(take_columns(rows), spec["frame"])
    one = fit_frame(spec, rows, **described)
    other = fit_frame(spec, rows, **(described | {"sample_weight": scaled}))
    faults = _compare_learners(spec, one, other, frame)

    scores = [
        learner.score(frame, rows["y"], sample_weight=sample_weight)
        for learner, sample_weight in ((one, weights), (other, scaled))
    ]
    faults += [f"scores differ: {scores}"] * (not math.isclose(*scores, abs_tol=_TOLERANCE))
    evaluated = [
        icscm.evaluate(one, frame, rows["y"], environments=rows["site"], sample_weight=each)
        for each in (weights, scaled)
    ]
    faults += find_differences(*(_list_numbers(each.to_dict()) for each in evaluated))
    if spec["validated"]:
        validations = [
            _validate(spec, frame, rows, described | {"sample_weight": each})
            for each in (weights, scaled)
        ]
        faults += find_differences(*(_list_numbers(each) for each in validations))
    return faults


def _validate(spec: Spec, frame: Any, rows: Rows, described: Any) -> dict[str, Any]:
    """The scores of environments left out; nothing if there is no group beside one of them."""
    learner = make_learner(spec | {"learner": LEARNERS[spec["model"]]})
    said = listen(
        lambda: icscm.leave_one_environment_out(
            learner, frame, rows["y"], environments=rows["site"], **described
        )
    )
    if "every group has rows there" in said.error:
        return {}
    if said.error:
        raise IcscmError(said.error)
    return said.value.to_dict()  # type: ignore[no-any-return]


def _list_numbers(document: Any) -> list[float]:
    """All numbers of a document but sums of weights, in order."""
    if isinstance(document, dict):
        return [n for key in sorted(document, key=str) for n in _list_numbers(document[key])]
    if isinstance(document, list | tuple):
        return [number for each in document for number in _list_numbers(each)]
    is_number = isinstance(document, int | float) and not isinstance(document, bool)
    return [float(document)] if is_number else []


def find_differences(numbers: list[float], others: list[float]) -> list[str]:
    """Whether numbers of two results differ by more than rounding."""
    if len(numbers) != len(others):
        return [f"{len(numbers)} numbers, and {len(others)}"]
    pairs = zip(numbers, others, strict=True)
    differ = [
        (one, other)
        for one, other in pairs
        if not math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-6)
        and not (math.isnan(one) and math.isnan(other))
    ]
    return [f"{len(differ)} numbers of the result differ: {differ[:3]}"] if differ else []


def _compare_learners(spec: Spec, one: Any, other: Any, frame: Any) -> list[str]:
    """The same model in words, and probabilities: of a power of two to the last bit."""
    if str(one.model_) != str(other.model_):
        return [f"other models: {str(one.model_)[:200]} and {str(other.model_)[:200]}"]
    return _compare_probabilities(
        spec, predict_probabilities(one, frame), predict_probabilities(other, frame)
    )


def _compare_probabilities(spec: Spec, one: list[float], other: list[float]) -> list[str]:
    difference = max((abs(a - b) for a, b in zip(one, other, strict=True)), default=0.0)
    is_exact = spec["what"] == "groups" or math.frexp(spec["factor"])[0] == 0.5
    if difference > (0 if is_exact else _TOLERANCE):
        return [f"probabilities differ by {difference:.3g}"]
    return []


# --- groups ---------------------------------------------------------------------------------------


def try_groups(spec: Spec) -> list[str]:
    """Neither names of groups nor the order of rows matter, and every study takes groups."""
    rows = make_rows(spec)
    described = _describe_rows(spec, rows)
    groups = described["groups"]
    frame = make_frame(take_columns(rows), spec["frame"])
    one = fit_frame(spec, rows, **described)

    renamed = _rename(spec, groups)
    faults = _compare_learners(
        spec, one, fit_frame(spec, rows, **(described | {"groups": renamed})), frame
    )
    if spec["model"] != "forest":  # which draws rows by their place
        faults += [
            f"another order: {fault}" for fault in _try_order(spec, rows, described, one, frame)
        ]
    studied = icscm.check_environments(frame, rows["y"], environments=rows["site"], groups=groups)
    renamed_study = icscm.check_environments(
        frame, rows["y"], environments=rows["site"], groups=renamed
    )
    faults += ["check says otherwise"] * (repr(studied) != repr(renamed_study))
    for labels in (groups, renamed):
        icscm.evaluate(one, frame, rows["y"], environments=rows["site"], groups=labels)
    if spec["validated"]:
        _validate(spec, frame, rows, described)
    return faults


def _rename(spec: Spec, groups: list[str]) -> list[int]:
    """Number the groups in another order than that of their names."""
    names = sorted(set(groups))
    random.Random(spec["seed"] + 5).shuffle(names)
    numbers = {name: number for number, name in enumerate(names)}
    return [numbers[group] for group in groups]


def _try_order(spec: Spec, rows: Rows, described: Any, one: Any, frame: Any) -> list[str]:
    """Fit the rows in another order."""
    order = list(range(len(spec["rows"])))
    random.Random(spec["seed"] + 6).shuffle(order)
    shuffled = {name: [cells[i] for i in order] for name, cells in rows.items()}
    moved = {name: [values[i] for i in order] for name, values in described.items()}
    return _compare_learners(spec, one, fit_frame(spec, shuffled, **moved), frame)


# --- commands -------------------------------------------------------------------------------------


def _judge_files(spec: Spec, folder: Path) -> list[str]:
    """Fit from two files that say the same, with the columns of weights and groups named."""
    rows = make_rows(spec)
    described = _describe_rows(spec, rows)
    options = [] if spec["validated"] else ["--no-validation"]
    options += ["--weight", "w"] if spec["weights"] else []
    options += ["--group", "g"] if spec["layout"] else []

    answers = []
    for is_changed in (False, True):
        table = dict(rows)
        if spec["weights"]:
            factor = spec["factor"] if is_changed and spec["what"] == "weights" else 1.0
            table["w"] = [weight * factor for weight in described["sample_weight"]]
        if spec["layout"]:
            groups = described["groups"]
            table["g"] = _rename(spec, groups) if is_changed else groups
        outcome = run_fit(spec, folder, table, *options)
        faults = find_faults(outcome)
        if outcome.status != DONE:
            return [*faults, f"refused: {outcome.err[-300:]!r}"]
        predicted = call(folder, ["predict", "m.json", "rows.parquet"])
        text = call(folder, ["export", "m.json", "--to", "text"])
        check = ["check", "rows.parquet", "--target", "y", "--environment", "site", "--json"]
        checked = call(folder, check + (["--group", "g"] if spec["layout"] else []))
        faults += [fault for each in (predicted, text, checked) for fault in find_faults(each)]
        if faults or {predicted.status, text.status, checked.status} != {DONE}:
            return [*faults, f"refused: {(predicted.err + text.err + checked.err)[-300:]!r}"]
        json.loads(checked.out)
        answers.append((text.out, [row[1] for row in read_predictions(predicted.out)]))

    (text, probabilities), (other_text, other_probabilities) = answers
    if spec["what"] == "groups" and text != other_text:
        return [f"other models: {text[:200]!r} and {other_text[:200]!r}"]
    return _compare_probabilities(spec, probabilities, other_probabilities)
