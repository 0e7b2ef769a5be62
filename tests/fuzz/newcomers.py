"""A site unlike those of training: levels written otherwise, columns absent, other units and types.

A model is learned at three sites. Then something is changed, at a new site or in training, and what
the package says is compared with what the docs promise: by name, with what to do, or not at all.
"""

from __future__ import annotations

import csv
import io
import json
import math
import random
import sqlite3
import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import icscm
from fuzz.judging import DONE, REFUSED, find_faults
from fuzz.models import compare, read_predictions, run_python
from fuzz.parallel import make_learner
from fuzz.processes import Outcome, call, call_python, in_child
from fuzz.tables import Column, Spec, encode
from icscm.exceptions import IcscmError, LeftOutWarning, RangeWarning, UnknownLevelWarning
from icscm.model.rules import CategoryRule

SITES = ("north", "south", "east")
LEARNERS = {
    "rule": "ICSCMClassifier",
    "scm": "SCMClassifier",
    "tree": "InvariantTreeClassifier",
    "forest": "InvariantForestClassifier",
    "score": "InvariantScoreClassifier",
}
_MODELS = ("rule", "rule", "tree", "tree", "scm", "forest", "score")
#: levels of the column `drug`, from the one that says most of the outcome
_SCHEMES = {
    "words": ("never", "Some", "HEAVY use"),
    "codes": ("01", "2", "10"),
    "decimals": ("0.5", "1.0", "2"),
    "booleans": ("True", "False"),
    "letters": ("t", "f"),
    "accents": ("fäh", "größe", "ﬁt"),
}
_RECODINGS = ("case", "spaces", "number", "new", "long", "empty", "markup")
_FACTORS = (18.0, 0.01, -1.0, 1e300, 0.0)
_NUMBERS = ("age", "glucose")
_COLUMNS = ("age", "glucose", "drug", "noise")
_EMPTY = "all values are missing"


def make(rng: Random) -> Spec:
    """A table of three sites, a learner, and what is otherwise where the model is used."""
    spec = {
        "what": rng.choice(("levels", "levels", "absent", "units", "types")),
        "way": rng.choice(("python", "python", "command")),
        **draw_table(rng),
        "model": rng.choice(_MODELS),
        "jobs": 1,
        "share": rng.choice((0.02, 0.1, 0.3, 0.45, 0.55, 0.8, 1.0)),
    }
    match spec["what"]:
        case "levels":
            more: Spec = {"recoding": rng.choice(_RECODINGS)}
        case "absent":
            more = {"column": rng.choice(_COLUMNS), "where": rng.choice(list(_ABSENCES))}
        case "types":
            more = {"column": rng.choice(list(_TYPED)), "type": rng.choice(list(_RETYPE))}
        case _:
            more = {"column": rng.choice(_NUMBERS), "factor": rng.choice(_FACTORS)}
    return spec | more


def draw_table(rng: Random) -> Spec:
    """What `make_rows` needs to know."""
    return {
        "seed": rng.randrange(2**32),
        "rows": list(range(rng.choice((240, 360)))),
        "holes": rng.choice((0, 0, 0.1)),
        "scheme": rng.choice(list(_SCHEMES)),
        "frame": rng.choice(("object", "category", "string", "polars", "arrow")),
    }


def judge(spec: Spec, folder: Path) -> list[str]:
    """What is wrong with what was said of the new site."""
    faults = _JUDGES[spec["what"], spec["way"]](spec, folder)
    more = [spec.get(key, "") for key in ("recoding", "where", "type", "factor")]
    what = " ".join(str(part) for part in (spec["what"], spec["model"], spec["way"], *more))
    return [f"{fault} [{what.strip()}]" for fault in faults]


# --- the table of training ------------------------------------------------------------------------

Rows = dict[str, list[Any]]


def make_rows(spec: Spec) -> Rows:
    """Columns by name: two numbers and levels that say something, noise, outcome and site."""
    rng = random.Random(spec["seed"])
    levels = _SCHEMES[spec["scheme"]]
    rows: Rows = {name: [] for name in (*_COLUMNS, "y", "site")}
    for number in spec["rows"]:
        label = rng.random() < 0.5
        level = levels[0] if label == (rng.random() < 0.85) else rng.choice(levels[1:])
        values = {
            "age": round(rng.gauss(60 + 9 * label, 9), 1),
            "glucose": round(rng.gauss(120 + 25 * label, 20)),
            "drug": level,
            "noise": round(rng.gauss(0, 1), 3),
        }
        for name, value in values.items():
            rows[name].append(None if rng.random() < spec["holes"] else value)
        rows["y"].append("yes" if label else "no")
        rows["site"].append(SITES[number % len(SITES)])
    return rows


