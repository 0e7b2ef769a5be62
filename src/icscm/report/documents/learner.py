"""A report on a fitted learner as a document: the whole of it, or its short form."""

from collections.abc import Sequence

from icscm._version import __version__
from icscm.formatting import as_text
from icscm.report.blocks import (
    Bullets,
    Document,
    Facts,
    Heading,
    Note,
    Paragraph,
    make_table,
    note_more,
    shorten_name,
    shorten_sentence,
)
from icscm.report.content.errors import ErrorRate
from icscm.report.content.learner import LearnerContent
from icscm.report.content.paths import LevelModel, PathContent, TreeAtTolerance
from icscm.report.content.stability import Frequency, Stability
from icscm.report.content.task import Setting
from icscm.report.content.validation import PooledScore, Score
from icscm.report.documents.leaves import (
    write_brief_leaves,
    write_leaves,
    write_new_environments,
)
from icscm.report.documents.model import write_discarded, write_model
from icscm.report.documents.search import write_pruning_tests, write_search
from icscm.report.documents.shared import (
    LIMITS,
    N_BRIEF,
    N_FEW,
    choose_by_name,
    name_environments,
    shorten_facts,
    write_rates,
)
from icscm.report.formatting import (
    format_deviance,
    format_interval,
    format_score,
    format_share,
    format_value,
)
from icscm.report.selection import list_spans
from icscm.report.wording.advice import list_not_shown, list_shown, list_warnings
from icscm.report.wording.errors import name_measured_rows
from icscm.report.wording.estimates import describe_estimate, has_prediction_interval
from icscm.report.wording.headline import Headline, answer_error, write_headline
from icscm.report.wording.model import describe_worst
from icscm.report.wording.paths import CAUTION, describe_path, explain_alpha
from icscm.report.wording.requirement import describe_requirement
from icscm.report.wording.search import describe_own_stop
from icscm.report.wording.stability import describe_own_frequencies
from icscm.report.wording.suggestions import list_suggestions

# Facts that the whole report repeats below its headline.
REPEATED_FACTS = ("Shape", "Stability")


def write_document(
    content: LearnerContent, *, is_brief: bool = False, with_rejected: bool = False
) -> Document:
    """Return a report on a fitted learner.

    The short form is what the terminal shows; `with_rejected` adds the rejected candidates of each
    scan to it.
    """
    if is_brief:
        return write_brief(content, with_rejected=with_rejected)
    return [
        *write_start(content),
        *write_left_out(content, is_brief=False),
        *write_model(content, is_brief=False),
        *write_search(content, is_brief=False, with_rejected=True),
        *write_discarded(content),
        *write_pruning_tests(content.nodes.pruning),
        *write_advice(content),
        *write_stability(content, n_listed=N_BRIEF),
        *write_path(content),
        *write_leaves(content),
        *write_new_environments(content, is_brief=False),
        *write_errors(content, is_brief=False),
        *write_task(content),
        *write_interpretation(content),
    ]


def write_brief(content: LearnerContent, *, with_rejected: bool) -> Document:
    """Return the short form of a report."""
    model = content.model
    headline = write_headline(content)
    document: Document = [Facts(shorten_facts(headline.facts))]
    document += write_left_out(content, is_brief=True)
    document += write_model(content, is_brief=True)
    document += write_search(content, is_brief=True, with_rejected=with_rejected)
    if model.n_rules:
        document += write_end(content)
    document += write_advice(content)
    document += write_stability(content, n_listed=N_FEW)
    if content.path is not None and content.path.parameter == "tolerance":
        document += write_path(content)
    if model.n_rules and content.leaves:
        if content.task.has_environments or model.is_rule_set:
            document += write_brief_leaves(content)
        document += write_new_environments(content, is_brief=True)
    if content.errors.is_out_of_bag:
        document += write_errors(content, is_brief=True)
    return document


def write_end(content: LearnerContent) -> Document:
    """Return why the search of a rule set stopped, and notes on how rows were counted."""
    stop_text = describe_own_stop(content)
    document: Document = [] if stop_text is None else [Paragraph(stop_text)]
    return [*document, *(Paragraph(note) for note in content.task.notes)]


