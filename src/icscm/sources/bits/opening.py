"""Learning from packed stores: genomes in a `.bits` file, their labels in a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow

from icscm._types import BoolArray, IntArray
from icscm.exceptions import IcscmError
from icscm.formatting import shorten_list
from icscm.sources.bits.packing import read_lines
from icscm.sources.bits.source import make_packed_source
from icscm.sources.bits.store import BitFile, open_store, unpack
from icscm.sources.countable import BinningConfig, Countable
from icscm.sources.stored import StoredSource
from icscm.tables.columns import list_names, open_frame
from icscm.tables.labels import check_labels, number_environments


def open_bits(
    bits: str | Path | BitFile,
    labels: Any,
    target: str,
    environments: str | None = None,
    *,
    sample_column: str | None = None,
    preparation: BinningConfig | None = None,
) -> Countable[StoredSource]:
    """A packed store, whose samples a table gives labels and environments, made countable.

    Rules read `gene present` and `gene absent`. Genomes of the store that the labels do not name
    do not count.

    Parameters
    ----------
    bits : str, Path or BitFile
        What `icscm pack` or `pack_matrix` wrote.
    labels : frame
        A row for each genome.
    target : str
        The column of classes.
    environments : str, optional
        The column of environments.
    sample_column : str, optional
        The column of the genomes' names; by default the first.
    preparation : BinningConfig, optional
        A learner's `prepare()`, of which the number of threads and the device count.

    Returns
    -------
    Countable
        The samples, for `fit_counts` of a learner.

    Raises
    ------
    IcscmError
        If the labels lack a column, or name genomes that the store does not hold.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from icscm import ICSCMClassifier
    >>> from icscm.datasets import make_conjunction
    >>> from icscm.sources import open_bits
    >>> data = make_conjunction(random_state=1)
    >>> from icscm.sources.bits.packing import pack_matrix
    >>> labels = data.X.assign(genome=range(20_000), y=data.y, country=data.environments)
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "genes.bits")
    ...     pack_matrix(data.X, path, names=list(data.X))
    ...     countable = open_bits(path, labels, "y", "country", sample_column="genome")
    ...     print(ICSCMClassifier().fit_counts(countable).model_)
    A1 present and A2 present
    """
    asked = preparation or BinningConfig()
    store = bits if isinstance(bits, BitFile) else open_store(bits)
    frame, names = open_frame(labels), list_names(labels)
    sample_column = names[0] if sample_column is None else sample_column
    for name in (target, environments, sample_column):
        if name is not None and name not in names:
            raise IcscmError(f"the labels have no column {name!r}; they have {shorten_list(names)}")
    rows = _find_samples(store, [str(name) for name in frame[sample_column].to_list()])
    codes, classes = check_labels(frame[target].to_native(), len(rows))
    column = None if environments is None else frame[environments].to_native()
    numbers, environment_labels = number_environments(column, len(rows))
    every = np.full((2, len(store.samples)), -1, dtype=np.int64)
    every[:, rows] = codes, numbers
    n_silent = len(store.samples) - len(rows)
    silent = f"{n_silent:,} genomes of the store have no label and do not count."
    source = make_packed_source(
        store,
        *every,
        classes=classes.tolist(),
        environment_labels=environment_labels,
        n_jobs=asked.n_jobs,
        notes=[silent] if n_silent else [],
        device=asked.device,
    )
    # no table: millions of names stay in the store
    return Countable(
        source,
        None,
        None,
        classes,
        store.n_features,
        has_environments=environments is not None,
        config=asked,
        is_binned=False,
    )


def _find_samples(store: BitFile, names: list[str]) -> IntArray:
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


def read_genomes(
    path: str | Path, genes: Sequence[str], delimiter: str | None = None
) -> pyarrow.Table:
    """Some genes of a presence/absence table or of a packed store.

    Parameters
    ----------
    path : str or Path
        The table, or a store if it ends in `.bits`.
    genes : sequence of str
        The features that are wanted.
    delimiter : str, optional
        Of a table, as for `pack_table`.

    Returns
    -------
    pyarrow.Table
        A row for each genome; its name, in the column `genome`, comes first.

    Raises
    ------
    IcscmError
        If the file cannot be read, or lacks a gene.
    """
    path = Path(path)
    is_packed = path.suffix.lower() == ".bits"
    genomes, found = _read_bits(path, genes) if is_packed else read_lines(path, genes, delimiter)
    absent = [repr(gene) for gene in genes if gene not in found]
    if absent:
        raise IcscmError(f"{path} has no {shorten_list(absent)}, which the model needs")
    columns = {"genome": pyarrow.array(genomes)}
    return pyarrow.table(columns | {gene: pyarrow.array(found[gene]) for gene in genes})


def _read_bits(path: Path, genes: Sequence[str]) -> tuple[list[str], dict[str, BoolArray]]:
    store = open_store(path)
    if store.names is None:
        raise IcscmError(f"{path} holds no names of features, by which the model goes")
    numbers = {gene: store.names.find(gene) for gene in genes}
    return list(store.samples), {
        gene: unpack(store.read_feature(number), len(store.samples))
        for gene, number in numbers.items()
        if number is not None
    }
