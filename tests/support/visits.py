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
    risk = -0.5 + 1.2 * X[:, 0] + 0.8 * X[:, 1] + rng.normal(0, 1.5, n_patients) + 0.3 * places
    y = (rng.random(len(patients)) < 1 / (1 + np.exp(-risk[patients]))).astype(int)
    X, places = X[patients], places[patients]
    if has_shortcut:
        is_copy = rng.random(len(y)) < np.array([0.95, 0.85, 0.7, 0.5])[places]
        X = np.column_stack((X, np.where(is_copy, y, 1 - y)))
    return X, y, places, patients