# --- headline and environments left out -----------------------------------------------------------


def write_start(content: LearnerContent) -> Document:
    """Return the title, the model in a sentence, and the answers on each topic."""
    headline = write_headline(content)
    document: Document = [
        Heading(headline.title, level=1),
        Paragraph(describe_source(content)),
        Note(shorten_sentence(headline.model.answer)),
        Bullets(list_answers(headline)),
    ]
    if not content.model.is_rule_set:
        document.append(Paragraph(shorten_sentence(headline.model.detail)))
    if content.path is not None and content.path.n_models > 1:
        document.append(Paragraph(shorten_sentence(describe_path(content.path))))
    return document


def describe_source(content: LearnerContent) -> str:
    """Return the data, their size, and what learned from them."""
    task = content.task
    data = f"Data: {shorten_name(task.data)}, " if task.data else ""
    size = f"{task.n_rows:,} samples"
    if task.has_environments:
        size += f", {task.n_environments:,} environments"
    return f"{data}{size}; {task.learner}, icscm {__version__}"


def list_answers(headline: Headline) -> list[str]:
    """Return the answers of a headline, and the facts that are repeated there."""
    answers = [headline.new_sites, headline.error, headline.invariance, headline.rejected]
    points = [
        f"{shorten_name(answer.topic)}: {answer.answer}. {shorten_sentence(answer.detail)}"
        for answer in answers
    ]
    facts = [
        f"{fact.term}: {shorten_sentence(fact.text)}."
        for fact in headline.facts
        if fact.term in REPEATED_FACTS
    ]
    return [*points, *facts]


def write_left_out(content: LearnerContent, *, is_brief: bool) -> Document:
    """Return the scores in environments left out, and their random-effects means."""
    validation = content.validation
    if validation is None:
        return []
    names = list(validation.titles)
    shown = validation.held_out[: N_BRIEF if is_brief else LIMITS.environments]
    rows = [
        [
            shorten_name(as_text(environment.environment)),
            f"{environment.n_samples:,}",
            *(write_score(environment.scores[name], is_brief=is_brief) for name in names),
        ]
        for environment in shown
    ]
    pooled = validation.pooled
    means = [write_score(pooled[name], is_brief=is_brief) for name in names]
    rows.append(["random effects", "", *means])
    if not is_brief:
        intervals = [write_new_interval(pooled[name]) for name in names]
        rows.append(["95% prediction interval", "", *intervals])

    titles = [f">{shorten_title(title)}" for title in validation.titles.values()]
    note = "Each model was learned without the environment."
    if not is_brief:
        note += (
            " slope, intercept: of a logistic regression of the label on the predicted log odds; "
            "1 and 0 at best. skill: relative reduction of the Brier score of the rate in "
            "training. Random effects: DerSimonian and Laird, with the interval of Hartung and "
            "Knapp."
        )
    elif len(validation.held_out) > N_BRIEF:
        note += " The report lists all of them."
    return [
        Heading("Environments left out" if is_brief else "Performance in environments left out"),
        make_table([name_environments(content.names), ">samples", *titles], rows),
        Note(note),
    ]


def shorten_title(title: str) -> str:
    """Return the title of a score as that of a narrow column."""
    title = title.replace("Calibration ", "").replace("Brier skill", "skill")
    return title.replace(" score", "")


def write_score(score: Score | None, *, is_brief: bool) -> str:
    """Return a score, in the whole report with its interval."""
    if not is_brief:
        return describe_estimate(score)
    return "-" if score is None else f"{score.value:.2f}"


def write_new_interval(pooled: PooledScore | None) -> str:
    """Return the prediction interval of a score in a new environment."""
    if pooled is None or not has_prediction_interval(pooled):
        return "-"
    return f"{pooled.new_low:.2f} to {pooled.new_high:.2f}"


# --- advice and stability -------------------------------------------------------------------------


