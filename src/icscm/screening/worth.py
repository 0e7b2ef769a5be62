"""What a column is worth in each environment, and in a new one.

The *contribution* c of a column to a row's score f is the score less the mean score with the column
drawn from other rows of the environment. Its *worth* s in environment e says how much of the
contribution is true there:

    score of a row in e = level of e + (f - c) + s_e c

    s_e = 1     the column says there what the model has learned
    s_e = 1/2   half of it: with squared loss, using the column neither helps nor harms
    s_e = 0     it says nothing there
    s_e < 0     it is reversed

Each s_e comes from one common slope s and one step of Newton's method from there,

    s_e = s + U_e / J_e        variance 1 / J_e

with U_e the derivative of the log-likelihood of environment e by the slope, and J_e its
information. Slopes that are fitted in each environment by themselves would hide large differences
where predictions are nearly certain, since their errors then grow with them (Hauck and Donner
1977).

`icscm.stats.worth` pools the worth over environments, and says what a new one keeps.
"""

from typing import Final

import numpy as np

from icscm._types import FloatArray, IntArray
from icscm.screening.outcomes import Outcome
from icscm.screening.screened_table import Clusters, ScreenedTable
from icscm.stats.worth import Worth

# Steps of Newton's method for the common slope and the levels, and how far one goes at most.
N_STEPS: Final = 8
MAX_STEP: Final = 1.0
MAX_LEVEL_STEP: Final = 2.0
# Beyond it a worth is meaningless.
MAX_WORTH: Final = 20.0
MIN_INFORMATION: Final = 1e-9
# A ridge for slopes that are fitted jointly: columns that contribute the same have no own slopes.
JOINT_RIDGE: Final = 1e-3
MAX_JOINT_COLUMNS: Final = 30


# --- one column -----------------------------------------------------------------------------------


def fit_worth(
    outcome: Outcome,
    table: ScreenedTable,
    scores: FloatArray,
    contributions: FloatArray,
    *,
    variances: FloatArray,
) -> Worth:
    """Fit the worth of a column in each environment, all other columns as the model has them.

    Scores and contributions are by (row, output); `variances` are those of the environments.
    """
    places = table.places
    environments = places.numbers
    weights = (outcome.weights / variances[environments])[:, np.newaxis]
    others = scores - contributions
    slope = 1.0
    levels = np.zeros((places.count, scores.shape[1]))
    for step in range(N_STEPS + 1):
        means = outcome.compute_means(others + levels[environments] + slope * contributions)
        residuals = weights * (outcome.targets - means)
        hessians = weights * outcome.compute_variances(means)

        # What the column contributes beyond the level of the environment.
        total_hessians = places.add_up(hessians) + MIN_INFORMATION
        centres = places.add_up(hessians * contributions) / total_hessians
        deviations = contributions - centres[environments]

        U_of_rows = (residuals * deviations).sum(axis=1)
        U = places.add_up(U_of_rows)
        information = weights[:, 0] * outcome.compute_information(means, deviations)
        J = places.add_up(information) + MIN_INFORMATION
        if step == N_STEPS:
            break
        move = float(np.clip(U.sum() / J.sum(), -MAX_STEP, MAX_STEP))
        slope = float(np.clip(slope + move, -MAX_WORTH, MAX_WORTH))
        level_steps = places.add_up(residuals) / total_hessians
        levels += np.clip(level_steps, -MAX_LEVEL_STEP, MAX_LEVEL_STEP) - centres * move

    error_squares = 1.0 / J
    if has_robust_errors(outcome, table):
        robust = sum_squares(U_of_rows, table) / J**2
        error_squares = np.maximum(error_squares, robust)
    values = np.clip(slope + U / J, -MAX_WORTH, MAX_WORTH)
    return Worth(values=values, errors=np.sqrt(error_squares), information=J)


def has_robust_errors(outcome: Outcome, table: ScreenedTable) -> bool:
    """Return whether errors must allow for more than the model's own variance."""
    return outcome.has_robust_errors or table.is_weighted or table.clusters is not None


def sum_squares(values: FloatArray, table: ScreenedTable) -> FloatArray:
    """Add up by environment the squares of values, which are summed by cluster first.

    With U of the rows it is the variance of U_e if rows of a cluster are alike (Liang and Zeger
    1986), and if weights differ; without clusters each row is one (White 1980).
    """
    clusters = table.clusters
    if clusters is None:
        return table.places.add_up(values**2)
    cluster_sums = np.bincount(clusters.numbers, values, len(clusters.environments))
    sums = np.bincount(clusters.environments, cluster_sums**2, table.places.count)
    return sums.astype(np.float64)


