"""What a model leaves unexplained, and slopes of it on contributions."""

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from icscm.screening.contributions import Contributions, fit_joint_slopes, fit_separate_slopes
from icscm.screening.residuals import Residuals, fit_score_model


def test_joint_slopes_are_those_of_a_regression():
    """One Newton step for all contributions of an environment, by least squares."""
    rng = np.random.default_rng(1)
    c, environments = rng.normal(size=(300, 3)) @ rng.normal(size=(3, 3)), np.arange(300) % 2
    g, h = rng.normal(size=300), rng.uniform(0.1, 0.3, 300)
    residuals = Residuals(
        outcomes=np.zeros(300, dtype=int),
        probabilities=np.zeros(300),
        weights=np.ones(300),
        environments=environments,
        n_environments=3,
    )
    # of a model that leaves these gradients and hessians
    vars(residuals).update(gradients=g, hessians=h)
    contributions = Contributions(np.arange(300), np.arange(3), c, np.zeros_like(c))
    centred = contributions.centre_by_environment(residuals)
    alone = fit_separate_slopes(centred, residuals)
    jointly = fit_joint_slopes(centred, residuals, np.arange(3))
    for k in (0, 1):
        is_in_k = environments == k
        root = np.sqrt(h[is_in_k])
        design = np.column_stack((np.ones(150), c[is_in_k])) * root[:, np.newaxis]
        information = design.T @ design
        slopes = np.linalg.lstsq(design, g[is_in_k] / root, rcond=None)[0][1:]
        np.testing.assert_allclose(jointly.estimates[:, k], slopes, rtol=1e-3)
        variances = np.linalg.inv(information).diagonal()[1:]
        np.testing.assert_allclose(jointly.information[:, k], 1 / variances, rtol=1e-3)
        first = design[:, :2]
        slope = np.linalg.lstsq(first, g[is_in_k] / root, rcond=None)[0][1]
        np.testing.assert_allclose(alone.estimates[0, k], slope, rtol=1e-3)
    assert not alone.information[:, 2].any()
    assert not jointly.information[:, 2].any()


def test_scores_are_combined_as_by_a_logistic_regression():
    """Slopes and intercepts against scikit-learn's, without a penalty."""
    rng = np.random.default_rng(0)
    e, one, two = rng.integers(0, 3, 3000), rng.normal(size=3000), rng.normal(size=3000)
    y = (rng.random(3000) < expit(0.7 * one + 0.4 * two + np.array([-1, 0, 1.0])[e])) * 1
    model = fit_score_model(np.column_stack((one, two)), y, e, 3)
    X = np.column_stack((one, two, *(e == k for k in range(3))))
    literal = LogisticRegression(C=1e9, fit_intercept=False, max_iter=1000, tol=1e-9).fit(X, y)
    assert np.allclose([*model.slopes, *model.intercepts], literal.coef_[0], atol=1e-3)
    # a learner whose slope would be negative is left out
    assert fit_score_model(np.column_stack((one, -two)), y, e, 3).slopes[1] == 0
