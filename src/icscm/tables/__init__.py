"""Input tables made uniform: columns, labels, environments and weights of any kind of table.

`columns` reads one column at a time, `parsing` a whole table at fitting and at prediction, `coded`
makes it numbers, and `suspicion` finds the columns that rules should not use. Nothing here knows
bins or rules.
"""
