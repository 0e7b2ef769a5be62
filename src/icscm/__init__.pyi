"""The public names for type checkers; `__init__.py` loads them when they are first used."""

from icscm import datasets as datasets
from icscm._version import __version__ as __version__
from icscm.estimators.cover import ICSCMClassifier as ICSCMClassifier
from icscm.estimators.cover import SCMClassifier as SCMClassifier
from icscm.estimators.forest import InvariantForestClassifier as InvariantForestClassifier
from icscm.estimators.icp import InvariantCausalPrediction as InvariantCausalPrediction
from icscm.estimators.score import InvariantScoreClassifier as InvariantScoreClassifier
from icscm.estimators.selector import InvariantFeatureSelector as InvariantFeatureSelector
from icscm.estimators.tree import InvariantTreeClassifier as InvariantTreeClassifier
from icscm.model.saved import load as load
from icscm.progress import show_progress as show_progress
from icscm.validation.checkup import check_environments as check_environments
from icscm.validation.comparison import compare as compare
from icscm.validation.evaluation import evaluate as evaluate
from icscm.validation.leave_one_out import leave_one_environment_out as leave_one_environment_out
from icscm.validation.stability import stability_selection as stability_selection
