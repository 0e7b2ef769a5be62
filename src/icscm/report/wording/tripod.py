"""The TRIPOD+AI checklist, as far as the data and the model determine its items.

Collins and others, BMJ 2024;385:e078378. What only the authors know is left open.
"""

from typing import NamedTuple

from icscm._version import __version__
from icscm.formatting import as_text, count
from icscm.report.content.learner import LearnerContent
from icscm.report.content.model import ScorePoints
from icscm.report.content.task import Setting
from icscm.report.formatting import format_share, format_value
from icscm.report.wording.advice import list_not_shown, list_warnings
from icscm.report.wording.errors import describe_threshold
from icscm.report.wording.estimates import describe_estimate
from icscm.report.wording.model import MISSING, name_model
from icscm.report.wording.requirement import describe_requirement

TODO = "to be filled by the authors"
# How many are listed in one item.
N_COLUMNS = 20
N_ENVIRONMENTS = 30
# The points of a missing value are those of the level that this begins.
MISSING_LEVEL = "missing"


class Item(NamedTuple):
    """An item of the checklist."""

    number: str
    topic: str
    text: str


def fill_checklist(content: LearnerContent) -> list[Item]:
    """Return the items of the checklist."""
    return [
        *fill_introduction(content),
        *fill_methods_of_data(content),
        *fill_methods_of_analysis(content),
        *fill_results(content),
        *fill_discussion(content),
    ]


def fill_introduction(content: LearnerContent) -> list[Item]:
    """Return the items on title, abstract, background and objectives."""
    objectives = "development"
    if content.validation is not None:
        objectives += ", with internal-external cross-validation"
    return [
        Item(
            "1",
            "Title: a prediction model, its population and outcome",
            f"{TODO}; outcome: {content.names.positive}",
        ),
        Item("2", "Abstract, as TRIPOD+AI for abstracts", TODO),
        Item("3a", "Background: setting, purpose, existing models", TODO),
        Item("3b", "Target population, intended use and users", TODO),
        Item("3c", "Known health inequalities", TODO),
        Item("4", "Objectives: development, evaluation or both", objectives),
    ]


def fill_methods_of_data(content: LearnerContent) -> list[Item]:
    """Return the items on data, outcome, predictors, sample size and missing data."""
    task = content.task
    positive = content.names.positive
    model_columns = ", ".join(content.model.features) or "none"
    return [
        Item(
            "5a",
            "Sources of data, and why they are representative",
            f"{task.data or TODO}; design: {TODO}",
        ),
        Item("5b", "Dates of the data", TODO),
        Item(
            "6a",
            "Setting, number and place of centres",
            f"{count_centres(content)}; setting: {TODO}",
        ),
        Item("6b", "Eligibility of participants", TODO),
        Item("6c", "Treatments received", TODO),
        Item("7", "Preparation of data", describe_preparation(content)),
        Item(
            "8a",
            "Outcome: definition and time horizon",
            f"{positive}; definition and horizon: {TODO}",
        ),
        Item("8b, 8c", "Who assessed the outcome, blinding", TODO),
        Item(
            "9a",
            "Choice of the initial predictors",
            f"{count(task.n_columns, 'column')}; reasons: {TODO}",
        ),
        Item(
            "9b, 9c",
            "Definition and measurement of the predictors",
            f"in the model: {model_columns}; measurement: {TODO}",
        ),
        Item("10", "Sample size", f"{describe_size(content)}; justification: {TODO}"),
        Item("11", "Missing data", describe_missing_data(content)),
    ]


def count_centres(content: LearnerContent) -> str:
    """Return the number of environments, with the column that they come from."""
    centres = count(content.task.n_environments, "environment")
    if not content.task.has_environments:
        return centres
    return f"{centres} ({content.names.column or 'environment'})"


def describe_size(content: LearnerContent) -> str:
    """Return the number of rows, and how many of them have the outcome."""
    overall = content.task.overall
    return f"{count(overall.n, 'sample')}, {format_share(overall.rate)} with the outcome"


def describe_preparation(content: LearnerContent) -> str:
    """Return which columns were dropped, and how numbers were cut."""
    listed = content.task.dropped[:N_COLUMNS]
    dropped = [f"{dropped_column.column} ({dropped_column.reason})" for dropped_column in listed]
    columns = f"dropped columns: {', '.join(dropped)}" if dropped else "no column was dropped"
    return f"{columns}; numbers were cut at observed values"