def take_columns(rows: Rows) -> Rows:
    """Take the columns that are no outcome and no site."""
    return {name: rows[name] for name in _COLUMNS if name in rows}


def make_frame(rows: Rows, kind: str) -> Any:
    """Make a frame of a kind: pandas with text as objects, categories or strings; Polars; Arrow."""
    import pandas as pd

    if kind == "polars":
        import polars as pl

        types = {name: pl.String if name == "drug" else pl.Float64 for name in rows}
        return pl.DataFrame(rows, schema=types, strict=False)
    if kind == "arrow":
        import pyarrow as pa

        types = {name: pa.string() if name == "drug" else pa.float64() for name in rows}
        return pa.table({name: pa.array(cells, types[name]) for name, cells in rows.items()})
    return pd.DataFrame(
        {
            name: pd.Series(cells, dtype=kind if name == "drug" else "float64")
            for name, cells in rows.items()
        }
    )


def encode_rows(rows: Rows) -> bytes:
    """Encode rows as a Parquet file."""
    kinds = {"drug": "level", "y": "level", "site": "level"}
    columns: list[Column] = [
        (name, kinds.get(name, "number"), cells) for name, cells in rows.items()
    ]
    return encode(columns, {"ending": ".parquet", "packing": "none"})  # type: ignore[no-any-return]


def fit_frame(spec: Spec, rows: Rows, **more: Any) -> Any:
    """Fit the learner of a case on a frame."""
    learner = make_learner(spec | {"learner": LEARNERS[spec["model"]]})
    frame = make_frame(take_columns(rows), spec["frame"])
    return learner.fit(frame, rows["y"], environments=rows["site"], **more)


def report_faults(folder: Path, function: Callable[[Spec], list[str]], spec: Spec) -> list[str]:
    """Call a function of the package in a process; it returns faults, as JSON to standard output.

    A refusal is a fault, too: whatever the function is right to expect, it catches.
    """

    def run() -> str:
        return json.dumps(function(spec))

    run.__name__ = function.__name__
    outcome = call_python(folder, run)
    faults = find_faults(outcome)
    if outcome.status == DONE:
        return faults + list(json.loads(outcome.out))
    if outcome.status == REFUSED and not faults:
        faults.append(f"refused: {outcome.err.decode(errors='backslashreplace').strip()[-300:]}")
    return faults


@dataclass(frozen=True)
class _Said:
    """What a call returned, or None if it raised, and what it said."""

    value: Any
    error: str = ""
    warned: tuple[tuple[str, str], ...] = ()

    def list_warnings(self, category: type[Warning]) -> list[str]:
        """List the texts of warnings of a category."""
        return [text for name, text in self.warned if name == category.__name__]


