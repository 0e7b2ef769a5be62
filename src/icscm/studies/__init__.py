"""Questions about learning: check-up, choice of p, environments left out, stability,
external validation (evaluation, with its scores and the calibration of leaves).

May import `estimators` and what is below.
"""
