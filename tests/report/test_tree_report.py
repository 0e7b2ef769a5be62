"""What a person sees of a fitted tree."""

import json
from dataclasses import replace
from html.parser import HTMLParser
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from markdown_it import MarkdownIt
from rich.console import Console

from icscm import InvariantForestClassifier, InvariantScoreClassifier, InvariantTreeClassifier
from icscm.datasets import make_conjunction
from icscm.drawing.outline import OutlineNode, lay_out_outline
from icscm.drawing.shapes import Role
from icscm.exceptions import IcscmError
from icscm.formatting import clip
from icscm.model.rules import ThresholdRule
from icscm.model.splits import Split
from icscm.model.tree import Tree
from icscm.report.blocks import Cell, make_table
from icscm.report.content.candidates import RatioExtreme
from icscm.report.drawing import Limits
from icscm.report.drawn_tree import draw_nodes
from icscm.report.figures import draw_model
from icscm.report.formatting import format_share, make_names
from icscm.report.markdown import escape_markdown
from icscm.report.page import MAX_HTML_BYTES, make_report
from icscm.report.terminal import print_parts, render_blocks
from icscm.report.wording.ranges import describe_range
from icscm.validation.path import tolerance_path
from support.drawings import find_curves, list_shapes
from support.reports import (
    HOSTILE,
    fit,
    fit_large_tree,
    fit_tree,
    make_shifted,
    make_sites,
    print_report,
    report_on_tree,
)


@pytest.fixture(scope="module")
def sites():
    return make_sites()


@pytest.fixture(scope="module")
def tree():
    return fit_tree()


def make_parents():
    """Two parents, given which the label's rate is the same at both sites, and a child."""
    data = make_conjunction(2000, n_distractors=2, random_state=0)
    return data.X, pd.Series(data.y, name="ill"), pd.Series(data.environments, name="site")


@pytest.fixture(scope="module")
def zoo(sites, tree):
    """Every kind of tree that a report is made of."""
    X, y, site = sites
    two = site.isin(["site 0", "site 3"])
    noise = X[["code"]].assign(code=np.random.default_rng(1).integers(0, 9, len(X)))
    return {
        "effect": tree,
        "rate": fit(InvariantTreeClassifier(invariance="rate"), *make_parents()),
        "rates that differ": fit(InvariantTreeClassifier(invariance="rate"), *sites),
        "balanced": fit(InvariantTreeClassifier(probabilities="balanced"), *sites),
        "plain": fit(InvariantTreeClassifier(tolerance=None), *sites),
        "without environments": fit(InvariantTreeClassifier(), X, y),
        "two environments": fit(InvariantTreeClassifier(), X[two], y[two], site[two]),
        "nothing found": fit(InvariantTreeClassifier(), noise, y, site),
        "all refused": fit(InvariantTreeClassifier(), X[["code"]], y, site),
        "shifted": fit(InvariantTreeClassifier(), *make_shifted()),
    }


@pytest.fixture(scope="module")
def reports(zoo):
    return {name: learner.report() for name, learner in zoo.items()}


KINDS = [
    "effect",
    "rate",
    "rates that differ",
    "balanced",
    "plain",
    "without environments",
    "two environments",
    "nothing found",
    "all refused",
    "shifted",
]


class Page(HTMLParser):
    """The tags of a page, checked for closing, and its text."""

    VOID = frozenset(["meta", "link", "input", "br"])

    def __init__(self, html):
        super().__init__()
        self.open, self.texts, self.ids = [], [], []
        self.names = set()
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.names |= {name for name, _ in attrs}
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.names |= {name for name, _ in attrs}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self):
        return " ".join("".join(self.texts).split())


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_tree_has_a_page_a_text_and_a_terminal(name, reports):
    report = reports[name]
    summary, page = report.to_dict(), Page(report.to_html())
    markdown, terminal = report.to_markdown(), print_report(report)
    assert len(page.ids) == len(set(page.ids))
    assert not {each for each in page.names if each.startswith("on") or each == "style"}
    for told in (
        summary["headline"]["title"],
        summary["model"]["sentence"],
        *summary["advice"]["warnings"],
    ):
        assert told in page.text
        assert escape_markdown(told) in markdown
    for split in summary["nodes"]["splits"]:
        assert split["rule"] in page.text
        assert split["rule"] in terminal
    for leaf in summary["leaves"]:
        assert leaf["condition"] in page.text
    assert json.loads(report.to_json()) == summary
    assert max(map(len, terminal.splitlines())) <= 80
    assert not any(line.startswith(("##", "|", "&")) for line in terminal.splitlines())
    assert MarkdownIt().enable("table").render(markdown).count("<table>") >= 3