def listen(function: Callable[[], Any]) -> _Said:
    """Call a function; what it returned or raised, and warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value, error = function(), ""
        except IcscmError as refusal:
            value, error = None, str(refusal)
    warned = tuple((each.category.__name__, str(each.message)) for each in caught)
    return _Said(value, error, warned)


def predict_probabilities(learner: Any, frame: Any, **options: Any) -> list[float]:
    """The probability of the positive class, row by row."""
    return learner.predict_proba(frame, **options)[:, 1].tolist()  # type: ignore[no-any-return]


def names_levels(model: Any) -> bool:
    """Whether a rule of the model names a level of `drug`."""
    return any(isinstance(rule, CategoryRule) and rule.name == "drug" for rule in model.rules)


# --- levels ---------------------------------------------------------------------------------------


def recode(spec: Spec, rows: Rows) -> tuple[Rows, Rows, list[bool]]:
    """Rows of a new site, the same with unknown levels missing, and which rows have one."""
    rng = random.Random(spec["seed"] + 1)
    known = {level for level in rows["drug"] if level is not None}
    write = _WRITE[spec["recoding"]]
    changed = [
        write(level) if level is not None and rng.random() < spec["share"] else level
        for level in rows["drug"]
    ]
    is_unknown = [level is not None and level not in known for level in changed]
    without = [
        None if unknown else level for level, unknown in zip(changed, is_unknown, strict=True)
    ]
    return rows | {"drug": changed}, rows | {"drug": without}, is_unknown


def _write_number(level: str) -> str:
    """Write a number in another form, and anything else with a digit more."""
    try:
        number = float(level)
    except ValueError:
        return f"{level} 1"
    return f"{number:.2f}" if "." not in level or len(level) < 4 else f"{number:g}"


_WRITE: dict[str, Callable[[str], str]] = {
    "case": lambda level: level.swapcase() if level.swapcase() != level else f"{level} ",
    "spaces": lambda level: f"  {level} ",
    "number": _write_number,
    "new": lambda level: "another",
    "long": lambda level: level * 3000,
    "empty": lambda level: "?",
    "markup": lambda level: f"<script>alert(1)</script>\u202e\n{level}'); DROP TABLE data",
}


def should_suggest(spec: Spec) -> bool:
    """Whether levels that are written so resemble those of training."""
    is_numeric = spec["scheme"] in ("codes", "decimals")
    return spec["recoding"] in ("case", "spaces") or (spec["recoding"] == "number" and is_numeric)


def try_levels(spec: Spec) -> list[str]:
    """An unknown level is told, and predicted as if it were missing; too many are an error."""
    rows = make_rows(spec)
    changed, without, is_unknown = recode(spec, rows)
    learner = fit_frame(spec, rows)
    frames = [make_frame(take_columns(each), spec["frame"]) for each in (changed, without)]
    named = names_levels(learner.model_)
    expected = predict_probabilities(learner, frames[1])

    told = listen(lambda: predict_probabilities(learner, frames[0]))
    allowed = listen(lambda: predict_probabilities(learner, frames[0], unknown="allow"))
    evaluated = listen(lambda: icscm.evaluate(learner, frames[0], rows["y"]))
    faults = _judge_treatment(spec, told, sum(is_unknown), len(is_unknown), named=named)
    for said in (allowed, evaluated):
        if said.error:
            faults.append(f"raises though it may not: {said.error[:300]}")
    if faults:
        return faults
    if allowed.value != expected or (told.value is not None and told.value != expected):
        faults.append("unknown levels are not predicted as missing ones")
    notes = " ".join(evaluated.value.notes)
    if named and any(is_unknown) and "that training did not have" not in notes:
        faults.append(f"the evaluation says nothing of unknown levels: {notes[:300]}")

    saved = icscm.model.saved.make_saved_model(learner)
    flags = saved.find_unknown_levels(frames[0]).tolist()
    if named and flags != ["drug" if unknown else "" for unknown in is_unknown]:
        faults.append("the flags of unknown levels are others")
    if predict_probabilities(saved, frames[0], unknown="allow") != expected:
        faults.append("a saved model predicts otherwise")
    return faults


def _judge_treatment(
    spec: Spec, said: _Said, n_unknown: int, n_rows: int, *, named: bool
) -> list[str]:
    """Of more than half of the rows an error, of fewer a warning; of levels in no rule nothing."""
    texts = said.list_warnings(UnknownLevelWarning)
    if not named or n_unknown == 0:
        return [f"told of levels that do not matter: {said.error}{texts}"] * bool(
            said.error or texts
        )
    must_raise = n_unknown > n_rows / 2
    if must_raise != bool(said.error):
        return [f"{n_unknown} of {n_rows} rows: raised {said.error!r:.200}, warned {texts!r:.200}"]
    (text,) = [said.error] if must_raise else texts or [""]
    parts = ["'drug'", f"{n_unknown} of {n_rows} rows"]
    parts += ["did you mean"] * should_suggest(spec)
    parts += ["write them as in training", "unknown='allow'"] if must_raise else ["as missing"]
    return [f"{part!r} is not said: {text[:400]}" for part in parts if part not in text]


def judge_level_files(spec: Spec, folder: Path) -> list[str]:
    """The same by commands, and by exported code: what `predict` says of each row."""
    rows = make_rows(spec)
    changed, without, is_unknown = recode(spec, rows)
    faults = fit_file(spec, folder, rows)
    if faults:
        return faults
    model = icscm.load(folder / "work" / "m.json").model
    matters = names_levels(model) and any(is_unknown)
    must_refuse = matters and 2 * sum(is_unknown) > len(is_unknown)

    told = _predict_file(folder, changed)
    expected = _predict_file(folder, without)
    faults += find_faults(told) + find_faults(expected)
    err = told.err.decode(errors="backslashreplace")
    if must_refuse != (told.status == REFUSED):
        faults.append(f"ended with {told.status}, {sum(is_unknown)} unknown: {err[-300:]}")
    parts = ["'drug'", "that training did not have"] if matters else []
    parts += ["did you mean"] * (matters and should_suggest(spec))
    parts += ["--allow-unknown"] * must_refuse
    flat = " ".join(err.split())
    faults += [f"{part!r} is not said: {flat[-400:]}" for part in parts if part not in flat]
    if not matters and "that training did not have" in flat:
        faults.append(f"told of levels that do not matter: {flat[-300:]}")

    allowed = _predict_file(folder, changed, "--allow-unknown")
    faults += find_faults(allowed)
    if allowed.status != DONE or expected.status != DONE:
        return [*faults, f"refused: {allowed.err[-300:]!r} {expected.err[-300:]!r}"]
    found = read_predictions(allowed.out)
    if found != read_predictions(expected.out):
        faults.append("unknown levels are not predicted as missing ones")
    if matters:
        flags = [row["unknown_levels"] for row in _read_table(allowed)]
        if flags != ["drug" if unknown else "" for unknown in is_unknown]:
            faults.append("the flags of unknown levels are others")
    return faults + judge_exports(folder, take_columns(changed), found, is_unknown, matters=matters)


def fit_file(spec: Spec, folder: Path, rows: Rows, *options: str) -> list[str]:
    """Learn from a file, as `m.json`; what is wrong with that."""
    outcome = run_fit(spec, folder, rows, *options)
    faults = find_faults(outcome)
    return faults or ([f"refused: {outcome.err[-300:]!r}"] if outcome.status != DONE else [])


def run_fit(spec: Spec, folder: Path, rows: Rows, *options: str) -> Outcome:
    """Run `icscm fit` on rows, to `m.json`."""
    (folder / "work" / "rows.parquet").write_bytes(in_child(encode_rows, rows))
    words = ["fit", "rows.parquet", "--target", "y", "--environment", "site", "--force"]
    words += ["--model", spec["model"], "--stability", "0", "--n-jobs", "1", "--out", "m.json"]
    words += ["--n-estimators", "3"] if spec["model"] == "forest" else []
    return call(folder, [*words, *options])


def _predict_file(folder: Path, rows: Rows, *options: str) -> Outcome:
    columns = {name: cells for name, cells in rows.items() if name not in ("y", "site")}
    (folder / "work" / "new.parquet").write_bytes(in_child(encode_rows, columns))
    return call(folder, ["predict", "m.json", "new.parquet", *options])


def _read_table(outcome: Outcome) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(outcome.out.decode("utf-8"), newline="")))


def judge_exports(
    folder: Path, rows: Rows, expected: list[Any], is_unknown: list[bool], *, matters: bool
) -> list[str]:
    """Exports to Python and SQL say the same of each row, and flag unknown levels."""
    python, sql = (call(folder, ["export", "m.json", "--to", to]) for to in ("python", "sql"))
    faults = [fault for outcome in (python, sql) for fault in find_faults(outcome)]
    if faults or not (python.status == sql.status == DONE):
        return faults or ["an export is refused"]
    records = [dict(zip(rows, values, strict=True)) for values in zip(*rows.values(), strict=True)]
    flags = ["drug" if unknown else "" for unknown in is_unknown]
    for name, found in (
        ("Python", run_python(python.out, records)),
        ("SQLite", _run_sqlite(sql.out.decode("utf-8"), rows)),
    ):
        faults += [f"{name}: {fault}" for fault in compare(expected, found)]
        if matters and [row[3] for row in found] != flags:
            faults.append(f"{name} flags other rows as unknown")
    return faults


def _run_sqlite(query: str, rows: Rows) -> list[Any]:
    """Prediction, probability, what decided and unknown levels, by SQLite."""
    types = ["TEXT" if name == "drug" else "REAL" for name in rows]
    fields = ", ".join(f'"{name}" {kind}' for name, kind in zip(rows, types, strict=True))
    marks = ", ".join("?" * (len(rows) + 1))
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f'CREATE TABLE data ("row number" INTEGER, {fields})')
        connection.executemany(
            f"INSERT INTO data VALUES ({marks})",
            [(i, *values) for i, values in enumerate(zip(*rows.values(), strict=True))],
        )
        answers = sorted(connection.execute(query).fetchall(), key=lambda row: row[0])
    return [row[1 + len(rows) :] for row in answers]


# --- absent columns -------------------------------------------------------------------------------


def _empty(cells: list[Any], sites: list[str], *, at: tuple[str, ...]) -> list[Any]:
    return [None if site in at else cell for cell, site in zip(cells, sites, strict=True)]


def try_absent(spec: Spec) -> list[str]:
    """A column that is not in the table, or has no value at a site, or at none."""
    return _ABSENCES[spec["where"]](spec, make_rows(spec))


def _try_gone(spec: Spec, rows: Rows) -> list[str]:
    """A new site does not have the column: an error if the model uses it."""
    learner = fit_frame(spec, rows)
    expected = predict_probabilities(learner, make_frame(take_columns(rows), spec["frame"]))
    rest = {name: cells for name, cells in take_columns(rows).items() if name != spec["column"]}
    frame = make_frame(rest, spec["frame"])
    faults = []
    for said in (
        listen(lambda: predict_probabilities(learner, frame)),
        listen(lambda: icscm.evaluate(learner, frame, rows["y"])),
    ):
        is_used = spec["column"] in learner.features_used_
        if is_used != bool(said.error):
            faults.append(f"used: {is_used}, error: {said.error[:300]!r}")
        elif is_used and f"lacks column {spec['column']!r}" not in said.error:
            faults.append(f"the column is not named: {said.error[:300]}")
        elif isinstance(said.value, list) and said.value != expected:
            faults.append("a column that is not used changes predictions")
    return faults


def _try_nothing(spec: Spec, rows: Rows) -> list[str]:
    """A new site has no value in the column: missing, in whatever type there is nothing."""
    import pandas as pd

    learner = fit_frame(spec, rows)
    frames = [make_frame(take_columns(_without(rows, spec["column"], SITES)), spec["frame"])]
    for nothing in (float("nan"), None, pd.NA):
        frame = make_frame(take_columns(rows), "object")
        frame[spec["column"]] = pd.Series([nothing] * len(frame), dtype=object)
        frames += [frame, frame.convert_dtypes()]
    answers = [
        listen(lambda frame=frame: predict_probabilities(learner, frame)) for frame in frames
    ]
    faults = [f"refused: {said.error[:300]}" for said in answers if said.error]
    if not faults and any(said.value != answers[0].value for said in answers):
        faults.append("nothing is predicted by its type")
    evaluated = listen(lambda: icscm.evaluate(learner, frames[0], rows["y"]))
    faults += [f"evaluate: {evaluated.error[:300]}"] * bool(evaluated.error)
    return faults


def _try_never(spec: Spec, rows: Rows) -> list[str]:
    """No site has a value in the column: it is dropped by name, as if it were not there."""
    column = spec["column"]
    said = listen(lambda: fit_frame(spec, _without(rows, column, SITES)))
    if said.error:
        return [f"refused: {said.error[:300]}"]
    faults = []
    if said.value.dropped_columns_ != {column: _EMPTY}:
        faults.append(f"dropped: {said.value.dropped_columns_}")
    texts = " ".join(said.list_warnings(LeftOutWarning))
    if column not in texts or _EMPTY not in texts:
        faults.append(f"the dropped column is not named: {texts!r:.300}")
    rest = {name: cells for name, cells in rows.items() if name != column}
    frame = make_frame(take_columns(rest), spec["frame"])
    without = fit_frame(spec, rest)
    if predict_probabilities(without, frame) != predict_probabilities(said.value, frame):
        faults.append("an empty column changes predictions")
    return faults


def _try_one_site_only(spec: Spec, rows: Rows) -> list[str]:
    """One site alone measures the column: it is dropped in the fold that leaves this one out."""
    site = SITES[spec["seed"] % len(SITES)]
    others = tuple(other for other in SITES if other != site)
    return _judge_folds(spec, _without(rows, spec["column"], others), dropped_without=site)


def _try_all_sites_but_one(spec: Spec, rows: Rows) -> list[str]:
    """One site does not measure the column: nothing is dropped."""
    site = SITES[spec["seed"] % len(SITES)]
    return _judge_folds(spec, _without(rows, spec["column"], (site,)), dropped_without=None)


def _judge_folds(spec: Spec, rows: Rows, *, dropped_without: str | None) -> list[str]:
    """What each fold of leave-one-environment-out dropped, for ours and for boosting."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    columns = take_columns(rows)
    learner = make_learner(spec | {"learner": LEARNERS[spec["model"]]})
    if spec["seed"] % 3 == 0 and spec["column"] != "drug":  # it takes numbers only
        learner = HistGradientBoostingClassifier(max_iter=3)
        del columns["drug"]
    else:
        fit_frame(spec, rows)
    validation = icscm.leave_one_environment_out(
        learner, make_frame(columns, spec["frame"]), rows["y"], environments=rows["site"]
    )
    dropped = {str(fold.environment): tuple(fold.dropped) for fold in validation.held_out}
    expected = {site: (spec["column"],) * (site == dropped_without) for site in SITES}
    faults = [] if dropped == expected else [f"dropped in folds: {dropped}"]
    if dropped_without is not None:
        line = f"Dropped: {spec['column']} without {dropped_without} ({_EMPTY})"
        faults += [f"not said: {line}"] * (line not in validation.lines)
    return faults