def write_advice(content: LearnerContent) -> Document:
    """Return warnings and suggestions."""
    suggestions = list_suggestions(content, content.words, content.commands)
    return [
        *write_points("Warnings", list_warnings(content)),
        *write_points("Suggestions", suggestions),
    ]


def write_points(title: str, points: Sequence[str]) -> Document:
    """Return a list below its title; nothing without points."""
    if not points:
        return []
    return [Heading(title), Bullets([shorten_sentence(point) for point in points])]


def write_stability(content: LearnerContent, *, n_listed: int) -> Document:
    """Return how often columns, rules and models were found on subsamples."""
    stability: Stability | None = content.stability
    if stability is None:
        return []
    text = describe_own_frequencies(stability, is_forest=content.model.noun == "forest")
    return [
        Heading("Stability"),
        Paragraph(text),
        *write_frequencies("column", stability.features, n_listed),
        *write_frequencies("rule", stability.rules, n_listed),
        *write_frequencies("model", stability.models, n_listed),
    ]


def write_frequencies(noun: str, frequencies: Sequence[Frequency], n_listed: int) -> Document:
    """Return a table of the most frequent columns, rules or models; nothing without any."""
    if not frequencies:
        return []
    rows = [
        [
            format_share(found.frequency),
            shorten_name(found.text) + (" (this model)" if found.is_own else ""),
        ]
        for found in frequencies[:n_listed]
    ]
    n_more = len(frequencies) - n_listed
    return [
        make_table([">of subsamples", noun], rows),
        *note_more(n_more, f"and {n_more:,} more"),
    ]


# --- other levels and tolerances ------------------------------------------------------------------


def write_path(content: LearnerContent) -> Document:
    """Return the models at other levels or tolerances."""
    path = content.path
    if path is None:
        return []
    if path.parameter == "alpha":
        return write_levels(path, meaning=explain_alpha(content.nodes.criterion))
    return write_tolerances(path)


def write_tolerances(path: PathContent) -> Document:
    """Return the trees along the tolerance, from a plain one to a strict one."""
    has_scores = path.has_scores
    scores = [">AUC left out", ">worst"] if has_scores else []
    titles = ["tolerance", ">leaves", ">deviance", ">heterogeneity", *scores, "leave", "enter"]
    rows = [write_tolerance(tree, has_scores=has_scores) for tree in path.points]
    note = (
        "From a plain tree to a strict one. deviance: explained by the tree. heterogeneity: "
        "between environments, beyond chance."
    )
    if has_scores:
        note += " AUC left out: mean over leave-one-environment-out."
    return [
        Heading("Other tolerances"),
        make_table(titles, rows),
        Note(f"{note} {CAUTION}"),
    ]


def write_tolerance(tree: TreeAtTolerance, *, has_scores: bool) -> list[str]:
    """Return the row of the tree at a tolerance."""
    scores = [format_score(tree.mean_auc), format_score(tree.worst_auc)] if has_scores else []
    return [
        tree.name + (" (this report)" if tree.is_own else ""),
        f"{tree.n_leaves:,}",
        format_deviance(tree.deviance_explained),
        format_deviance(tree.varies),
        *scores,
        shorten_sentence(", ".join(tree.leave)),
        shorten_sentence(", ".join(tree.enter)),
    ]


def write_levels(path: PathContent, *, meaning: str) -> Document:
    """Return the models along alpha, with the conclusions on their leaves."""
    rows = [row for model in path.models for row in write_level_model(model)]
    text = f"The model was learned at {path.n_searches} levels. {meaning}"
    titles = ["model", "alpha", "rule", ">error", "leaves at these levels"]
    return [Heading("Other levels"), Paragraph(text), make_table(titles, rows)]


def write_level_model(model: LevelModel) -> list[list[str]]:
    """Return a row for each span of levels of a model."""
    return [
        [
            model.name,
            span.text + (" (this report)" if span.is_own else ""),
            shorten_sentence(model.text),
            format_share(model.errors.error),
            span.conclusions,
        ]
        for span in list_spans(model.levels)
    ]


