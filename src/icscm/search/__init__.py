"""How a model is found: pure functions of a source of rows and settings, to a model and a trace.

A search uses counts; rows it only draws and leaves out, to compare models. What is not here: how
rows are counted (`sources`), what counts say (`stats`), and fits of an estimator (`estimators`).

    nodes                                       rows that satisfy a path of rules, as counts

    rules      a rule set: the entry            trees        a tree: the entry
      view       a disjunction, inverted          columns      which columns differ: the screen
      greedy     Algorithms 1 and 2               rate_trees   whole trees of homogeneous rates
        candidate_scanner   one scan              grow         best first
          candidates, utility, clusters           split_scanner   one scan
          shortlist, summary, recording           tree_records    the model and its trace
      pruning    Proposition 3.2                forest       many trees
      assessment p-values, when first read      points       a score
    exhaustive, sets, table_sets, tree_sets     sets of rules or columns that are invariant
    shape                                       a conjunction, a disjunction or a tree?
    trace, records                              what all of them leave for reports
"""
