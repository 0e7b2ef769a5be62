"""Learning from packed stores: genomes in a `.bits` file, their labels in a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from numpy.typing import NDArray

from icscm.engine.bitfile import BitFile, open_bits
from icscm.engine.packed import PackedSource, make_packed_source, unpack
from icscm.engine.packing import pack_matrix, pack_table, read_lines
from icscm.environments import encode_environments
from icscm.estimators import ALL_SAMPLES, Learner, check_learner
from icscm.exceptions import IcscmError
from icscm.table import list_names, open_frame
from icscm.text import shorten_list
from icscm.validation import check_labels, check_parameters, whole_or_nothing

__all__ = ["fit_packed", "open_bits", "pack_matrix", "pack_table", "read_genomes"]

BoolArray = NDArray[np.bool_]


def fit_packed(
    learner: Learner,
    bits: str | Path | BitFile,
    labels: Any,
    *,
    target: str,
    environment: str | None,
    sample_column: str | None = None,
) -> Learner:
    """Fit a learner to a packed store, whose samples a table gives labels and environments.

    `labels` is a frame with a row for each genome: its name in `sample_column` (the first column
    if None), its class in `target`, its environment in `environment`. Genomes of the store
    that it does not name do not count. Rules read `gene present` and `gene absent`.
    """
    check_learner(learner)
    store = bits if isinstance(bits, BitFile) else open_bits(bits)
    _fit(learner, store, labels, target, environment, sample_column)
    return learner


@whole_or_nothing
def _fit(
    learner: Learner,
    store: BitFile,
    labels: Any,
    target: str,
    environment: str | None,
    sample_column: str | None,
) -> None:
    check_parameters(learner, learner._allowed)
    source = _make_source(learner, store, labels, target, environment, sample_column)
    for name in ("feature_names_in_", "feature_types_"):
        if hasattr(learner, name):
            delattr(learner, name)  # of an earlier fit; millions of names stay in the store
    learner.n_features_in_ = store.n_features
    learner.left_out_ = {}
    learner._learn_from(source, has_environments=environment is not None)


def _make_source(
    learner: Learner,
    store: BitFile,
    labels: Any,
    target: str,
    environment: str | None,
    sample_column: str | None,
) -> PackedSource:
    frame, names = open_frame(labels), list_names(labels)
    wanted = [target, *([] if environment is None else [environment])]
    wanted.append(names[0] if sample_column is None else sample_column)
    for name in wanted:
        if name not in names:
            raise IcscmError(f"the labels have no column {name!r}; they have {shorten_list(names)}")
    rows = _find_samples(store, [str(name) for name in frame[wanted[-1]].to_list()])
    classes, learner.classes_ = check_labels(frame[target].to_native(), len(rows))
    numbers, environment_labels = np.zeros(len(rows), dtype=np.int64), (ALL_SAMPLES,)
    if environment is not None:
        numbers, environment_labels = encode_environments(frame[environment].to_native(), len(rows))
    n_silent = len(store.samples) - len(rows)
    silent = f"{n_silent:,} genomes of the store have no label and do not count."
    return make_packed_source(
        store,
        _place(classes, rows, len(store.samples)),
        _place(numbers, rows, len(store.samples)),
        classes=learner.classes_.tolist(),
        environment_labels=environment_labels,
        n_jobs=learner.n_jobs,
        notes=[silent] if n_silent else [],
    )


def _find_samples(store: BitFile, names: list[str]) -> NDArray[np.int64]:
    """The place of each named sample in the store."""
    place = {name: i for i, name in enumerate(store.samples)}
    unknown = [repr(name) for name in names if name not in place]
    if unknown:
        raise IcscmError(
            f"the labels name genomes that {store.path} does not hold: {shorten_list(unknown)}; "
            "drop these rows, or name the column of genomes (sample_column)"
        )
    for name, n_times in Counter(names).most_common(1):
        if n_times > 1:
            raise IcscmError(f"the labels name {name!r} {n_times} times; give one row a genome")
    return np.array([place[name] for name in names], dtype=np.int64)


def _place(values: NDArray[np.int64], rows: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Values of some samples at their places, -1 elsewhere."""
    placed = np.full(n, -1, dtype=np.int64)
    placed[rows] = values
    return placed


def read_genomes(path: str | Path, genes: Sequence[str]) -> pyarrow.Table:
    """Some genes of a presence/absence table or of a packed store, a row for each genome.

    The first column, `genome`, holds the genomes' names.
    """
    path = Path(path)
    is_packed = path.suffix.lower() == ".bits"
    genomes, found = (_read_bits if is_packed else read_lines)(path, genes)
    absent = [repr(gene) for gene in genes if gene not in found]
    if absent:
        raise IcscmError(f"{path} has no {shorten_list(absent)}, which the model needs")
    columns = {"genome": pyarrow.array(genomes)}
    return pyarrow.table(columns | {gene: pyarrow.array(found[gene]) for gene in genes})


def _read_bits(path: Path, genes: Sequence[str]) -> tuple[list[str], dict[str, BoolArray]]:
    store = open_bits(path)
    if store.names is None:
        raise IcscmError(f"{path} holds no names of features, by which the model goes")
    numbers = {gene: store.names.find(gene) for gene in genes}
    return list(store.samples), {
        gene: unpack(store.words[store.copies.numbers[number]], len(store.samples))
        for gene, number in numbers.items()
        if number is not None
    }