def _without(rows: Rows, column: str, sites: tuple[str, ...]) -> Rows:
    return rows | {column: _empty(rows[column], rows["site"], at=sites)}


_ABSENCES: dict[str, Callable[[Spec, Rows], list[str]]] = {
    "gone": _try_gone,
    "nothing": _try_nothing,
    "never": _try_never,
    "one site": _try_one_site_only,
    "all but one": _try_all_sites_but_one,
}


def judge_absent_files(spec: Spec, folder: Path) -> list[str]:
    """The same by commands: dropped by name, or an error that names the column."""
    rows, column = make_rows(spec), spec["column"]
    where, site = spec["where"], SITES[spec["seed"] % len(SITES)]
    if where in ("gone", "nothing"):
        faults = fit_file(spec, folder, rows, "--no-validation")
        if faults:
            return faults
        rest = {name: cells for name, cells in rows.items() if name != column}
        new = rest if where == "gone" else _without(rows, column, SITES)
        outcome = _predict_file(folder, new)
        saved = icscm.load(folder / "work" / "m.json")
        must_refuse = where == "gone" and any(rule.name == column for rule in saved.model.rules)
        faults = find_faults(outcome)
        if must_refuse != (outcome.status == REFUSED) or (
            must_refuse and column.encode() not in outcome.err
        ):
            faults.append(f"ended with {outcome.status}: {outcome.err[-300:]!r}")
        return faults

    empty_sites = {
        "never": SITES,
        "one site": tuple(other for other in SITES if other != site),
        "all but one": (site,),
    }[where]
    emptied = _without(rows, column, empty_sites)
    if spec["seed"] % 5 == 0:
        return _judge_screen(spec, folder, emptied)
    outcome = run_fit(spec, folder, emptied, "--report", "r.md")
    faults = find_faults(outcome)
    if outcome.status != DONE:
        return [*faults, f"refused: {outcome.err[-300:]!r}"]
    said = " ".join((outcome.out + outcome.err).decode().split())
    is_told = column in said and _EMPTY in said
    if where == "all but one" and _EMPTY in said:
        faults.append("a column that one site lacks is told as empty")
    elif where != "all but one" and not is_told:
        faults.append(f"the dropped column is not named: {said[-300:]}")
    return faults


