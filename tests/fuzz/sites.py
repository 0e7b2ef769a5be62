"""Federated sites that lie, break off or are down: an error that names one, or true counts."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import is_dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd

from fuzz.judging import DONE, REFUSED, find_faults
from fuzz.processes import call_python, in_child
from fuzz.tables import Spec
from icscm import ICSCMClassifier, InvariantTreeClassifier, SCMClassifier
from icscm.sources.sites import LocalSite, make_agreement, open_sites
from support.hostile import HOSTILE_NAMES

_QUERIES = ("count_totals", "count_cube", "find_same_coverage", "count_patterns")
_PLACES = ("north", "south", "west")
_LEARNERS = {
    "icscm": ICSCMClassifier(),
    "scm": SCMClassifier(),
    "exhaustive": ICSCMClassifier(search="exhaustive"),
    "tree": InvariantTreeClassifier(),
}
_AGREEMENT = make_agreement(
    {"smoker": ["no", "yes"], "age": [30, 40, 50], "smokes": ["no", "yes"]},
    classes=(False, True),
    environments=_PLACES,
)


class UnspeakableError(Exception):
    """Its message cannot be read."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


class Unreadable:
    """Fails when it is made an array, and when it is shown."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise OSError("cut off")

    __repr__ = __len__ = __array__  # type: ignore[assignment]


_ERRORS: tuple[Callable[[], Exception], ...] = (
    lambda: ConnectionError("the line is down"),
    TimeoutError,
    StopIteration,
    UnspeakableError,
    lambda: KeyError(HOSTILE_NAMES[0]),
    lambda: RuntimeError("x" * 5_000),
    lambda: OSError("\x1b[2J\n\u202e"),
    lambda: MemoryError(),
    lambda: RecursionError(),
)
# What an array may be instead, given it and a place in it.
_LIES: dict[str, Callable[[Any, int], Any]] = {
    "nothing": lambda a, i: None,
    "text": lambda a, i: str(a),
    "number": lambda a, i: 3,
    "list": lambda a, i: a.tolist(),
    "ragged": lambda a, i: [[1], [1, 2]],
    "object": lambda a, i: a.astype(object),
    "texts": lambda a, i: a.astype(str),
    "floats": lambda a, i: a.astype(float),
    "nan": lambda a, i: np.where(np.arange(a.size).reshape(a.shape) == i, np.nan, a),
    "inf": lambda a, i: a + np.inf,
    "complex": lambda a, i: a + 1j,
    "dates": lambda a, i: a.astype("M8[s]"),
    "masked": lambda a, i: np.ma.masked_array(a, np.arange(a.size).reshape(a.shape) == i),
    "small": lambda a, i: a.astype(np.int8),
    "unsigned": lambda a, i: a.astype(np.uint64) + np.uint64(2**63),
    "swapped bytes": lambda a, i: a.astype(">i8"),
    "read-only": lambda a, i: np.broadcast_to(a, a.shape),
    "transposed": lambda a, i: a.T,
    "flat": lambda a, i: a.reshape(-1),
    "empty": lambda a, i: a[:0],
    "longer": lambda a, i: np.concatenate([a, a]),
    "one more": lambda a, i: _change(a, i, 1),
    "one fewer": lambda a, i: _change(a, i, -1),
    "far fewer": lambda a, i: _change(a, i, -(10**6)),
    "huge": lambda a, i: _change(a, i, 2**62),
    "all huge": lambda a, i: a.astype(np.int64) + 2**62,
    "doubled": lambda a, i: a * 2,
    "negated": lambda a, i: -a.astype(np.int64),
    "zero": lambda a, i: a * 0,
    "rolled": lambda a, i: np.roll(a, 1, axis=-1),
    "shuffled": lambda a, i: a[::-1],
    "inverted": lambda a, i: a == 0,
    "unreadable": lambda a, i: Unreadable(),
    "generator": lambda a, i: (each for each in a),
    "file": lambda a, i: Path("/dev/zero"),
}


def _change(array: Any, place: int, by: int) -> Any:
    changed = np.array(array, dtype=np.int64)
    changed.reshape(-1)[place % max(1, changed.size)] += by
    return changed


def make(rng: Random) -> Spec:
    """Some rows at three sites, of which one or two lie from some query on."""
    lies = [
        {
            "site": rng.randrange(3),
            "query": rng.choice((*_QUERIES, "count_cube", "count_cube")),
            "lie": rng.choice((*_LIES, *["error"] * 6)),
            "part": rng.choice(("counts", "patterns", "all")),
            "from": rng.choice((0, 0, 0, 1)),
            "place": rng.randrange(2**16),
        }
        for _ in range(rng.choice((0, 1, 1, 1, 1, 2)))
    ]
    return {"learner": rng.choice(list(_LEARNERS)), "seed": rng.randrange(5), "lies": lies}


class Lying:
    """A site that answers some queries as told."""

    def __init__(self, site: Any, lies: list[Spec]) -> None:
        self._site, self._lies, self._n_asked = site, lies, dict.fromkeys(_QUERIES, 0)

    def __getattr__(self, query: str) -> Any:
        def answer(*arguments: Any) -> Any:
            found = getattr(self._site, query)(*arguments)
            self._n_asked[query] += 1
            for lie in self._lies:
                if lie["query"] == query and self._n_asked[query] > lie["from"]:
                    found = _tell(found, lie)
            return found

        return answer


def _tell(answer: Any, lie: Spec) -> Any:
    if lie["lie"] == "error":
        raise _ERRORS[lie["place"] % len(_ERRORS)]()
    change, place = _LIES[lie["lie"]], lie["place"]
    if not isinstance(answer, np.ndarray) and not is_dataclass(answer):
        return answer  # changed by another lie already
    if is_dataclass(answer) and lie["part"] != "all":
        part = getattr(answer, lie["part"])
        return replace(answer, **{lie["part"]: change(part, place)})  # type: ignore[type-var]
    if is_dataclass(answer):
        return change(answer.counts, place)  # type: ignore[attr-defined]
    return change(answer, place % max(1, answer.size))


def learn_pooled(spec: Spec) -> str:
    """What one site learns that has all rows."""
    frame, ill, place = _make_rows(spec["seed"])
    return _learn(
        spec, [LocalSite(frame, ill, environments=np.array(_PLACES)[place], agreement=_AGREEMENT)]
    )


def learn(spec: Spec) -> str:
    """The model and its counts, as JSON, from sites of which some lie."""
    frame, ill, place = _make_rows(spec["seed"])
    sites = [
        Lying(
            LocalSite(frame[place == i], ill[place == i], environments=name, agreement=_AGREEMENT),
            [lie for lie in spec["lies"] if lie["site"] == i],
        )
        for i, name in enumerate(_PLACES)
    ]
    return _learn(spec, sites)


def _make_rows(seed: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    place = rng.integers(0, 3, 240)
    smoker = np.where(rng.random(240) < 0.4, "yes", "no")
    frame = pd.DataFrame({"smoker": smoker, "age": rng.integers(20, 60, 240) + 5.0 * place})
    frame["smokes"] = smoker  # so that rules are tied
    return frame, (smoker == "yes") ^ (rng.random(240) < 0.1), place


def _learn(spec: Spec, sites: list[Any]) -> str:
    frame, _, _ = _make_rows(spec["seed"])
    fitted = _LEARNERS[spec["learner"]].fit_counts(open_sites(sites, _AGREEMENT))
    counts = np.array(fitted.model_.leaves)
    return json.dumps({
        "model": str(fitted.model_),
        "probabilities": fitted.predict_proba(frame)[:5, 1].tolist(),
        "least": int(counts.min()),
        "samples": counts.sum(axis=0).tolist(),
        "totals": np.array(fitted.class_counts_).tolist(),
    })  # fmt: skip


def judge(spec: Spec, folder: Path) -> list[str]:
    """One sentence that names a site or the sum of all; or counts of the same samples."""
    outcome = call_python(folder, learn, spec)
    faults = find_faults(outcome)
    if outcome.status == REFUSED and b"site" not in outcome.err:
        faults.append(f"no site is named: {outcome.err[-300:]!r}")
    if outcome.status == DONE:
        found = json.loads(outcome.out)
        if found["least"] < 0 or found["samples"] != found["totals"]:
            faults.append(f"accepted counts that cannot be: {found!r:.300}")
        if not spec["lies"] and found != json.loads(in_child(learn_pooled, spec)):
            faults.append(f"honest sites give another model: {found!r:.300}")
    elif not spec["lies"]:
        faults.append(f"honest sites are refused: {outcome.err[-300:]!r}")
    return faults