def list_missing_points(content: LearnerContent) -> list[str]:
    """Return the points of a missing value, by column."""
    return [
        f"{row.column} {row.points}{row.value.removeprefix(MISSING_LEVEL)}"
        for row in list_points(content)
        if row.value.startswith(MISSING_LEVEL)
    ]


def list_points(content: LearnerContent) -> list[ScorePoints]:
    """Return the points of a score; none of another model."""
    return [] if content.model.score is None else content.model.score.points


def describe_missing_data(content: LearnerContent) -> str:
    """Return what missing values mean to the model, and how they were treated."""
    missing_points = list_missing_points(content)
    if missing_points:
        meaning = f"points of a missing value: {', '.join(missing_points)}"
    elif content.model.noun == "score":
        meaning = "no missing value gets points"
    elif content.model.has_missing:
        meaning = MISSING.strip(".")
    else:
        meaning = "no rule of the model applies to missing values"
    settings = [
        f"{describe_setting(setting)} ({setting.meaning})"
        for setting in content.task.settings
        if setting.name == "missing"
    ]
    return f"{meaning}; setting: {''.join(settings)}; numbers of missing values: {TODO}"


def describe_setting(setting: Setting) -> str:
    """Return `alpha = 0.05`."""
    return f"{setting.name} = {format_value(setting.value)}"


def fill_methods_of_analysis(content: LearnerContent) -> list[Item]:
    """Return the items on the analysis: model, validation, measures, classes, ethics, openness."""
    threshold = describe_threshold(content.model) or " by the rules"
    return [
        Item("12a", "How data were used", describe_use_of_data(content)),
        Item("12b", "Handling of predictors", describe_predictors(content)),
        Item(
            "12c",
            "Type of model, building steps, tuning, internal validation",
            describe_building(content),
        ),
        Item("12d", "Heterogeneity between clusters", describe_clusters(content)),
        Item(
            "12e",
            "Performance measures",
            f"{describe_measures(content)}; clinical utility: {TODO}",
        ),
        Item("12f", "Model updating or recalibration", TODO),
        Item(
            "12g",
            "How predictions are calculated",
            "the saved model and its exports (SQL, Python, R, JSON)",
        ),
        Item("13", "Class imbalance", describe_class_balance(content)),
        Item("14", "Fairness", TODO),
        Item(
            "15",
            "Output of the model, thresholds",
            f"class and probability of {content.names.positive}; the class{threshold}; clinical "
            f"thresholds: {TODO}",
        ),
        Item(
            "16",
            "Differences between training and evaluation data",
            "no evaluation data" if content.validation is None else "the left-out environment",
        ),
        Item("17", "Ethical approval", TODO),
        Item("18a-18e", "Funding, conflicts of interest, protocol, registration, data", TODO),
        Item("18f", "Code", f"icscm {__version__}; code of the analysis: {TODO}"),
        Item("19", "Patient and public involvement", TODO),
    ]


def describe_use_of_data(content: LearnerContent) -> str:
    """Return which rows were used to learn the model, and which to measure its performance."""
    use = "all samples to learn the model"
    if content.validation is None:
        return use
    return (
        f"{use}, and {len(content.validation.held_out)} further models, each without one "
        "environment, to measure performance"
    )


def describe_predictors(content: LearnerContent) -> str:
    """Return what the model makes of numbers and categories."""
    if content.model.noun == "score":
        return (
            "numbers, cut at thresholds, and levels of categories, in groups: each has whole points"
        )
    return "rules on numbers, cut at thresholds, and on groups of categories"


def describe_measures(content: LearnerContent) -> str:
    """Return which measures of performance the report has."""
    if content.validation is None:
        return "AUC and error in training only"
    return "AUC, calibration slope and intercept, Brier score and its skill"


def describe_building(content: LearnerContent) -> str:
    """Return the learner, the settings that differ from the defaults, and the requirement."""
    chosen_settings = [
        f"{describe_setting(setting)}, "
        for setting in content.task.settings
        if not setting.is_default
    ]
    requirement = describe_requirement(content.nodes, content.names, content.model.kind)
    return (
        f"{content.task.learner}, icscm {__version__}; {''.join(chosen_settings)}other settings at "
        f"their defaults; {requirement}"
    )


