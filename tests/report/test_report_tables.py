"""The tables of a report in Markdown hold the numbers of its dict, in the order of its sections."""

import re

from icscm.report.formatting import format_deviance, format_p, format_ratio, format_share
from support.reports import report_on, report_on_tree


def read_tables(markdown):
    """The rows of each table by the titles of its columns; of tables alike, one after the other."""
    tables = {}
    for block in re.split(r"\n\n", markdown):
        if block.startswith("|"):
            titles, _, *rows = [
                [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
                for line in block.splitlines()
            ]
            tables.setdefault(tuple(titles), []).extend(rows)
    return tables


def find_table(tables, *titles):
    """The rows of the only table that has all these columns, without Markdown's escapes."""
    (header,) = [header for header in tables if {*titles} <= {*header}]
    columns = [header.index(title) for title in titles]
    return [
        [row[i].replace("&lt;", "<").replace("\\", "") for i in columns] for row in tables[header]
    ]


def test_a_rule_is_told_leaf_by_leaf_and_step_by_step():
    summary, tables = report_on("greedy").summary, read_tables(report_on("greedy").to_markdown())
    assert find_table(tables, "leaf", "predicts", "samples", "verdict") == [
        [str(leaf["number"]), leaf["predicts"], f"{leaf['n']:,}", leaf["conclusion"]]
        for leaf in summary["leaves"]
    ]
    assert find_table(tables, "step", "rule", "right", "wrong", "p covered", "rejected") == [
        [
            str(step["number"]),
            step["rule"],
            f"{step['n_right']:,}",
            f"{step['n_wrong']:,}",
            format_p(step["p_value"]),
            f"{step['n_rejected_all']:,} of {step['n_candidates']:,}",
        ]
        for step in summary["nodes"]["splits"]
    ]
    assert find_table(tables, "scan", "rejected", "p") == [
        [scan["title"], candidate["rule"], format_p(candidate["p_value"])]
        for scan in summary["nodes"]["scans"]
        for candidate in scan["rejected"]
    ]


def test_errors_stand_beside_those_of_the_baseline():
    errors = report_on("greedy").summary["errors"]
    tables = read_tables(report_on("greedy").to_markdown())
    titles = "environment", "samples", "wrong", "error", "sensitivity", "specificity", "baseline"
    rows = [("all", errors), *((row["environment"], row) for row in errors["environments"])]
    shares = "error", "sensitivity", "specificity", "majority_error"
    assert find_table(tables, *titles) == [
        [name, f"{row['n']:,}", f"{row['n_errors']:,}", *(format_share(row[key]) for key in shares)]
        for name, row in rows
    ]


def test_every_setting_is_listed_the_chosen_ones_first():
    settings = report_on("coverage").summary["task"]["settings"]
    rows = find_table(read_tables(report_on("coverage").to_markdown()), "setting", "value")
    chosen = [setting["name"] for setting in settings if not setting["is_default"]]
    assert [name for name, value in rows if value.endswith("(chosen)")] == chosen != []
    assert [name for name, _ in rows[: len(chosen)]] == chosen
    assert {name for name, _ in rows} == {setting["name"] for setting in settings}


def test_a_tree_is_told_split_by_split():
    summary, tables = report_on_tree().summary, read_tables(report_on_tree().to_markdown())
    splits = summary["nodes"]["splits"]
    assert find_table(
        tables, "split", "rule", "samples", "deviance", "OR", "lowest to highest"
    ) == [
        [
            str(split["number"]),
            split["rule"],
            f"{split['n']:,}",
            format_deviance(split["deviance_explained"]),
            format_ratio(split["odds_ratio"]),
            " to ".join(
                f"{format_ratio(split[end]['odds_ratio'])} ({split[end]['environment']})"
                for end in ("lowest", "highest")
            ),
        ]
        for split in splits
    ]
    leaves = [row for row in find_table(tables, "node", "leaf", "samples", "rate") if row[1]]
    assert [row[1:] for row in leaves] == [
        [str(leaf["number"]), f"{leaf['n']:,}", format_share(leaf["rate"])]
        for leaf in summary["leaves"]
    ]


def test_scans_are_numbered_as_their_steps():
    for summary in (report_on("greedy").summary, report_on_tree().summary):
        splits, scans = summary["nodes"]["splits"], summary["nodes"]["scans"]
        assert [split["number"] for split in splits] == [*range(1, len(splits) + 1)]
        assert [scan["number"] for scan in scans] == [*range(1, len(scans) + 1)]
    titles = [scan["title"] for scan in report_on_tree().summary["nodes"]["scans"]]
    assert titles[len(splits) :] == [f"Leaf {i}" for i in range(1, len(splits) + 2)]