# --- several columns jointly ----------------------------------------------------------------------


def fit_joint_worth(
    outcome: Outcome,
    table: ScreenedTable,
    scores: FloatArray,
    contributions: list[FloatArray],
    *,
    variances: FloatArray,
) -> list[Worth | None]:
    """Fit the worth of several columns in one regression for each environment.

    Some shortcuts only show jointly: if the time between two dates is the shortcut, neither date
    differs by itself. With the deviations D (row, column) of all contributions from their centres,

        common slopes  s = 1 + (sum J_e)^-1 sum U_e,   U_e = D' residuals,   J_e = D' hessians D
        worth        s_e = s + J_e^-1 (U_e - J_e (s - 1)),      variance: diagonal of J_e^-1

    Only the columns that contribute most take part, `MAX_JOINT_COLUMNS`; the others get None.
    """
    joint_columns = find_largest(contributions)
    places = table.places
    weights = (outcome.weights / variances[places.numbers])[:, np.newaxis]
    means = outcome.compute_means(scores)
    residuals = weights * (outcome.targets - means)
    hessians = weights * outcome.compute_variances(means)
    total_hessians = places.add_up(hessians) + MIN_INFORMATION

    n_joint = len(joint_columns)
    deviations = np.empty((n_joint, *scores.shape))
    for position, column in enumerate(joint_columns.tolist()):
        centres = places.add_up(hessians * contributions[column]) / total_hessians
        deviations[position] = contributions[column] - centres[places.numbers]

    U = np.zeros((places.count, n_joint))
    J = np.zeros((places.count, n_joint, n_joint))
    squares = np.zeros((places.count, n_joint, n_joint))
    is_robust = has_robust_errors(outcome, table)
    for environment in range(places.count):
        rows = np.flatnonzero(places.numbers == environment)
        D = deviations[:, rows]
        U_of_rows = np.einsum("jro,ro->jr", D, residuals[rows])
        U[environment] = U_of_rows.sum(axis=1)
        J[environment] = multiply_information(D, means[rows], weights[rows], outcome=outcome)
        if is_robust:
            sums = sum_by_cluster(U_of_rows, rows, table.clusters)
            squares[environment] = sums @ sums.T

    ridge = JOINT_RIDGE * np.eye(n_joint)
    common = 1.0 + np.linalg.solve(J.sum(axis=0) + ridge, U.sum(axis=0))
    values = np.empty((n_joint, places.count))
    errors = np.empty((n_joint, places.count))
    for environment in range(places.count):
        V = np.linalg.inv(J[environment] + ridge)
        step = V @ (U[environment] - J[environment] @ (common - 1.0))
        error_squares = V.diagonal()
        if is_robust:
            error_squares = np.maximum(error_squares, (V @ squares[environment] @ V).diagonal())
        values[:, environment] = common + step
        errors[:, environment] = np.sqrt(error_squares)

    joint: list[Worth | None] = [None] * len(contributions)
    for position, column in enumerate(joint_columns.tolist()):
        information = 1.0 / errors[position] ** 2
        joint[column] = Worth(values[position], errors[position], information)
    return joint


def find_largest(contributions: list[FloatArray]) -> IntArray:
    """Return the positions of the columns that contribute most, sorted."""
    squares = np.array([(contribution**2).sum() for contribution in contributions])
    descending = np.argsort(-squares, kind="stable")
    return np.sort(descending[:MAX_JOINT_COLUMNS])


def multiply_information(
    D: FloatArray, means: FloatArray, weights: FloatArray, *, outcome: Outcome
) -> FloatArray:
    """Return D' H D by (column, column), with H the information of the rows of an environment.

    D is by (column, row, output). For several classes H is the covariance of the class indicators,
    diag(p) - p p', and otherwise the variance v of the row.
    """
    if outcome.n_outputs == 1:
        v = (weights * outcome.compute_variances(means))[:, 0]
        return np.asarray((D[:, :, 0] * v) @ D[:, :, 0].T)
    mean_square = np.einsum("jro,ro,kro->jk", D, means * weights, D)
    mean = np.einsum("jro,ro->jr", D, means)
    return np.asarray(mean_square - (mean * weights[:, 0]) @ mean.T)


def sum_by_cluster(values: FloatArray, rows: IntArray, clusters: Clusters | None) -> FloatArray:
    """Add up values (column, row) by cluster, of the rows of one environment."""
    if clusters is None:
        return values
    numbers = np.unique(clusters.numbers[rows], return_inverse=True)[1]
    return np.stack([np.bincount(numbers, values_of_column) for values_of_column in values])
