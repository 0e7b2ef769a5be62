"""From columns to counts: where to cut each column, the bin of each cell, and rows by bin.

What is not here: how tables are read (`tables`, `io`), where rows live (`sources`), what counts say
(`stats`) and which rules they lead to (`search`). May import `model`, `tables`, `stats` and the
base modules.

    counts          the contract between searches and sources: bins, rules on bins, cubes

    sampling        the rows whose quantiles are thresholds
    survey          what is known of a table in pieces; value_samples: how many distinct values
    binning         thresholds, from a table; survey_binning: from a survey
    coding          from values to bins: a whole table, or a piece
    bits            tables of zeros and ones, whose identical columns are stored once

    stores          columns of bins in memory, counted over any rows
    pieces          rows in stores that are counted on demand, by the path of rules they satisfy
    clusters, levels, moments, patterns     other counts of the same rows
    leaf_tables     from counts to the leaf of each candidate rule
    reasons         why a candidate is rejected

    threads         work in parts that do not depend on each other
    _kernels        the inner loops, compiled
"""
