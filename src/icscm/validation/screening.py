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
from icscm.tables.outcomes import OutcomeKind
from icscm.validation.cohort import Cohort, make_any_cohort
from icscm.validation.fitting import average_values, fit_fold, get_values
from icscm.validation.folds import Fold, check_environments, leave_out_environments
from icscm.validation.leave_one_out import describe_left_out, name_dropped
from icscm.validation.outcome_scores import SCORES, score_rows

if TYPE_CHECKING:
    import pandas

# Scores that differ by less count as equal in the conclusion.
_NEGLIGIBLE = 0.001


@dataclass(frozen=True)
class HeldOutScreen:
    """The learner on all columns and on screened ones, in an environment that neither saw.

    Attributes
    ----------
    environment, n_samples : label, int
        The environment left out, and its number of rows.
    score_all, score_screened, loss_all, loss_screened : float or None
        The score there, of which more is better, and the loss: AUC and log loss of two classes,
        mean AUC and log loss of several, R2 and RMSE of numbers. None where undefined, such as an
        AUC of one class.
    rejected : tuple of columns
        Those that the screen of the other environments rejected.
    dropped : tuple of columns
        Those that hold no value in the other environments.

    Examples
    --------
    >>> from icscm.validation.screening import HeldOutScreen
    >>> north = HeldOutScreen(
    ...     environment="north",
    ...     n_samples=200,
    ...     score_all=0.71,
    ...     score_screened=0.84,
    ...     loss_all=0.62,
    ...     loss_screened=0.49,
    ...     rejected=("billing_code",),
    ... )
    >>> f"{north.score_screened - north.score_all:.2f}"  # what the screen changes there
    '0.13'
    """

    environment: Any
    n_samples: int
    score_all: float | None
    score_screened: float | None
    loss_all: float | None
    loss_screened: float | None
    rejected: tuple[Any, ...]
    dropped: tuple[Any, ...] = ()

    @property
    def scores(self) -> dict[str, float | None]:
        """The four scores, by name."""
        return {
            "score_all": self.score_all,
            "score_screened": self.score_screened,
            "loss_all": self.loss_all,
            "loss_screened": self.loss_screened,
        }

    @property
    def rejected_names(self) -> list[str]:
        """The rejected columns, as text."""
        return [format_name(column) for column in self.rejected]

    @property
    def dropped_names(self) -> list[str]:
        """The columns that hold no value without the environment, as text."""
        return [format_name(column) for column in self.dropped]


@dataclass(frozen=True, repr=False)
class ScreenValidation(DisplayMixin):
    """The effect of a screen in held-out environments; see `validate_screen`.

    Attributes
    ----------
    held_out : tuple of HeldOutScreen
        One for each environment.
    outcome : OutcomeKind
        The kind of the outcome, which decides what the scores are.

    Examples
    --------
    >>> from icscm.validation.screening import HeldOutScreen, ScreenValidation
    >>> north = HeldOutScreen("north", 200, 0.71, 0.85, 0.62, 0.49, ("billing_code",))
    >>> south = HeldOutScreen("south", 300, 0.81, 0.83, 0.53, 0.51, ("billing_code",))
    >>> validation = ScreenValidation((north, south))
    >>> validation.to_frame()[["environment", "score_all", "score_screened"]]
      environment  score_all  score_screened
    0       north       0.71            0.85
    1       south       0.81            0.83
    """

    held_out: tuple[HeldOutScreen, ...]
    outcome: OutcomeKind = OutcomeKind.TWO_CLASSES

    @property
    def means(self) -> dict[str, float | None]:
        """The mean of each score over the environments in which it is defined."""
        scores_of_environments = [environment.scores for environment in self.held_out]
        return average_values(scores_of_environments, names=scores_of_environments[0])

    @property
    def text(self) -> str:
        """The conclusion in a sentence."""
        frame = self.to_frame()[["score_all", "score_screened"]].astype(float).dropna()
        gains = (frame["score_screened"] - frame["score_all"]).tolist()
        score_all, score_screened = frame.mean()
        return describe_screen_validation(
            gains,
            score_all=score_all,
            score_screened=score_screened,
            negligible=_NEGLIGIBLE,
            n_environments=len(self.held_out),
            outcome=self.outcome,
            dropped={
                as_text(environment.environment): environment.dropped_names
                for environment in self.held_out
                if environment.dropped
            },
        )

    def to_frame(self) -> "pandas.DataFrame":
        """Return a row for each environment held out."""
        import pandas

        frame = pandas.DataFrame([asdict(environment) for environment in self.held_out])
        rejected = [", ".join(environment.rejected_names) for environment in self.held_out]
        dropped = [", ".join(environment.dropped_names) for environment in self.held_out]
        return frame.assign(rejected=rejected, dropped=dropped)

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
    selector: InvariantFeatureSelector,
    X: Any,
    y: Any,
    *,
    environments: Any,
    groups: Any = None,
    sample_weight: Any = None,
) -> ScreenValidation:
    """Fit the learner without each environment, on all columns and on screened ones.

    The screen is repeated in each fold, without the environment left out.

    Parameters
    ----------
    selector : InvariantFeatureSelector
        It is not changed and need not be fitted.
    X, y, environments, groups, sample_weight : as for `InvariantFeatureSelector.fit`
        The rows, of at least three environments. Weights count in the fits and in the scores.

    Returns
    -------
    ScreenValidation
        A score and a loss in each environment, with `to_frame()`.

    Raises
    ------
    IcscmError
        If there are fewer than three environments, or the outcome without one of them has nothing
        to learn, such as a single class.

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
    cohort = make_any_cohort(
        X,
        y,
        environments=environments,
        groups=groups,
        sample_weight=sample_weight,
        is_number=selector.takes_numbers(y),
    )
    check_environments(cohort, selector, "leave-one-environment-out")
    folds = leave_out_environments(cohort)
    with warnings.catch_warnings(action="ignore", category=IcscmWarning):  # `fit` warns
        left_out = [_leave_out(selector, cohort, fold) for fold in track(folds, len(folds))]
    return ScreenValidation(tuple(left_out), outcome=cohort.kind)


def _leave_out(selector: InvariantFeatureSelector, cohort: Cohort, fold: Fold) -> HeldOutScreen:
    """Screen without an environment, and score the learner there on all and on screened columns."""
    context = describe_left_out(fold.environment)
    (on_screened,) = fit_fold([selector], cohort, fold, context=context)
    # the selector tells its learner neither environments nor groups
    learner = on_screened.estimator.make_learner()
    (on_all,) = fit_fold([learner], cohort.without_environments(), fold, context=context)

    test_of_screened = on_screened.take_test_rows(cohort, fold)
    test_of_all = on_all.take_test_rows(cohort, fold)
    scores_on_screened = get_values(score_rows(on_screened.estimator, test_of_screened))
    scores_on_all = get_values(score_rows(on_all.estimator, test_of_all))
    names = SCORES[cohort.kind]
    return HeldOutScreen(
        environment=fold.environment,
        n_samples=len(fold.test_rows),
        score_all=scores_on_all[names.score],
        score_screened=scores_on_screened[names.score],
        loss_all=scores_on_all[names.loss],
        loss_screened=scores_on_screened[names.loss],
        rejected=tuple(on_screened.estimator.rejected_),
        dropped=name_dropped(on_screened, cohort),
    )
