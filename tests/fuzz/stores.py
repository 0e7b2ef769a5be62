"""Damaged `.bits` files: at random, in words that matter, crafted with right checksums."""

from __future__ import annotations

import functools
import random
from pathlib import Path
from random import Random
from typing import NamedTuple

from fuzz.judging import DONE, find_faults, find_strays, list_files
from fuzz.processes import call, empty_folder
from fuzz.tables import Spec, draw_genes, encode_labels, make_genes
from support import damage

_KINDS = {
    "random": damage.damage,
    "words": damage.flip_word,
    "footer": damage.mutate_footer,
    "section": damage.mutate_section,
}
_N_BASES = 4
_ROLES = ("--labels", "labels.csv", "--target", "y")
_FIT = ("fit", "x.bits", *_ROLES, "--environment", "place",
        "--out", "-", "--quiet", "--n-jobs", "1")  # fmt: skip
# All write to standard output.
_COMMANDS = {
    "fit": _FIT,
    "tree": (*_FIT, "--model", "tree"),
    "predict": ("predict", "given.json", "x.bits", "--quiet"),
    "check": ("check", "x.bits", *_ROLES, "--environment", "place", "--json"),
    "evaluate": ("evaluate", "given.json", "x.bits", *_ROLES, "--environment", "place", "--json"),
    "recalibrate": ("recalibrate", "given.json", "x.bits", *_ROLES, "--out", "-"),
}


class Base(NamedTuple):
    """A sound store, and what comes of it."""

    bits: bytes
    labels: bytes
    model: bytes
    outputs: dict[str, bytes]


def make(rng: Random) -> Spec:
    """One store, damaged."""
    return {
        "base": rng.randrange(_N_BASES),
        "kind": rng.choice(list(_KINDS)),
        "seed": rng.randrange(2**32),
        "command": rng.choice(("predict", "predict", *_COMMANDS)),
    }


@functools.lru_cache
def make_base(number: int) -> Base:
    """The store, a model learned from it, and its predictions."""
    genes = draw_genes(Random(number + 17), plain=True)
    with empty_folder() as folder:
        work = folder / "work"
        (work / "x.Rtab").write_bytes(make_genes(genes))
        (work / "labels.csv").write_bytes(encode_labels(genes))
        outputs = {}
        for name, argv in {"pack": ("pack", "x.Rtab", "--out", "x.bits"), **_COMMANDS}.items():
            outcome = call(folder, argv)
            assert outcome.status == DONE, outcome
            outputs[name] = outcome.out
            if name == "fit":
                (work / "given.json").write_bytes(outcome.out)
        found = list_files(work)
        return Base(found["x.bits"], found["labels.csv"], found["given.json"], outputs)


def judge(spec: Spec, folder: Path) -> list[str]:
    """Refused in a sentence, or as if nothing had happened."""
    base, work = make_base(spec["base"]), folder / "work"
    bits = _KINDS[spec["kind"]](base.bits, random.Random(spec["seed"]))
    (work / "x.bits").write_bytes(bits)
    (work / "labels.csv").write_bytes(base.labels)
    (work / "given.json").write_bytes(base.model)
    before = list_files(work)
    outcome = call(folder, _COMMANDS[spec["command"]])
    faults = find_faults(outcome) + find_strays(folder, before)
    is_other = outcome.out != base.outputs[spec["command"]]
    if outcome.status == DONE and is_other and _must_be_equal(base.bits, bits, spec["kind"]):
        faults.append(f"silently wrong: {spec['command']}, {spec['kind']}")
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
