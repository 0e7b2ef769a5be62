"""Reading files: where they are, what the cells of text mean, which column has which role.

A table is loaded at once, or read in batches that need not fit in memory; writing tables is here,
too. Not here: bins and counts, which begin with the columns of a table, and model files.

May import `engine`, `model`, `tables` and the base modules.
"""