def _judge_screen(spec: Spec, folder: Path, rows: Rows) -> list[str]:
    """A screen, with the learner validated."""
    (folder / "work" / "rows.parquet").write_bytes(in_child(encode_rows, rows))
    words = ["screen", "rows.parquet", "--target", "y", "--environment", "site", "--no-path"]
    outcome = call(folder, [*words, "--validate", "--n-jobs", "1"])
    faults = find_faults(outcome)
    said = " ".join((outcome.out + outcome.err).decode().split())
    if outcome.status != DONE:
        return [*faults, f"refused: {said[-300:]}"]
    if spec["where"] != "all but one" and _EMPTY not in said:
        faults.append(f"a screen does not say that it is empty: {said[-300:]}")
    return faults


# --- units ----------------------------------------------------------------------------------------


def change_unit(spec: Spec, rows: Rows) -> Rows:
    """Multiply a column by a factor, in some or all rows."""
    rng = random.Random(spec["seed"] + 2)
    cells = [
        cell * spec["factor"] if cell is not None and rng.random() < spec["share"] else cell
        for cell in rows[spec["column"]]
    ]
    return rows | {spec["column"]: cells}


def try_units(spec: Spec) -> list[str]:
    """Numbers far outside the range of training are told where they are many, never an error."""
    rows = make_rows(spec)
    changed = change_unit(spec, rows)
    learner = fit_frame(spec, rows)
    frame = make_frame(take_columns(changed), spec["frame"])
    said = listen(lambda: predict_probabilities(learner, frame))
    evaluated = listen(lambda: icscm.evaluate(learner, frame, rows["y"]))
    if said.error or evaluated.error:
        return [f"refused: {said.error[:200]} {evaluated.error[:200]}"]

    ranges = {
        values.name: values.range
        for values in learner.model_.training_values
        if values.range is not None
    }
    faults = []
    for name in _COLUMNS:
        texts = [text for text in said.list_warnings(RangeWarning) if f"{name!r}" in text]
        notes = [note for note in evaluated.value.notes if f"{name!r}: " in note]
        must_tell = name in ranges and is_far(changed[name], ranges[name])
        if must_tell != bool(texts) or must_tell != bool(notes):
            faults.append(f"{name} far outside: {must_tell}, but said: {texts} {notes}")
        faults += [f"no unit is asked for: {text}" for text in texts if "another unit" not in text]
        if name in ranges:
            present = [value for value in rows[name] if value is not None]
            if (ranges[name].lowest, ranges[name].highest) != (min(present), max(present)):
                faults.append(f"the range of {name} is {ranges[name]}")
    return faults


