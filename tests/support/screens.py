"""Simulated tables for the screen of columns: causes that act alike everywhere, and shortcuts.

    make_causes      eight numeric columns, of which some cause the outcome, by the form of effect
    plant            a column that follows the outcome less in one environment than in another

Every environment has its own means of the columns (covariate shift) and its own level of the
outcome, so that a model without levels would find differences where effects have none.
"""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.special import expit, softmax

N_COLUMNS = 8
EFFECTS = np.array([1.0, -0.8, 0.7, 0.6])
CAUSES = ["x0", "x1", "x2", "x3"]
# Odds ratios of a mechanism that decides nearly alone, and differs between environments.
STRONG_ODDS_RATIOS = [260, 400, 1000, 2000]

OUTCOMES = ("two", "three", "number")


@dataclass(frozen=True)
class Simulated:
    """A simulated table: columns, the outcome, and the environment of each row."""

    X: pd.DataFrame
    y: np.ndarray
    environments: np.ndarray


def make_causes(form, outcome="two", *, n_environments=6, n_rows=300, seed=0):
    """Simulate a table; `form` is one of `FORMS`, `n_rows` those of each environment."""
    rng = np.random.default_rng([seed, n_environments, n_rows])
    environments = np.repeat(np.arange(n_environments), n_rows)
    means = rng.normal(0.0, 0.7, (n_environments, N_COLUMNS))
    columns = means[environments] + rng.normal(size=(len(environments), N_COLUMNS))

    score, columns = FORMS[form](columns, environments, rng)
    level = rng.normal(0.0, 0.5, n_environments)
    y = draw_outcome(outcome, score + level[environments], environments, rng)
    X = pd.DataFrame(columns, columns=[f"x{number}" for number in range(N_COLUMNS)])
    return Simulated(X, y, environments)


def draw_outcome(outcome, score, environments, rng):
    """Draw an outcome whose log odds, or whose mean, is the score."""
    n_rows = len(score)
    if outcome == "two":
        return (rng.random(n_rows) < expit(score)).astype(np.int64)
    if outcome == "three":
        probabilities = softmax(np.column_stack((np.zeros(n_rows), score, -score)), axis=1)
        return (probabilities.cumsum(axis=1) < rng.random((n_rows, 1))).sum(axis=1)
    spread = rng.uniform(0.8, 1.2, environments.max() + 1)[environments]
    return score + 1.2 * spread * rng.normal(size=n_rows)


# --- the forms of effects -------------------------------------------------------------------------


def make_no_effect(columns, _environments, _rng):
    return np.zeros(len(columns)), columns


def make_linear(columns, _environments, _rng):
    return columns[:, :4] @ EFFECTS, columns


def make_varying(columns, environments, rng):
    """Effects that vary by up to a fifth between environments."""
    factors = 1.0 + 0.2 * rng.uniform(-1.0, 1.0, (environments.max() + 1, 4))
    return (columns[:, :4] * (EFFECTS * factors)[environments]).sum(axis=1), columns


def make_conjunction(columns, _environments, _rng):
    """Two columns that act only together."""
    both = (columns[:, 0] > 0) & (columns[:, 1] > 0)
    return 2.0 * both + 0.7 * columns[:, 2] - 0.6 * columns[:, 3], columns


def make_switch(columns, _environments, _rng):
    """A column that says which of two others acts."""
    acting = np.where(columns[:, 0] > 0, columns[:, 1], columns[:, 2])
    return 1.3 * acting - 0.6 * columns[:, 3], columns


def make_curved(columns, _environments, _rng):
    score = 0.8 * columns[:, 0] ** 2 - 1.0 + 0.7 * columns[:, 1]
    return score - 0.7 * np.abs(columns[:, 2]) + 0.5 * columns[:, 3], columns


def make_strong(columns, environments, rng):
    """A marker that few rows have and that decides: its odds ratios are in the hundreds."""
    n_environments = environments.max() + 1
    shares = rng.uniform(0.05, 0.3, n_environments)
    marker = rng.random(len(columns)) < shares[environments]
    log_odds_ratios = np.log(rng.choice(STRONG_ODDS_RATIOS, n_environments))
    with_marker = np.column_stack((marker, columns[:, 1:]))
    score = marker * log_odds_ratios[environments] - 1.5 + columns[:, 1:4] @ EFFECTS[1:]
    return score, with_marker


FORMS = {
    "none": make_no_effect,
    "linear": make_linear,
    "varying": make_varying,
    "conjunction": make_conjunction,
    "switch": make_switch,
    "curved": make_curved,
    "strong": make_strong,
}


# --- shortcuts ------------------------------------------------------------------------------------


def plant(table, kind, *, seed=0):
    """Return the table with a shortcut; its columns' names begin with `shortcut`.

    graded     it follows the outcome closely in one environment, and less and less in the others
    half       it follows the outcome in every second environment, and says nothing elsewhere
    reversed   it points the other way in the last environment
    copies     as graded, in five noisy copies
    missing    whether the value is missing follows the outcome, as graded
    """
    rng = np.random.default_rng([seed, 1])
    n_environments = int(table.environments.max()) + 1
    strength = np.linspace(1.0, 0.05, n_environments)
    if kind == "half":
        strength = (np.arange(n_environments) + 1) % 2.0
    if kind == "reversed":
        strength = np.append(np.ones(n_environments - 1), -1.0)
    strength_of_row = strength[table.environments]

    if kind == "missing":
        is_high = table.y > np.median(table.y) if len(np.unique(table.y)) > 3 else table.y == 1
        chance = expit(2.5 * strength_of_row * np.where(is_high, 1, -1) - 0.5)
        values = rng.normal(size=len(table.y))
        columns = {"shortcut": np.where(rng.random(len(table.y)) < chance, np.nan, values)}
    elif kind == "copies":
        columns = {
            f"shortcut{number}": follow(table.y, strength_of_row, noise=1.5, rng=rng)
            for number in range(5)
        }
    else:
        columns = {"shortcut": follow(table.y, strength_of_row, noise=0.7, rng=rng)}
    return replace(table, X=table.X.assign(**columns))


def follow(y, strength, *, noise, rng):
    """Return numbers that follow the standardised outcome with a strength for each row."""
    standardised = (y - y.mean()) / y.std()
    return strength * standardised + noise * rng.normal(size=len(y))


SHORTCUTS = ("graded", "half", "reversed", "copies", "missing")
