"""One model object used from several threads or processes at once, and tables of Dask."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import icscm
from fuzz.judging import DONE, find_faults
from fuzz.processes import Outcome, call, call_python, in_child
from fuzz.tables import Spec, draw_table, encode, make_columns
from icscm.exceptions import IcscmError

_LEARNERS: dict[str, dict[str, Any]] = {
    "ICSCMClassifier": {},
    "SCMClassifier": {"model_type": "disjunction"},
    "InvariantTreeClassifier": {"max_leaves": 6},
    "InvariantForestClassifier": {"n_estimators": 3, "random_state": 0},
    "InvariantScoreClassifier": {"max_terms": 3, "random_state": 0},
}


def make_learner(spec: Spec) -> Any:
    """A learner that is not fitted."""
    settings = _LEARNERS[spec["learner"]]
    return getattr(icscm, spec["learner"])(n_jobs=spec["jobs"], **settings)


def make_frame(spec: Spec) -> Any:
    """A table as pandas has it."""
    import pandas as pd

    return pd.DataFrame({name: cells for name, _, cells in make_columns(spec)})


def split_frame(frame: Any) -> tuple[Any, Any, Any]:
    """Features, labels and environments; a table may lack them."""
    missing = [name for name in ("y", "place") if name not in frame.columns]
    if missing:
        raise IcscmError(f"the trial has no {missing}")
    return frame.drop(columns=["y", "place"]), frame["y"], frame["place"]


# --- several at once ------------------------------------------------------------------------------


def make_threads(rng: Random) -> Spec:
    """A learner, a table, and who uses both at once."""
    return {
        "table": draw_table(rng, plain=True),
        "learner": rng.choice(list(_LEARNERS)),
        "jobs": rng.choice((1, 2, 2)),
        "pool": rng.choice(("threads",) * 13 + ("fork",) * 6 + ("loky",)),
        "work": rng.choice(("fit", "predict", "both")),
    }


def answer(learner: Any, table: Any, work: str) -> str:
    """What one of them gets."""
    X, y, places = table
    if work != "predict":
        learner.fit(X, y, environments=places)
    return json.dumps([str(learner.model_), learner.predict_proba(X)[:, 1].tolist()])


def use_at_once(spec: Spec) -> str:
    """How many of the answers differ from those of one after the other."""
    frame = make_frame(spec["table"]).dropna(subset=["y"])
    table, learner = split_frame(frame), make_learner(spec)
    expected = answer(learner, table, "fit")
    # of those that do both, every other one only predicts, from a model that is being fitted
    works = [
        spec["work"] if spec["work"] != "both" else ("fit", "predict")[i % 2] for i in range(6)
    ]
    found = _POOLS[spec["pool"]](learner, table, works)
    return f"{sum(each != expected for each in found)} of {len(found)} differ"


def _use_threads(learner: Any, table: Any, works: list[str]) -> list[str]:
    with ThreadPoolExecutor(3) as pool:
        return list(pool.map(lambda work: answer(learner, table, work), works))


def _use_forks(learner: Any, table: Any, works: list[str]) -> list[str]:
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return pool.starmap(answer, [(learner, table, work) for work in works])


def _use_loky(learner: Any, table: Any, works: list[str]) -> list[str]:
    from joblib import Parallel, delayed
    from joblib.externals.loky import get_reusable_executor

    tasks = (delayed(answer)(learner, table, work) for work in works)
    try:
        return list(Parallel(n_jobs=2, backend="loky")(tasks))
    finally:
        get_reusable_executor().shutdown(wait=True, kill_workers=True)


_POOLS: dict[str, Callable[..., list[str]]] = {
    "threads": _use_threads,
    "fork": _use_forks,
    "loky": _use_loky,
}


def judge_threads(spec: Spec, folder: Path) -> list[str]:
    """All get the same answer."""
    outcome = call_python(folder, use_at_once, spec)
    faults = find_faults(outcome)
    if outcome.status == DONE and not outcome.out.startswith(b"0 of"):
        faults.append(f"{spec['pool']}, {spec['work']}: {outcome.out.decode().strip()}")
    elif outcome.status != DONE and not faults:
        faults.append(f"refused: {outcome.err[-300:]!r}")
    return faults


# --- Dask -----------------------------------------------------------------------------------------


def make_dask(rng: Random) -> Spec:
    """A table cut in parts, and where they are counted."""
    return {
        "table": draw_table(rng, plain=rng.random() < 0.5),
        "learner": rng.choice(("ICSCMClassifier", "SCMClassifier", "InvariantTreeClassifier")),
        "jobs": 1,
        "cuts": [rng.random() for _ in range(rng.randrange(5))],
        "scheduler": rng.choice(("threads",) * 6 + ("synchronous",) * 6 + ("workers", "cluster")),
    }


def learn_from_dask(spec: Spec) -> str:
    """The model, what it predicts for the rows and their score."""
    import dask

    dask.config.set({"dataframe.convert-string": False})  # else Dask makes text of any object
    if spec["scheduler"] == "cluster":
        from distributed import Client, LocalCluster

        with (
            LocalCluster(n_workers=2, processes=False, dashboard_address=":0") as cluster,
            Client(cluster),
        ):
            return _fit_dask(spec)
    with dask.config.set(scheduler=spec["scheduler"]):
        return _fit_dask(spec)


def _fit_dask(spec: Spec) -> str:
    from itertools import pairwise

    import dask.dataframe as dd

    frame = make_frame(spec["table"])
    bounds = [0, *sorted(round(cut * len(frame)) for cut in spec["cuts"]), len(frame)]
    parts = [frame.iloc[a:b] for a, b in pairwise(bounds)]
    return _fit(spec, dd.from_map(lambda part: part, parts, meta=frame.iloc[:0]))


def learn_from_memory(spec: Spec) -> str:
    """The same from rows in memory."""
    return _fit(spec, make_frame(spec["table"]))


def _fit(spec: Spec, table: Any) -> str:
    X, y, places = split_frame(table)
    fitted = make_learner(spec).fit(X, y, environments=places)
    predicted, score = fitted.predict_proba(X), fitted.score(X, y)
    rows = getattr(predicted, "compute", lambda: predicted)()
    return json.dumps([str(fitted.model_), rows[:, 1].tolist(), float(score)])


def judge_dask(spec: Spec, folder: Path) -> list[str]:
    """As from memory; both take a table or refuse it."""
    if spec["scheduler"] == "workers":
        return _judge_workers(spec, folder)
    outcome = call_python(folder, learn_from_dask, spec)
    expected = call_python(folder, learn_from_memory, spec)
    faults = find_faults(outcome) + find_faults(expected)
    if outcome.status == expected.status == DONE and outcome.out != expected.out:
        faults.append(f"Dask: {outcome.out[:200]!r}, in memory: {expected.out[:200]!r}")
    if not faults and outcome.status != expected.status and not _may_differ(outcome, expected):
        texts = f"{outcome.status} {outcome.err[-200:]!r}, in memory {expected.status}"
        faults.append(f"Dask ends with {texts} {expected.err[-200:]!r}")
    return faults


def _may_differ(outcome: Outcome, expected: Outcome) -> bool:
    """Columns of several kinds are told apart in memory only."""
    return outcome.status != DONE and b"Dask" in outcome.err


def _judge_workers(spec: Spec, folder: Path) -> list[str]:
    """A cluster of the command line: the same model file as without one."""
    columns = make_columns(spec["table"])
    form = {"ending": ".parquet", "packing": "none"}
    (folder / "work" / "data.parquet").write_bytes(in_child(encode, columns, form))
    argv = ["fit", "data.parquet", "--target", "y", "--environment", "place", "--quiet",
            "--stability", "0", "--no-validation", "--out", "-", "--n-jobs", "1",
            "--model-type", "conjunction"]  # fmt: skip
    outcome = call(folder, [*argv, "--workers", "1"], real=True)
    expected = call(folder, argv)
    faults = find_faults(outcome)
    if outcome.status == expected.status == DONE and outcome.out != expected.out:
        faults.append(f"--workers: {outcome.out[:300]!r}, in memory: {expected.out[:300]!r}")
    return faults
