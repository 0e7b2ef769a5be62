"""Tables whose rows belong together: visits of patients."""

import numpy as np

N_NOISE = 8


def make_visits(seed, n_visits, n_patients=400, *, has_shortcut=False):
    """Two causes and noise, constant within patients, whose own risks differ.

    A shortcut copies the label in 95, 85, 70 and 50 % of the rows of the four environments.
    """
    rng = np.random.default_rng(seed)
    places = rng.integers(0, 4, n_patients)
    X = rng.integers(0, 2, (n_patients, 2 + N_NOISE)).astype(float)
    patients = np.repeat(np.arange(n_patients), n_visits)
    own_risk = rng.normal(0, 1.5, n_patients)
    log_odds = -0.5 + 1.2 * X[:, 0] + 0.8 * X[:, 1] + own_risk + 0.3 * places
    y = (rng.random(len(patients)) < 1 / (1 + np.exp(-log_odds[patients]))).astype(int)
    X_of_visits = X[patients]
    places_of_visits = places[patients]
    if has_shortcut:
        agreement = np.array([0.95, 0.85, 0.7, 0.5])[places_of_visits]
        agrees = rng.random(len(y)) < agreement
        X_of_visits = np.column_stack((X_of_visits, np.where(agrees, y, 1 - y)))
    return X_of_visits, y, places_of_visits, patients
