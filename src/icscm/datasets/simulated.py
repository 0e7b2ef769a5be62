"""The paper's simulation, with all its parameters.

E --> A1, A2, ...     parents: how often each is 1 differs between environments
A --> Y               their conjunction (or disjunction), with noise that does not
Y, E --> C            children: mostly a copy of Y, sometimes a mark of the environment
      B               distractors: coin flips, related to nothing
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from icscm.exceptions import IcscmError
from icscm.parameters import allow, check_value

if TYPE_CHECKING:
    import pandas

Bits = NDArray[np.bool_]

# Rows or columns; the product of two still fits an int64.
_MOST = 2**31
# How often a parent is 1 in the first and in the last environment; later parents take turns.
_PARENT_RATES = ((0.1, 0.5), (0.5, 0.3))
_RATE = allow("float [0, 1]")


class Simulation(NamedTuple):
    """Simulated samples and the true parents.

    Attributes
    ----------
    X : pandas.DataFrame of shape (n_samples, n_features)
        Columns A1, A2, .. (parents), B1, .. (distractors), C1, .. (children).
    y : ndarray of shape (n_samples,)
        The label, 0 or 1.
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

    X: pandas.DataFrame
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
    """Samples of the paper's Bayesian network; the defaults are the paper's.

    Parameters
    ----------
    n_samples : int, default=10_000
        Samples in each environment.
    n_distractors, n_parents, n_children, n_environments : int
        Their numbers. With two parents and two environments the rates are the paper's (A1: 0.1
        and 0.5, A2: 0.5 and 0.3). More environments spread evenly between these; more parents
        take these rates in turn, raised so that the conjunction stays as frequent.
    model_type : {"conjunction", "disjunction", "tree"}, default="conjunction"
        `"disjunction"` is the mirror image (all bits inverted); `"tree"` a full decision tree
        whose nodes are the parents (1, 3, 7, .. of them), which violates the paper's assumption
        on the functional form.
    noise : {"coin", "flip"}, default="coin"
        The noise of the label, with probability `label_noise`: `"coin"` replaces it by a fair coin
        (the published code), `"flip"` inverts it (the paper's text, with the sign corrected).
    child : {"code", "text"}, default="code"
        A child copies the label or, with probability `child_noise`, has a mark of the environment
        E instead: `"text"` E itself, `"code"` 1 - E, as the published code does. With more than
        two environments the mark is 1 with probability e / (K - 1).
    label_noise, child_noise : float, default=0.05
        Probabilities, see `noise` and `child`.
    continuous : bool, default=False
        Real features in [0, 1] that exceed 0.5 where the binary one would be 1.
    random_state : int or numpy.random.Generator, optional
        Seed or generator.

    Returns
    -------
    Simulation
        Features, label, environments, and the names of the true parents.

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
    import pandas

    check_value("n_samples", n_samples, allow(f"int [1, {_MOST}]"))
    check_value("n_distractors", n_distractors, allow(f"int [0, {_MOST}]"))
    check_value("n_parents", n_parents, allow(f"int [1, {_MOST}]"))
    check_value("n_children", n_children, allow(f"int [0, {_MOST}]"))
    check_value("n_environments", n_environments, allow(f"int [1, {_MOST}]"))
    check_value("model_type", model_type, allow("conjunction", "disjunction", "tree"))
    check_value("noise", noise, allow("coin", "flip"))
    check_value("child", child, allow("code", "text"))
    check_value("label_noise", label_noise, _RATE)
    check_value("child_noise", child_noise, _RATE)

    rng = np.random.default_rng(random_state)
    n = n_samples * n_environments
    # in random order: cross-validation without shuffling must not lose an environment
    environments = rng.permutation(np.repeat(np.arange(n_environments), n_samples))
    rates = np.array([np.linspace(*_PARENT_RATES[i % 2], n_environments) for i in range(n_parents)])
    rates **= min(1.0, 2.0 / n_parents)
    parents = rng.random((n_parents, n)) < rates[:, environments]
    label = _evaluate_tree(parents) if model_type == "tree" else parents.all(axis=0)
    is_noisy = rng.random(n) < label_noise
    label = np.where(is_noisy, ~label if noise == "flip" else rng.random(n) < 0.5, label)
    if model_type == "disjunction":
        parents, label = ~parents, ~label
    distractors = rng.integers(2, size=(n_distractors, n), dtype=np.uint8) == 1
    mark = rng.random((n_children, n)) < environments / max(1, n_environments - 1)
    is_marked = rng.random((n_children, n)) < child_noise
    children = np.where(is_marked, ~mark if child == "code" else mark, label)
    bits = np.concatenate((parents, distractors, children))
    sizes = {"A": n_parents, "B": n_distractors, "C": n_children}
    names = [f"{kind}{i + 1}" for kind, size in sizes.items() for i in range(size)]
    values: NDArray[Any] = (
        (bits + rng.random(bits.shape)) / 2 if continuous else bits.view(np.uint8)
    )
    X = pandas.DataFrame(values.T, columns=names)
    return Simulation(X, label.astype(np.int64), environments, names[:n_parents])


def _evaluate_tree(parents: Bits) -> Bits:
    """The label without noise: A1 sends 0 to A2 and 1 to A3, these send to A4 .. A7, and so on;
    the last parent reached is the label."""
    n_parents, n_samples = parents.shape
    if (n_parents + 1).bit_count() != 1:
        raise IcscmError(f"a tree takes 1, 3, 7, 15, .. parents; got n_parents={n_parents}")
    node = np.ones(n_samples, dtype=np.int64)
    value: Bits = parents[0]
    for _ in range((n_parents + 1).bit_length() - 1):
        value = parents[node - 1, np.arange(n_samples)]
        node = 2 * node + value
    return value