def is_far(cells: list[Any], known: Any) -> bool:
    """Whether the docs promise that these numbers are told: a literal reading of them.

    Far below is below low - (high - low) / 2, if all are positive also below low sqrt(low / high);
    far above is the same upside down. A column is told if at least 5 and more than half of its
    values are far outside, or a tenth of them far outside and beyond the extremes.
    """
    present = [value for value in cells if value is not None]
    low, high = known.low, known.high
    half = (high - low) / 2
    lower, upper = low - half, high + half
    if low > 0:
        lower = max(lower, low * math.sqrt(low / high))
    if high < 0:
        upper = min(upper, high * math.sqrt(high / low))
    below = [value for value in present if value < lower]
    above = [value for value in present if value > upper]
    lowest = [value for value in below if value < known.lowest]
    highest = [value for value in above if value > known.highest]
    return any(len(side) >= 5 and 2 * len(side) > len(present) for side in (below, above)) or any(
        len(side) >= 5 and 10 * len(side) >= len(present) for side in (lowest, highest)
    )


def judge_unit_files(spec: Spec, folder: Path) -> list[str]:
    """The same by commands: the column is named and the predictions are made."""
    rows = make_rows(spec)
    changed = change_unit(spec, rows)
    faults = fit_file(spec, folder, rows, "--no-validation")
    if faults:
        return faults
    model = icscm.load(folder / "work" / "m.json").model
    ranges = [each.range for each in model.training_values if each.name == spec["column"]]
    must_tell = any(known and is_far(changed[spec["column"]], known) for known in ranges)
    outcome = _predict_file(folder, changed)
    (folder / "work" / "new.parquet").write_bytes(in_child(encode_rows, changed))
    evaluated = call(folder, ["evaluate", "m.json", "new.parquet", "--target", "y", "--json"])
    for done in (outcome, evaluated):
        faults += find_faults(done)
        if done.status != DONE:
            faults.append(f"refused: {done.err[-300:]!r}")
            continue
        said = done.err if done is outcome else done.out
        is_told = f"'{spec['column']}': ".encode() in said and b"another unit" in said
        if must_tell != is_told:
            faults.append(f"{done.argv[0]}: far outside: {must_tell}, said: {said[-300:]!r}")
    return faults


