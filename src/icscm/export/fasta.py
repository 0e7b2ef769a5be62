"""The sequences of a model's rules on k-mers or unitigs, as FASTA."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from icscm.exceptions import IcscmError
from icscm.formatting import shorten_list
from icscm.model.saved import SavedModel, get_table_settings
from icscm.model.splits import CHAINS

_SEQUENCE = re.compile("[ACGTUNRYSWKMBDHV]+", re.IGNORECASE)


@dataclass(frozen=True)
class Record:
    """A sequence with its title."""

    title: str
    sequence: str


def export_fasta(saved: SavedModel) -> str:
    """Write a record for each rule, `rule1`, and for each of its equivalents, `rule1.1`."""
    if saved.model.kind not in CHAINS:
        raise IcscmError(
            f"FASTA is for the rules of a conjunction or disjunction, and this model is a "
            f"{saved.model.kind}; see its rules with icscm show"
        )
    records = [*_list_records(saved)]
    others = [
        repr(record.sequence) for record in records if not _SEQUENCE.fullmatch(record.sequence)
    ]
    if others:
        raise IcscmError(
            f"FASTA is for rules on k-mers or unitigs, and {shorten_list(others)} names "
            "no sequence of nucleotides; see the rule with icscm show"
        )
    if not records:
        raise IcscmError("the model has no rule, and so no sequence")
    return "".join(f">{record.title}\n{record.sequence}\n" for record in records)


def _list_records(saved: SavedModel) -> Iterator[Record]:
    """List the sequence of each rule, and those that are present in the same genomes."""
    equivalents_of = get_table_settings(saved).get("equivalents", [])
    for number, rule in enumerate(saved.model.rules, start=1):
        sequence, state = _read_rule(str(rule))
        yield Record(f"rule{number} {state}", sequence)
        equivalents = equivalents_of[number - 1] if number <= len(equivalents_of) else []
        for place, equivalent in enumerate(equivalents, start=1):
            sequence, state = _read_rule(str(equivalent))
            title = f"rule{number}.{place} {state}, covers the same genomes as rule{number}"
            yield Record(title, sequence)


def _read_rule(text: str) -> tuple[str, str]:
    """Return the sequence of a rule and its state: `ACGT present`."""
    sequence, _, state = text.rpartition(" ")
    return sequence, state
