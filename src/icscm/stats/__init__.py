"""Statistics of counts: leaf tables, tests of independence, criteria, verdicts, splits.

Pure arithmetic on counts; the compiled loops stand beside their NumPy twins. May import `engine`,
`model`, `tables` and the ground.
"""