def describe_clusters(content: LearnerContent) -> str:
    """Return how heterogeneity between environments was taken into account."""
    if not content.task.has_environments:
        return "no environments were given"
    text = "the requirement on environments above"
    if content.validation is None:
        return text
    return (
        f"{text}; random effects over environments left out (DerSimonian and Laird, Hartung and "
        "Knapp)"
    )


def describe_class_balance(content: LearnerContent) -> str:
    """Return the costs of errors, where the learner has them."""
    costs = [
        f"misclassification cost ratio p = {format_value(setting.value)}; "
        for setting in content.task.settings
        if setting.name == "p"
    ]
    return f"{''.join(costs)}no resampling of classes"


def fill_results(content: LearnerContent) -> list[Item]:
    """Return the items on participants, the model and its performance."""
    return [
        Item("20a", "Flow of participants", TODO),
        Item("20b", "Characteristics, outcome rate by centre", describe_centres(content)),
        Item("20c", "Comparison of development and evaluation data", TODO),
        Item("21", "Participants and events in each analysis", describe_analyses(content)),
        *fill_model(content),
        Item("23a", "Performance with intervals", describe_performance(content)),
        Item(
            "23b",
            "Heterogeneity of performance between clusters",
            describe_performance_by_environment(content),
        ),
        Item("24", "Results of updating", TODO),
    ]


def describe_centres(content: LearnerContent) -> str:
    """Return the size and the rate of each environment, the first of many."""
    centres = [
        f"{environment.environment}: {count(environment.n, 'sample')}, "
        f"{format_share(environment.rate)}"
        for environment in content.task.environments[:N_ENVIRONMENTS]
    ]
    return f"{'; '.join(centres)}; characteristics: {TODO}"


def describe_analyses(content: LearnerContent) -> str:
    """Return the rows of the whole data, and without each environment."""
    analyses = [describe_size(content)]
    if content.validation is not None:
        for held_out in content.validation.held_out:
            n_learned = content.task.overall.n - held_out.n_samples
            analyses.append(
                f"without {as_text(held_out.environment)}: {count(n_learned, 'sample')}"
            )
    return "; ".join(analyses)


def fill_model(content: LearnerContent) -> list[Item]:
    """Return the full model: the points and risks of a score, else where it is."""
    score = content.model.score
    if score is None or not score.points:
        name = name_model(content.learned, content.model.features)
        text = f"{name}; leaves and probabilities are in the report and in the saved model"
        return [Item("22", "Full model", text)]
    points = "; ".join(f"{row.column} {row.value}: {row.points}" for row in score.points)
    risks = "; ".join(f"{total}: {format_share(risk)}" for total, risk in enumerate(score.risks))
    return [
        Item("22", "Full model: points of each column", points),
        Item("22", "Full model: risk of each total of points", risks),
    ]


def describe_performance(content: LearnerContent) -> str:
    """Return the lines on environments left out."""
    if content.validation is None:
        text = f"not known in environments left out: {content.unvalidated}"
    else:
        text = ". ".join(content.validation.lines)
    return f"{text}; key subgroups: {TODO}"


def describe_performance_by_environment(content: LearnerContent) -> str:
    """Return the AUC in each environment left out."""
    if content.validation is None:
        return "not known"
    scores = [
        f"{as_text(held_out.environment)}: AUC {describe_estimate(held_out.scores['auc'])}"
        for held_out in content.validation.held_out
        if held_out.scores.get("auc") is not None
    ]
    return "; ".join(scores) or "not known"


def fill_discussion(content: LearnerContent) -> list[Item]:
    """Return the items on interpretation, limitations and use."""
    limitations = " ".join([*list_warnings(content), *list_not_shown(content)])
    return [
        Item("25", "Interpretation, fairness", TODO),
        Item("26", "Limitations", f"{limitations} Others: {TODO}"),
        Item("27a", "Poor or missing input at use", describe_missing_at_use(content)),
        Item("27b", "Expertise and interaction of users", TODO),
        Item("27c", "Next steps, applicability", TODO),
    ]


def describe_missing_at_use(content: LearnerContent) -> str:
    """Return what the model does with missing values."""
    if list_missing_points(content):
        return (
            "a missing value gets the points in item 11; (average) marks those of an average "
            "sample, given where no value was missing in training"
        )
    is_covered = content.model.has_missing and content.model.noun != "score"
    return MISSING if is_covered else TODO
