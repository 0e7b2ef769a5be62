"""A fitted learner as one dict of sections: everything that a report shows, before any layout.

`make_summary` returns values that JSON can hold, the same sections for rule sets, trees and
forests. Section NAME is made in `icscm.report.sections.NAME`.

- `about`: package, version and the version of this layout (`schema`).
- `task`: data, rows, columns, label, environments with their rates, settings with their meanings,
  dropped columns, the `requirement` (level, margin, null hypothesis, in words) and `notes`.
- `headline`: a `title`, and under `model`, `error`, `invariance` and `rejected` a `topic`, an
  `answer` and a `detail`.
- `model`: kind, text, sentence, size and columns; the `rules` of a rule set with importance and
  equivalent rules; the `trees` of a forest; rules that were `discarded` as no better than the
  majority-class baseline.
- `nodes`: the nodes from the root down (`walk`), the `splits` (of a rule set its steps), and the
  `scans` over all candidates with the rejected ones and the reasons. Of rule sets also why the
  search stopped, the nearest misses, the `sets` and `screening` of the exhaustive search and
  `pruning`; of trees `importances`, `rejected_features` and the trees `tried` for invariant rates.
- `leaves`: counts, rates and intervals overall and by environment, verdict, outlying environments,
  prediction interval; of trees why the leaf was not split.
- `errors`: errors overall and by environment, beside those of the majority-class baseline.
- `new_environments`: prediction intervals for a new environment, and what they assume.
- `path`: models at other levels or tolerances; None where they were not computed.
- `stability`: frequencies on subsamples; None where they were not computed.
- `advice`: what the result `shows` and `does_not_show`, `warnings` and `suggestions`.

Rates are shares between 0 and 1, intervals pairs of them. Names come from users: characters that
do not print are escaped.
"""

from __future__ import annotations

from icscm._version import __version__
from icscm.exceptions import Words
from icscm.formatting import make_plain
from icscm.model.saved import Learner, check_fitted
from icscm.report.formatting import Plain, make_names
from icscm.report.path import Path
from icscm.report.sections.advice import make_advice
from icscm.report.sections.errors import describe_errors, describe_out_of_bag
from icscm.report.sections.headline import make_headline
from icscm.report.sections.leaves import describe_model_leaves, find_requirement
from icscm.report.sections.model import describe_model
from icscm.report.sections.new_environments import describe_new_environments
from icscm.report.sections.nodes import describe_nodes
from icscm.report.sections.path import describe_path
from icscm.report.sections.stability import Resampled, describe_stability
from icscm.report.sections.task import DroppedColumns, describe_task
from icscm.report.texts import write_text

# The schema is raised when a key is renamed or changes its meaning.
ABOUT: Plain = {"package": "icscm", "version": __version__, "schema": 2}


def make_summary(
    learner: Learner,
    *,
    data_name: str | None = None,
    target: str | None = None,
    environment: str | None = None,
    dropped: DroppedColumns | None = None,
    path: Path | None = None,
    stability: Resampled | None = None,
    class_names: tuple[str, str] | None = None,
    words: Words = str,
) -> Plain:
    """Everything that a report shows about a fitted learner, as the module describes.

    `data_name`, `target`, `environment` and `class_names` (negative, positive) name the data, the
    columns and the classes; `dropped` gives columns that were not used, with the reason (by default
    those of the learner). `path` and `stability` are results of learning again. `words` names
    parameters in suggestions: as in Python, or as options of the command line.
    """
    check_fitted(learner)
    trace, settings = learner.trace_, learner.get_params(deep=False)
    names = make_names(trace.environments, class_names or trace.classes, target, environment)
    requirement = find_requirement(learner, names)
    kind = learner.model_.kind
    requirement["text"] = write_text("requirement", trace=trace, names=names, kind=kind)
    nodes = describe_nodes(learner, names)
    if nodes["alpha"] is not None:
        nodes["tests_text"] = write_text("tests", nodes=nodes, requirement=requirement)
    if kind == "forest":
        errors = describe_out_of_bag(learner, names)
    else:
        errors = describe_errors(learner.model_, names, make_plain(settings.get("p", 1.0)))
    leaves = describe_model_leaves(learner, names, requirement)
    for leaf, scan in zip(leaves, nodes["scans"][len(nodes["splits"]) :], strict=False):
        leaf["end_text"] = None if kind not in ("tree", "forest") else scan["end_text"]
    requirement["bounds_text"] = write_text("bounds", leaves=leaves, requirement=requirement)
    for leaf in leaves:
        leaf["explanation"] = write_text("leaf", leaf=leaf, names=names, requirement=requirement)
    summary = {
        "about": ABOUT,
        "task": describe_task(learner, names, data_name, dropped, requirement),
        "headline": None,
        "model": describe_model(learner, names, nodes, errors),
        "nodes": nodes,
        "leaves": leaves,
        "errors": errors,
        "new_environments": describe_new_environments(leaves, learner.class_counts_, names),
        "path": path and describe_path(path, names, nodes),
        "stability": stability and describe_stability(learner, stability),
        "advice": None,
    }
    summary["advice"] = make_advice(learner, names, summary, words)
    summary["headline"] = make_headline(learner, names, summary)
    return summary
