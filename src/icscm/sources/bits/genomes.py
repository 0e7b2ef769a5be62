"""Genomes of a packed store as a table: what learners and studies take for X.

A row is a genome, and a column says in which genomes something is present. Nothing is unpacked:
rows of the table are the positions of their genomes in the store, so a fold is the same store with
fewer positions, and a model reads the few columns of its rules.

    store      g0 g1 g2 g3 g4      genomes, in the order of the file
    samples    4 0 3               rows are g4, g0 and g3
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from icscm._types import IntArray
from icscm.exceptions import IcscmError, reject_unknown
from icscm.sources.bits.store import BitFile, open_store, unpack
from icscm.tables.columns import Numbers, StoredTable


@dataclass(frozen=True, eq=False)
class Genomes(StoredTable):
    """Genomes of a packed store, as a table; see `open_genomes`.

    Attributes
    ----------
    store : BitFile
        Where they are.
    samples : array of shape (n_rows,)
        The position of each row's genome in the store.
    n_unused : int
        How many genomes of the store are not among those that were asked for.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from icscm.sources import open_genomes
    >>> from icscm.sources.bits.packing import pack_matrix
    >>> import numpy as np
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "genes.bits")
    ...     pack_matrix(np.eye(4, dtype=bool), path, samples=["a", "b", "c", "d"])
    ...     genomes = open_genomes(path, ["d", "a", "c"])
    ...     genomes.shape, genomes.read_column(0, None).values.tolist()
    ((3, 4), [0, 1, 0])
    """

    store: BitFile
    samples: IntArray
    n_unused: int = 0

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of genomes and columns."""
        return len(self.samples), self.store.n_features

    @property
    def names(self) -> Sequence[str] | None:
        """The names of the columns; None if the store has none."""
        return self.store.names

    @property
    def description(self) -> str:
        """What errors call it."""
        return f"a packed store, {self.store.path}"

    def take_rows(self, rows: IntArray) -> Self:
        """Return the table of some rows.

        Parameters
        ----------
        rows : array of int
            Their positions in this table.

        Returns
        -------
        Genomes
            They are in the order of `rows`.
        """
        return replace(self, samples=self.samples[rows], n_unused=0)

    def read_column(self, position: int, name: str | None) -> Numbers:
        """Read a column: 1 where it is present, 0 where it is absent.

        Parameters
        ----------
        position : int
            Its number, by which it goes if it has no name.
        name : str, optional
            Its name.

        Returns
        -------
        Numbers
            A value for each row.

        Raises
        ------
        IcscmError
            If there is no such column, or the store is damaged.
        """
        column = self._find_column(position, name)
        is_present_by_sample = unpack(self.store.read_feature(column), len(self.store.samples))
        return Numbers(is_present_by_sample[self.samples].view(np.uint8))

    def _find_column(self, position: int, name: str | None) -> int:
        """Find the number of a column; most often a model was learned from this very store."""
        names = self.store.names
        n_columns = self.store.n_features
        if name is None or names is None:
            if position >= n_columns:
                raise IcscmError(
                    f"{self.store.path} has {n_columns:,} columns, and the model needs column "
                    f"{position:,}"
                )
            return position

        if position < n_columns and names[position] == name:
            return position
        column = names.find(name)
        if column is None:
            raise IcscmError(f"{self.store.path} has no column {name!r}, which the model needs")
        return column


def open_genomes(bits: str | Path | BitFile, genomes: Sequence[Any] | None = None) -> Genomes:
    """Open genomes of a packed store as a table, for X of learners and studies.

    They learn from it where it is: a fold of `leave_one_environment_out` is the same store with
    fewer genomes. It can be given to `fit`, `predict` and `predict_proba` of rules, trees, forests
    and scores, and to functions that fit these in folds.

    Parameters
    ----------
    bits : str, Path or BitFile
        What `icscm pack` or `pack_matrix` wrote.
    genomes : sequence, optional
        The names of the genomes that are rows, in their order; by default all of the store.

    Returns
    -------
    Genomes
        A row for each of them.

    Raises
    ------
    IcscmError
        If the store cannot be read, or does not hold a genome, or one is named twice.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from icscm import InvariantTreeClassifier, leave_one_environment_out
    >>> from icscm.datasets import make_conjunction
    >>> from icscm.sources import open_genomes
    >>> from icscm.sources.bits.packing import pack_matrix
    >>> data = make_conjunction(1_000, n_environments=3, random_state=1)
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "genes.bits")
    ...     pack_matrix(data.X, path, names=list(data.X))
    ...     genomes = open_genomes(path)
    ...     validation = leave_one_environment_out(
    ...         InvariantTreeClassifier(), genomes, data.y, environments=data.environments
    ...     )
    >>> validation.to_frame()["auc"].round(2).tolist()
    [0.99, 0.99, 0.99]
    """
    store = bits if isinstance(bits, BitFile) else open_store(bits)
    if genomes is None:
        return Genomes(store, np.arange(len(store.samples)))
    samples = np.array(find_samples(store, genomes), dtype=np.int64)
    return Genomes(store, samples, n_unused=len(store.samples) - len(samples))


def find_samples(store: BitFile, genomes: Sequence[Any]) -> list[int]:
    """Find the positions of genomes in a store; raise if one is not there, or named twice."""
    position_of_name = {name: position for position, name in enumerate(store.samples)}
    n_times_of_name = Counter([str(genome) for genome in genomes])
    reject_unknown(
        n_times_of_name,
        position_of_name,
        f"{store.path} has genomes such as {store.samples[0]!r}, and not those of the labels: ",
        after="; drop these rows, or name the column of genomes (--sample-column, sample_column)",
    )
    for name, n_times in n_times_of_name.most_common(1):
        if n_times > 1:
            raise IcscmError(f"the labels name {name!r} {n_times} times; give one row per genome")
    return [position_of_name[name] for name in n_times_of_name]