def test_the_numbers_are_those_of_the_trace(tree):
    summary = report_on_tree().to_dict()
    frame = tree.trace_.to_frame("splits")
    splits = pd.DataFrame(summary["nodes"]["splits"])
    assert splits["rule"].tolist() == frame["rule"].tolist()
    keys = "deviance_explained", "heterogeneity", "heterogeneity_share", "rate_heterogeneity"
    for key in (*keys, "odds_ratio", "n_candidates"):
        assert splits[key].tolist() == pytest.approx(frame[key].tolist())
    assert summary["model"]["n_leaves"] == len(tree.model_.leaves)
    sums = frame.groupby("feature")[["deviance_explained", "rate_heterogeneity"]].sum()
    for each in summary["nodes"]["importances"]:
        for key in ("deviance_explained", "rate_heterogeneity"):
            assert each[key] == pytest.approx(sums.loc[each["feature"], key])
    nodes = summary["nodes"]["walk"]
    numbers = [node["leaf"] for node in nodes if node["leaf"]]
    assert numbers == [*range(1, len(tree.model_.leaves) + 1)]
    assert nodes[0]["n"] == sum(node["n"] for node in nodes if node["leaf"])


def test_odds_ratios_are_those_of_each_environment(sites, tree):
    X, y, site = sites
    first = report_on_tree().to_dict()["nodes"]["splits"][0]
    feature, threshold = first["rule"].split(" > ")
    is_true = X[feature] > float(threshold)
    for each in first["environments"]:
        here = site == each["environment"]
        cells = [
            (here & (is_true == side) & (y == label)).sum() + 0.5
            for side in (True, False)
            for label in (True, False)
        ]
        expected = cells[0] / cells[1] / (cells[2] / cells[3])
        assert each["odds_ratio"] == pytest.approx(expected)
        assert each["odds_ratio_interval"][0] < expected < each["odds_ratio_interval"][1]


def test_what_was_refused_is_told_with_its_reason(tree):
    report = report_on_tree()
    summary = report.to_dict()
    assert "code" not in tree.features_used_
    (code,) = (each for each in summary["nodes"]["rejected_features"] if each["feature"] == "code")
    assert code["why"].startswith("the effect of its column differs between environments by more")
    assert "odds ratio from" in code["why"]
    assert code["why"] in Page(report.to_html()).text
    assert code["why"] in " ".join(print_report(report).split())
    assert "code" in summary["headline"]["rejected"]["detail"]


def test_it_says_what_was_asked_and_what_that_does_not_promise(reports):
    effect = reports["effect"].to_dict()
    assert "same effect in every environment (site)" in effect["headline"]["title"]
    assert (
        "at most 0.01 of the deviance explained (tolerance)"
        in effect["task"]["requirement"]["text"]
    )
    assert any("passes" in each for each in effect["advice"]["does_not_show"])
    assert "rates" in Page(reports["effect"].to_html()).text
    rate = reports["rate"].to_dict()
    assert "same rate in every environment (site)" in rate["headline"]["title"]
    assert "tolerance" in rate["task"]["requirement"]["text"]
    assert effect["task"]["settings"] != rate["task"]["settings"]
    (tolerance,) = (each for each in effect["task"]["settings"] if each["name"] == "tolerance")
    assert tolerance["value"] == "auto (0.01)"


def test_it_says_that_no_tree_of_invariant_rates_was_found(reports):
    report = reports["rates that differ"]
    said = "no tree was found whose leaves have the same rate"
    (note,) = report.to_dict()["task"]["notes"]
    assert said in note.lower()
    assert said in Page(report.to_html()).text.lower()
    assert said in " ".join(print_report(report).split()).lower()
    assert reports["rate"].to_dict()["task"]["notes"] == []


