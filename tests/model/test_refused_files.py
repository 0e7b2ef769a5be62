"""A file that is not a model is rejected, with what is wrong and what to do."""

import copy
import json
import math
import os

import pytest

from icscm.exceptions import IcscmError
from icscm.formatting import format_json
from icscm.model import parsing
from icscm.model.parsing import Feature, compute_fingerprint
from icscm.model.rules import CategoryRule, MissingRule, ThresholdRule
from icscm.model.saved import load
from support.saved_models import make_saved

AGE = ThresholdRule(0, "age", 63.5, above=True)
SMOKER = CategoryRule(1, "smoker", ("yes",), equal=True, missing=True)
SAVED = make_saved([AGE, SMOKER, MissingRule(1, "smoker", is_missing=False)])
REMEDY = "use a file as save() wrote it, or fit and save again"


def change(*path, to):
    """An edit of a document: the value at a path."""

    def edit(document):
        for key in path[:-1]:
            document = document[key]
        document[path[-1]] = to

    return edit


def drop(*path):
    def edit(document):
        for key in path[:-1]:
            document = document[key]
        del document[path[-1]]

    return edit


NOT_MARKED = 'it is not marked as one with "format": "icscm-model"'
RULE = ("model", "splits", 0, "rule")
LEVELS = ("model", "splits", 1, "rule", "levels")
BAD_DOCUMENTS = {
    "other_format": (
        change("format", to="x"),
        'it is not marked as one with "format": "icscm-model"',
    ),
    "older": (
        change("schema", to=0),
        "schema must be a whole number from 1 to 18446744073709551615, got 0",
    ),
    "boolean_schema": (
        change("schema", to=True),
        "schema must be a whole number from 1 to 18446744073709551615, got true",
    ),
    "no_schema": (drop("schema"), "the schema version is missing"),
    "no_classes": (drop("classes"), "the file lacks the key 'classes'"),
    "extra_key": (
        change("code", to=1),
        'the file has a key that this version does not know, "code"',
    ),
    "model_kind": (
        change("model", "kind", to="list"),
        "model.kind must be one of 'conjunction', 'disjunction', 'tree', 'forest', 'score', "
        'got "list"',
    ),
    "rules_object": (
        change("model", "splits", to={}),
        "model.splits must be a list, got an object of 0",
    ),
    "rule_number": (change(*RULE, to=3), "model.splits[0].rule must be an object, got 3"),
    "rule_kind": (
        change(*RULE, "kind", to="eval"),
        "model.splits[0].rule.kind must be one of 'threshold', 'presence', 'category', 'missing', "
        'got "eval"',
    ),
    "rule_no_kind": (drop(*RULE, "kind"), "model.splits[0].rule lacks the key 'kind'"),
    "rule_extra": (
        change(*RULE, "x", to=1),
        'model.splits[0].rule has a key that this version does not know, "x"',
    ),
    "rule_lacks": (drop(*RULE, "above"), "model.splits[0].rule lacks the key 'above'"),
    "nan": (
        change(*RULE, "threshold", to=math.nan),
        "model.splits[0].rule.threshold must be a finite number, got NaN",
    ),
    "infinity": (
        change(*RULE, "threshold", to=math.inf),
        "model.splits[0].rule.threshold must be a finite number, got a number that is not finite",
    ),
    "threshold_whole": (
        change(*RULE, "threshold", to=2**65),
        "model.splits[0].rule.threshold must be a finite number of 64 bits, "
        "got 36893488147419103232",
    ),
    "threshold_text": (
        change(*RULE, "threshold", to="1"),
        'model.splits[0].rule.threshold must be a finite number, got "1"',
    ),
    "threshold_bool": (
        change(*RULE, "threshold", to=True),
        "model.splits[0].rule.threshold must be a finite number, got true",
    ),
    "above_whole": (
        change(*RULE, "above", to=1),
        "model.splits[0].rule.above must be true or false, got 1",
    ),
    "missing_text": (
        change(*RULE, "missing", to="no"),
        'model.splits[0].rule.missing must be true, false or null, got "no"',
    ),
    "column_range": (
        change(*RULE, "column", to=2),
        "model.splits[0].rule.column must be a whole number from 0 to 1, got 2",
    ),
    "column_negative": (
        change(*RULE, "column", to=-1),
        "model.splits[0].rule.column must be a whole number from 0 to 1, got -1",
    ),
    "column_bool": (
        change(*RULE, "column", to=False),
        "model.splits[0].rule.column must be a whole number from 0 to 1, got false",
    ),
    "column_float": (
        change(*RULE, "column", to=0.0),
        "model.splits[0].rule.column must be a whole number from 0 to 1, got 0.0",
    ),
    "name": (
        change(*RULE, "name", to="a\x1b\nge"),
        'model.splits[0].rule.name is "a\\u001b\\nge", but column 0 is "age" in features',
    ),
    "other_type": (
        change(*RULE, "column", to=1),
        'model.splits[0].rule.name is "age", but column 1 is "smoker" in features',
    ),
    "level_list": (
        change(*LEVELS, to=[["yes"]]),
        "model.splits[1].rule.levels[0] must be text, a finite number, true or false, "
        "got a list of 1",
    ),
    "no_level": (change(*LEVELS, to=[]), "model.splits[1].rule.levels is empty"),
    "levels_mixed": (
        change(*LEVELS, to=["yes", 1]),
        "model.splits[1].rule.levels mixes text, numbers and booleans",
    ),
    "levels_twice": (
        change(*LEVELS, to=["yes", "yes"]),
        "model.splits[1].rule.levels names a level twice",
    ),
    "level_nan": (
        change(*LEVELS, to=[math.nan]),
        "model.splits[1].rule.levels[0] must be text, a finite number, true or false, got NaN",
    ),
    "levels_disagree": (
        change("model", "splits", 2, "rule", to={**SMOKER.to_dict(), "levels": [1]}),
        "model.splits[2].rule.levels are of another kind than an earlier rule's",
    ),
    "leaf_lost": (drop("model", "leaves", 0), "model.leaves has 3 entries instead of 4"),
    "leaf_labels": (
        change("model", "leaves", 1, to=[[1, 1]]),
        "model.leaves[1] has 1 entries instead of 2",
    ),
    "leaf_environments": (
        change("model", "leaves", 1, 0, to=[1]),
        "model.leaves[1][0] has 1 entries instead of 2",
    ),
    "count_negative": (
        change("model", "leaves", 0, 0, 0, to=-1),
        "model.leaves[0][0][0] must be a whole number from 0 to 9223372036854775807, got -1",
    ),
    "count_large": (
        change("model", "leaves", 0, 0, 0, to=2**63),
        "model.leaves[0][0][0] must be a whole number from 0 to 9223372036854775807, "
        "got 9223372036854775808",
    ),
    "count_sum": (
        change("model", "leaves", 0, to=[[2**62] * 2] * 2),
        "model.leaves count 18,446,744,073,709,551,646 samples in all, more than 64 bits hold",
    ),
    "count_float": (
        change("model", "leaves", 0, 0, 0, to=1.0),
        "model.leaves[0][0][0] must be a whole number from 0 to 9223372036854775807, got 1.0",
    ),
    "count_bool": (
        change("model", "leaves", 0, 0, 0, to=True),
        "model.leaves[0][0][0] must be a whole number from 0 to 9223372036854775807, got true",
    ),
    "one_class": (change("classes", to=["a"]), "classes has 1 entries instead of 2"),
    "same_class": (
        change("classes", to=[0, False]),
        "classes must be two distinct labels of one kind, got 0 and false",
    ),
    "mixed_class": (
        change("classes", to=[0, "a"]),
        'classes must be two distinct labels of one kind, got 0 and "a"',
    ),
    "null_class": (
        change("classes", 0, to=None),
        "classes[0] must be text, a finite number, true or false, got null",
    ),
    "no_feature": (
        lambda document: document.update(features=[], fingerprint=compute_fingerprint([])),
        "features is empty, but the model's rules use columns",
    ),
    "feature_type": (
        change("features", 0, "type", to="date"),
        "features[0].type must be one of 'number', 'category', 'left_out', got \"date\"",
    ),
    "feature_name": (change("features", 0, "name", to=7), "features[0].name must be text, got 7"),
    "some_names": (
        change("features", 0, "name", to=None),
        "features has names for some columns only; all have one or none has",
    ),
    "names_twice": (
        change("features", 0, "name", to="smoker"),
        'features names two columns "smoker"',
    ),
    "features_changed": (
        change("features", 0, "name", to="agf"),
        "fingerprint does not belong to these features: one of them was changed",
    ),
    "fingerprint": (change("fingerprint", to=None), "fingerprint must be text, got null"),
    "environments": (change("environments", to="ab"), 'environments must be a list, got "ab"'),
    "no_environment": (
        change("environments", to=[]),
        "environments is empty; without environments it is null",
    ),
    "environment": (
        change("environments", 0, to={}),
        "environments[0] must be text, a finite number, true or false, got an object of 0",
    ),
    "settings": (change("settings", to=[]), "settings must be an object, got a list of 0"),
    "settings_inf": (
        change("settings", "p", to=math.inf),
        'settings["p"] must be text, a finite number, true or false, '
        "got a number that is not finite",
    ),
    "settings_deep": (
        change("settings", "p", to=[[[[1]]]]),
        'settings["p"][0][0][0] is nested too deeply',
    ),
    "alpha": (change("alpha", to=1), "alpha must be a number between 0 and 1, got 1"),
    "alpha_text": (
        change("alpha", to="auto"),
        'alpha must be a number between 0 and 1, got "auto"',
    ),
    "model_list": (change("model", to=[]), "model must be an object, got a list of 0"),
    "feature": (change("features", 0, to=3), "features[0] must be an object, got 3"),
    "alpha_accent": (change("alpha", to="é"), 'alpha must be a number between 0 and 1, got "é"'),
    "alpha_0": (change("alpha", to=0), "alpha must be a number between 0 and 1, got 0"),
    "settings_object": (
        change("settings", "p", to={"a": {"b": {"c": {}}}}),
        'settings["p"]["a"]["b"]["c"] is nested too deeply',
    ),
    "level_two_kinds": (
        change(*LEVELS, to=[True, 1]),
        "model.splits[1].rule.levels mixes text, numbers and booleans",
    ),
    "name_long": (change("version", to=["x"] * 1234), "version must be text, got a list of 1,234"),
    "format_list": (change("format", to=["icscm-model"]), NOT_MARKED),
    "alpha_long": (
        change("alpha", to="x" * 61),
        f'alpha must be a number between 0 and 1, got "{"x" * 60}..."',
    ),
    "alpha_as_long_as_may_be": (
        change("alpha", to="x" * 60),
        f'alpha must be a number between 0 and 1, got "{"x" * 60}"',
    ),
    "whole_negative": (
        change(*RULE, "threshold", to=-(2**64)),
        "model.splits[0].rule.threshold must be a finite number of 64 bits, "
        "got -18446744073709551616",
    ),
    "version": (change("version", to=1), "version must be text, got 1"),
}