# --- types ----------------------------------------------------------------------------------------


#: columns whose cells are of one type in training, made of whether a row has the first level
_TYPED: dict[str, Callable[[bool, float], Any]] = {
    "boolean": lambda is_first, age: is_first,
    "whole": lambda is_first, age: 1 if is_first else 3,
    "number": lambda is_first, age: age + 12.5 * is_first,
}
#: the same cells, written by a site that has another system
_RETYPE: dict[str, Callable[[Any], Any]] = {
    "text": str,
    "letter": lambda cell: str(cell)[0].lower(),
    "lower": lambda cell: str(cell).lower(),
    "float": float,
    "whole": int,
    "boolean": bool,
    "comma": lambda cell: str(float(cell)).replace(".", ","),
    "unit": lambda cell: f"{cell} kg",
    "padded": lambda cell: f" {cell} ",
}

#: types that cells of a column cannot be written in without losing their meaning
_LOSSY = {"whole": ("boolean",), "number": ("boolean", "whole", "letter")}


def make_typed_rows(spec: Spec) -> tuple[Rows, Rows]:
    """Rows of training and of a site, of which the column `drug` has another type in some cells."""
    rng = random.Random(spec["seed"] + 7)
    rows = make_rows(spec)
    first = _SCHEMES[spec["scheme"]][0]
    write, retype = _TYPED[spec["column"]], _RETYPE[spec["type"]]
    if spec["type"] in _LOSSY.get(spec["column"], ()):
        retype = str
    cells = [
        None if level is None or age is None else write(level == first, age)
        for level, age in zip(rows["drug"], rows["age"], strict=True)
    ]
    changed = [
        cell if cell is None or rng.random() >= spec["share"] else retype(cell) for cell in cells
    ]
    return rows | {"drug": cells}, rows | {"drug": changed}


def _make_typed_frame(spec: Spec, rows: Rows, *, is_training: bool) -> Any:
    """A frame whose column `drug` has the type of its cells, or is a category of numbers."""
    import pandas as pd

    frame = make_frame(take_columns({**rows, "drug": [""] * len(rows["y"])}), "object")
    cells = pd.Series(rows["drug"], dtype=object)
    if is_training and spec["column"] == "whole":
        return frame.assign(drug=cells.astype("category"))
    if is_training and spec["column"] == "boolean":
        return frame.assign(drug=cells.astype("boolean"))
    kinds = {type(cell) for cell in rows["drug"] if cell is not None}
    return frame.assign(drug=cells.infer_objects() if len(kinds) == 1 else cells)