def test_it_says_what_cannot_be_seen(reports):
    two = reports["two environments"].to_dict()["advice"]["warnings"]
    assert any("Two environments show only one difference" in each for each in two)
    for name in ("plain", "without environments"):
        found = reports[name].to_dict()
        assert any("this is a plain tree" in each for each in found["advice"]["warnings"])
        assert found["headline"]["rejected"]["answer"] == "None"
    none = reports["without environments"].to_dict()
    assert none["headline"]["invariance"]["answer"] == "Not tested"
    refused = reports["all refused"].to_dict()
    assert refused["headline"]["title"] == "No split was made"
    assert any("tolerance" in each for each in refused["advice"]["suggestions"])


def test_hostile_names_are_only_text(tmp_path):
    X, y, site = make_sites(n_sites=4)
    names = dict(zip(X, HOSTILE, strict=False))
    places = site.map(dict(zip(sorted(set(site)), HOSTILE, strict=False)))
    learner = fit(InvariantTreeClassifier(max_leaves=5), X.rename(columns=names), y, places)
    path = tolerance_path(
        learner, X.rename(columns=names), y, environments=places, leave_one_out=False
    )
    report = learner.report(path=path, data_name=HOSTILE[0])
    page = Page(report.to_html())
    assert "<script>alert(1)</script>" in page.text
    assert "alert(1)" not in "".join(
        part.split("</script>")[0] for part in report.to_html().split("<script>")[1:]
    )
    assert "<script>" not in MarkdownIt().render(report.to_markdown())
    print_report(report)
    for ending in ("html", "md", "json"):
        assert report.save(tmp_path / f"report.{ending}").stat().st_size > 5_000


def test_a_very_large_tree_is_cut_short_and_says_so():
    n_leaves = 72
    report = fit_large_tree(n_leaves).report()
    assert len(report.to_html().encode()) < MAX_HTML_BYTES
    assert f"{n_leaves - 60:,} further leaves are not drawn" in Page(report.to_html()).text
    assert len(report.to_dict()["leaves"]) == n_leaves
    drawn = draw_nodes(report.content.nodes.walk, Limits())
    n_shown = sum(row.node.leaf is not None for row in drawn.rows)
    assert drawn.n_left_out == n_leaves - n_shown
    assert sum(row.is_cut for row in drawn.rows) + n_shown == 60
    printed = print_report(report)
    assert f"{n_leaves - n_shown} further leaves are not listed" in printed


def test_twigs_lead_to_where_nodes_hang(tree):
    nodes = report_on_tree().to_dict()["nodes"]["walk"]
    outline = [OutlineNode(node["depth"], node["split"], node["n"]) for node in nodes]
    rows = lay_out_outline(outline, max_leaves=60)
    for depth in range(1, max(row.depth for row in rows) + 1):
        turns = [row.is_last for row in rows if row.depth == depth]
        assert turns.count(True) == turns.count(False)
    assert not rows[0].is_last
    assert rows[-1].is_last
    assert rows[-1].passing_levels == []


def test_missing_values_are_explained(sites):
    X, y, site = sites
    gappy = X.assign(age=X["age"].where(np.arange(len(X)) % 7 > 0))
    learner = fit(InvariantTreeClassifier(max_leaves=4), gappy, y, site)
    assert "missing value counts" in learner.report().to_dict()["model"]["missing"]


def test_a_notebook_shows_the_page_in_a_frame(tree):
    assert "<iframe" in report_on_tree()._repr_html_()
    assert repr(report_on_tree()) == "<icscm report: tree of 4 leaves on age and dose>"


def test_trees_tried_on_the_way_are_listed(tree):
    from dataclasses import replace

    from icscm.search.records import TriedTree

    tried = TriedTree(("code",), ("age", "dose"), 812.4, 33.0, 12, 640.25)
    learner = fit(InvariantTreeClassifier(max_leaves=2), *make_sites(500))
    learner.trace_ = replace(learner.trace_, tried=(tried,))
    report = make_report(learner)
    assert report.to_dict()["nodes"]["tried"][0]["used"] == ["age", "dose"]
    text = Page(report.to_html()).text
    assert "Trees tried" in text
    assert "age, dose" in text
    assert "| code | age, dose | 812 | 33 | 12 | 640 |" in report.to_markdown()
    assert "Trees tried" not in Page(report_on_tree().to_html()).text


@pytest.fixture(scope="module")
def forest(sites):
    return fit(InvariantForestClassifier(n_estimators=4, random_state=0), *sites)


