"""The learners as scikit-learn estimators: parameters in, fitted state out.

May import `report`, `export`, `search`, `sources` and lower layers.
"""

from icscm.estimators.cover import ICSCMClassifier, SCMClassifier

__all__ = ["ICSCMClassifier", "SCMClassifier"]
