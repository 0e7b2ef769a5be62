"""The paper's Bayesian network, simulated; E is the environment and Y the outcome.

E --> A1, A2, ...     parents: how often each is 1 differs between environments
A --> Y               their conjunction (or disjunction), with noise that does not
Y, E --> C            children: usually a copy of Y, sometimes a mark of the environment
      B               distractors: coin flips, related to nothing
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from icscm.exceptions import IcscmError
from icscm.parameters import check_arguments

Bits = NDArray[np.bool_]

# How often a parent is 1 in the first and in the last environment: A1, A2, A1 again for A3, ...
_PARENT_RATES: Final = ((0.1, 0.5), (0.5, 0.3))


class Simulation(NamedTuple):
    """Simulated rows and the true parents.

    Attributes
    ----------
    X : pandas.DataFrame of shape (n_samples, n_features)
        Columns A1, A2, .. (parents), B1, .. (distractors), C1, .. (children).
    y : ndarray of shape (n_samples,)
        The outcome, 0 or 1.
    environments : ndarray of shape (n_samples,)
        The environment of each row: 0, 1, ..
    parents : list of str
        The names of the true parents.

    Examples
    --------
    >>> from icscm.datasets import make_conjunction
    >>> X, y, environments, parents = make_conjunction(4, random_state=0)
    >>> X.shape, y.shape, parents
    ((8, 6), (8,), ['A1', 'A2'])
    """

    X: pd.DataFrame
    y: NDArray[np.int64]
    environments: NDArray[np.int64]
    parents: list[str]


def make_conjunction(
    n_samples: int = 10_000,
    n_distractors: int = 3,
    *,
    n_parents: int = 2,
    n_children: int = 1,
    n_environments: int = 2,
    model_type: str = "conjunction",
    noise: str = "coin",
    child: str = "code",
    label_noise: float = 0.05,
    child_noise: float = 0.05,
    continuous: bool = False,
    random_state: int | np.random.Generator | None = None,
) -> Simulation:
    """Simulate the paper's Bayesian network; the defaults are the paper's.

    Parameters
    ----------
    n_samples : int, default=10_000
        Rows in each environment.
    n_distractors, n_parents, n_children, n_environments : int
        Their numbers. With two parents and two environments the rates are the paper's (A1: 0.1
        and 0.5, A2: 0.5 and 0.3). More environments spread evenly between these; more parents
        take these rates in turn, raised so that the conjunction stays as frequent.
    model_type : {"conjunction", "disjunction", "tree"}, default="conjunction"
        `"disjunction"` is the mirror image (all bits inverted); `"tree"` a full decision tree
        whose nodes are the parents (1, 3, 7, .. of them), which violates the paper's assumption
        on the functional form.
    noise : {"coin", "flip"}, default="coin"
        The noise of the outcome, with probability `label_noise`: `"coin"` replaces it by a fair
        coin (the published code), `"flip"` inverts it (the paper's text, with the sign corrected).
    child : {"code", "text"}, default="code"
        A child copies the outcome or, with probability `child_noise`, has a mark of the environment
        E instead: `"text"` E itself, `"code"` 1 - E, as the published code does. With more than
        two environments the mark is 1 with probability e / (K - 1).
    label_noise, child_noise : float, default=0.05
        Probabilities, see `noise` and `child`.
    continuous : bool, default=False
        Real numbers in [0, 1] that exceed 0.5 where the binary one would be 1.
    random_state : int or numpy.random.Generator, optional
        Seed or generator.

    Returns
    -------
    Simulation
        Columns, outcome, environments, and the names of the true parents.

    Raises
    ------
    IcscmError
        If a parameter has an invalid value.

    Examples
    --------
    >>> data = make_conjunction(4, n_distractors=1, random_state=0)
    >>> list(data.X.columns), len(data.y), data.parents
    (['A1', 'A2', 'B1', 'C1'], 8, ['A1', 'A2'])
    """
    check_arguments("make_conjunction", locals())
    rng = np.random.default_rng(random_state)
    n_rows = n_samples * n_environments
    # in random order, so that unshuffled folds hold all environments
    environments = rng.permutation(np.repeat(np.arange(n_environments), n_samples))

    # columns are drawn as arrays (column, row); the order of draws decides what a seed gives
    rates = _compute_parent_rates(n_parents, n_environments)
    parents = rng.random((n_parents, n_rows)) < rates[:, environments]
    clean_outcome = _evaluate_tree(parents) if model_type == "tree" else _evaluate_all(parents)
    outcome = _add_noise(clean_outcome, label_noise, rng, flips=noise == "flip")
    if model_type == "disjunction":
        # not (a and b) is (not a) or (not b)
        parents = ~parents
        outcome = ~outcome
    distractors = rng.integers(2, size=(n_distractors, n_rows), dtype=np.uint8) == 1

    # a child copies the outcome, or has a mark: 0 in the first environment, 1 in the last, and in
    # others either, with a probability by their place in between
    mark_rate = environments / max(1, n_environments - 1)
    marks = rng.random((n_children, n_rows)) < mark_rate
    if child == "code":
        marks = ~marks
    is_marked = rng.random((n_children, n_rows)) < child_noise
    children = np.where(is_marked, marks, outcome)

    bits = np.concatenate((parents, distractors, children))
    # as numbers, a bit of 0 is below 0.5 and a bit of 1 above
    values = (bits + rng.random(bits.shape)) / 2 if continuous else bits.view(np.uint8)
    parent_names = _number_names("A", n_parents)
    names = [*parent_names, *_number_names("B", n_distractors), *_number_names("C", n_children)]
    return Simulation(
        X=pd.DataFrame(values.T, columns=names),
        y=outcome.astype(np.int64),
        environments=environments,
        parents=parent_names,
    )


def _number_names(letter: str, n_columns: int) -> list[str]:
    return [f"{letter}{number}" for number in range(1, n_columns + 1)]


def _compute_parent_rates(n_parents: int, n_environments: int) -> NDArray[np.float64]:
    """Return how often each parent is 1, by (parent, environment).

    With more than two parents the rates are raised so that the conjunction stays as frequent.
    """
    rates = np.empty((n_parents, n_environments))
    for parent in range(n_parents):
        first, last = _PARENT_RATES[parent % len(_PARENT_RATES)]
        rates[parent] = np.linspace(first, last, n_environments)
    return rates ** min(1.0, len(_PARENT_RATES) / n_parents)


def _add_noise(
    outcome: Bits, probability: float, rng: np.random.Generator, *, flips: bool
) -> NDArray[np.bool_]:
    """Invert the outcome of some rows, or replace it by a fair coin."""
    n_rows = len(outcome)
    is_noisy = rng.random(n_rows) < probability
    noisy_outcome = ~outcome if flips else rng.random(n_rows) < 0.5
    return np.where(is_noisy, noisy_outcome, outcome)


def _evaluate_all(parents: Bits) -> Bits:
    """Return the outcome without noise where it is the conjunction of parents (parent, row)."""
    return np.logical_and.reduce(parents, axis=0)  # type: ignore[no-any-return]


def _evaluate_tree(parents: Bits) -> Bits:
    """Return the outcome without noise where the parents are the nodes of a decision tree.

    A row goes from A1 to A2 if it is 0 and to A3 if it is 1, from these to A4 .. A7, and so on.
    The value of the last parent that it reaches is the outcome:

            A1
          0/  \1
         A2    A3        the children of node n are 2 n and 2 n + 1

    `parents` has the values by (parent, row).
    """
    n_parents, n_rows = parents.shape
    n_leaves = n_parents + 1
    is_full = n_leaves.bit_count() == 1
    if not is_full:
        raise IcscmError(f"a tree takes 1, 3, 7, 15, .. parents; got n_parents={n_parents}")
    depth = n_leaves.bit_length() - 1

    rows = np.arange(n_rows)
    node_of_row = np.ones(n_rows, dtype=np.int64)
    value: Bits = parents[0]
    for _ in range(depth):
        value = parents[node_of_row - 1, rows]
        node_of_row = 2 * node_of_row + value
    return value
