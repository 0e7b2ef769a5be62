"""Statistics of counts: leaf tables, tests of independence, criteria, verdicts, splits.

Pure arithmetic on counts; each compiled loop has a NumPy twin. May import `engine`, `model`,
`tables` and the base modules.
"""
