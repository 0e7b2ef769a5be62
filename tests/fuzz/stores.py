"""Damaged `.bits` files: at random, in words that matter, crafted with right checksums."""

from __future__ import annotations

import functools
import random
from pathlib import Path
from random import Random
from typing import NamedTuple

import damage
from fuzz.judging import DONE, find_faults, find_strays, list_files
from fuzz.processes import call, empty_folder
from fuzz.tables import Spec, draw_genes, encode_labels, make_genes

_KINDS = {
    "random": damage.damage,
    "words": damage.flip_word,
    "footer": damage.mutate_footer,
    "section": damage.mutate_section,
}
_N_BASES = 4
_FIT = ("fit", "x.bits", "--labels", "labels.csv", "--target", "y", "--environment", "place",
        "--out", "model.json", "--quiet", "--n-jobs", "1")  # fmt: skip
_PREDICT = ("predict", "given.json", "x.bits", "--quiet")


class Base(NamedTuple):
    """A sound store, and what comes of it."""

    bits: bytes
    labels: bytes
    model: bytes
    predictions: bytes


def make(rng: Random) -> Spec:
    """One store, damaged."""
    return {
        "base": rng.randrange(_N_BASES),
        "kind": rng.choice(list(_KINDS)),
        "seed": rng.randrange(2**32),
        "command": rng.choice(("predict", "fit")),
    }


@functools.lru_cache
def make_base(number: int) -> Base:
    """The store, a model learned from it, and its predictions."""
    genes = draw_genes(Random(number + 17), plain=True)
    with empty_folder() as folder:
        work = folder / "work"
        (work / "x.Rtab").write_bytes(make_genes(genes))
        (work / "labels.csv").write_bytes(encode_labels(genes))
        for argv in (("pack", "x.Rtab", "--out", "x.bits"), _FIT):
            outcome = call(folder, argv)
            assert outcome.status == DONE, outcome
        (work / "given.json").write_bytes((work / "model.json").read_bytes())
        outcome = call(folder, _PREDICT)
        assert outcome.status == DONE, outcome
        found = list_files(work)
        return Base(found["x.bits"], found["labels.csv"], found["model.json"], outcome.out)


def judge(spec: Spec, folder: Path) -> list[str]:
    """Refused in a sentence, or as if nothing had happened."""
    base, work = make_base(spec["base"]), folder / "work"
    bits = _KINDS[spec["kind"]](base.bits, random.Random(spec["seed"]))
    (work / "x.bits").write_bytes(bits)
    (work / "labels.csv").write_bytes(base.labels)
    (work / "given.json").write_bytes(base.model)
    before = list_files(work)
    outcome = call(folder, _FIT if spec["command"] == "fit" else _PREDICT)
    faults = find_faults(outcome)
    faults += find_strays(folder, before, ["model.json"] if outcome.status == DONE else [])
    if outcome.status == DONE and _must_be_equal(base.bits, bits, spec["kind"]):
        if spec["command"] == "fit":
            is_equal = (work / "model.json").read_bytes() == base.model
        else:
            is_equal = outcome.out == base.predictions
        faults += [] if is_equal else [f"silently wrong: {spec['command']}, {spec['kind']}"]
    return faults


def _must_be_equal(sound: bytes, damaged: bytes, kind: str) -> bool:
    """Whether it can be told from the file that something is wrong with it.

    Other bits, names or samples under right checksums are another store, and a good one.
    """
    if kind in ("random", "words"):
        return True
    try:
        footer = damage.read_footer(damaged)
        if footer["samples"] != damage.read_footer(sound)["samples"]:
            return False
        free = ("words", "names", "name_ends")
        return all(
            damage.read_section(sound, name) == damage.read_section(damaged, name) for name in free
        )
    except (ValueError, KeyError, TypeError, IndexError):
        return True
