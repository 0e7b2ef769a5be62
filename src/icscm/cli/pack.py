"""`icscm pack`: a presence/absence table as a store of bits."""

from __future__ import annotations

from pathlib import Path

import click

from icscm.cli import files
from icscm.cli.console import Progress, print_written
from icscm.cli.group import main
from icscm.cli.options import FILE, add_options


@main.command()
@click.argument("table", type=FILE)
@add_options("out", "delimiter", "force", "quiet")
def pack(table: Path, out: Path, delimiter: str | None, force: bool, quiet: bool) -> None:
    """Pack a presence/absence table into bits.

    TABLE is text (.Rtab, .tsv, .csv, also .gz): genomes in columns, named in the first line;
    genes, k-mers or unitigs in rows, each a name and then 0 or 1 for every genome. It is read
    once, in pieces, whatever its size; the store takes one bit per cell, and genes that are
    present in the same genomes are stored once. icscm fit and other commands pack an .Rtab table
    by themselves, each time; a large one is packed once with this command.

    \b
    Example:
      icscm pack kmers.tsv --out kmers.bits
      icscm fit kmers.bits --labels phenotypes.tsv --target resistant \\
          --environment country --out model.json
    """
    from icscm.sources.bits.packing import pack_table

    files.check_ending(out, files.BITS)
    files.check_outputs([out], force=force, inputs=[table])
    n_bytes = table.stat().st_size if table.is_file() else None
    with Progress(quiet=quiet).stage(f"Packing {table}", n_bytes) as show_bytes:
        pack_table(
            table,
            out,
            delimiter=files.read_delimiter(delimiter),
            force=force,
            on_chunk=show_bytes,
        )
    print_written(out)
