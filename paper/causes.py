"""Simulated tables whose causes act alike in every environment, by the form of the effect.

Eight columns of numbers, of which the first are causes. Every environment has its own means of the
columns and its own baseline of the outcome, so that a screen without them would find differences
where effects have none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

if TYPE_CHECKING:
    import pandas

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

OUTCOMES = ("two classes", "three classes", "number")
N_COLUMNS = 8
EFFECTS = np.array([1.0, -0.8, 0.7, 0.6])
# Standard deviations over environments: of the means of columns, and of the baselines.
SHIFT = 0.7
BASELINE = 0.5
LARGE_SHIFT = 1.5
LARGE_BASELINE = 1.5
NOISE_OF_NUMBERS = 1.2
# A mechanism that decides nearly alone. Its odds ratio differs between environments.
STRONG_ODDS_RATIOS = np.array([260.0, 400.0, 1000.0, 2000.0])
ROWS_OF_A_GROUP = 4


@dataclass(frozen=True, eq=False)
class Causes:
    """A simulated table. `causes` are names of columns; `weights` and `groups` may be None."""

    X: pandas.DataFrame
    y: NDArray[Any]
    environments: NDArray[np.str_]
    causes: tuple[str, ...]
    weights: Floats | None = None
    groups: Integers | None = None


@dataclass(frozen=True, eq=False)
class Draft:
    """What a form works on: the columns of all rows, and the environment of each row."""

    columns: Floats
    places: Integers
    rng: np.random.Generator

    @property
    def n_places(self) -> int:
        """The number of environments."""
        return int(self.places.max()) + 1


@dataclass(frozen=True, eq=False)
class Scored:
    """The columns, perhaps changed, and the score that they give: log odds, or a mean."""

    columns: Floats
    score: Floats


@dataclass(frozen=True)
class Form:
    """A form of effect: what it is, how many columns are causes, and the function that scores."""

    description: str
    n_causes: int
    compute: Callable[[Draft], Scored]


# --- forms of effects -----------------------------------------------------------------------------


def score_nothing(draft: Draft) -> Scored:
    """No column acts."""
    return Scored(draft.columns, np.zeros(len(draft.columns)))


def score_sum(draft: Draft) -> Scored:
    """Four columns add up."""
    return Scored(draft.columns, draft.columns[:, :4] @ EFFECTS)


def score_both(draft: Draft) -> Scored:
    """Two columns act only together."""
    columns = draft.columns
    both = (columns[:, 0] > 0) & (columns[:, 1] > 0)
    return Scored(columns, 2.0 * both + 0.7 * columns[:, 2] - 0.6 * columns[:, 3])


def score_switch(draft: Draft) -> Scored:
    """A column says which of two others acts."""
    columns = draft.columns
    acting = np.where(columns[:, 0] > 0, columns[:, 1], columns[:, 2])
    return Scored(columns, 1.3 * acting - 0.6 * columns[:, 3])


def score_curved(draft: Draft) -> Scored:
    """A parabola, a kink, and two lines."""
    columns = draft.columns
    parabola = 0.8 * columns[:, 0] ** 2 - 1.0
    kink = -0.7 * np.abs(columns[:, 2])
    return Scored(columns, parabola + kink + 0.7 * columns[:, 1] + 0.5 * columns[:, 3])


def vary(part: float) -> Callable[[Draft], Scored]:
    """Return the form whose effects are up to this part larger or smaller in each environment."""

    def score_varying(draft: Draft) -> Scored:
        factors = 1.0 + draft.rng.uniform(-part, part, size=(draft.n_places, len(EFFECTS)))
        effects = (EFFECTS * factors)[draft.places]
        return Scored(draft.columns, (draft.columns[:, :4] * effects).sum(axis=1))

    return score_varying


def score_shifted(draft: Draft) -> Scored:
    """As a sum; the means of the columns differ much more between environments."""
    shifts = LARGE_SHIFT * draft.rng.normal(size=(draft.n_places, N_COLUMNS))
    columns = draft.columns + shifts[draft.places]
    return Scored(columns, columns[:, :4] @ EFFECTS)


def score_with_baselines(draft: Draft) -> Scored:
    """As a sum; the baselines of the environments differ much more."""
    baselines = LARGE_BASELINE * draft.rng.normal(size=draft.n_places)
    return Scored(draft.columns, draft.columns[:, :4] @ EFFECTS + baselines[draft.places])


def score_confounded(draft: Draft) -> Scored:
    """As a sum; environments in which the causes are high have a low baseline."""
    means = np.array(
        [draft.columns[draft.places == place, :4].mean(axis=0) for place in range(draft.n_places)]
    )
    baselines = -2.0 * means @ EFFECTS
    return Scored(draft.columns, draft.columns[:, :4] @ EFFECTS + baselines[draft.places])


def score_strong(draft: Draft) -> Scored:
    """A marker that few rows have and that decides: its odds ratios are 260 to 2,000."""
    rng = draft.rng
    shares = rng.uniform(0.05, 0.3, draft.n_places)
    marker = rng.random(len(draft.places)) < shares[draft.places]
    log_odds_ratios = np.log(rng.choice(STRONG_ODDS_RATIOS, draft.n_places))
    columns = np.column_stack((marker, draft.columns[:, 1:])).astype(np.float64)
    score = marker * log_odds_ratios[draft.places] - 1.5 + columns[:, 1:4] @ EFFECTS[1:]
    return Scored(columns, score)


FORMS = {
    "noise": Form("no column is a cause", 0, score_nothing),
    "noise, groups": Form("no cause; rows in groups that share columns and outcome", 0,
                          score_nothing),
    "noise, weights": Form("no cause; weights of rows from 0.1 to 5", 0, score_nothing),
    "sum": Form("four columns add up", 4, score_sum),
    "both": Form("two columns act only together", 4, score_both),
    "switch": Form("a column says which of two others acts", 4, score_switch),
    "curved": Form("a parabola and a kink", 4, score_curved),
    "varies by 10 %": Form("effects are up to so much larger or smaller", 4, vary(0.1)),
    "varies by 20 %": Form("effects are up to so much larger or smaller", 4, vary(0.2)),
    "varies by 30 %": Form("effects are up to so much larger or smaller", 4, vary(0.3)),
    "shifted": Form("environments have other columns", 4, score_shifted),
    "baselines": Form("environments have other baselines", 4, score_with_baselines),
    "confounded": Form("baselines are low where causes are high", 4, score_confounded),
    "strong": Form("a marker with odds ratios of 260 to 2,000", 4, score_strong),
}  # fmt: skip


# --- tables ---------------------------------------------------------------------------------------


def simulate_causes(form: str, outcome: str, *, n_places: int, n_rows: int, seed: int) -> Causes:
    """Simulate a table; `n_rows` are those of each environment.

    >>> table = simulate_causes("both", "number", n_places=3, n_rows=40, seed=1)
    >>> table.X.shape, table.causes
    ((120, 8), ('x0', 'x1', 'x2', 'x3'))
    """
    import pandas

    rng = np.random.default_rng(seed)
    places = np.repeat(np.arange(n_places), n_rows)
    means = SHIFT * rng.normal(size=(n_places, N_COLUMNS))
    columns = means[places] + rng.normal(size=(len(places), N_COLUMNS))
    scored = FORMS[form].compute(Draft(columns, places, rng))
    baselines = BASELINE * rng.normal(size=n_places)
    y = draw_outcome(outcome, scored.score + baselines[places], places, rng)

    names = [f"x{number}" for number in range(N_COLUMNS)]
    table = Causes(
        X=pandas.DataFrame(scored.columns, columns=names),
        y=y,
        environments=np.array([f"e{place}" for place in places]),
        causes=tuple(names[: FORMS[form].n_causes]),
    )
    if form == "noise, groups":
        return share_in_groups(table)
    if form == "noise, weights":
        return replace(table, weights=np.exp(rng.uniform(np.log(0.1), np.log(5.0), len(y))))
    return table


def draw_outcome(
    outcome: str, score: Floats, places: Integers, rng: np.random.Generator
) -> NDArray[Any]:
    """Draw an outcome whose log odds, or whose mean, is the score.

    The log odds of the second of three classes against the first are the score, those of the third
    its opposite. The spread of numbers differs between environments.
    """
    n_rows = len(score)
    if outcome == "two classes":
        return np.asarray(rng.random(n_rows) < expit(score), dtype=np.int64)
    if outcome == "three classes":
        probabilities = softmax(np.column_stack((np.zeros(n_rows), score, -score)), axis=1)
        is_below = probabilities.cumsum(axis=1) < rng.random((n_rows, 1))
        return np.asarray(is_below.sum(axis=1))
    spreads = NOISE_OF_NUMBERS * rng.uniform(0.8, 1.2, int(places.max()) + 1)
    return np.asarray(score + spreads[places] * rng.normal(size=n_rows))


def share_in_groups(table: Causes) -> Causes:
    """Give all rows of a group the columns and the outcome of its first row."""
    first_rows = np.arange(len(table.y)) // ROWS_OF_A_GROUP * ROWS_OF_A_GROUP
    return replace(
        table,
        X=table.X.iloc[first_rows].reset_index(drop=True),
        y=table.y[first_rows],
        environments=table.environments[first_rows],
        groups=first_rows // ROWS_OF_A_GROUP,
    )