def try_types(spec: Spec) -> list[str]:
    """Cells of another type mean the same, or are told by name: as missing, or as an error."""
    rows, changed = make_typed_rows(spec)
    learner = make_learner(spec | {"learner": LEARNERS[spec["model"]]})
    train = _make_typed_frame(spec, rows, is_training=True)
    learner.fit(train, rows["y"], environments=rows["site"])
    expected = predict_probabilities(learner, train)
    missing = predict_probabilities(learner, train.assign(drug=[None] * len(train)))
    site = _make_typed_frame(spec, changed, is_training=False)

    faults = []
    for options in ({}, {"unknown": "allow"}):
        said = listen(lambda options=options: predict_probabilities(learner, site, **options))
        faults += judge_retyped(said, expected, missing)
    evaluated = listen(lambda: icscm.evaluate(learner, site, rows["y"]))
    if evaluated.error and "drug" not in evaluated.error:
        faults.append(f"the column is not named: {evaluated.error[:300]}")
    return faults


def judge_retyped(said: _Said, expected: list[float], missing: list[float]) -> list[str]:
    """Each row is predicted as ever, or as if the cell were missing, which is told by name."""
    texts = [text for _, text in said.warned if "drug" in text]
    if said.error:
        return [] if "drug" in said.error else [f"the column is not named: {said.error[:300]}"]
    triples = zip(said.value, expected, missing, strict=True)
    others = [row for row, triple in enumerate(triples) if triple[0] not in triple[1:]]
    if others:
        return [f"{len(others)} rows are predicted as neither known nor missing: {texts}"]
    if said.value != expected and not texts:
        return ["cells of another type are silently missing"]
    return []


def judge_typed_files(spec: Spec, folder: Path) -> list[str]:
    """The same by commands, from text files."""
    rows, changed = make_typed_rows(spec)
    answers = []
    for name, table in (
        ("rows", rows), ("new", changed), ("empty", rows | {"drug": [None] * len(rows["y"])}),
    ):  # fmt: skip
        columns: list[Column] = [(column, "text", cells) for column, cells in table.items()]
        content = in_child(encode, columns, {"ending": ".csv"})
        (folder / "work" / f"{name}.csv").write_bytes(content)
    faults = fit_text_file(spec, folder)
    if faults:
        return faults
    for name in ("rows", "empty", "new"):
        outcome = call(folder, ["predict", "m.json", f"{name}.csv"])
        faults += find_faults(outcome)
        err = " ".join(outcome.err.decode(errors="backslashreplace").split())
        if outcome.status == REFUSED:
            answers.append(_Said(None, error=err))
        elif outcome.status == DONE:
            probabilities = [row[1] for row in read_predictions(outcome.out)]
            answers.append(_Said(probabilities, warned=(("Warning", err),) if err else ()))
    if faults or answers[0].error or answers[1].error:
        return faults or [f"refused: {answers[0].error}{answers[1].error}"]
    expected, missing, said = answers
    return judge_retyped(said, expected.value, missing.value)


def fit_text_file(spec: Spec, folder: Path) -> list[str]:
    """Learn from `rows.csv`, in which whole numbers are a category."""
    options = ["--no-validation"]
    options += ["--categories", "drug"] if spec["column"] == "whole" else []
    words = ["fit", "rows.csv", "--target", "y", "--environment", "site", "--out", "m.json"]
    words += ["--model", spec["model"], "--stability", "0", "--n-jobs", "1", *options]
    words += ["--n-estimators", "3"] if spec["model"] == "forest" else []
    outcome = call(folder, words)
    faults = find_faults(outcome)
    return faults or ([f"refused: {outcome.err[-300:]!r}"] if outcome.status != DONE else [])


_JUDGES: dict[tuple[str, str], Callable[[Spec, Path], list[str]]] = {
    ("levels", "python"): lambda spec, folder: report_faults(folder, try_levels, spec),
    ("levels", "command"): judge_level_files,
    ("absent", "python"): lambda spec, folder: report_faults(folder, try_absent, spec),
    ("absent", "command"): judge_absent_files,
    ("types", "python"): lambda spec, folder: report_faults(folder, try_types, spec),
    ("types", "command"): judge_typed_files,
    ("units", "python"): lambda spec, folder: report_faults(folder, try_units, spec),
    ("units", "command"): judge_unit_files,
}
