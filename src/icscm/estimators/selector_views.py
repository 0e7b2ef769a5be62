"""What a fitted screen of columns shows: a forest plot and a report."""

from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from icscm.estimators.learners import name_learner
from icscm.report.content.screen import ScreenValidationRecord
from icscm.report.forests import draw_forest_figure
from icscm.report.screen import ScreenReport, make_screen_report
from icscm.report.screen_path import ScreenPath

if TYPE_CHECKING:
    from icscm.drawing import Figure


class SelectorViews:
    """Views of `InvariantFeatureSelector`; everything comes from its fitted attributes.

    Studies know a screen by this class: the selector itself imports scikit-learn's feature
    selection, which takes a second.
    """

    # leave-one-environment-out leaves two to compare
    tests_invariance = True

    estimator: Any
    tolerance: Any
    is_complete_: bool

    def takes_numbers(self, y: Any) -> bool:
        """Whether an outcome is a number to the selector."""
        raise NotImplementedError

    def report(
        self,
        *,
        path: ScreenPath | None = None,
        validation: ScreenValidationRecord | None = None,
        data_name: str | None = None,
        target: str | None = None,
        environment: str | None = None,
    ) -> ScreenReport:
        """Make a report on the screen: a page, Markdown or JSON.

        Parameters
        ----------
        path : ScreenPath, optional
            That of `icscm.validation.tolerance_path`; without it no other tolerances are shown.
        validation : ScreenValidation, optional
            That of `icscm.validation.screening.validate_screen`.
        data_name, target, environment : str, optional
            Names of the data, of the outcome and of the environments' column.

        Returns
        -------
        ScreenReport
            With `save`, `to_html`, `to_markdown`, `to_json` and `to_dict`; notebooks display it.
        """
        check_is_fitted(self)
        return make_screen_report(
            self,
            learner_name=name_learner(self.estimator),
            path=path,
            validation=validation,
            data_name=data_name,
            target=target,
            environment=environment,
        )

    def plot(self, column: Any = None) -> "Figure":
        """Draw the worth of a column in each environment, as a forest plot.

        Parameters
        ----------
        column : str or int, optional
            A column; by default those with the largest shares of heterogeneity, at most six.

        Returns
        -------
        icscm.drawing.Figure
            The worth with 95% intervals, and beside it the effect of the column's rule, other
            columns held fixed; below them the mean and the range of new environments.

        Raises
        ------
        IcscmError
            If nothing is known of the column.
        """
        check_is_fitted(self)
        return draw_forest_figure(self, column)