# --- errors and task ------------------------------------------------------------------------------


def write_errors(content: LearnerContent, *, is_brief: bool) -> Document:
    """Return the errors by environment, beside those of the baseline."""
    errors = content.errors
    document: Document = [Heading(f"Errors on {name_measured_rows(errors)}")]
    if not is_brief:
        document.append(Paragraph(describe_errors(content)))

    environments = choose_by_name(errors.environments) if content.task.has_environments else []
    is_out_of_bag = errors.is_out_of_bag
    rows = [
        write_error("all", errors, is_out_of_bag=is_out_of_bag),
        *(
            write_error(environment.environment, environment, is_out_of_bag=is_out_of_bag)
            for environment in environments
        ),
    ]
    scores = [">AUC"] if is_out_of_bag else [">sensitivity", ">specificity"]
    titles = [
        name_environments(content.names),
        ">samples",
        ">wrong",
        ">error",
        "interval",
        *scores,
        ">baseline",
    ]
    return [*document, make_table(titles, rows)]


def describe_errors(content: LearnerContent) -> str:
    """Return the error of the model and that of the baseline, and the worst environment."""
    errors = content.errors
    text = (
        f"{answer_error(content).answer}. The majority-class baseline, "
        f"{shorten_name(errors.majority_class)}, is wrong for "
        f"{format_share(errors.majority_error)}."
    )
    worst = describe_worst(errors, content.names)
    return text if worst is None else f"{text} Worst: {shorten_sentence(worst)}."


def write_error(name: str, errors: ErrorRate, *, is_out_of_bag: bool) -> list[str]:
    """Return the row of the errors in an environment, or overall."""
    scores = [format_share(errors.sensitivity), format_share(errors.specificity)]
    if is_out_of_bag:
        scores = [format_score(errors.auc)]
    return [
        shorten_name(name),
        f"{errors.n:,}",
        f"{errors.n_errors:,}",
        format_share(errors.error),
        format_interval(errors.error_interval),
        *scores,
        format_share(errors.majority_error),
    ]


def write_task(content: LearnerContent) -> Document:
    """Return what was predicted from which data, with which settings."""
    task, names = content.task, content.names
    environments = choose_by_name(task.environments) if task.has_environments else []
    rate_title = f">rate of {shorten_name(names.positive)}"
    settings = sorted(task.settings, key=lambda setting: setting.is_default)  # chosen ones first
    document: Document = [
        Heading("Task"),
        Paragraph(describe_task(content)),
        write_rates(
            task.overall,
            environments,
            titles=[name_environments(names), ">samples", rate_title, "interval"],
        ),
        make_table(["setting", "value", "meaning"], list(map(write_setting, settings))),
    ]
    dropped = [
        [shorten_name(column.column), shorten_name(column.reason)]
        for column in task.dropped[: LIMITS.environments]
    ]
    if dropped:
        document.append(make_table(["dropped column", "reason"], dropped))
    if task.notes:
        document.append(Bullets(task.notes))
    return document


def describe_task(content: LearnerContent) -> str:
    """Return what is predicted from how many columns, and what was required of the model."""
    names = content.names
    negative, positive = map(shorten_name, names.classes)
    requirement = describe_requirement(content.nodes, names, content.model.kind)
    return (
        f"Predict {shorten_name(names.target)} ({negative} or {positive}; the latter is positive) "
        f"from {content.task.n_columns:,} columns. Requirement: {shorten_sentence(requirement)}"
    )


def write_setting(setting: Setting) -> list[str]:
    """Return the row of a parameter of the learner."""
    value = shorten_name(format_value(setting.value))
    return [setting.name, value if setting.is_default else f"{value} (chosen)", setting.meaning]


def write_interpretation(content: LearnerContent) -> Document:
    """Return what the result shows and what it does not show."""
    return [
        Heading("Interpretation"),
        Paragraph("What the result shows:"),
        Bullets([shorten_sentence(point) for point in list_shown(content)]),
        Paragraph("What it does not show:"),
        Bullets(list_not_shown(content)),
    ]
