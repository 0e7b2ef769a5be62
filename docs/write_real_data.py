"""Put what candidates do on four real tables into docs/real-data.md.

    PYTHONPATH=. python docs/write_real_data.py [FOLDER]

FOLDER holds the raw data files, by default that of ICSCM_DATA. Everything between the marks is
replaced; no number there is typed by hand. On a busy machine OMP_NUM_THREADS=1 spares boosting
from waiting for itself. About ten minutes on two cores.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from icscm import ICSCMClassifier, __version__, compare
from icscm.validation.candidates import make_candidates
from icscm.validation.comparison import CandidateScores, Comparison
from paper.data import TABLES as STUDIED

PAGE = Path(__file__).parent / "real-data.md"


class Table(NamedTuple):
    """Columns, outcome and environments."""

    X: Any
    y: Any
    environments: Any


# As the search of the paper's code is; `Before` adds what an empty conjunction predicted.
PAPER: dict[str, Any] = {"pruning": "always", "min_replication": 0, "min_utility": None}
# Ours as the defaults are now.
OURS = [name for name in make_candidates() if "scm" in name]
# The end of the names of candidates that are not pruned.
PLAIN = ", no pruning"
N_DRAWS = 5


class Before(ICSCMClassifier):
    """ICSCM as it was: nothing found predicted the positive class."""

    def predict(self, X: Any) -> Any:
        """The class of each row."""
        predicted = super().predict(X)
        if not self.model_.rules and self.model_type == "conjunction":
            predicted[:] = self.classes_[1]
        return predicted


MEASURES = "error", "balanced_accuracy", "auc"


def make_all() -> dict[str, Any]:
    """The candidates of `icscm compare`, and what shows that the defaults became better."""
    candidates = make_candidates()
    for name in ("baseline", "score"):  # `compare` adds the first; transfer.md has the second
        del candidates[name]
    candidates["icscm, before"] = Before(**PAPER)
    candidates["icscm-or, before"] = Before(**PAPER, model_type="disjunction")
    candidates["icscm-exhaustive, before"] = Before(**PAPER, search="exhaustive")
    candidates["icscm, no pruning"] = ICSCMClassifier(pruning=False)
    candidates["icscm-or, no pruning"] = ICSCMClassifier(pruning=False, model_type="disjunction")
    return candidates


TABLES: dict[str, Any] = {title: load for title, (_, load) in STUDIED.items()}


def describe(title: str, X: Any, comparison: Comparison) -> Iterator[str]:
    """A table and what it says."""
    held_out = ", ".join(map(str, comparison.environments))
    share_positive = comparison.n_positive / comparison.n_rows
    text = (
        f"{comparison.n_rows:,} rows, {X.shape[1]} columns, {share_positive:.1%} "
        f"positive. Held out in turn: {held_out}."
    )
    if comparison.kept_in:
        small = ", ".join(f"{name} ({n} rows)" for name, (n, _) in comparison.kept_in.items())
        text += f" Too small for that: {small}."
    if comparison.dropped:
        text += f" Columns dropped for all: {', '.join(comparison.dropped)}."
    yield f"### {title}\n\n{text}\n\n{make_table(comparison)}"

    present = tuple(candidate for candidate in comparison.candidates if "," not in candidate.name)
    conclusions = replace(comparison, candidates=present).conclusions
    yield "\n".join(f"- {sentence}" for sentence in conclusions)

    names_by_model: dict[str, list[str]] = {}
    for candidate in present:
        if candidate.model is not None:
            names_by_model.setdefault(candidate.model, []).append(candidate.name)
    models = [f"- {', '.join(names)}: {model}" for model, names in names_by_model.items()]
    yield "Rules learned from all rows:\n\n" + "\n".join(models)


def make_table(comparison: Comparison) -> str:
    """Error, balanced accuracy and AUC, by rows and by environment, and the worst error."""
    lines = [
        "| candidate | error | balanced | AUC | held out: error | worst | balanced | AUC | fit s |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for candidate in comparison.candidates:
        numbers = [
            *(candidate.rows[name] for name in MEASURES),
            candidate.environments["error"],
            candidate.worst["error"],
            candidate.environments["balanced_accuracy"],
            candidate.environments["auc"],
        ]
        cells = ["-" if number is None else f"{number:.3f}" for number in numbers]
        lines.append(f"| {' | '.join([candidate.name, *cells, f'{candidate.seconds:.2f}'])} |")
    return "\n".join(lines)


def hold_against_goals(title: str, table: Table, comparison: Comparison) -> Iterator[str]:
    """Whether a default of ours is worse than the baseline, and what pruning costs."""
    draws = draw_folds(table)
    worse_by_rows = ", ".join(find_losses_by_rows(draws)) or "none of ours"
    yield f"- **{title}.** Worse than the majority-class baseline by rows: {worse_by_rows}."
    worse_outside = ", ".join(find_losses_outside(comparison)) or "none of ours"
    yield f"  Leave-one-environment-out: {worse_outside}."

    costs = []
    for name in ("icscm", "icscm-or"):
        costs += [compute_cost(draw, name, "rows") for draw in draws]
        costs.append(compute_cost(comparison, name, "environments"))
    yield f"  Most that pruning adds: {max(costs):+.1f}."

    empty = [
        candidate.name
        for candidate in comparison.candidates
        if candidate.name in OURS and (candidate.model or "").startswith("no rule")
    ]
    yield f"  Found nothing in all rows: {', '.join(empty) or 'none'}."


def draw_folds(table: Table) -> list[Comparison]:
    """Our candidates compared by rows, on several draws of the folds."""
    ours = {name: learner for name, learner in make_all().items() if name in OURS or PLAIN in name}
    more_than_all = len(table.y) + 1  # rows that an environment needs to be held out
    return [
        compare(
            table.X,
            table.y,
            environments=table.environments,
            candidates=ours,
            random_state=seed,
            min_rows=more_than_all,
        )
        for seed in range(N_DRAWS)
    ]


def find_losses_by_rows(draws: list[Comparison]) -> Iterator[str]:
    """The candidates with more errors than the baseline in some draw, in points."""
    for name in OURS:
        losses = [-100 * find_candidate(draw, name).gain[0] for draw in draws]  # type: ignore[index]
        if max(losses) > 0.005:
            yield f"{name} ({np.mean(losses):+.2f} on average, {max(losses):+.2f} at most)"


def find_losses_outside(comparison: Comparison) -> Iterator[str]:
    """The candidates with more errors than the baseline in environments held out, in points."""
    baseline = comparison.candidates[0]
    for name in OURS:
        error = find_candidate(comparison, name).environments["error"]
        loss = error - baseline.environments["error"]
        if loss > 5e-4:
            yield f"{name} ({100 * loss:+.1f})"


def find_candidate(comparison: Comparison, name: str) -> CandidateScores:
    """The candidate of that name."""
    return next(candidate for candidate in comparison.candidates if candidate.name == name)


def compute_cost(comparison: Comparison, name: str, way: str) -> float:
    """By how many points a pruned model errs more."""
    pruned = getattr(find_candidate(comparison, name), way)["error"]
    plain = getattr(find_candidate(comparison, name + PLAIN), way)["error"]
    return 100 * float(pruned - plain)


def list_changes(results: dict[str, Comparison]) -> Iterator[str]:
    """What the defaults were and are, by rows."""
    yield "| data | candidate | error | balanced | AUC |\n|---|---|---:|---:|---:|"
    for title, comparison in results.items():
        for name in ("icscm", "icscm-or", "icscm-exhaustive"):
            before = find_candidate(comparison, f"{name}, before").rows
            now = find_candidate(comparison, name).rows
            cells = [f"{before[measure]:.3f} → {now[measure]:.3f}" for measure in MEASURES]
            yield f"| {title} | {name} | {' | '.join(cells)} |"


def main(folder: str | None = None) -> None:
    """Compare on every table, then replace what the page says."""
    results: dict[str, Comparison] = {}
    sections: list[str] = []
    goals: list[str] = []
    for title, load in TABLES.items():
        print(title, flush=True)
        data = load(folder)
        table = Table(data.X, data.y, data.environments)
        comparison = compare(
            table.X, table.y, environments=table.environments, candidates=make_all()
        )
        results[title] = comparison
        sections += describe(title, table.X, comparison)
        goals += hold_against_goals(title, table, comparison)
    parts = [
        f"icscm {__version__}, {date.today():%d %B %Y}.",
        "### Results against the goals",
        f"In points of error; by rows in {N_DRAWS} draws of the folds.",
        "\n".join(goals),
        "### Before and after, by rows",
        "\n".join(list_changes(results)),
    ]
    text = "\n\n".join([*parts, *sections])
    marks = r"(<!-- results -->\n).*(\n<!-- end of results -->)"
    page = PAGE.read_text(encoding="utf-8")
    page = re.sub(marks, lambda match: f"{match[1]}\n{text}\n{match[2]}", page, flags=re.S)
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
