"""What `fit` has set, and what it has not.

scikit-learn requires that an attribute such as `feature_names_in_` does not exist before `fit`, and
where X had no names. So these attributes have no default, and code that needs one asks here.
"""

from sklearn.base import BaseEstimator


def is_set(owner: object, attribute: str) -> bool:
    """Tell whether an attribute was set: of an estimator by `fit`, of a trace when it was read."""
    return attribute in vars(owner)


def find_feature_names(estimator: BaseEstimator) -> list[str] | None:
    """Return the names of the columns at fitting, or None where these had no names."""
    if not is_set(estimator, "feature_names_in_"):
        return None
    names: list[str] = estimator.feature_names_in_.tolist()
    return names