def assert_refused(path, message, remedy=REMEDY):
    with pytest.raises(IcscmError) as caught:
        load(path)
    assert str(caught.value) == f"{path} is not an icscm model: {message}; {remedy}"
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("case", BAD_DOCUMENTS)
def test_bad_documents(case, tmp_path):
    edit, message = BAD_DOCUMENTS[case]
    document = copy.deepcopy(SAVED.to_dict())
    edit(document)
    path = tmp_path / "model.json"
    path.write_text(json.dumps(document))
    assert_refused(path, message)


def test_rule_kind_must_suit_the_column(tmp_path):
    saved = make_saved([AGE], [Feature("age", "category")])
    path = tmp_path / "model.json"
    path.write_text(format_json(saved.to_dict()))
    assert_refused(
        path, "model.splits[0].rule is a threshold rule about column 0, of type 'category'"
    )


VALID = format_json(SAVED.to_dict())
BAD_TEXTS = {
    "empty": (b"", "it is not JSON, or cut off (Expecting value: line 1 column 1 (char 0))"),
    "cut": (
        b'{"a": "b',
        "it is not JSON, or cut off (Unterminated string starting at: line 1 column 7 (char 6))",
    ),
    "more": (b"{}\n{}", "it is not JSON, or cut off (Extra data: line 2 column 1 (char 3))"),
    "pickle": (b"\x80\x04\x95", "byte 0 is not UTF-8 text"),
    "zeros": (
        bytes(1000),
        "it is not JSON, or cut off (Expecting value: line 1 column 1 (char 0))",
    ),
    "list": (b"[1, 2]", NOT_MARKED),
    "nested_lists": (b"[" * 100_000, "lists or objects are nested too deeply"),
    "nested_objects": (b'{"a":' * 100_000, "lists or objects are nested too deeply"),
    "twice": (
        VALID.replace('"schema": 5', '"schema": 5, "schema": 5').encode(),
        'the key "schema" occurs twice in one object',
    ),
    "overflow": (
        VALID.replace("63.5", "1e999").encode(),
        "model.splits[0].rule.threshold must be a finite number, got a number that is not finite",
    ),
    "digits": (
        VALID.replace("63.5", "9" * 5000).encode(),
        "it holds a whole number of 5,000 digits",
    ),
    "constant": (
        VALID.replace("63.5", "-Infinity").encode(),
        "model.splits[0].rule.threshold must be a finite number, got a number that is not finite",
    ),
}


