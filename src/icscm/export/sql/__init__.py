"""A model as one SELECT for SQLite and DuckDB.

`literals` writes values, `conditions` the conditions on a column, `cases` a tree as nested CASEs,
`means` the mean over leaves where a value is missing, and `statement` puts them together.
"""
