"""The sequences in a model's rules, and in rules that cover the same genomes, as FASTA."""

from __future__ import annotations

import re
from collections.abc import Iterator

from icscm.exceptions import IcscmError
from icscm.formatting import shorten_list
from icscm.model.saved import SavedModel, get_table_settings
from icscm.model.splits import CHAINS

_SEQUENCE = re.compile("[ACGTUNRYSWKMBDHV]+", re.IGNORECASE)


def export_fasta(saved: SavedModel) -> str:
    """A record for each rule, `rule1`, and for each of its equivalents, `rule1.1`."""
    if saved.model.kind not in CHAINS:
        raise IcscmError(
            f"FASTA is for the rules of a conjunction or disjunction, and this model is a "
            f"{saved.model.kind}; see its rules with icscm show"
        )
    records = list(_list_records(saved))
    others = [repr(name) for _, name in records if not _SEQUENCE.fullmatch(name)]
    if others:
        raise IcscmError(
            f"FASTA is for rules on k-mers or unitigs, and {shorten_list(others)} names no "
            "sequence of nucleotides; see the rule with icscm show"
        )
    if not records:
        raise IcscmError("the model has no rule, and so no sequence")
    return "".join(f">{title}\n{sequence}\n" for title, sequence in records)


def _list_records(saved: SavedModel) -> Iterator[tuple[str, str]]:
    """Title and sequence of each record; a rule is formatted as `ACGT present`."""
    found = get_table_settings(saved).get("equivalents")
    found = found if isinstance(found, list) else []
    for i, rule in enumerate(saved.model.rules, start=1):
        name, _, state = str(rule).rpartition(" ")
        yield f"rule{i} {state}", name
        alike = found[i - 1] if i <= len(found) and isinstance(found[i - 1], list) else []
        for j, other in enumerate(alike, start=1):
            name, _, state = str(other).rpartition(" ")
            yield f"rule{i}.{j} {state}, covers the same genomes as rule{i}", name