@pytest.mark.parametrize("case", BAD_TEXTS)
def test_bad_texts(case, tmp_path):
    content, message = BAD_TEXTS[case]
    path = tmp_path / "model.json"
    path.write_bytes(content)
    assert_refused(path, message)


def make_edited(**changes):
    return json.dumps({**SAVED.to_dict(), **changes})


@pytest.mark.parametrize("schema", [6, 10**9])
def test_newer_files(schema, tmp_path):
    path = tmp_path / "model.json"
    path.write_text(make_edited(schema=schema))
    what = f"it was written by a newer version of icscm (schema {schema}, this one reads 5)"
    assert_refused(path, what, "upgrade icscm")


@pytest.mark.parametrize(
    "changes",
    [
        {"settings": {"p": [[[1, None, "x", True]]], "q": {"a": {"b": {"c": 2.5}}}}},
        {"alpha": None},
        {"alpha": 1e-9},
        {"classes": [0, 1]},
        {"classes": [False, 2.5]},
        {"environments": [1, "a"]},
        {
            "model": make_saved(
                kind="disjunction", leaves=(((2**61 - 1, 2**61),) * 2,)
            ).model.to_dict()
        },
        {"model": make_saved([ThresholdRule(0, "age", 2**64 - 1, above=True)]).model.to_dict()},
        {"model": make_saved([ThresholdRule(0, "age", 1 - 2**64, above=True)]).model.to_dict()},
        {"model": make_saved([MissingRule(0, "age", is_missing=True)]).model.to_dict()},
    ],
)
def test_what_is_just_within_bounds(changes, tmp_path):
    path = tmp_path / "model.json"
    path.write_text(make_edited(**changes))
    assert load(path).to_dict() == {**SAVED.to_dict(), **changes}


