"""What counts say: leaf tables, tests of independence, criteria, corrections, verdicts.

Pure arithmetic on counts; the compiled loops stand beside their NumPy twins. May import `engine`,
`model`, `tables` and the ground.
"""