def test_a_forest_has_a_report_in_the_same_sections(forest, tree):
    """A forest was told to have no report yet; the command line had one of its own."""
    report = forest.report(data_name="sites")
    summary = report.to_dict()
    assert summary.keys() == report_on_tree().to_dict().keys()
    assert json.loads(report.to_json()) == summary
    assert (summary["leaves"], summary["nodes"]["walk"]) == ([], [])
    assert summary["model"]["trees"]["n_trees"] == 4
    uses = {each["feature"]: each["n_trees"] for each in summary["model"]["trees"]["uses"]}
    assert uses == forest.model_.count_uses()
    assert summary["nodes"]["rejected_features"][0]["feature"] == "code"
    page, printed = Page(report.to_html()), print_report(report)
    assert len(page.ids) == len(set(page.ids))
    for text in (page.text, report.to_markdown(), printed):
        assert "samples that trees were not grown on" in " ".join(text.split())
        assert "code > 0" in text
    assert "No candidate split was rejected" not in page.text
    assert max(map(len, printed.splitlines())) <= 80


def test_the_errors_of_a_forest_are_those_out_of_bag(forest, sites):
    errors, scores = make_report(forest).to_dict()["errors"], forest.out_of_bag_
    assert errors["n"] == scores.loc["all", "n"]
    assert errors["error"] == pytest.approx(1 - scores.loc["all", "accuracy"])
    share = sites[1].mean()
    assert errors["majority_is_positive"] == (share > 0.5)
    assert errors["majority_error"] == pytest.approx(min(share, 1 - share))
    assert errors["beats_majority"] == (errors["error"] < errors["majority_error"])
    worst = scores.drop(index="all")["accuracy"].idxmin()
    assert errors["worst"]["environment"] == worst
    for each in errors["environments"]:
        row = scores.loc[each["environment"]]
        assert (each["n"], each["auc"], each["brier"]) == (row["n"], row["auc"], row["brier"])
        assert each["error"] == pytest.approx(1 - row["accuracy"])
        rate = sites[1][sites[2] == each["environment"]].mean()  # positive is the majority
        assert each["majority_error"] == pytest.approx(1 - rate)


def test_a_forest_without_a_split_and_one_without_environments(sites):
    X, y, site = sites
    empty = fit(InvariantForestClassifier(n_estimators=2), X[["code"]], y, site)
    summary = make_report(empty).to_dict()
    assert summary["headline"]["title"] == "No split was made"
    assert "tolerance" in summary["advice"]["suggestions"][0]
    alone = make_report(fit(InvariantForestClassifier(n_estimators=2), X, y))
    assert "a plain forest" in " ".join(alone.to_dict()["advice"]["warnings"])
    assert alone.to_dict()["errors"]["worst"] is None
    assert "Errors on the samples" in alone.to_markdown()
    with pytest.raises(IcscmError, match="a forest has no single tree to draw"):
        draw_model(empty)


def test_what_to_expect_elsewhere_is_told(tree):
    report = report_on_tree()
    assert "Prediction intervals for a new environment" in Page(report.to_html()).text
    assert "## 95% prediction interval for a new environment" in report.to_markdown()
    assert "95% prediction interval for a new environment" in print_report(report)


def test_long_names_keep_the_indent_and_the_relation_of_a_node():
    """Nodes on unitigs of 200 letters were folded to the margin, and `> 0` was cut out of them."""
    name = "ACGT" * 50
    rule = ThresholdRule(column=0, name=name, threshold=0.0, above=True)
    tree = Tree((Split(rule, 1, ~2), Split(rule, ~0, ~1)), (((1,), (2,)),) * 3, "tree")
    lines = str(tree).splitlines()
    assert [line.split(":")[0].split("GT ")[-1] for line in lines[1:]] == [
        "> 0",
        "> 0",
        "<= 0",
        "<= 0",
    ]
    assert all(len(line) <= 80 for line in lines)
    console = Console(width=40, file=StringIO())
    table = make_table(["node", ">rate"], [[Cell(f"{name} > 0", level=2), "3%"]])
    print_parts(console, render_blocks([table]))
    _, *shown = console.file.getvalue().splitlines()
    assert [line.split()[0] for line in shown] == [clip(name, 200 - len(" > 0")), ">"]
    assert all(line.startswith("    ") for line in shown)