def test_no_environments_make_one_column_of_counts(tmp_path):
    path = tmp_path / "model.json"
    model = {"kind": "conjunction", "splits": [], "leaves": [[[3], [4]]], "balanced": False}
    path.write_text(make_edited(environments=None, model=model))
    assert load(path).environments is None
    path.write_text(make_edited(environments=None))
    assert_refused(path, "model.leaves[0][0] has 2 entries instead of 1")


def test_files_that_cannot_be_read(tmp_path):
    place = "check its name and place"
    missing = tmp_path / "nothing.json"
    assert_refused(missing, "it cannot be read (No such file or directory)", place)
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        assert_refused(path, "it is not a file", "name a file that save() wrote")
    what = r"a\\x00b is not an icscm model: it cannot be read \(.*null.*\)"
    with pytest.raises(IcscmError, match=f"^{what}; {place}$"):
        load("a\0b")


def test_bytes_that_are_no_text(tmp_path):
    path = tmp_path / "model.json"
    path.write_bytes(b"x" * 1234 + b"\xff")
    assert_refused(path, "byte 1,234 is not UTF-8 text")


def test_byte_order_marks_do_no_harm(tmp_path):
    path = tmp_path / "model.json"
    path.write_text(VALID, encoding="utf-8-sig")
    assert load(path) == SAVED


# Each limit, what the valid file has of it, and the sentence when it is one too many.
LIMITS = {
    "MAX_CONTAINERS": (
        VALID.count("[") + VALID.count("{"),
        "it holds more than {} lists and objects",
    ),
    "MAX_RULES": (3, "model.splits has 3 entries, more than the {} allowed"),
    "MAX_ENVIRONMENTS": (2, "environments has 2 entries, more than the {} allowed"),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_absurd_sizes(limit, tmp_path, monkeypatch):
    n, message = LIMITS[limit]
    path = tmp_path / "model.json"
    path.write_text(VALID)
    monkeypatch.setattr(parsing, limit, n)
    assert load(path) == SAVED
    monkeypatch.setattr(parsing, limit, n - 1)
    assert_refused(path, message.format(n - 1))


def test_files_too_large(tmp_path, monkeypatch):
    path = tmp_path / "model.json"
    path.write_text(VALID + " " * 2**20)
    monkeypatch.setattr(parsing, "MAX_FILE_BYTES", path.stat().st_size)
    assert load(path) == SAVED
    monkeypatch.setattr(parsing, "MAX_FILE_BYTES", path.stat().st_size - 1)
    what = "it is larger than the 1 MB that a model file may have"
    assert_refused(path, what, "check that it is one, or fit on fewer columns")
    monkeypatch.setattr(parsing, "MAX_FILE_BYTES", 10)
    with pytest.raises(
        IcscmError, match=r"^this model cannot be saved: it is larger than the 0 MB"
    ):
        SAVED.save(tmp_path / "other.json")
    assert not (tmp_path / "other.json").exists()


def test_too_many_levels(tmp_path, monkeypatch):
    rule = CategoryRule(1, "smoker", ("a", "b"), equal=True, pooled=True)
    path = tmp_path / "model.json"
    make_saved([rule]).save(path)
    monkeypatch.setattr(parsing, "MAX_LEVELS", 1)
    assert_refused(path, "model.splits[0].rule.levels has 2 entries, more than the 1 allowed")


def test_too_little_memory(tmp_path, monkeypatch):
    path = tmp_path / "model.json"
    path.write_text(VALID)

    def fail(*_, **__):
        raise MemoryError

    monkeypatch.setattr(parsing.json, "loads", fail)
    with pytest.raises(IcscmError) as caught:
        load(path)
    wanted = f"{path} needs more memory than is available; load it on a larger machine"
    assert str(caught.value) == wanted
