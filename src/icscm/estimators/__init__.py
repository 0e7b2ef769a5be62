"""The learners as scikit-learn estimators: parameters in, fitted state out.

A learner checks its parameters, has its table opened (`sources`) and calls a search (`search`) or a
screen (`screening`). It keeps what these find, and predicts with a model (`model`). It has no
search, no statistics and no sentences of reports of its own.

May import `report`, `export`, `search`, `sources` and lower layers.
"""

from icscm.estimators.cover import ICSCMClassifier, SCMClassifier

__all__ = ["ICSCMClassifier", "SCMClassifier"]
