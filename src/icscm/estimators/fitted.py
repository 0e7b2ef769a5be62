"""What `fit` has set, and what it has not.

scikit-learn requires that an attribute such as `feature_names_in_` does not exist before `fit`, and
where X had no names. So these attributes have no default, and code that needs one asks here.
"""

from sklearn.base import BaseEstimator

from icscm._types import Array


def is_set(estimator: BaseEstimator, attribute: str) -> bool:
    """Tell whether `fit` has set an attribute of an estimator."""
    return attribute in vars(estimator)


def find_feature_names(estimator: BaseEstimator) -> Array | None:
    """Return the names of the columns at fitting, or None where these had no names."""
    if not is_set(estimator, "feature_names_in_"):
        return None
    names: Array = estimator.feature_names_in_
    return names
