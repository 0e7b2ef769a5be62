"""Validation of a screen of columns: leave-one-environment-out, the screen inside each fold."""

import warnings
from dataclasses import asdict, dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any

from icscm._changes import data_by_name
from icscm._repr import Display, DisplayMixin, display_frame
from icscm.estimators.selector import InvariantFeatureSelector
from icscm.exceptions import IcscmWarning
from icscm.formatting import as_text, format_name, make_plain
from icscm.progress import track
from icscm.report.wording.screening import describe_screen_validation
from icscm.validation.cohort import make_cohort
from icscm.validation.fitting import average_values, fit_fold, score_fold
from icscm.validation.folds import check_environments, leave_out_environments
from icscm.validation.leave_one_out import describe_left_out

if TYPE_CHECKING:
    import pandas

_SCORES = ("auc", "log_loss")
# AUCs that differ by less count as equal in the conclusion.
_NEGLIGIBLE = 0.001


@dataclass(frozen=True)
class HeldOutScreen:
    """The learner on all columns and on screened ones, in an environment that neither saw.

    Attributes
    ----------
    environment, n_samples : label, int
        The environment held out, and its number of rows.
    auc_all, auc_screened, log_loss_all, log_loss_screened : float or None
        Scores there; None where undefined, such as an AUC of one class.
    rejected : tuple of columns
        Those that the screen of the other environments rejected.

    Examples
    --------
    >>> from icscm.validation.screening import HeldOutScreen
    >>> north = HeldOutScreen(
    ...     environment="north",
    ...     n_samples=200,
    ...     auc_all=0.71,
    ...     auc_screened=0.84,
    ...     log_loss_all=0.62,
    ...     log_loss_screened=0.49,
    ...     rejected=("billing_code",),
    ... )
    >>> f"{north.auc_screened - north.auc_all:.2f}"  # what the screen changes there
    '0.13'
    """

    environment: Any
    n_samples: int
    auc_all: float | None
    auc_screened: float | None
    log_loss_all: float | None
    log_loss_screened: float | None
    rejected: tuple[Any, ...]

    @property
    def scores(self) -> dict[str, float | None]:
        """The four scores, by name."""
        return {
            "auc_all": self.auc_all,
            "auc_screened": self.auc_screened,
            "log_loss_all": self.log_loss_all,
            "log_loss_screened": self.log_loss_screened,
        }

    @property
    def rejected_names(self) -> list[str]:
        """The rejected columns, as text."""
        return [format_name(column) for column in self.rejected]


@dataclass(frozen=True, repr=False)
class ScreenValidation(DisplayMixin):
    """The effect of a screen in held-out environments; see `validate_screen`.

    Attributes
    ----------
    held_out : tuple of HeldOutScreen
        One for each environment.

    Examples
    --------
    >>> from icscm.validation.screening import HeldOutScreen, ScreenValidation
    >>> north = HeldOutScreen("north", 200, 0.71, 0.85, 0.62, 0.49, ("billing_code",))
    >>> south = HeldOutScreen("south", 300, 0.81, 0.83, 0.53, 0.51, ("billing_code",))
    >>> validation = ScreenValidation((north, south))
    >>> validation.to_frame()[["environment", "auc_all", "auc_screened"]]
      environment  auc_all  auc_screened
    0       north     0.71          0.85
    1       south     0.81          0.83
    """

    held_out: tuple[HeldOutScreen, ...]

    @property
    def means(self) -> dict[str, float | None]:
        """The mean of each score over the environments in which it is defined."""
        scores_of_environments = [environment.scores for environment in self.held_out]
        return average_values(scores_of_environments, names=scores_of_environments[0])

    @property
    def text(self) -> str:
        """The conclusion in a sentence."""
        frame = self.to_frame()[["auc_all", "auc_screened"]].astype(float).dropna()
        gains = (frame["auc_screened"] - frame["auc_all"]).tolist()
        auc_all, auc_screened = frame.mean()
        return describe_screen_validation(
            gains, auc_all=auc_all, auc_screened=auc_screened, negligible=_NEGLIGIBLE
        )

    def to_frame(self) -> "pandas.DataFrame":
        """Return a row for each environment held out."""
        import pandas

        frame = pandas.DataFrame([asdict(environment) for environment in self.held_out])
        rejected = [", ".join(environment.rejected_names) for environment in self.held_out]
        return frame.assign(rejected=rejected)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain values, as in a report."""
        rows = [
            asdict(environment) | {"rejected": environment.rejected_names}
            for environment in self.held_out
        ]
        return {"environments": make_plain(rows, as_text), "means": self.means, "text": self.text}

    def _display(self) -> Display:
        """Show the environments in a table, and the conclusion above it."""
        return display_frame(fill(self.text, 80), self.to_frame())


@data_by_name
def validate_screen(
    selector: InvariantFeatureSelector, X: Any, y: Any, *, environments: Any, groups: Any = None
) -> ScreenValidation:
    """Fit the learner without each environment, on all columns and on screened ones.

    The screen is repeated in each fold, without the environment held out.

    Parameters
    ----------
    selector : InvariantFeatureSelector
        It is not changed and need not be fitted.
    X, y, environments, groups : as for `InvariantFeatureSelector.fit`
        The rows, of at least three environments.

    Returns
    -------
    ScreenValidation
        AUC and log loss in each environment, with `to_frame()`.

    Raises
    ------
    IcscmError
        If there are fewer than three environments, or a class occurs in only one of them.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from icscm import InvariantFeatureSelector
    >>> from icscm.datasets import make_conjunction
    >>> from icscm.validation.screening import validate_screen
    >>> data = make_conjunction(200, n_environments=3, random_state=1)
    >>> selector = InvariantFeatureSelector(LogisticRegression(), cv=2)
    >>> X = data.X[["A1", "C1"]]
    >>> validation = validate_screen(selector, X, data.y, environments=data.environments)
    >>> [environment.n_samples for environment in validation.held_out]
    [200, 200, 200]
    """
    cohort = make_cohort(X, y, environments=environments, groups=groups)
    check_environments(cohort, selector, "leave-one-environment-out")
    # the selector tells its learner neither environments nor groups
    plain_cohort = cohort.without_environments()
    scorers = {name: name for name in _SCORES}
    folds = leave_out_environments(cohort)
    left_out = []
    with warnings.catch_warnings(action="ignore", category=IcscmWarning):  # `fit` warns
        for fold in track(folds, len(folds)):
            context = describe_left_out(fold.environment)
            (on_screened,) = fit_fold([selector], cohort, fold, context=context)
            learner = on_screened.estimator.make_learner()
            (on_all,) = fit_fold([learner], plain_cohort, fold, context=context)

            scores_on_screened = score_fold(on_screened, cohort, fold, scorers).values
            scores_on_all = score_fold(on_all, cohort, fold, scorers).values
            environment = HeldOutScreen(
                environment=fold.environment,
                n_samples=len(fold.test_rows),
                auc_all=scores_on_all["auc"],
                auc_screened=scores_on_screened["auc"],
                log_loss_all=scores_on_all["log_loss"],
                log_loss_screened=scores_on_screened["log_loss"],
                rejected=tuple(on_screened.estimator.rejected_),
            )
            left_out.append(environment)
    return ScreenValidation(tuple(left_out))
