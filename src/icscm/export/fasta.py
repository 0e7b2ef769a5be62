"""The sequences of a model's rules on k-mers or unitigs, as FASTA.

A rule on such a column reads `ACGT present`: whether a genome has the sequence. FASTA has a line
with a title, then one with the sequence:

    >rule1 present
    ACGT
    >rule1.1 absent, covers the same genomes as rule1
    TTTG
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from icscm.exceptions import IcscmError
from icscm.formatting import shorten_list
from icscm.model.saved import SavedModel, get_table_settings
from icscm.model.splits import CHAINS

# The codes of nucleotides, those of several possible ones included (IUPAC).
_SEQUENCE = re.compile("[ACGTUNRYSWKMBDHV]+", re.IGNORECASE)


@dataclass(frozen=True)
class SequenceRule:
    """A rule on a sequence, which is `present` or `absent`."""

    sequence: str
    state: str


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
    records = list(_list_records(saved))
    other_columns = [
        repr(record.sequence) for record in records if not _SEQUENCE.fullmatch(record.sequence)
    ]
    if other_columns:
        raise IcscmError(
            f"FASTA is for rules on k-mers or unitigs, and {shorten_list(other_columns)} names "
            "no sequence of nucleotides; see the rule with icscm show"
        )
    if not records:
        raise IcscmError("the model has no rule, and so no sequence")
    return "".join(f">{record.title}\n{record.sequence}\n" for record in records)


def _list_records(saved: SavedModel) -> Iterator[Record]:
    """List the sequence of each rule, then those that are present in the same genomes."""
    equivalents_by_rule = get_table_settings(saved).get("equivalents", [])
    for number, rule in enumerate(saved.model.rules, start=1):
        sequence_rule = _read_rule(str(rule))
        yield Record(f"rule{number} {sequence_rule.state}", sequence_rule.sequence)

        has_equivalents = number <= len(equivalents_by_rule)
        equivalents = equivalents_by_rule[number - 1] if has_equivalents else []
        for equivalent_number, text in enumerate(equivalents, start=1):
            equivalent = _read_rule(str(text))
            title = (
                f"rule{number}.{equivalent_number} {equivalent.state}, "
                f"covers the same genomes as rule{number}"
            )
            yield Record(title, equivalent.sequence)


def _read_rule(text: str) -> SequenceRule:
    """Read a rule on a sequence from its text, such as `ACGT present`."""
    sequence, _, state = text.rpartition(" ")
    return SequenceRule(sequence, state)
