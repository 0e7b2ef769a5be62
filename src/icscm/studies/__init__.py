"""Questions about learning: check-up, choice of p, environments left out, stability.

May import `estimators` and what is below.
"""