def test_odds_ratios_of_empty_cells_are_bounds():
    """A cell without samples gave an odds ratio of 1e+09 in reports of trees."""
    names = make_names(["a", "b"], (0, 1), environment="site")
    lowest = RatioExtreme(environment="a", n=9, odds_ratio=1e-9)
    highest = RatioExtreme(environment="b", n=9, odds_ratio=1e9)
    assert describe_range(lowest, highest, names) == "below 0.001 (site a) to above 1,000 (site b)"


def test_titles_of_columns_are_whole_in_80_columns(tree):
    """The title `environment` was broken before its last letter."""
    told = print_report(report_on_tree())
    titles = told.split("\nSplits\n")[1].split("\n    1  ")[0]
    words = "split rule samples deviance OR lowest to highest differs rejected"
    assert sorted(titles.split()) == sorted(words.split())


@pytest.mark.parametrize(
    ("kind", "tolerance"),
    [("tree", None), ("score", None), pytest.param("score", 0.01, marks=pytest.mark.thorough)],
)
def test_the_checklist_of_a_score_speaks_of_points(kind, tolerance, tree, sites):
    """It spoke of rules, named the saved model where it can print it, and did not name R."""
    learner = tree
    if kind == "score":  # without a tolerance no column is screened, which takes seconds
        learner = InvariantScoreClassifier(max_terms=2, tolerance=tolerance, random_state=0)
        fit(learner, *sites)
    rows = [line.split(" | ") for line in make_report(learner).to_tripod().splitlines()]
    items = {}
    for number, *_, text in (row for row in rows if len(row) == 3):
        items.setdefault(number.removeprefix("| "), []).append(text)
    assert "(SQL, Python, R, JSON)" in items["12g"][0]
    is_score = kind == "score"
    for number in ("11", "12b", "27a"):
        (text,) = items[number]
        assert ("points" in text) == is_score, number
        assert "rule" not in text or not is_score, number
    assert len(items["22"]) == 1 + is_score
    if is_score:
        for row in learner.model_.list_rows():
            assert escape_markdown(f"{row.column} {row.value}: {row.points}") in items["22"][0]
        assert items["22"][1].count("%") == learner.model_.max_total + 1


def test_a_score_is_told_by_its_points_and_the_risk_of_each_total(sites):
    """As tables and drawings; without a tolerance no column is screened, which takes seconds."""
    learner = fit(InvariantScoreClassifier(max_terms=2, tolerance=None, random_state=0), *sites)
    report = learner.report()
    summary, markdown = report.to_dict(), report.to_markdown()
    risks = learner.model_.compute_risks().tolist()
    assert summary["model"]["risks"] == risks
    for row in learner.model_.list_rows():
        cells = map(escape_markdown, (row.column, row.value, row.points))
        assert f"| {' | '.join(cells)} |" in markdown
    for total, risk in enumerate(risks):
        assert f"| {total} | {format_share(risk)} |" in markdown
    assert "The risk of each total, and 95% prediction intervals" in report.to_html()
    figure = draw_model(learner)
    bars = [shape for shape in list_shapes(figure) if getattr(shape, "role", "") is Role.POINTS]
    assert len(bars) == len(learner.model_.list_rows())
    (curve,) = [each for each in find_curves(figure, Role.OVERALL_CURVE) if len(each.points) > 2]
    assert len(curve.points) == len(risks)
    n_intervals = sum(leaf["new_interval"] is not None for leaf in summary["leaves"])
    boxes = [c for c in find_curves(figure, Role.ENVIRONMENT_CURVE) if len(c.points) == 5]
    assert len(boxes) == n_intervals


def test_an_effect_that_changes_sign_reverses(tree):
    """`varies` was used for both: the words are `reverses` and `differs`."""
    report = report_on_tree()
    nodes = report.content.nodes
    split = nodes.splits[0]
    for lowest, wanted in ((0.5, "reverses, and differs by about 50%"), (1.5, "differs by about")):
        candidate = replace(
            split.candidate,
            heterogeneity_share=0.25,
            n_seen=4,
            lowest=replace(split.candidate.lowest, odds_ratio=lowest),
            highest=replace(split.candidate.highest, odds_ratio=3.0),
        )
        changed = replace(nodes, splits=[replace(split, candidate=candidate), *nodes.splits[1:]])
        page = replace(report, content=replace(report.content, nodes=changed)).to_html()
        assert f"<small>{wanted}" in page
        assert "varies" not in page
