"""The inner loops, compiled, by subject. Each has a twin in plain NumPy in `_reference.py`.

All of them release the GIL and write only to what the caller hands them, so that threads
work side by side on different features, or on different rows, without locks.
"""

from icscm.engine._kernels.coding import SearchTable, code_columns, find_extremes, tally_values
from icscm.engine._kernels.counting import (
    clear_bits,
    count_bits,
    count_codes,
    count_codes_of_rows,
    count_masked_bits,
    sum_words,
)
from icscm.engine._kernels.hashing import (
    fill_slots,
    hash_column,
    hash_names,
    hash_patterns,
    hash_rows,
    list_members,
    number_patterns,
)
from icscm.engine._kernels.packing import (
    pack_columns,
    pack_rows,
    pack_sparse_columns,
    pack_sparse_rows,
    parse_lines,
)

__all__ = [
    "SearchTable",
    "clear_bits",
    "code_columns",
    "count_bits",
    "count_codes",
    "count_codes_of_rows",
    "count_masked_bits",
    "fill_slots",
    "find_extremes",
    "hash_column",
    "hash_names",
    "hash_patterns",
    "hash_rows",
    "list_members",
    "number_patterns",
    "pack_columns",
    "pack_rows",
    "pack_sparse_columns",
    "pack_sparse_rows",
    "parse_lines",
    "sum_words",
    "tally_values",
]
